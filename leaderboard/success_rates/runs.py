"""Runs of agents with judges' verdicts and some labels, read from files, and the draw of runs to label."""

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from arb.core.annotation import Annotation
from arb.core.ids import TrajectoryId, reading_key, task_key
from arb.core.predictions.check import rows_by_id
from arb.core.predictions.findings import Finding, error, finding, quoted_id, row_finding, warning
from arb.core.predictions.parser_pool import ReadResult, read_in_process
from arb.core.predictions.raw import ReadingLimits, recognise, to_text
from arb.core.predictions.table import Predictions
from arb.core.suites.targets import Target, default_targets, outcome_target
from arb.core.vocabulary import NO_VERDICT
from leaderboard.labels.annotations import (
    AnnotationsInvalid,
    is_released_header,
    parse_parquet,
    parse_released,
)
from leaderboard.validation.parsing import parse_table
from leaderboard.validation.tables import LABEL_NAMES, VERDICT_NAMES, NamedTable, has_answers, read_answers

LEAST_IN_STRATUM: Final = 2
LABELS_A_STRATUM: Final = 5
"""The minimum average number of labels per stratum. With fewer, intervals cover only 80 to 88 % (20 labels in
8 strata, `bench.estimate`).
"""
ONE_AGENT: Final = "all runs"
"""The agent of runs whose ids do not name one."""
DRAW_FORMAT: Final = "draw-2"
MOST_AGENTS: Final = 100
"""The maximum number of agents in the files. Each agent is estimated separately, which takes time."""


def _names_agent(run: str) -> bool:
    """Return whether an id is of the form benchmark/agent/task."""
    return run.strip().count("/") == 2


def _name_agents(runs: Sequence[str]) -> bool:
    """Return True if any id names an agent, or if there are no ids."""
    return not runs or any(map(_names_agent, runs))


