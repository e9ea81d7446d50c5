"""How often agents succeed, from files, for the command, the pages and notebooks."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from arb.core.ids import reading_key
from arb.core.predictions.findings import Finding, error
from arb.core.predictions.parser_pool import ReadResult
from leaderboard.success_rates.estimate import (
    AgentDifference,
    AgentEstimate,
    compare_agents,
    estimate_agents,
)
from leaderboard.success_rates.runs import (
    AgentRuns,
    Stratum,
    add_draws,
    add_labels,
    draw_runs,
    read_draw,
    read_labels,
    read_runs,
)


@dataclass(frozen=True)
class CrashedRuns:
    """Runs that ended before a judge could see them, and whether they count as failures or are left out.

    ``not_counted`` is the number of further crashed runs, of agents of which only some runs were judged. It
    is not known whether they belong to the judged ones.
    """

    runs: tuple[str, ...]
    count_as: Literal["failures", "apart"] = "failures"
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
    """Estimate how often each agent succeeds, or only of ``agent``; also compare two agents.

    ``verdicts`` are triples of a file's name, its judge's name and what `read_predictions` returned for it;
    ``labels`` have no judge, and those of several files add up. ``draws`` have the names and the contents of
    draws' records, which add up as well. ``crashed`` is None if it is not known which runs crashed. ``names``
    returns other ids of runs by reading key, or none if the runs have the right ids.
    """
    runs, findings = read_runs(verdicts)
    read = [(name, *read_labels(name, answer, runs)) for name, answer in labels]
    known, errors = add_labels([(name, found) for name, found, _ in read])
    errors = [*(problem for *_, problems in read for problem in problems), *errors]
    if runs is not None and names is not None and (others := names(runs.ids)):
        runs = runs.renamed(others)
        known = {others.get(reading_key(run), run): value for run, value in known.items()}
        if draws:
            message = (
                "was drawn under other names of agents. Leave out --agent-from, or judge and draw with it."
            )
            errors = [*errors, replace(error("other_agents", message), file=draws[0][0])]
    runs = runs and runs.with_failures(crashed.failures if crashed else ())
    strata = None
    if draws:
        files = runs.files if runs is not None else None
        records = [(name, *read_draw(name, content, files)) for name, content in draws]
        strata, problems = add_draws([(name, found) for name, found, _ in records])
        errors = [*errors, *(problem for *_, found in records for problem in found), *problems]
    if runs is not None and agent is not None:
        if agent in runs.rows_of:
            runs = runs.of_agent(agent)
            known = {
                run: value for run, value in known.items() if not runs.name_agents or f"/{agent}/" in run
            }
            strata = strata and tuple(stratum for stratum in strata if stratum.agent == agent)
        else:
            known_agents = ", ".join(list(runs.rows_of)[:20])
            problem = f"there is no run of {agent}; use one of {known_agents}"
            errors = [*errors, error("unknown_agent", problem)]
    if runs is not None and compare is not None:
        known_agents = ", ".join(list(runs.rows_of)[:20])
        for name in dict.fromkeys(compare):
            if name not in runs.rows_of:
                problem = f"there is no run of {name}; use one of {known_agents}"
                errors = [*errors, error("unknown_agent", problem)]
        if compare[0] == compare[1] in runs.rows_of:
            problem = f"{compare[0]} is named twice; compare it with another agent"
            errors = [*errors, error("same_agent", problem)]
    errors = [finding for finding in (*findings, *errors) if finding.level == "error"]
    if runs is None or errors:
        return FilesEstimate(errors=tuple(errors))
    try:
        agents, warnings = estimate_agents(runs, known, strata)
    except ValueError as problem:
        absent = error("judge_missing", f"{problem}. Send the files with these verdicts too.")
        return FilesEstimate(errors=(replace(absent, file=draws[0][0] if draws else None),))
    difference = compare_agents(runs, known, *compare, strata) if compare else None
    on_files = tuple(finding.message for finding in findings)
    notes = (*on_files, *(warnings if labels else ()))
    return FilesEstimate(tuple(runs.verdicts), agents, notes, difference=difference, crashed=crashed)


@dataclass(frozen=True)
class FilesDraw:
    """Runs drawn at random from files of verdicts, to be labelled; without runs if the files have errors."""

    runs: AgentRuns | None = None
    strata: tuple[Stratum, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[Finding, ...] = ()

    @cached_property
    def drawn(self) -> tuple[str, ...]:
        """The ids of the drawn runs, agent by agent."""
        return tuple(run for stratum in self.strata for run in stratum.drawn)

    @property
    def key(self) -> str:
        """A short hash of the drawn ids, by which two draws can be compared."""
        return hashlib.sha256("\n".join(self.drawn).encode()).hexdigest()[:16]

    def estimate(self, labels: Mapping[str, bool], crashed: CrashedRuns | None = None) -> FilesEstimate:
        """Return the estimate from labels of drawn runs by trajectory id."""
        if self.runs is None:
            return FilesEstimate(errors=self.errors)
        runs = self.runs.with_failures(crashed.failures if crashed else ())
        agents, warnings = estimate_agents(runs, labels, self.strata)
        return FilesEstimate(tuple(runs.verdicts), agents, (*self.warnings, *warnings), crashed=crashed)


def draw_from_files(verdicts: Iterable[tuple[str, str, ReadResult]], n_labels: int, most: int) -> FilesDraw:
    """Draw ``n_labels`` runs of each agent, but not more than ``most`` runs in total.

    The same files and number always give the same draw, that of `annotation-template --for-estimate`.
    """
    runs, findings = read_runs(verdicts)
    errors = [finding for finding in findings if finding.level == "error"]
    if runs is None or errors:
        return FilesDraw(errors=tuple(errors))
    strata = draw_runs(runs, n_labels)
    found = FilesDraw(runs, strata, tuple(finding.message for finding in findings))
    if len(found.drawn) > most:
        message = (
            f"{n_labels} runs of each of {len(runs.rows_of)} agents are {len(found.drawn):,} runs, and at "
            f"most {most} can be labelled here. Label fewer runs per agent, or send a file of labels instead."
        )
        return FilesDraw(errors=(error("too_many_to_label", message),))
    return found


def labels_of(answers: Mapping[str, str]) -> dict[str, bool]:
    """Return labels by trajectory id from the answers yes and no; any other answer gives no label."""
    return {run: answer == "yes" for run, answer in answers.items() if answer in ("yes", "no")}
