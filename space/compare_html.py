"""The HTML of the compare page, made once for each choice and kept as long as there is room."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from dataset_script.vocabulary import LABEL_TITLES
from leaderboard.board import Board, BoardRow
from leaderboard.compare import FEWEST, MOST, Comparison, Entrant, compare
from leaderboard.labels import LabelSet
from leaderboard.published_rows import SECOND_ANNOTATOR
from leaderboard.report import verdicts_of
from space.address import link_to
from space.axis import Axis
from space.compare_lines import VoteLine
from space.compare_sentences import (
    apart_sentence,
    basis_sentence,
    fooled_sentence,
    pair_sentence,
    question,
    vote_sentence,
)
from space.compare_view import CompareView, view_comparison, view_dev_votes
from space.errors.judge_columns import LABEL, JudgeColumns
from space.row_marks import noise_on_board
from space.row_names import distinct_names, rows_by_id, short_name
from space.shelf import Shelf
from space.templating import render
from submissions.service import SubmissionService
from submissions.verdicts import VerdictsUnavailable

Votes = tuple[tuple[VoteLine, ...], Axis | None]
KEPT_BYTES: Final = 8_000_000
LETTERS: Final = "ABCDE"
QUESTION: Final = "Is one judge really better than another?"
FIGURE_TITLES: Final = MappingProxyType(
    {"precision": "Precision", "recall": "Recall", "f1": "F1", "accuracy": "Accuracy", "kappa": "Kappa"}
)
COUNTS_ONLY: Final = (
    "At most one of these rows has verdicts here: of rows from papers, and of references, only counts are "
    "known. Agreement, McNemar's test, shared errors and votes need the verdicts of at least two."
)
PRIVATE: Final = (
    "The labels of this suite are private, so judges are not compared run by run: that would tell more about "
    "single labels than a board may."
)


@dataclass(frozen=True)
class CompareHtml:
    """Head (above the controls) and body of the compare page; ``key`` names the content."""

    head: str
    body: str
    key: str


class ComparePages:
    """Comparisons over a service. Safe for threads."""

    def __init__(self, service: SubmissionService, columns: JudgeColumns | None = None) -> None:
        self._service, self._columns = service, columns
        self._shelf: Shelf[CompareHtml] = Shelf(KEPT_BYTES, lambda html: len(html.head) + len(html.body))

    @property
    def board(self) -> Board:
        """The board as it is now."""
        return self._service.board()

    def get(self, row_ids: Sequence[str], label: str, figure: str) -> CompareHtml:
        """The page for these rows; where they are too few, an example and ways to begin."""
        board = self.board
        wanted = list(dict.fromkeys(row_ids))
        known = rows_by_id(board)
        here = [known[row_id] for row_id in wanted if row_id in known]
        key = "/".join((board.digest, label, figure, str(len(wanted) - len(here)), *(row.id for row in here)))
        return self._shelf.get(
            key, lambda: self._made(board, here, len(wanted) - len(here), label, figure, key)
        )

    def _made(
        self, board: Board, rows: Sequence[BoardRow], n_unknown: int, label: str, figure: str, key: str
    ) -> CompareHtml:
        answering = [row for row in rows if row.labels.get(label)]
        notices = _notices(rows, answering, n_unknown, label)
        answering = answering[:MOST]
        suggestions = ""
        example = len(answering) < FEWEST
        if example:
            chosen, answering = answering, examples(board, label, answering)
            suggestions = _suggestions(board, label, chosen)
        if len(answering) < FEWEST:
            nobody = "The board has fewer than two judges that answer this label."
            head = render("compare_head.html", title=QUESTION, lead=nobody, sentences=[], notices=notices)
            return CompareHtml(head, "", key)
        labels = self._service.labels_for_public_figures()
        found = compare([self._entrant(row, label, labels) for row in answering], labels, label, figure)
        view = view_comparison(found)
        title = QUESTION if example else question(view.names)
        sentences = [pair_sentence(found, pair, view.names) for pair in found.against_first()]
        lead = "Choose two to five judges below. For example:" if example else ""
        head = render("compare_head.html", title=title, lead=lead, sentences=sentences, notices=notices)
        dev = self._dev_votes(answering, view.names, label)
        return CompareHtml(head, suggestions + _body(view, found, not self._is_open(), dev), key)

    def _dev_votes(self, rows: Sequence[BoardRow], names: Sequence[str], label: str) -> Votes:
        """Votes on dev of the judges whose verdicts there the dataset carries, on success."""
        labels = self._columns.labels("dev") if self._columns else None
        if labels is None or label != LABEL:
            return (), None
        known = self._columns.on("dev")
        there = [place for place, row in enumerate(rows) if row.id in known]
        voters = [known[rows[place].id].verdicts for place in there]
        return view_dev_votes([names[place] for place in there], voters, labels, label)

    def _is_open(self) -> bool:
        return self._service.suite.labels_are_public

    def _entrant(self, row: BoardRow, label: str, labels: LabelSet | None) -> Entrant:
        """The row with its verdicts, where they may be used and can be read."""
        if labels is None or row.provenance != "scored":
            return Entrant(row, None)
        try:
            return Entrant(row, verdicts_of(self._service.verdicts(row.id), label))
        except (KeyError, VerdictsUnavailable):
            return Entrant(row, None)


def examples(board: Board, label: str, chosen: Sequence[BoardRow] = ()) -> list[BoardRow]:
    """Rows to begin with: what was chosen, then the first judges of the ranking, each once; three in all."""
    return [*chosen, *_leaders(board, label, {row.judge for row in chosen})][:3]


def _leaders(board: Board, label: str, without: Collection[str] = ()) -> list[BoardRow]:
    """The ranked rows, of each judge (by its name) the best."""
    best: dict[str, BoardRow] = {}
    for row in board.ranking(label):
        if row.labels[label]["rank"] and row.judge not in without:
            best.setdefault(row.judge, row)
    return list(best.values())


def _notices(
    rows: Sequence[BoardRow], answering: Sequence[BoardRow], n_unknown: int, label: str
) -> list[str]:
    notices = []
    if n_unknown:
        what = "One judge in this address is" if n_unknown == 1 else f"{n_unknown} judges in this address are"
        notices.append(f"{what} not on the board, and left out.")
    silent = [short_name(row) for row in rows if row not in answering]
    if silent:
        notices.append(
            f"Without verdicts on this label ({LABEL_TITLES[label].lower()}): {', '.join(silent)}."
        )
    if len(answering) > MOST:
        notices.append(f"{len(answering)} judges were chosen; the first {MOST} are compared.")
    return notices


def _suggestions(board: Board, label: str, chosen: Sequence[BoardRow]) -> str:
    """Links to comparisons: neighbours in the ranking, the first against the human reference."""
    leaders = _leaders(board, label)
    pairs = [(chosen[0], row) for row in leaders if row.judge != chosen[0].judge][:3] if chosen else []
    pairs += list(pairwise(leaders))[:3]
    human = next((row for row in board.rows if row.id == SECOND_ANNOTATOR), None)
    if leaders and human is not None and human.labels.get(label):
        pairs.append((leaders[0], human))
    links = {}
    for first, second in pairs:
        names = distinct_names([first, second])
        links[f"{names[0]} and {names[1]}"] = link_to(
            "/compare", judges=[first.id, second.id], label="" if label == "success" else label
        )
    return render("compare_suggestions.html", heading="Or begin with", suggestions=list(links.items()))


def _body(view: CompareView, found: Comparison, is_private: bool, dev: Votes) -> str:
    kinds = [grove.kind for grove in view.groves]
    titles = {"benchmark": "By benchmark", "agent": "By agent"}
    noise = noise_on_board([entrant.row for entrant in found.entrants], found.label)
    return render(
        "compare_body.html",
        view=view,
        letters=LETTERS,
        figure_title=FIGURE_TITLES[found.figure],
        figure_titles=FIGURE_TITLES,
        addresses=[link_to("/judge", id=side.row_id) for side in view.sides],
        kind_titles=[
            titles.get(kind, "") if place == 0 or kinds[place - 1] != kind else ""
            for place, kind in enumerate(kinds)
        ],
        basis=f"{basis_sentence(found)} {noise}".strip(),
        apart=apart_sentence(found),
        vote_words=vote_sentence(found, view.names),
        dev_votes=dev[0],
        dev_axis=dev[1],
        fooled_words=fooled_sentence(found),
        why_no_runs="" if view.has_runs else PRIVATE if is_private else COUNTS_ONLY,
    )