@dataclass(frozen=True)
class AgentRuns:
    """The runs to estimate from, with each judge's verdicts: 1, 0 or -1 (missing), in the order of ``ids``.

    The verdicts have shape (n,). ``hashes`` has the SHA-256 of each judge's verdicts.
    ``failures`` are runs that crashed before they could be judged. They count as not successful.
    """

    ids: tuple[str, ...]
    verdicts: Mapping[str, np.ndarray]
    hashes: Mapping[str, str] = field(default_factory=dict)
    failures: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, verdicts: Mapping[str, Mapping[str, int]], hashes: Mapping[str, str] | None = None
    ) -> "AgentRuns":
        """Make the runs from each judge's verdicts, keyed by trajectory id. Include every judge's runs."""
        ids = tuple(dict.fromkeys(run for found in verdicts.values() for run in found))
        columns = {
            judge: np.array([found.get(run, NO_VERDICT) for run in ids], dtype=np.int8)
            for judge, found in verdicts.items()
        }
        return cls(ids, columns, hashes or {})

    def with_failures(self, crashed: Iterable[str]) -> "AgentRuns":
        """Return these runs and, as failures, the ``crashed`` runs that have no verdict."""
        known = set(map(reading_key, self.ids))
        more = tuple(run for run in dict.fromkeys(crashed) if reading_key(run) not in known)
        nothing = np.zeros(len(more), dtype=np.int8)
        verdicts = {judge: np.concatenate([column, nothing]) for judge, column in self.verdicts.items()}
        return replace(self, ids=(*self.ids, *more), verdicts=verdicts, failures=self.failures | {*more})

    def renamed(self, names: Mapping[str, str]) -> "AgentRuns":
        """Return the runs under new ids. ``names`` maps the `reading_key` of an id to its new id."""
        return replace(self, ids=tuple(names.get(reading_key(run), run) for run in self.ids))

    @property
    def crashed(self) -> np.ndarray:
        """Which runs crashed, bool of shape (n,)."""
        return np.array([run in self.failures for run in self.ids], dtype=bool)

    @cached_property
    def parts(self) -> tuple[TrajectoryId, ...]:
        """The parts of each run's id. If the ids name no agents, each is a task of the agent `ONE_AGENT`."""
        if not self.name_agents:
            return tuple(TrajectoryId("", ONE_AGENT, run) for run in self.ids)
        return tuple(map(TrajectoryId.parse, self.ids))

    @property
    def name_agents(self) -> bool:
        """Whether the ids of judged runs are of the form benchmark/agent/task."""
        return _name_agents([run for run in self.ids if run not in self.failures])

    @cached_property
    def rows_of(self) -> Mapping[str, np.ndarray]:
        """The indexes of each agent's runs, keyed by the agent's name."""
        found: dict[str, list[int]] = {}
        for row, run in enumerate(self.parts):
            found.setdefault(run.agent, []).append(row)
        return {agent: np.array(found[agent]) for agent in sorted(found)}

    @property
    def tasks(self) -> np.ndarray:
        """An integer for each run that identifies its task, of shape (n,)."""
        numbers: dict[tuple[str, str], int] = {}
        return np.array([numbers.setdefault((run.folder, run.task), len(numbers)) for run in self.parts])

    def of_agent(self, agent: str) -> "AgentRuns":
        """Return the runs of one agent; raises KeyError if it has no runs."""
        rows = self.rows_of[agent]
        ids = tuple(self.ids[row] for row in rows)
        verdicts = {judge: column[rows] for judge, column in self.verdicts.items()}
        return replace(self, ids=ids, verdicts=verdicts, failures=self.failures.intersection(ids))

    @property
    def matrix(self) -> np.ndarray:
        """The verdicts, (n, judges). A missing one becomes the judge's share of "yes" for that agent."""
        found = np.column_stack([np.zeros((len(self.ids), 0)), *self.verdicts.values()])
        for column in found.T:
            for rows in self.rows_of.values():
                own = column[rows]
                is_known = own >= 0
                column[rows] = np.where(is_known, own, own[is_known].mean() if is_known.any() else 0)
        return found

    @property
    def positives(self) -> np.ndarray:
        """Which runs each judge calls successful, of shape (n, judges)."""
        return np.column_stack([np.zeros((len(self.ids), 0)), *self.verdicts.values()]) == 1


def stem_of(file: str) -> str:
    """Return a file's name without its suffix."""
    return file.rpartition(".")[0] or file


def read_runs(files: Iterable[tuple[str, str, ReadResult]]) -> tuple[AgentRuns | None, list[Finding]]:
    """Return the runs and verdicts of prediction files, or None and errors if a file cannot be used.

    ``files`` are triples of a file's name, its judge's name and what `read_predictions` returned for it.
    Judges of the same name get the first characters of the SHA-256 of their verdicts. Files may spell the id
    of a run differently. If no id is of the form benchmark/agent/task, all runs belong to one agent.
    """
    files = list(files)
    name_agents = _name_agents([run for *_, (table, _) in files if table for run in table.trajectory_ids])
    spelled: dict[str, str] = {}
    found_in: list[tuple[str, str, dict[str, int]]] = []
    findings: list[Finding] = []
    for file, judge, (table, found) in files:
        answers, found = _answers_of(table, found, name_agents)
        lines = sorted(f"{key}\t{value}\n" for key, (_, value) in answers.items())
        sha256 = hashlib.sha256("".join(lines).encode()).hexdigest()
        if answers and (judge, sha256) in {(name, each) for name, each, _ in found_in}:
            message = "two files have this name and these verdicts. Remove one."
            found.append(error("duplicate_file", message))
        findings += [replace(finding, file=file) for finding in found]
        own = {spelled.setdefault(key, run): value for key, (run, value) in answers.items()}
        found_in.append((judge, sha256, own))
    uses = Counter(judge for judge, _, _ in found_in)
    names = [f"{name} ({sha256[:6]})" if uses[name] > 1 else name for name, sha256, _ in found_in]
    runs = AgentRuns.of(
        {name: own for name, (*_, own) in zip(names, found_in, strict=True)},
        {name: sha256 for name, (_, sha256, _) in zip(names, found_in, strict=True)},
    )
    if not findings and len(runs.rows_of) > MOST_AGENTS:
        message = (
            f"the ids contain {len(runs.rows_of):,} different agents (the second part of an id); "
            f"at most {MOST_AGENTS} are allowed."
        )
        findings.append(error("too_many_agents", message, column="trajectory_id"))
    if findings:
        return None, findings
    for judge, verdicts in runs.verdicts.items():
        if without := int((verdicts < 0).sum()):
            message = (
                f"{judge} has no verdict on {without:,} of {len(runs.ids):,} runs; they count neither as "
                "successes nor as failures. Judge them again, or label them"
            )
            findings.append(warning("low_coverage", message, count=without))
    return runs, findings


