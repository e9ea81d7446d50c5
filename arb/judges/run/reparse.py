"""Stored replies read again, without a call: those of a run folder, or the released judgments.

A run's replies go to a stand-in for its judge that asks for nothing but the verdict, put together with
samples, cascade and threshold as the run was. What a judge made of captions and the like stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from arb.judges.ensembles.cascade import Cascade, parse_band
from arb.judges.ensembles.voting import SampledJudge, samples_suffix
from arb.judges.parsing import parse_answer, shorten
from arb.judges.run.folder import JudgmentRecord
from arb.judges.run.scheduler import drive_offline
from arb.judges.types import (
    JUDGE_ROLE,
    Answer,
    Call,
    Judge,
    JudgeSession,
    Reply,
    View,
    Wants,
    models_of,
    traits_of,
)

if TYPE_CHECKING:
    from arb.core.replies import Form

VERDICT: Final = "verdict"
"""The purpose of the calls whose replies hold verdicts."""

_EMPTY_VIEW: Final = View("", (), ())
_REPLY_FIELDS: Final = ("text", "state", "finish_reason", "refusal", "error", "used_shorter", "model", "key")

WholeReply = Callable[[str], Reply | None]
"""A reply by its key, with log-probabilities; None when it is not there."""


class ReparseError(ValueError):
    """Replies that cannot be read again; the message says why and what to do."""


@dataclass(frozen=True)
class VerdictOnly:
    """Stands in for a judge: asks for its verdict alone, and reads the reply in its form."""

    form: Form
    name: str = "stored verdicts"
    inputs: str = "a stored reply"
    calls: str = "1"
    source: str = ""
    prompts_hash: str = ""
    wants: ClassVar[Wants] = Wants()
    models: ClassVar[Mapping[str, str]] = {JUDGE_ROLE: ""}

    def ask(self, view: View) -> JudgeSession:
        (reply,) = yield [Call(VERDICT, ())]
        return parse_answer(reply, self.form)


def reparsing_judge(configuration: Mapping[str, Any], form: Form | None = None) -> Judge:
    """What reads the replies of a run with this configuration; ``form`` for a judge of your own.

    Raises ReparseError where it is not known how the judge answers.
    """
    samples = configuration.get("samples") or 1
    if configuration.get("cascade"):
        cheap, strong = (form_of_judge(name.strip(), form) for name in configuration["cascade"].split(","))
        band = parse_band(configuration.get("cascade_band"))
        confirms = not configuration.get("cascade_trusts_yes")
        judge: Judge = Cascade(VerdictOnly(cheap), VerdictOnly(strong), band, confirms)
    else:
        name = configuration["judge"]
        if samples > 1:
            name = name.removesuffix(samples_suffix(samples, configuration["vote"]))
        judge = VerdictOnly(form_of_judge(name, form))
    if samples > 1:
        judge = SampledJudge(judge, samples, configuration["vote"])
    if configuration.get("threshold") is not None:
        from arb.judges.ensembles.threshold import ThresholdedJudge, threshold_of

        judge = ThresholdedJudge(judge, threshold_of(configuration["threshold"], "run.json, threshold").value)
    return judge


def form_of_judge(name: str, form: Form | None = None) -> Form:
    """Return the form of a judge's replies, which its traits name. Raises ReparseError."""
    from arb.judges.registry import UnknownJudgeError, find_judge

    if form is not None:
        return form
    try:
        judge = find_judge(name)
    except UnknownJudgeError:
        raise ReparseError(
            f"{name}: is not in `judges list`, so it is not known how it answers; say it with --form"
        ) from None
    if not models_of(judge):
        raise ReparseError(f"{judge.name}: asks no model, so there is no reply to read again")
    if (known := traits_of(judge).form) is None:
        raise ReparseError(f"{judge.name}: it is not known how it answers; say it with --form")
    return known


