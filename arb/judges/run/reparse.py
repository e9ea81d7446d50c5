"""Parse the stored replies of a run or of the released judgments again, without calling a model.

The replies of a run are given to a substitute for its judge (`VerdictOnly`), with the samples, cascade and
threshold of the run. Only verdicts are parsed again, not intermediate results such as captions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from arb.core.suite import load_suite
from arb.core.suites.targets import RELEASED_ANSWERS
from arb.judges.catalog.steps import StepJudge
from arb.judges.ensembles.cascade import Cascade, parse_band
from arb.judges.ensembles.threshold import ThresholdedJudge, threshold_of
from arb.judges.ensembles.voting import SampledJudge, samples_suffix
from arb.judges.parsing import parse_answer, shorten
from arb.judges.registry import UnknownJudgeError, find_judge
from arb.judges.run.records import JudgmentRecord, answer_facts, reply_of
from arb.judges.run.scheduler import drive_offline
from arb.judges.types import (
    JUDGE_ROLE,
    Call,
    Judge,
    JudgeSession,
    Message,
    OptionsError,
    Reply,
    StepQuestion,
    View,
    Wants,
    models_of,
    traits_of,
)
from dataset_script.sources.problems import UnusableFileError
from dataset_script.sources.released_files import ERROR_ENDING, read_judgment

if TYPE_CHECKING:
    from arb.core.replies import Form

VERDICT: Final = "verdict"
"""The `Call.purpose` of calls that ask for a verdict."""

_EMPTY_VIEW: Final = View("", (), ())

WholeReply = Callable[[str], Reply | None]
"""A function that takes a call's key and returns the stored reply with log-probabilities, or None."""


@dataclass(frozen=True)
class VerdictOnly:
    """A judge that only asks for a verdict, and parses the reply in the form of the judge it replaces."""

    form: Form
    steps: StepQuestion | None = None
    name: str = "stored verdicts"
    inputs: str = "a stored reply"
    calls: str = "1"
    source: str = ""
    prompts_hash: str = ""
    wants: ClassVar[Wants] = Wants()
    models: ClassVar[Mapping[str, str]] = {JUDGE_ROLE: ""}

    def ask(self, view: View) -> JudgeSession:
        (reply,) = yield [Call(VERDICT, (Message("user", ""),))]
        return parse_answer(reply, self.form, self.steps)


def reparsing_judge(configuration: Mapping[str, Any], form: Form | None = None) -> Judge:
    """Return a judge that parses the replies of a run with this configuration.

    A custom judge needs ``form``, the form of its replies. Raises OptionsError if the form is unknown.
    """
    if configuration.get("combination"):
        raise OptionsError("a combination of judges cannot be parsed again; repeat the run from the cache")
    samples = configuration.get("samples") or 1
    if configuration.get("cascade"):
        cheap, strong = (
            _verdict_only(name.strip(), form, configuration) for name in configuration["cascade"].split(",")
        )
        band = parse_band(configuration.get("cascade_band"))
        confirms = not configuration.get("cascade_trusts_yes")
        judge: Judge = Cascade(cheap, strong, band, confirms)
    else:
        name = configuration["judge"]
        if samples > 1:
            name = name.removesuffix(samples_suffix(samples, configuration["vote"]))
        judge = _verdict_only(name, form, configuration)
    if samples > 1:
        judge = SampledJudge(judge, samples, configuration["vote"])
    if configuration.get("threshold") is not None:
        judge = ThresholdedJudge(judge, threshold_of(configuration["threshold"], "run.json, threshold").value)
    return judge


def _verdict_only(name: str, form: Form | None, configuration: Mapping[str, Any]) -> VerdictOnly:
    """Return a judge that parses replies in ``form``, or in the judge's own form. Raises OptionsError."""
    if form is not None:
        return VerdictOnly(form)
    try:
        judge = find_judge(name)
    except UnknownJudgeError:
        raise OptionsError(
            f"{name}: is not in `judges list`, so the form of its replies is unknown; set it with --form"
        ) from None
    if isinstance(judge, StepJudge):
        judge = judge.with_targets(load_suite(configuration["suite"]).targets)
    if not models_of(judge):
        raise OptionsError(f"{judge.name} calls no model, so there are no replies to parse again")
    traits = traits_of(judge)
    if traits.form is None:
        raise OptionsError(f"{judge.name}: the form of its replies is unknown; set it with --form")
    return VerdictOnly(traits.form, traits.steps)


