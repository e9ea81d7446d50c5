"""Parse stored replies again without calling a model: those of a run folder, or the released judgments.

A run's replies go to a substitute for its judge that asks only for the verdict, with the samples, cascade and
threshold of the run. Intermediate results, such as captions, are not parsed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from arb.core.vocabulary import TARGETS
from arb.judges.ensembles.cascade import Cascade, parse_band
from arb.judges.ensembles.threshold import ThresholdedJudge, threshold_of
from arb.judges.ensembles.voting import SampledJudge, samples_suffix
from arb.judges.parsing import parse_answer, shorten
from arb.judges.registry import UnknownJudgeError, find_judge
from arb.judges.run.records import JudgmentRecord, answer_facts, reply_of
from arb.judges.run.scheduler import drive_offline
from arb.judges.types import JUDGE_ROLE, Call, Judge, JudgeSession, Reply, View, Wants, models_of, traits_of
from dataset_script.sources.base import UnusableFileError
from dataset_script.sources.released_files import ERROR_ENDING, read_judgment

if TYPE_CHECKING:
    from arb.core.replies import Form

VERDICT: Final = "verdict"
"""The purpose of the calls whose replies hold verdicts."""

_EMPTY_VIEW: Final = View("", (), ())

WholeReply = Callable[[str], Reply | None]
"""Takes the key of a call; returns its reply with log-probabilities, or None if it is not stored."""


class ReparseError(ValueError):
    """Raised for replies that cannot be parsed again; the message says why and what to do."""


@dataclass(frozen=True)
class VerdictOnly:
    """A substitute for a judge that asks only for the verdict and parses the reply in the judge's form."""

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
    """Return a judge that parses the replies of a run with this configuration.

    ``form`` is the form of the replies, for a judge of your own. Raises ReparseError if it is unknown.
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
        judge = ThresholdedJudge(judge, threshold_of(configuration["threshold"], "run.json, threshold").value)
    return judge


def form_of_judge(name: str, form: Form | None = None) -> Form:
    """Return ``form`` if it is given, else the form of the judge's replies. Raises ReparseError."""
    if form is not None:
        return form
    try:
        judge = find_judge(name)
    except UnknownJudgeError:
        raise ReparseError(
            f"{name}: is not in `judges list`, so the form of its replies is unknown; name it with --form"
        ) from None
    if not models_of(judge):
        raise ReparseError(f"{judge.name} asks no model, so there is no reply to parse again")
    if (known := traits_of(judge).form) is None:
        raise ReparseError(f"{judge.name}: the form of its replies is unknown; name it with --form")
    return known


def reparse_record(
    record: JudgmentRecord, judge: Judge, whole: WholeReply | None = None
) -> JudgmentRecord | None:
    """Return the record with the answer that its replies give now, or None if a further call is needed.

    ``whole`` is given if the run's scores come from log-probabilities, and returns replies with them. A
    record without a reply for the verdict (a caption failed, or there was no view) stays the same. Raises
    ReparseError if ``whole`` has no reply to a call.
    """
    stored = {(call["role"], call["sample"]): _reply_of(call, whole) for call in _verdict_calls(record)}
    if not stored:
        return record

    def reply_to(call: Call) -> Reply | None:
        found = stored.get((call.role, call.sample))
        return found if found is not None else _reply_before_the_verdict(record, call)

    answer = drive_offline(judge, _EMPTY_VIEW, reply_to)
    return None if answer is None else {**record, "state": answer.state, "answer": answer_facts(answer)}


def read_released(folder: Path, judge: str | None) -> Iterator[tuple[str, JudgmentRecord]]:
    """Yield (trajectory id, prediction row) of released judgments; the id is made from the file's path.

    ``folder`` is ``judgments`` or contains it. ``judge`` names the judge's folder and may be None if there is
    only one. A failed judgment is ignored if the trajectory has another file. Raises ReparseError.
    """
    places = (folder, folder / "judgments", folder / "trajectories" / "judgments")
    root = next((place for place in places if place.name == "judgments" and place.is_dir()), None)
    if root is None:
        raise ReparseError(f"{folder}: contains neither a run nor judgments/; name a folder that does")
    files = sorted(root.glob("*/*/*/*.json"), key=lambda path: not path.stem.endswith(ERROR_ENDING))
    judges = sorted({path.parent.name for path in files})
    chosen = [judge] if judge is not None else judges
    if len(chosen) != 1 or chosen[0] not in judges:
        there = ", ".join(judges) or "none"
        raise ReparseError(f"{root}: name one judge's folder with --judge; folders there: {there}")
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
        row = {name: getattr(read, name) for name in TARGETS}
        yield trajectory_id, {**row, "state": read.state, "reasoning": shorten(read.reply)}


def _reply_of(call: JudgmentRecord, whole: WholeReply | None) -> Reply:
    """Return the reply to a call from its record, or from ``whole`` if log-probabilities are needed."""
    if whole is None or call["reply"]["state"] != "ok":
        return reply_of(call)
    if (cached := whole(call["key"])) is None:
        raise ReparseError(
            "the run's scores come from log-probabilities, but one of its replies is not in the cache; name "
            "the cache that the run used with --cache"
        )
    return cached


def _verdict_calls(record: JudgmentRecord) -> list[JudgmentRecord]:
    """Return the record's calls for verdicts, or those of its last stage if none has that purpose."""
    named = [call for call in record["calls"] if call["purpose"] == VERDICT]
    last = max((call["stage"] for call in record["calls"]), default=0)
    return named or [call for call in record["calls"] if call["stage"] == last]


def _reply_before_the_verdict(record: JudgmentRecord, call: Call) -> Reply | None:
    """Return an error reply if a judge of a cascade failed before its verdict; None if it never began."""
    prefix = call.role.rpartition(".")[0]
    earlier = [each["reply"] for each in record["calls"] if each["role"].rpartition(".")[0] == prefix]
    if not earlier:
        return None
    failures = (reply["state"] for reply in earlier if reply["state"] != "ok")
    return Reply(None, state=next(failures, "error"))