def read_labels(
    name: str, answer: ReadResult, runs: AgentRuns | None
) -> tuple[dict[str, bool], list[Finding]]:
    """Return whether each labelled run succeeded, keyed by its id as spelled in ``runs``, and errors.

    ``answer`` is the result of `read_outcome_labels`.
    """
    table, findings = answer
    ids = runs.ids if runs is not None else ()
    named = table.trajectory_ids if runs is None and table is not None else ids
    answers, found = _answers_of(table, findings, _name_agents(named))
    written = {reading_key(run): run for run in ids}
    labels = {written.get(key, run): value == 1 for key, (run, value) in answers.items() if value >= 0}
    if ids and labels and not labels.keys() & set(ids):
        some, other = quoted_id(next(iter(labels))), quoted_id(ids[0])
        message = (
            f"no labelled run has a verdict: {some} is labelled, {other} has a verdict. Use the same split."
        )
        found.append(error("no_overlap", message, count=len(labels), column="trajectory_id"))
    return labels, [replace(finding, file=name) for finding in found]


def _answers_of(
    table: Predictions | None, findings: Sequence[Finding], name_agents: bool
) -> tuple[dict[str, tuple[str, int]], list[Finding]]:
    """Return (id as written, code 1, 0 or -1), keyed by the id's `reading_key`, and the errors.

    The codes are those of the table's first target. ``name_agents`` says whether ids must be of the form
    benchmark/agent/task.
    """
    errors = [finding for finding in findings if finding.level == "error"]
    if table is None or not table.targets or errors:
        return {}, errors
    rows, errors = rows_by_id(table, name_agents)
    ids, values = table.trajectory_ids, next(iter(table.targets.values())).tolist()
    return {key: (ids[row].strip(), values[row]) for key, row in rows.items()}, errors


@dataclass(frozen=True, slots=True)
class Stratum:
    """The ``n`` runs of an agent with the same judges' ``verdicts``, and those ``drawn`` to be labelled.

    ``verdicts`` may be None in an agent's last stratum, which has all runs that are in no other stratum.
    """

    agent: str
    verdicts: Mapping[str, bool] | None
    n: int
    drawn: tuple[str, ...]

    def holds(self, agent: str, verdicts: Mapping[str, bool]) -> bool:
        if agent != self.agent:
            return False
        return all(bool(verdicts.get(judge)) == value for judge, value in (self.verdicts or {}).items())


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Runs that were drawn to be labelled.

    ``judges`` has the SHA-256 of each judge's verdicts, so that a renamed file is recognised. ``stratified``
    is also True if there were too few labels for strata, and None if an earlier version wrote the record.
    """

    format: Literal["draw-2"] = DRAW_FORMAT
    seed: int = 0
    stratified: bool | None = None
    judges: Mapping[str, str] = field(default_factory=dict)
    strata: tuple[Stratum, ...]

    @cached_property
    def drawn(self) -> tuple[str, ...]:
        """The ids of the drawn runs, agent by agent."""
        return tuple(run for stratum in self.strata for run in stratum.drawn)

    @property
    def stratified_by(self) -> set[str]:
        """The judges whose verdicts define the strata."""
        return {judge for stratum in self.strata for judge in stratum.verdicts or ()}

    @property
    def key(self) -> str:
        """A short hash of the drawn ids, for comparing two draws."""
        return hashlib.sha256("\n".join(self.drawn).encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the record of the draw, which `read_draw` reads."""
        return json.dumps(asdict(self), indent=1) + "\n"


