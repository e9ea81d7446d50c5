"""The HTML of a judge's page, made once for each content and kept as long as there is room."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dataset_script.vocabulary import LABEL_TITLES, LABELS
from leaderboard.board import Board, BoardRow
from leaderboard.published_rows import SECOND_ANNOTATOR
from leaderboard.report_tables import interval, percent
from space.address import link_to
from space.board_view import PROVENANCES
from space.citing import eval_results_yaml, judge_bibtex
from space.errors.judge_columns import JudgeColumns
from space.file_facts import file_facts
from space.judge_plots import reliability_plot, sweep_plot
from space.judge_sentences import ASKED, calibration_in_words, costs_in_words, lead, reading
from space.judge_view import COUNTS, WITH_WHISKERS, JudgeView, view_judge
from space.label_noise_told import label_noise_told
from space.row_marks import marks_told, noise_told
from space.row_names import origin, rows_by_id, short_name
from space.shelf import Shelf
from space.templating import render
from submissions.service import SubmissionService

KEPT_BYTES: Final = 8_000_000
COUNT_WORDS: Final = MappingProxyType(
    {
        "tp": "true positives: it says yes, and so do experts",
        "fp": "false positives, false alarms: it says yes, experts say no",
        "fn": "false negatives, misses: it says no, experts say yes",
        "tn": "true negatives: both say no",
        "no_verdict": "runs without a verdict, which count as a no",
    }
)
INTERVALS: Final = MappingProxyType(
    {
        "tasks": "Intervals: 95 %, over tasks, from its verdicts.",
        "approximate": "Intervals: 95 %, approximate: from counts, since its verdicts are not known.",
        None: "Its counts are not known, so there are no intervals.",
    }
)


@dataclass(frozen=True)
class JudgeHtml:
    """Head (above the controls) and body of a judge's page; ``key`` names the content."""

    head: str
    body: str
    key: str


class JudgePages:
    """Judge pages over a service; without ``columns`` none leads to its errors. Safe for threads."""

    def __init__(self, service: SubmissionService, columns: JudgeColumns | None = None) -> None:
        self._service, self._columns = service, columns
        self._shelf: Shelf[JudgeHtml] = Shelf(KEPT_BYTES, lambda html: len(html.head) + len(html.body))

    @property
    def board(self) -> Board:
        """The board as it is now."""
        return self._service.board()

    def get(self, row_id: str, label: str) -> JudgeHtml:
        """The page of a row for a label; for an id that the board does not have, a way on from there."""
        board = self.board
        row = rows_by_id(board).get(row_id)
        key = f"{board.digest}/{row_id if row else '-' if row_id else ''}/{label}"
        return self._shelf.get(key, lambda: self._made(board, row, row_id, label, key))

    def _made(self, board: Board, row: BoardRow | None, row_id: str, label: str, key: str) -> JudgeHtml:
        if row is None:
            message = (
                "No row of the board has this id. It may have been withdrawn, or the address is not whole."
                if row_id
                else "What it is, how good it is and where, what it costs, and how to check and cite it."
            )
            title = "There is no such judge" if row_id else "Which judge do you want to look at?"
            head = render("judge_head.html", title=title, view=None, message=message)
            return JudgeHtml(head, _index(board, "Judges on the board"), key)
        view = view_judge(board, row, label)
        name = short_name(row)
        if view is None:
            message = f"It gives no verdicts on this label ({LABEL_TITLES[label].lower()})."
            head = render("judge_head.html", title=name, view=None, message=message)
            return JudgeHtml(head, _other_labels(row), key)
        told = " · ".join(part for part in (row.kind, row.inputs, row.model, origin(row), *row.marks) if part)
        head = render("judge_head.html", title=row.judge, view=view, told=told, lead=lead(view))
        return JudgeHtml(head, self._body(board, view), key)

    def _errors_address(self, row: BoardRow) -> str:
        """Where its errors are read; empty where they may not be seen, or none are known."""
        is_known = self._columns is not None and self._columns.has_errors_of(row)
        return link_to("/errors", judge=row.id) if is_known else ""

    def _body(self, board: Board, view: JudgeView) -> str:
        row = view.row
        facts = file_facts(self._service, row, view.label)
        found, noise = facts.calibration, noise_told(row.labels[view.label])
        return render(
            "judge_body.html",
            view=view,
            label_title=LABEL_TITLES[view.label],
            positives=ASKED[view.label][1],
            count_titles=COUNTS,
            count_words=COUNT_WORDS,
            human_marks={
                f: [(view.human[f], "human")] if view.human[f] is not None else [] for f in WITH_WHISKERS
            },
            has_human=view.human["precision"] is not None and row.id != SECOND_ANNOTATOR,
            has_agents=any(section.title == "By agent" for section in view.sections),
            interval_note=noise or INTERVALS[view.intervals],
            is_noisy=bool(noise),
            label_noise=label_noise_told(self._service, row, view.label, view.axes["precision"]),
            errors_address=self._errors_address(row) if view.label == "success" else "",
            reading=reading(view),
            neighbours=neighbours(board, row, view.label),
            calibration=found,
            calibration_absent=facts.calibration_absent,
            calibration_words=calibration_in_words(found) if found else [],
            reliability=reliability_plot(found) if found else None,
            thresholds=sweep_plot(found) if found else None,
            percent=percent,
            interval=interval,
            facts=_facts(row),
            costs=costs_in_words(facts.costs) if facts.costs else [],
            costs_absent=facts.costs_absent,
            receipt=_receipt(board, row),
            tries_addresses={t.row_id: link_to("/judge", id=t.row_id) for t in view.tries},
            eval_results=eval_results_yaml(board, row) if row.provenance != "reference" else "",
            bibtex=judge_bibtex(row),
        )


