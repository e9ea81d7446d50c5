"""How often agents succeed, from files, for the command, the pages and notebooks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from arb.core.ids import reading_key
from arb.core.predictions.findings import Finding, error
from arb.core.predictions.parser_pool import ReadResult
from arb.core.suites.targets import NO_ANSWER, Target
from leaderboard.success_rates.estimate import (
    AgentDifference,
    AgentEstimate,
    compare_agents,
    estimate_agents,
)
from leaderboard.success_rates.runs import (
    AgentRuns,
    Draw,
    add_draws,
    add_labels,
    draw_runs,
    read_draw,
    read_labels,
    read_runs,
)

CountAs = Literal["failures", "apart"]
"""Whether crashed runs count as failures or are left out."""


@dataclass(frozen=True)
class CrashedRuns:
    """Runs that ended before a judge could see them, and how they count.

    ``not_counted`` is the number of other crashed runs. They belong to agents only some of whose runs were
    judged, so it is not known whether they are part of that selection.
    """

    runs: tuple[str, ...]
    count_as: CountAs = "failures"
    not_counted: int = 0

    @property
    def failures(self) -> tuple[str, ...]:
        return self.runs if self.count_as == "failures" else ()


@dataclass(frozen=True)
class FilesEstimate:
    """The estimate from files of verdicts and labels: agents and warnings, or errors in the files.

    ``crashed`` is None if it is not known which runs crashed.
    """

    judges: tuple[str, ...] = ()
    agents: tuple[AgentEstimate, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[Finding, ...] = ()
    difference: AgentDifference | None = None
    crashed: CrashedRuns | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what ``leaderboard estimate --json`` prints, or the findings as in ``/api/check``."""
        if self.errors:
            findings = [{"file": finding.file, **finding.to_json()} for finding in self.errors]
            return {"acceptable": False, "findings": findings}
        found = asdict(self)
        compared = [] if self.difference is None else ["difference"]
        return {name: found[name] for name in ("agents", *compared, "warnings", "crashed")}


def estimate_files(
    verdicts: Iterable[tuple[str, str, ReadResult]],
    labels: Sequence[tuple[str, ReadResult]],
    draws: Sequence[tuple[str, bytes]] = (),
    agent: str | None = None,
    compare: tuple[str, str] | None = None,
    crashed: CrashedRuns | None = None,
    names: Callable[[Iterable[str]], Mapping[str, str]] | None = None,
) -> FilesEstimate:
    """Estimate how often each agent succeeds, or only ``agent``. Also compare the two agents in ``compare``.

    ``verdicts`` are triples of a file's name, its judge's name and what `read_predictions` returned for it;
    ``labels`` are pairs without the judge's name. The labels of several files are combined, and so are
    ``draws``, the names and contents of records of draws. ``crashed`` is None if it is not known which runs
    crashed. ``names``, if given, is called with the runs' ids. It returns their new ids, keyed by
    `reading_key`, or nothing if the ids are right.
    """
    runs, findings = read_runs(verdicts)
    read = [(name, *read_labels(name, answer, runs)) for name, answer in labels]
    known, errors = add_labels([(name, found) for name, found, _ in read])
    errors = [problem for *_, problems in read for problem in problems] + errors
    if runs is not None and names is not None and (others := names(runs.ids)):
        runs = runs.renamed(others)
        known = {others.get(reading_key(run), run): value for run, value in known.items()}
        if draws:
            message = (
                "was drawn under other names of agents. Leave out --agent-from, or judge and draw with it."
            )
            errors.append(error("other_agents", message, file=draws[0][0]))
    runs = runs and runs.with_failures(crashed.failures if crashed else ())
    draw = None
    if draws:
        hashes = runs.hashes if runs is not None else None
        records = [(name, *read_draw(name, content, hashes)) for name, content in draws]
        draw, problems = add_draws([(name, found) for name, found, _ in records])
        errors += [problem for *_, found in records for problem in found] + problems
    if runs is not None:
        if agent is not None and agent in runs.rows_of:
            runs = runs.of_agent(agent)
            known = {
                run: value for run, value in known.items() if not runs.name_agents or f"/{agent}/" in run
            }
            draw = draw and replace(draw, strata=tuple(each for each in draw.strata if each.agent == agent))
        known_agents = ", ".join(list(runs.rows_of)[:20])
        for name in dict.fromkeys(filter(None, (agent, *(compare or ())))):
            if name not in runs.rows_of:
                problem = f"there is no run of {name}; use one of {known_agents}"
                errors.append(error("unknown_agent", problem))
        if compare is not None and compare[0] == compare[1] in runs.rows_of:
            problem = f"{compare[0]} is named twice; compare it with another agent"
            errors.append(error("same_agent", problem))
    errors = [finding for finding in (*findings, *errors) if finding.level == "error"]
    if runs is None or errors:
        return FilesEstimate(errors=tuple(errors))
    try:
        agents, warnings = estimate_agents(runs, known, draw)
    except ValueError as problem:
        message = f"{problem}. Send the files with these verdicts too."
        return FilesEstimate(errors=(error("judge_missing", message, file=draws[0][0] if draws else None),))
    difference = compare_agents(runs, known, *compare, draw) if compare else None
    on_files = tuple(finding.message for finding in findings)
    notes = (*on_files, *(warnings if labels else ()))
    return FilesEstimate(tuple(runs.verdicts), agents, notes, difference=difference, crashed=crashed)


@dataclass(frozen=True)
class FilesDraw:
    """A random draw of runs to label, from files of verdicts. ``runs`` is None if the files have errors."""

    runs: AgentRuns | None = None
    draw: Draw = field(default_factory=lambda: Draw(strata=()))
    warnings: tuple[str, ...] = ()
    errors: tuple[Finding, ...] = ()

    def estimate(self, labels: Mapping[str, bool], crashed: CrashedRuns | None = None) -> FilesEstimate:
        """Return the estimate from labels of drawn runs, which are keyed by trajectory id."""
        if self.runs is None:
            return FilesEstimate(errors=self.errors)
        runs = self.runs.with_failures(crashed.failures if crashed else ())
        agents, warnings = estimate_agents(runs, labels, self.draw)
        return FilesEstimate(tuple(runs.verdicts), agents, (*self.warnings, *warnings), crashed=crashed)


def draw_from_files(verdicts: Iterable[tuple[str, str, ReadResult]], n_labels: int, most: int) -> FilesDraw:
    """Draw ``n_labels`` runs of each agent, but not more than ``most`` runs in total.

    The same files and number always give the same draw, also in `annotation-template --for-estimate`.
    """
    runs, findings = read_runs(verdicts)
    errors = [finding for finding in findings if finding.level == "error"]
    if runs is None or errors:
        return FilesDraw(errors=tuple(errors))
    draw = draw_runs(runs, n_labels)
    if len(draw.drawn) > most:
        message = (
            f"{n_labels} runs of each of {len(runs.rows_of)} agents are {len(draw.drawn):,} runs, and at "
            f"most {most} can be labelled here. Label fewer runs per agent, or send a file of labels instead."
        )
        return FilesDraw(errors=(error("too_many_to_label", message),))
    return FilesDraw(runs, draw, tuple(finding.message for finding in findings))


def labels_of(answers: Mapping[str, str], outcome: Target) -> dict[str, bool]:
    """Return whether each run succeeded, from answers to the outcome; Unsure gives no label."""
    codes = {run: outcome.code(answer) for run, answer in answers.items()}
    return {run: code == 1 for run, code in codes.items() if code != NO_ANSWER}