def read_draw(
    name: str, content: bytes, hashes: Mapping[str, str] | None = None
) -> tuple[Draw, list[Finding]]:
    """Return the draw in a record, or an empty one and an error if the content is not such a record.

    ``hashes`` has the hashes of today's runs (see `AgentRuns`). A judge of the draw gets the name of the
    judge in ``hashes`` that has the same verdicts.
    """
    try:
        return _with_names(TypeAdapter(Draw).validate_json(content), hashes or {}), []
    except ValidationError as invalid:
        problems = invalid.errors()
    if problems[0]["type"] == "json_invalid":
        problem = "is not JSON"
    elif problems[0]["loc"] in ((), ("format",)):
        problem = "is not the record of a draw, or a newer version wrote it: then upgrade this program"
    else:
        fields = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problems[:10])
        problem = f"cannot be read as the record of a draw ({'; '.join(fields)})"
    problem += ". Use the file that annotation-template --for-estimate wrote, unchanged."
    return Draw(strata=()), [error("not_a_draw", problem, file=name)]


def extended_draw(
    runs: AgentRuns, name: str, content: bytes, n_labels: int, seed: int | None, stratified: bool
) -> tuple[Draw, list[Finding]]:
    """Return a draw of ``n_labels`` runs of each agent that contains a recorded one, and errors.

    A stratified draw stays stratified. It is refused if the verdicts by which it was stratified are not given
    or have changed, or if ``seed`` (unless it is None) or ``stratified`` contradicts the record.
    """
    earlier, findings = read_draw(name, content, runs.hashes)
    if findings:
        return earlier, findings
    judges, hashes = earlier.stratified_by, {*runs.hashes.values()}
    if judges - runs.verdicts.keys() or (judges and {*earlier.judges.values()} - hashes):
        message = (
            "was drawn by verdicts that are not given or have changed. Give the same files with --verdicts, "
            "or name a new file with --out."
        )
        return earlier, [error("other_verdicts", message, file=name)]
    has_strata = bool(judges) or (stratified if earlier.stratified is None else earlier.stratified)
    wrong = {"--stratified": stratified and not has_strata, "--seed": seed not in (None, earlier.seed)}
    if options := " and ".join(option for option, is_wrong in wrong.items() if is_wrong):
        how = f"with seed {earlier.seed} and {'with' if has_strata else 'without'} strata"
        message = f"was drawn {how}. Leave out {options}, or name a new file with --out."
        return earlier, [error("other_draw", message, file=name)]
    before: Counter[str] = Counter()
    for stratum in earlier.strata:
        before[stratum.agent] += len(stratum.drawn)
    n_labels = max([n_labels, *before.values()])  # fewer labels would have other strata
    return draw_runs(runs, n_labels, earlier.seed, has_strata, {*earlier.drawn}), []


def add_draws(draws: Sequence[tuple[str, Draw]]) -> tuple[Draw, list[Finding]]:
    """Combine draws from the same runs. If the draws contradict each other, an error is returned as well."""
    found: dict[tuple[str, frozenset[tuple[str, bool]]], Stratum] = {}
    for name, draw in draws:
        agents = {agent for agent, _ in found}
        for stratum in draw.strata:
            key = stratum.agent, frozenset((stratum.verdicts or {}).items())
            same = found.get(key)
            if (same is None and stratum.agent in agents) or (same is not None and same.n != stratum.n):
                message = (
                    f"covers different runs or strata of {stratum.agent} than {draws[0][0]} does. "
                    "Leave one of them out."
                )
                return Draw(strata=()), [error("other_draw", message, file=name)]
            drawn = {*(same.drawn if same else ()), *stratum.drawn}
            found[key] = replace(stratum, drawn=tuple(sorted(drawn)))
    return Draw(strata=tuple(found.values())), []


