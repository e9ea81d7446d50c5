"""Pydantic models of the JSON in the REST API's responses, for OpenAPI and for clients generated from it.

Responses are not validated by them at run time: routes return bytes that are cached, or dicts that other
parts make, and validating a board of 1,000 rows would take longer than sending it. The tests compare
responses with these models, so that a field cannot be missing here. Further fields may be added.

A model is named like its schema, or ends with ``Json`` if another class has that name.
"""

from dataclasses import fields
from typing import Any, Literal, NotRequired, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model
from typing_extensions import TypedDict

from arb.core.predictions.check import BenchmarkSummary
from leaderboard.board import rows
from leaderboard.labels.agreement import OpenItem, QuestionAgreement
from leaderboard.score import Ends, Noise, Score
from leaderboard.success_rates.estimate import AgentEstimate
from leaderboard.success_rates.files import CrashedRuns
from leaderboard.suites.matrix import SuiteMatrix
from space.pages.trajectories.parts import RunPart
from submissions.records.statuses import SubmissionStatus
from submissions.scoring.rescore import JudgeEffect, Rescoring

# The board


class Cost(TypedDict):
    """Dollars per 1,000 trajectories. The cost of ``rows`` of all ``of`` rows is known."""

    usd_per_1000: float
    rows: int
    of: int
    is_at_least: NotRequired[bool]
    basis: NotRequired[str]


_ROW = get_type_hints(rows.BoardRow)
_OF_ROW: dict[str, Any] = {field.name: (_ROW[field.name], ...) for field in fields(rows.BoardRow)}
# Rows from papers may have kinds and inputs that a submission may not.
_OF_ROW |= {"kind": (str, ...), "inputs": (str, ...), "cost": (Cost | None, ...)}
BoardRow: type[BaseModel] = create_model("BoardRow", __doc__="A row of the board.", **_OF_ROW)


class _BoardFacts(BaseModel):
    suite: str
    split: str
    label_version: str
    policy: str
    rows: list[BoardRow]


class TargetJson(BaseModel):
    """A target that judges are scored on; its first metric is the main one."""

    name: str
    title: str
    type: str
    level: str
    metrics: list[str]


class BoardJson(_BoardFacts):
    """The whole board; ``digest`` is the SHA-256 of the rest.

    ``targets`` is missing if they are the released ones.
    """

    digest: str
    targets: list[TargetJson] = Field(default_factory=list)


class BoardPage(_BoardFacts):
    """A page of the board; ``next`` is the cursor of the next page, or null."""

    n_rows: int
    next: str | None


class JudgeMetrics(TypedDict):
    """Overall metrics of a judge's best row for a label, as fractions."""

    row: str
    rank: dict[str, int] | None
    n_separated: int | None
    separated_from: list[str] | None
    n: int | None
    precision: float | None
    precision_ci: Ends
    recall: float | None
    recall_ci: Ends
    f1: float | None
    f1_ci: Ends
    kappa: float | None
    noise: NotRequired[Noise]


class OtherMetrics(BaseModel):
    """The same for a target that is not binary, with each of its metrics and its interval."""

    model_config = ConfigDict(extra="allow")

    row: str
    rank: dict[str, int] | None
    n_separated: int | None
    separated_from: list[str] | None
    n: int | None


class JudgeJson(BaseModel):
    """A judge with its rows on the board, and its metrics by label (null: no verdicts on it)."""

    judge: str
    account: str
    kind: str
    inputs: str
    model: str
    provenance: str
    best_row: str
    rows: list[str]
    figures: dict[str, JudgeMetrics | OtherMetrics | None]


class Judges(BaseModel):
    """The judges, in the board's order."""

    suite: str
    label_version: str
    board_digest: str
    judges: list[JudgeJson]


class SuiteComparison(RootModel[SuiteMatrix]):
    """The judges of all suites side by side."""


class LabelVersions(BaseModel):
    """The label versions that have a board, oldest first."""

    label_versions: list[str]
    current: str | None


class Health(BaseModel):
    """The process is alive."""

    status: str


class ReadinessJson(BaseModel):
    """Facts about a Space that can serve requests."""

    status: str
    suite: str
    submissions: str
    submissions_off_because: str | None
    waiting: int
    records: str | None
    label_version: str | None
    board_digest: str


class NotReady(BaseModel):
    """Why a Space cannot serve requests now."""

    status: str
    reason: str
    suite: str = ""
    submissions: str = ""
    submissions_off_because: str | None = None
    waiting: int = 0
    records: str | None = None
    label_version: str | None = None
    board_digest: str = ""