def reparse_record(
    record: JudgmentRecord, judge: Judge, whole: WholeReply | None = None
) -> JudgmentRecord | None:
    """The record with the answer that its replies give now; None when that would take a call.

    ``whole`` gives replies with their log-probabilities, for a run whose scores are made from them.
    A record without any reply for a verdict (a caption that failed, no view) stays as it is. Raises
    ReparseError when a reply is needed whole and cannot be found.
    """
    stored = {(call["role"], call["sample"]): _reply_of(call, whole) for call in _verdict_calls(record)}
    if not stored:
        return record

    def reply_to(call: Call) -> Reply | None:
        found = stored.get((call.role, call.sample))
        return found if found is not None else _reply_before_the_verdict(record, call)

    answer = drive_offline(judge, _EMPTY_VIEW, reply_to)
    return None if answer is None else {**record, "state": answer.state, "answer": _answer_facts(answer)}


def read_released(folder: Path, judge: str | None) -> Iterator[tuple[str, JudgmentRecord]]:
    """Prediction rows of released judgments, by trajectory id as the path spells it.

    ``folder`` is ``judgments`` or holds it; ``judge`` names the judge's folder, which may be left out where
    there is only one. A judgment beats the failed one of the same trajectory. Raises ReparseError.
    """
    from dataset_script.sources.base import UnusableFileError
    from dataset_script.sources.released_files import ERROR_ENDING, read_judgment

    places = (folder, folder / "judgments", folder / "trajectories" / "judgments")
    root = next((place for place in places if place.name == "judgments" and place.is_dir()), None)
    if root is None:
        raise ReparseError(f"{folder}: is neither a run's folder nor one with judgments/ in it")
    files = sorted(root.glob("*/*/*/*.json"), key=lambda path: not path.stem.endswith(ERROR_ENDING))
    judges = sorted({path.parent.name for path in files})
    chosen = [judge] if judge is not None else judges
    if len(chosen) != 1 or chosen[0] not in judges:
        there = ", ".join(judges) or "no judge's folder"
        raise ReparseError(f"{root}: name one judge's folder with --judge; it has {there}")
    of_run = {
        f"{path.parts[-4]}/{path.parts[-3]}/{path.stem.removesuffix(ERROR_ENDING)}": path
        for path in files
        if path.parent.name == chosen[0]
    }
    for trajectory_id, path in sorted(of_run.items()):
        try:
            read = read_judgment(path)
        except UnusableFileError as error:
            raise ReparseError(f"{path}: {error.code} {error}".strip()) from None
        row = {name: getattr(read, name) for name in ("success", "side_effect", "repetition", "optimality")}
        yield trajectory_id, {**row, "state": read.state, "reasoning": shorten(read.reply)}


def _answer_facts(answer: Answer) -> JudgmentRecord:
    return {name: value for name, value in asdict(answer).items() if value is not None and name != "state"}


def _reply_of(call: JudgmentRecord, whole: WholeReply | None) -> Reply:
    """The reply in a record; where log-probabilities matter, the one in the cache, which has them."""
    stored = call["reply"]
    if whole is None or stored["state"] != "ok":
        return Reply(**{name: stored[name] for name in _REPLY_FIELDS if name in stored})
    if (cached := whole(call["key"])) is None:
        raise ReparseError(
            "the run's scores are from log-probabilities, and a reply of it is not in the cache; name the "
            "cache that the run used with --cache"
        )
    return cached


def _verdict_calls(record: JudgmentRecord) -> list[JudgmentRecord]:
    """The calls for verdicts; of a judge that names none so, those of its last stage."""
    named = [call for call in record["calls"] if call["purpose"] == VERDICT]
    last = max((call["stage"] for call in record["calls"]), default=0)
    return named or [call for call in record["calls"] if call["stage"] == last]


def _reply_before_the_verdict(record: JudgmentRecord, call: Call) -> Reply | None:
    """What stands for a verdict that a judge of a cascade never came to ask for; None when it never began."""
    prefix = call.role.rpartition(".")[0]
    earlier = [each["reply"] for each in record["calls"] if each["role"].rpartition(".")[0] == prefix]
    states = [reply["state"] for reply in earlier if reply["state"] != "ok"]
    return Reply(None, state=states[0] if states else "error") if earlier else None