def add_labels(files: Sequence[tuple[str, Mapping[str, bool]]]) -> tuple[dict[str, bool], list[Finding]]:
    """Return the labels of all files, and an error for each file that contradicts an earlier one."""
    found: dict[str, bool] = {}
    sources: dict[str, str] = {}
    errors = []
    for name, labels in files:
        different = [run for run, label in labels.items() if found.get(run, label) != label]
        if different:
            run = different[0]
            message = (
                f"{quoted_id(run)} has another label than in {sources[run]} "
                f"({len(different):,} such runs). Correct one of the files."
            )
            errors.append(error("label_conflict", message, count=len(different), file=name))
        found |= labels
        sources |= dict.fromkeys(labels, name)
    return found, errors


def _with_names(draw: Draw, hashes: Mapping[str, str]) -> Draw:
    by_hash = {sha256: judge for judge, sha256 in hashes.items()}
    names = {}
    for judge in draw.stratified_by:
        recorded = draw.judges.get(judge, "")
        names[judge] = judge if hashes.get(judge) == recorded else by_hash.get(recorded, judge)
    if len({*names.values()}) < len(names):
        return draw
    strata = []
    for each in draw.strata:
        verdicts = each.verdicts and {names[judge]: value for judge, value in each.verdicts.items()}
        strata.append(replace(each, verdicts=verdicts))
    return replace(draw, strata=tuple(strata))


@dataclass(frozen=True, slots=True)
class RunTexts:
    """What the agent was asked to do in a run, and its final answer; empty if not known."""

    goal: str = ""
    answer: str = ""


def read_texts(name: str, content: bytes) -> tuple[dict[str, RunTexts], list[Finding]]:
    """Return goals and answers, keyed by the reading key of the run's id, and the errors in the file.

    The file is what ``inspect-source --json`` prints: a line of JSON per run with ``trajectory_id``, ``goal``
    and ``answer``. Other fields are ignored.
    """
    found: dict[str, RunTexts] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
            run, goal, answer = row["trajectory_id"], row.get("goal") or "", row.get("answer") or ""
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            run = goal = answer = None
        if not (isinstance(run, str) and isinstance(goal, str) and isinstance(answer, str)):
            message = (
                f"line {number} is not a JSON object with the texts trajectory_id, goal and answer. "
                "Send the output of `arb data inspect-source LOGS --json`."
            )
            return {}, [error("not_texts", message, file=name)]
        found[reading_key(run)] = RunTexts(goal, answer)
    return found, []


def draw_runs(
    runs: AgentRuns,
    n_labels: int,
    seed: int = 0,
    stratified: bool = False,
    kept: Set[str] = frozenset(),
) -> Draw:
    """Draw ``n_labels`` runs of each agent to label, or all if there are fewer.

    Runs are drawn by a hash of the seed and the task. So the same tasks are drawn for all agents, which makes
    comparisons of them precise. If ``stratified``, each pattern of verdicts gets labels in proportion to its
    runs (see `strata_of_patterns`); else all runs of the agent are equally likely. ``kept`` are runs that
    were drawn before with this seed. They stay drawn, and so do all runs of lower hash in their stratum, so
    that the larger draw is random too.
    """
    found = []
    for agent, rows in runs.rows_of.items():
        patterns = runs.positives[rows] if stratified else np.zeros((len(rows), 0))
        strata = strata_of_patterns(patterns, n_labels)
        for number, wanted in enumerate(stratum_sizes(np.bincount(strata).tolist(), n_labels)):
            inside = strata == number
            ids = [runs.ids[row] for row in rows[inside]]
            ranked = sorted(ids, key=lambda run: _draw_order(run, seed))
            wanted = max([wanted, *(place for place, run in enumerate(ranked, start=1) if run in kept)])
            pattern = np.unique(patterns[inside], axis=0)
            is_one = stratified and len(pattern) == 1
            verdicts = dict(zip(runs.verdicts, map(bool, pattern[0]), strict=True)) if is_one else None
            found.append(Stratum(agent, verdicts, len(ids), tuple(sorted(ranked[:wanted]))))
    return Draw(seed=seed, stratified=stratified, judges=runs.hashes, strata=tuple(found))