# Prediction files


class FindingJson(BaseModel):
    """An error or a warning about a file; ``rows`` are the first of the ``count`` affected rows."""

    level: str
    code: str
    message: str
    rows: list[int]
    count: int
    column: str = ""
    file: str | None = None


class CheckReport(BaseModel):
    """What a check found in a prediction file."""

    file: str | None
    suite: str
    split: str
    acceptable: bool
    rows: int
    coverage: float
    success_share: float | None
    by_benchmark: dict[str, BenchmarkSummary]
    findings: list[FindingJson]


class Estimates(BaseModel):
    """Agents' rates, estimated from files; ``crashed`` is null if crashed runs are not known."""

    agents: list[AgentEstimate]
    warnings: list[str]
    crashed: CrashedRuns | None


class Report(TypedDict):
    """The score report of a file, with a score by label (null: no verdicts on it)."""

    suite: str
    split: str
    label_version: str
    policy: str
    coverage: float
    labels: dict[str, Score | None]
    cost: NotRequired[Cost]


class SubmissionJson(BaseModel):
    """A submission: its signed receipt, its status, and the report that its reader may see."""

    submission_id: str
    account: str
    judge: str
    judge_name: str
    suite: str
    split: str
    file_sha256: str
    submitted_at: str
    label_version: str
    record: int
    record_hash: str
    signature: str
    is_new: bool
    status: str
    flags: SubmissionStatus = Field(serialization_alias="standing")
    report: Report | None
    appears_at: str | None
    message: str
    older_message: str = Field(serialization_alias="told")


class Allowance(BaseModel):
    """The limits of an account, and what is left of them (null if there are no labels)."""

    account: str
    files_a_day: int
    files_a_year: int
    left_today: int | None
    left_this_year: int | None
    next_at: str | None
    message: str
    older_message: str = Field(serialization_alias="told")


# Recorded actions


class Recorded(BaseModel):
    """An action was recorded; ``lasts`` says whether the record is stored permanently already."""

    lasts: bool


class RecordedRenaming(Recorded):
    """A judge was renamed."""

    account: str
    judge: str


class RecordedDecision(Recorded):
    """A submission was decided on."""

    submission_id: str
    decision: str


class RecordedAccount(Recorded):
    """An account was decided on."""

    account: str
    decision: str


class RecordedDispute(Recorded):
    """A dispute was filed, or decided on."""

    dispute_id: str
    decision: str | None = None


class RecordedTag(Recorded):
    """An error of a judge was tagged."""

    judge: str
    trajectory_id: str
    category: str
    more: list[str]


class RecordedQuestion(Recorded):
    """An answer to a question about a trajectory was decided."""

    question: str


class RecordedInvitation(Recorded):
    """An account was invited to annotate."""

    annotator: str


class RecordedAssignments(Recorded):
    """Trajectories were assigned; ``assignments`` is their number."""

    assignments: int


class RecordedRule(Recorded):
    """Open questions were decided by a rule; some may still be open."""

    decided: int
    open: int


class RecordedGold(Recorded):
    """A trajectory was marked or unmarked as a gold item."""

    trajectory_id: str


class RecordedLabels(Recorded):
    """A label set was published; ``changes`` has the number of changed answers by question."""

    version: str
    labelled: int
    changes: dict[str, int]
    questions_changed: bool
    rescored: Rescoring | None = None


# Maintainers


class JobJson(BaseModel):
    """The state of re-scoring; ``found`` says what it changed."""

    state: Literal["idle", "running", "done", "failed"]
    found: Rescoring | None = None
    message: str = ""
    older_message: str = Field("", serialization_alias="told")


class StartedJob(BaseModel):
    """Re-scoring has started; ``version`` is the label version that was published for it."""

    state: str
    version: str = ""


class Correction(BaseModel):
    """A corrected label; of a hidden label only the dispute is named."""

    dispute_id: str
    trajectory_id: str = ""
    question: str = ""
    split: str = ""
    answer: str = ""
    reason: str = ""
    by: str = ""
    before: str | None = None


class NextLabelsJson(BaseModel):
    """The next label version before it is published, or the ``problem`` why there is none."""

    problem: str = ""
    digest: str = ""
    why: str = ""
    applied: list[Correction] = []
    conflicts: list[Correction] = []
    missing: list[Correction] = []
    effects: dict[str, list[JudgeEffect]] = {}


class NextVersionPreview(JobJson):
    """The current label version and, unless re-scoring runs, the next one."""

    label_version: str | None
    next: NextLabelsJson | None = None


