"""Success rates of agents from files, for the command, the pages and notebooks."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from arb.core.predictions.findings import Finding, error
from arb.core.predictions.parser_pool import ReadResult
from leaderboard.success_rates.estimate import (
    AgentDifference,
    AgentEstimate,
    compare_agents,
    estimate_agents,
)
from leaderboard.success_rates.runs import AgentRuns, Stratum, draw_runs, read_draw, read_labels, read_runs


@dataclass(frozen=True)
class FilesEstimate:
    """The estimate from files of verdicts and labels: agents and warnings, or errors in the files."""

    judges: tuple[str, ...] = ()
    agents: tuple[AgentEstimate, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[Finding, ...] = ()
    difference: AgentDifference | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what ``leaderboard estimate --json`` prints, or the findings as in ``/api/check``."""
        if self.errors:
            findings = [{"file": finding.file, **finding.to_json()} for finding in self.errors]
            return {"acceptable": False, "findings": findings}
        compared = {} if self.difference is None else {"difference": self.difference.to_json()}
        agents = [each.to_json() for each in self.agents]
        return {"agents": agents, **compared, "warnings": list(self.warnings)}


def estimate_files(
    verdicts: Iterable[tuple[str, str, ReadResult]],
    labels: tuple[str, ReadResult] | None,
    draw: tuple[str, bytes] | None = None,
    agent: str | None = None,
    compare: tuple[str, str] | None = None,
) -> FilesEstimate:
    """Estimate the success rate of each agent, or only of ``agent``; also compare two agents.

    ``verdicts`` are triples of a file's name, its judge's name and what `read_predictions` returned for it;
    ``labels`` has no judge.
    ``draw`` is the name and the content of a draw's record.
    """
    runs, findings = read_runs(verdicts)
    known, errors = read_labels(*labels, runs) if labels else ({}, [])
    strata = None
    if draw is not None:
        strata, problems = read_draw(*draw, runs.files if runs is not None else None)
        errors = [*errors, *problems]
    if runs is not None and agent is not None:
        if agent in runs.rows_of:
            runs = runs.of_agent(agent)
            known = {
                run: value for run, value in known.items() if not runs.name_agents or f"/{agent}/" in run
            }
            strata = strata and tuple(stratum for stratum in strata if stratum.agent == agent)
        else:
            names = ", ".join(list(runs.rows_of)[:20])
            errors = [*errors, error("unknown_agent", f"there is no run of {agent}; use one of {names}")]
    if runs is not None and compare is not None:
        for name in compare:
            if name not in runs.rows_of:
                names = ", ".join(list(runs.rows_of)[:20])
                errors = [*errors, error("unknown_agent", f"there is no run of {name}; use one of {names}")]
    errors = [finding for finding in (*findings, *errors) if finding.level == "error"]
    if runs is None or errors:
        return FilesEstimate(errors=tuple(errors))
    try:
        agents, warnings = estimate_agents(runs, known, strata)
    except ValueError as problem:
        absent = error("judge_missing", f"{problem}. Send the files with these verdicts too.")
        return FilesEstimate(errors=(replace(absent, file=draw[0] if draw else None),))
    difference = compare_agents(runs, known, *compare, strata) if compare else None
    on_files = tuple(finding.message for finding in findings)
    return FilesEstimate(
        tuple(runs.verdicts), agents, (*on_files, *(warnings if labels else ())), difference=difference
    )


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

    def estimate(self, labels: Mapping[str, bool]) -> FilesEstimate:
        """Return the estimate from labels of drawn runs by trajectory id."""
        if self.runs is None:
            return FilesEstimate(errors=self.errors)
        agents, warnings = estimate_agents(self.runs, labels, self.strata)
        return FilesEstimate(tuple(self.runs.verdicts), agents, (*self.warnings, *warnings))


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