def _draw_order(run: str, seed: int) -> bytes:
    """Return the key by which runs are drawn. The runs of one agent have different keys."""
    if _names_agent(run):
        parts = TrajectoryId.parse(run)
        run = f"{parts.folder}/{task_key(parts.task_id)}"
    return hashlib.sha256(f"{seed}/{run}".encode()).digest()


def strata_of_patterns(patterns: np.ndarray, total: int) -> np.ndarray:
    """Return each run's stratum as a number from 0, of shape (n,).

    ``patterns`` are the judges' verdicts, of shape (n, judges). If ``total`` labels are enough, runs with the
    same verdicts are a stratum. Otherwise, a pattern of verdicts is a stratum only if its share of the labels
    is at least `LABELS_A_STRATUM`. All other runs form the last stratum; if its share is too small, the
    smallest of the large patterns joins it.
    """
    _, groups, sizes = np.unique(patterns, axis=0, return_inverse=True, return_counts=True)
    if total >= LABELS_A_STRATUM * len(sizes):
        return groups.ravel()
    share = min(1.0, total / len(patterns))
    large = [group for group in np.argsort(-sizes, kind="stable") if sizes[group] * share >= LABELS_A_STRATUM]
    if 0 < (len(patterns) - sizes[large].sum()) * share < LABELS_A_STRATUM:
        large = large[:-1]
    numbers = np.full(len(sizes), len(large))
    numbers[sorted(large)] = np.arange(len(large))
    return numbers[groups.ravel()]


def stratum_sizes(sizes: Sequence[int], total: int) -> list[int]:
    """Divide ``total`` labels among strata in proportion to their sizes, if possible at least two each."""
    total = min(total, sum(sizes))
    found = [min(size, LEAST_IN_STRATUM) for size in sizes]
    while sum(found) < total:
        open_groups = [i for i, size in enumerate(sizes) if found[i] < size]
        found[max(open_groups, key=lambda i: (sizes[i] * total / sum(sizes) - found[i], sizes[i]))] += 1
    return found


_PLACE: Final = re.compile(r"row (?P<row>\d+), (?P<column>\w+): (?P<problem>.*)", re.DOTALL)
OUTCOME_LABELS: Final = f"{__name__}:read_outcome_labels"
"""The ``reader`` with which `arb.core.predictions.read_predictions` calls `read_outcome_labels`."""
OUTCOME_VERDICTS: Final = f"{__name__}:read_outcome_verdicts"


def read_outcome_labels(content: bytes, limits: ReadingLimits) -> tuple[Predictions | None, list[Finding]]:
    """Read which runs succeeded, from annotations (released CSV or our Parquet) or any table of labels.

    The labels are those of the outcome (see `outcome_target`) of the targets in ``limits``. Only the first
    annotation of a run counts, and "Unsure" gives no label. Returns None and findings if the file cannot be
    used.
    """
    file_format = recognise(content)
    if isinstance(file_format, Finding):
        return None, [file_format]
    asked = outcome_target(limits.targets or default_targets())
    try:
        if file_format == "parquet":
            annotations = _annotations_in(content, asked)
        elif is_released_header(content.partition(b"\n")[0].decode("utf-8", "replace")):
            text, findings = to_text(content)
            if text is None:
                return None, findings
            annotations = parse_released(text, [asked])
        else:
            annotations = None
    except AnnotationsInvalid as problem:
        return None, _findings_of(problem.problems)
    if annotations is None:
        return _read_answers(content, limits, LABEL_NAMES)
    if len(annotations) > limits.max_rows:
        return None, [finding("too_many_rows", most=limits.max_rows)]
    first: dict[str, tuple[int, Annotation]] = {}
    for number, annotation in enumerate(annotations, start=1 if file_format == "parquet" else 2):
        if annotation.level == "run":
            first.setdefault(reading_key(annotation.trajectory_id), (number, annotation))
    codes = [asked.code(each.answers.get(asked.name)) for _, each in first.values()]
    table = Predictions(
        tuple(annotation.trajectory_id for _, annotation in first.values()),
        {asked.name: np.array(codes, np.int8)},
        row_numbers=np.array([number for number, _ in first.values()], dtype=np.int64),
    )
    return table, []