class LogRecord(BaseModel):
    """An event without anything about labels; its ``body`` depends on the kind."""

    sequence: int
    kind: str
    at: str
    actor: str
    body: dict[str, Any]
    hash: str


class Log(BaseModel):
    """Events, newest first."""

    records: list[LogRecord]


# Labels


class DisputeJson(BaseModel):
    """A dispute; what the reader may not see is null."""

    dispute_id: str
    trajectory_id: str
    question: str
    split: str
    by: str
    at: str
    outcome: str
    text: str | None
    proposed: str | None
    judge: str | None
    reason: str | None
    decided_by: str | None
    decided_at: str | None
    answer: str | None
    n_decisions: int


class RunParts(BaseModel):
    """The steps and other parts of a run."""

    parts: list[RunPart]


class ErrorTagJson(BaseModel):
    """One person's categories for an error."""

    tagger: str
    categories: list[str]
    note: str


class JudgeErrorJson(BaseModel):
    """A verdict that the label contradicts; ``reasoning`` is empty if it is not stored."""

    trajectory_id: str
    kind: str
    others_right: int
    others: int
    reasoning: str
    tags: list[ErrorTagJson]


class JudgeErrors(BaseModel):
    """A page of a judge's ``of`` errors, the clearest first."""

    errors: list[JudgeErrorJson]
    of: int
    page: int
    pages: int


class Disputes(BaseModel):
    """A page of the ``of`` disputes, newest first."""

    disputes: list[DisputeJson]
    of: int


class QueueTask(BaseModel):
    """An assigned trajectory, without its id until it is done."""

    item: str
    trajectory_id: str | None
    begun: bool
    done: bool


class Queue(BaseModel):
    """An annotator's queue."""

    annotator: str
    done: int
    next: str | None
    tasks: list[QueueTask]


class OwnAnswers(BaseModel):
    """An annotator's own answers on a trajectory."""

    answers: dict[str, str | None]
    comment: str
    seconds: float
    is_done: bool
    step: int | None
    steps: dict[str, dict[str, str]]
    parts: dict[str, dict[str, str]]
    flag: str
    is_skipped: bool
    saved: int
    is_closed: bool


class SavedAnswersJson(BaseModel):
    """Answers were saved; send ``saved`` as ``seen`` next time."""

    saved: int
    lasts: bool
    next: str | None
    next_address: str | None


class DiscussionAnswer(BaseModel):
    """A decision in a discussion."""

    answer: str
    reason: str
    by: str


class Discussion(BaseModel):
    """A trajectory in the discussion; answers and comments are in the order of ``annotators``."""

    trajectory_id: str
    annotators: list[str | None]
    answers: dict[str, list[str | None]]
    comments: list[str]
    open: list[str]
    decisions: dict[str, list[DiscussionAnswer]]


class Discussions(BaseModel):
    """The trajectories to discuss."""

    items: list[Discussion]


class AgreementReportJson(BaseModel):
    """The agreement of annotators by question."""

    annotations: int
    trajectories: int
    annotators: int
    doubles: int
    doubled: int
    questions: dict[str, QuestionAgreement]
    items: list[OpenItem] | None


# Accounts


class Session(BaseModel):
    """A session of an account; ``is_this`` marks the current one."""

    id: str
    begun_at: str
    browser: str
    is_this: bool


class SessionsJson(BaseModel):
    """The sessions of an account, newest first."""

    sessions: list[Session]


class Ended(BaseModel):
    """The number of sessions that ended."""

    ended: int


class AccountJson(BaseModel):
    """The account that makes the request; ``name`` is null if nobody is signed in."""

    name: str | None
    is_maintainer: bool
    is_annotator: bool
    how: str | None
    may_submit_from: str | None
    problem: str | None


# Errors


class FieldProblem(BaseModel):
    """What is wrong with a field of the declaration."""

    field: str
    message: str


class InvalidParameter(BaseModel):
    """What is wrong with a parameter of the request; ``loc`` says where it is."""

    model_config = ConfigDict(extra="allow")  # what was sent, and the limits that it exceeds

    loc: list[str | int]
    msg: str
    type: str


class ProblemJson(BaseModel):
    """Why a request was refused, and what to do.

    The message is ``detail``, or ``error`` when submitting. ``fields`` and ``check`` say what is wrong with a
    declaration or a file, and ``findings`` what is wrong with the files of an estimate.
    """

    detail: str | list[InvalidParameter] = ""
    error: str = ""
    fields: list[FieldProblem] = []
    check: CheckReport | None = None
    acceptable: bool | None = None
    findings: list[FindingJson] = []
    next_at: str | None = None