def neighbours(board: Board, row: BoardRow, label: str) -> list[tuple[str, str]]:
    """(name, address of the comparison) with the judges just above and below in the ranking."""
    ranked = [other for other in board.ranking(label) if other.labels[label]["rank"]]
    places = [place for place, other in enumerate(ranked) if other.id == row.id]
    beside = [p for place in places for p in (place - 1, place + 1) if 0 <= p < len(ranked)]
    return [
        (
            short_name(ranked[place]),
            link_to("/compare", judges=[row.id, ranked[place].id], label=_said(label)),
        )
        for place in beside
    ]


def _said(label: str) -> str:
    """A label for an address; the usual one is left out."""
    return "" if label == "success" else label


def _facts(row: BoardRow) -> list[tuple[str, str]]:
    declared = {"Kind": row.kind, "Sees": row.inputs, "Model": row.model, "By": row.authors}
    if row.provenance == "scored":
        declared |= {"Account": row.account, "Sent": f"{row.date[:16].replace('T', ' ')} UTC"}
        used = {True: "used to build or tune it", False: "not used", None: "not said"}[row.test_labels_used]
        declared |= {"Test labels": used, "Tries": f"{row.attempts} scored"}
    else:
        declared |= {"Date": row.date[:10], "From": row.source}
    declared["Stands as"] = PROVENANCES[row.provenance]
    if row.marks:
        declared["Marks"] = marks_told(row)
    if row.note:
        declared["Note"] = row.note
    return [(term, told) for term, told in declared.items() if told]


def _receipt(board: Board, row: BoardRow) -> list[tuple[str, str]]:
    if row.file_sha256 is None:
        return []
    return [
        ("Submission", row.id),
        ("SHA-256", row.file_sha256),
        ("Received", row.date),
        ("Labels", board.label_version or ""),
        ("Policy", "strict"),
    ]


@dataclass(frozen=True)
class _Entry:
    name: str
    told: str
    address: str


def _index(board: Board, heading: str) -> str:
    """Every ranked judge and the references, as links."""
    entries = []
    for row in board.rows:
        success = row.labels.get("success")
        if row.provenance == "scored" and not (success and success["best"]):
            continue
        told = " · ".join(part for part in (row.kind, origin(row)) if part)
        if success and success["overall"]["precision"] is not None:
            told += f" · precision {percent(success['overall']['precision'])}"
        entries.append(_Entry(short_name(row), told, link_to("/judge", id=row.id)))
    return render("judge_index.html", heading=heading, entries=entries)


def _other_labels(row: BoardRow) -> str:
    entries = [
        _Entry(LABEL_TITLES[label], "", link_to("/judge", id=row.id, label=_said(label)))
        for label in LABELS
        if row.labels.get(label)
    ]
    return render("judge_index.html", heading="It answers", entries=entries)