def reparse_record(
    record: JudgmentRecord, judge: Judge, whole: WholeReply | None = None
) -> JudgmentRecord | None:
    """Return the record with its replies parsed again, or None if the judge would now make a further call.

    If the run's scores come from log-probabilities, ``whole`` has to return replies that contain these;
    OptionsError is raised if it has no reply to a call. A record is returned unchanged if it has no reply for
    the verdict, for example because a caption failed, or if the judge itself failed.
    """
    if "problem" in record:
        return record
    stored = {(call["role"], call["sample"]): _reply_of(call, whole) for call in _verdict_calls(record)}
    if not stored:
        return record

    def reply_to(call: Call) -> Reply | None:
        found = stored.get((call.role, call.sample))
        return found if found is not None else _reply_before_the_verdict(record, call)

    answer = drive_offline(judge, _EMPTY_VIEW, reply_to)
    return None if answer is None else {**record, "state": answer.state, "answer": answer_facts(answer)}


def read_released(folder: Path, judge: str | None) -> Iterator[tuple[str, JudgmentRecord]]:
    """Yield the trajectory id and the prediction row of each released judgment. Raises OptionsError.

    ``folder`` is ``judgments`` or contains it. ``judge`` names the judge's folder; it may be None if there is
    only one. If a trajectory has both a judgment and an error file, the error is ignored.
    """
    places = (folder, folder / "judgments", folder / "trajectories" / "judgments")
    root = next((place for place in places if place.name == "judgments" and place.is_dir()), None)
    if root is None:
        raise OptionsError(f"{folder}: contains neither run.json nor judgments/; name a folder that does")
    files = sorted(root.glob("*/*/*/*.json"), key=lambda path: not path.stem.endswith(ERROR_ENDING))
    judges = sorted({path.parent.name for path in files})
    chosen = [judge] if judge is not None else judges
    if len(chosen) != 1 or chosen[0] not in judges:
        there = ", ".join(judges) or "none"
        raise OptionsError(f"{root}: choose one judge's folder with --judge: {there}")
    of_run = {
        f"{path.parts[-4]}/{path.parts[-3]}/{path.stem.removesuffix(ERROR_ENDING)}": path
        for path in files
        if path.parent.name == chosen[0]
    }
    for trajectory_id, path in sorted(of_run.items()):
        try:
            read = read_judgment(path)
        except UnusableFileError as error:
            raise OptionsError(f"{path}: {error.code} {error}".strip()) from None
        row = {name: getattr(read, name) for name in RELEASED_ANSWERS}
        yield trajectory_id, {**row, "state": read.state, "reasoning": shorten(read.reply)}


def _reply_of(call: JudgmentRecord, whole: WholeReply | None) -> Reply:
    """Return the reply to a call from ``whole`` (see `reparse_record`) or, if that is None, the record."""
    if whole is None or call["reply"]["state"] != "ok":
        return reply_of(call)
    if (cached := whole(call["key"])) is None:
        raise OptionsError(
            "the run's scores come from log-probabilities, but one of its replies is not in the cache; use "
            "--cache to name the cache of the run"
        )
    return cached


def _verdict_calls(record: JudgmentRecord) -> list[JudgmentRecord]:
    """Return the calls that asked for a verdict, or the calls of the last stage if none is marked as such."""
    named = [call for call in record["calls"] if call["purpose"] == VERDICT]
    last = max((call["stage"] for call in record["calls"]), default=0)
    return named or [call for call in record["calls"] if call["stage"] == last]


def _reply_before_the_verdict(record: JudgmentRecord, call: Call) -> Reply | None:
    """Return an error reply if this judge of a cascade failed before its verdict, or None if it never ran."""
    prefix = call.role.rpartition(".")[0]
    earlier = [each["reply"] for each in record["calls"] if each["role"].rpartition(".")[0] == prefix]
    if not earlier:
        return None
    failures = (reply["state"] for reply in earlier if reply["state"] != "ok")
    return Reply(None, state=next(failures, "error"))