def read_outcome_verdicts(content: bytes, limits: ReadingLimits) -> tuple[Predictions | None, list[Finding]]:
    """Read a judge's verdicts on the outcome, from a prediction file or any table with ids and verdicts."""
    return _read_answers(content, limits, VERDICT_NAMES)


def _read_answers(
    content: bytes, limits: ReadingLimits, known: Sequence[str]
) -> tuple[Predictions | None, list[Finding]]:
    """Read a prediction file. If it has other columns, find ids and answers as `arb validate` does."""
    targets = limits.targets or default_targets()
    asked = outcome_target(targets)
    others = [target for target in targets if target.name != asked.name]
    found, findings = read_in_process(content, replace(limits, targets=(asked, *others)))
    if found is None and "missing_column" not in {finding.code for finding in findings}:
        return found, findings
    outcome = [asked.name] if found is not None and asked.name in found.targets else []
    if findings:  # Every column that is not one of a prediction file is a finding.
        usual = {*known} - {"score", *(target.name for target in others)}
        columns = [*dict.fromkeys([*outcome, *_usual_answers(content, limits, usual)])]
        if len(columns) > 1:
            kind = "labels" if known is LABEL_NAMES else "verdicts"
            message = f"has several columns of {kind}: {', '.join(columns)}. Keep one of them."
            return None, [error(f"several_{kind}", message)]
    if found is not None and outcome:
        of_runs = [row for row, (_, step, part) in enumerate(found.items()) if step is part is None]
        only = replace(found, targets={asked.name: found.targets[asked.name]})
        return only.take(np.array(of_runs, dtype=np.int64)), findings
    try:
        table = NamedTable("the file", parse_table(content, limits))
        ids, answers = read_answers(table, known)
    except ValueError:  # the findings say which columns a file needs
        return None, findings or [error("missing_column", f"the column {asked.name} is missing. Add it.")]
    return Predictions(tuple(ids), {asked.name: answers}), []


def _usual_answers(content: bytes, limits: ReadingLimits, usual: Set[str]) -> list[str]:
    """Return the yes/no columns whose names are in ``usual``, in any case."""
    try:
        table = NamedTable("the file", parse_table(content, limits))
    except ValueError:
        return []
    names = [str(name) for name in table.frame.columns if str(name).lower() in usual]
    return [name for name in names if has_answers(table, name, is_label=True)]


def _annotations_in(content: bytes, asked: Target) -> tuple[Annotation, ...] | None:
    """Return the annotations of a Parquet file, or None if it does not name annotators."""
    try:
        names = pq.read_schema(io.BytesIO(content)).names
    except (pa.ArrowException, OSError):
        return None  # reported when it is read as a prediction file
    return parse_parquet(content, [asked]) if "annotator" in names else None


def _findings_of(problems: Iterable[str]) -> list[Finding]:
    """Return findings for the problems of an `AnnotationsInvalid`. Equal problems of a column are joined."""
    rows: dict[tuple[str, str], list[int]] = {}
    found = []
    for problem in problems:
        if place := _PLACE.fullmatch(problem):
            rows.setdefault((place["column"], place["problem"]), []).append(int(place["row"]))
        else:
            found.append(error("invalid_annotations", f"{problem}."))
    advice = "Use the values of the released format."
    return found + [
        row_finding(
            "error", "invalid_annotations", f"an invalid value ({problem})", numbers, advice, column=column
        )
        for (column, problem), numbers in rows.items()
    ]
