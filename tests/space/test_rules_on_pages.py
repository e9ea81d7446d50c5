"""Every sentence about ranks on the board, About, Compare and a judge's page holds.

Boards are drawn. Each sentence with one of the `WORDS` must match one of the `RULES`, whose check it has to
pass. So a new sentence needs a check.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arb.core.vocabulary import LOWER_IS_BETTER, METRIC_TITLES, metric_name
from leaderboard.board.board import BoardRow
from leaderboard.board.ranks import TESTED_TOGETHER, Rank
from leaderboard.compare import Comparison, Entrant, compare
from leaderboard.paired import COMPARED_METRICS
from leaderboard.score import metric_of
from space.pages.leaderboard.plots import precision_recall_plot
from space.pages.leaderboard.query import LeaderboardQuery, chosen_rows
from space.pages.trajectories.dataset import Explorer
from space.verdicts import JudgeColumn, JudgeVerdicts
from space.web.cells import distinct_names, short_name
from space.web.query import link_to
from tests.support.generated_boards import DrawnBoard, drawn_board
from tests.support.space_app import local_client, public_service

WORDS = re.compile(
    r"\b(rank(s|ed)?|ranges?|separat\w+|ti(e|es|ed)|apart|significant\w*|better|worse|compared|differ|"
    r"by chance|comes first)\b",
    re.IGNORECASE,
)
INLINE = {"a", "abbr", "code", "em", "i", "small", "span", "strong", "sup", "button"}


class Blocks(HTMLParser):
    """The text of each block of a page, and what is said of it (``title`` and ``aria-label``).

    The options of a select are names, not sentences, and are left out.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found = [""]
        self.skips = False
        self.feed(re.search(r"<main.*</main>", html, re.DOTALL)[0])

    def handle_starttag(self, tag, attributes) -> None:
        self.handle_endtag(tag)
        self.skips = tag == "option"
        said = [value for name, value in attributes if name in ("title", "aria-label") and value]
        self.found[-1:] = [*said, self.found[-1]]

    def handle_endtag(self, tag) -> None:
        self.skips = False
        if tag not in INLINE:
            self.found.append("")

    def handle_data(self, data) -> None:
        self.found[-1] += "" if self.skips else data


def sentences_of(html: str) -> list[str]:
    texts = (re.sub(r"\s+", " ", block).strip() for block in Blocks(html).found)
    sentences = (sentence for text in texts for sentence in re.split(r"(?<=[.!?]) (?=[A-Z])", text))
    return [sentence for sentence in dict.fromkeys(sentences) if WORDS.search(sentence)]


class Known(JudgeVerdicts):
    """The verdicts of a drawn board."""

    drawn: DrawnBoard

    def for_row(self, row):
        found = self.drawn.verdicts.get(row.id)
        return None if found is None else JudgeColumn(row.id, row.judge, found, None, "success")

    def are_known(self, row):
        return row.id in self.drawn.verdicts

    def by_judge(self, split):
        return {}

    def splits_with_errors(self, row):
        return ()


@dataclass
class World:
    """What the pages of one board show, for the checks of their sentences."""

    drawn: DrawnBoard
    metric: str
    row: BoardRow | None = None
    found: Comparison | None = None

    @property
    def ranks(self) -> dict[str, Rank]:
        every = self.drawn.board.ranks("success", self.metric)
        return {row_id: rank for row_id, rank in every.items() if rank}

    def separated(self, first: str, second: str) -> bool:
        return second in self.ranks[first].separated_from

    def named(self, name: str) -> BoardRow:
        return next(row for row in self.drawn.board.rows if short_name(row) == name and self.is_shown(row))

    def is_shown(self, row: BoardRow) -> bool:
        return row.provenance != "scored" or row.id in self.drawn.board.ranks("success", self.metric)

    def value(self, row: BoardRow) -> float:
        return metric_of(row.score("success")["overall"], self.metric)

    def pair(self, first: str, second: str):
        names = distinct_names([entrant.row for entrant in self.found.entrants])
        return next(
            each for each in self.found.pairs if (names[each.first], names[each.second]) == (first, second)
        )


def holds_of_ranks(world: World, *_) -> None:
    """A range begins after the rows separated above and ends before those separated below."""
    ranks, n = world.ranks, len(world.ranks)
    for row_id, rank in ranks.items():
        above = sum(ranks[other].place < rank.place for other in rank.separated_from)
        assert (rank.low, rank.high) == (1 + above, n - (len(rank.separated_from) - above))
        assert rank.low <= rank.place <= rank.high
        assert rank.n_separated == len(rank.separated_from) == n - 1 - (rank.high - rank.low)
        assert all(world.separated(other, row_id) for other in rank.separated_from)


def rank_says(world: World, match: re.Match) -> None:
    text, metric, n_separated, others = match.groups()
    assert metric == metric_name(world.metric) and int(others) == len(world.ranks) - 1
    assert any(
        (rank.range_text("–"), rank.n_separated) == (text, int(n_separated)) for rank in world.ranks.values()
    )


def pairs_say(world: World, match: re.Match) -> None:
    separated = {
        frozenset((one, other)) for one, rank in world.ranks.items() for other in rank.separated_from
    }
    n = len(world.ranks)
    if "no two" in match[0]:
        assert not separated and int(match["n"]) == n
    elif "from each other" in match[0]:
        assert len(separated) == n * (n - 1) / 2
    else:
        assert (int(match["k"]), int(match["of"])) == (len(separated), n * (n - 1) / 2)
        assert 0 < len(separated) < int(match["of"])


def open_ranks_say(world: World, match: re.Match) -> None:
    wanted = (int(match["low"]), int(match["high"]))
    ranges = Counter((rank.low, rank.high) for rank in world.ranks.values())
    assert ranges[wanted] == int(match["size"]) == max(ranges.values())
    first = world.ranks[world.named(match["first"]).id]
    assert (first.low, first.high) == wanted


def unranked_say_why(world: World, *_) -> None:
    """Each row without a rank has its own reason, and no row with a rank has one."""
    for row_id, why in (
        ("paper/tuned", "tuned on test"),
        ("paper/both-splits", "evaluated on dev and test together"),
        ("paper/unknown", "reported without split or protocol"),
        ("paper/inferred", "its source names no split"),
    ):
        assert row_id not in world.ranks
        assert why in HTML_OF_ROWS[row_id]
    for row_id, html in HTML_OF_ROWS.items():
        assert ("not ranked" in html) == (row_id not in world.ranks), row_id


def plot_leaves_out(world: World, *_) -> None:
    choice = LeaderboardQuery(figure=world.metric)
    board = world.drawn.board
    shown = {mark.row_id for mark in precision_recall_plot(chosen_rows(board, choice), choice).marks}
    assert all(board.row(row_id).is_comparable for row_id in shown)
    assert {"paper/tuned", "paper/both-splits", "paper/unknown"}.isdisjoint(shown)


def front_is_not_beaten(world: World, *_) -> None:
    """The rows marked are those that no other comparable row of the board beats in precision and recall."""
    cells = {row_id: world.drawn.board.row(row_id).score("success")["overall"] for row_id in HTML_OF_ROWS}
    found = {
        row_id: (cell["precision"], cell["recall"])
        for row_id, cell in cells.items()
        if world.drawn.board.row(row_id).provenance != "reference"
        and world.drawn.board.row(row_id).is_comparable
        and None not in (cell["precision"], cell["recall"])
    }
    unbeaten = {
        row_id
        for row_id, (precision, recall) in found.items()
        if not any(
            each != (precision, recall) and each[0] >= precision and each[1] >= recall
            for each in found.values()
        )
    }
    assert unbeaten == {row_id for row_id, html in HTML_OF_ROWS.items() if "on the front" in html}


def ranked_self_reported_have_verdicts(world: World, *_) -> None:
    """No row has a rank whose metrics are only what its authors say."""
    reported = [row for row in world.drawn.board.rows if row.provenance == "self-reported"]
    assert all(row.id in world.drawn.verdicts for row in reported if row.id in world.ranks)


def rows_are_in_order(world: World, *_) -> None:
    """By precision, then recall, then the earlier submission, among the ranked rows."""
    rows = [
        row for row in world.drawn.board.ranking("success") if row.id in world.drawn.board.ranks("success")
    ]
    cells = [(row.score("success")["overall"], row) for row in rows]
    keys = [
        (-cell["precision"], -cell["recall"], row.date)
        for cell, row in cells
        if cell["precision"] is not None
    ]
    assert keys == sorted(keys)


def best_submission_is_ranked(world: World, *_) -> None:
    """Of the two submissions of Judge 0 the better one."""
    both = [world.drawn.board.row(row_id) for row_id in ("s0", "again")]
    (ranked,) = [row for row in both if row.id in world.ranks]
    best = min if world.metric in LOWER_IS_BETTER else max
    assert world.value(ranked) == best(map(world.value, both))


def known_verdicts_are_paired(world: World, *_) -> None:
    """A difference is paired only if both verdicts are known."""
    if world.found is None:
        return
    for pair in world.found.comparable():
        ids = [world.found.entrants[place].row.id for place in (pair.first, pair.second)]
        assert (pair.runs is not None) == all(row_id in world.drawn.verdicts for row_id in ids)


def basis_says(world: World, match: re.Match) -> None:
    paired = sum(pair.is_paired for pair in world.found.comparable())
    if match["paired"]:
        assert (int(match["paired"]), int(match["of"])) == (paired, len(world.found.comparable()))
    elif match[0].startswith("Every"):
        assert paired == len(world.found.comparable())
    else:
        assert not paired


def colours_exclude_zero(world: World, *_) -> None:
    for pair in world.found.pairs:
        for difference in (pair.overall, *pair.by_benchmark.values(), *pair.by_agent.values()):
            if difference.favours:
                low, high = difference.interval
                assert low > 0 or high < 0


def incomparable_have_none(world: World, *_) -> None:
    for pair in (each for each in world.found.pairs if each not in world.found.comparable()):
        for difference in (pair.overall, *pair.by_benchmark.values(), *pair.by_agent.values()):
            assert (difference.value, difference.interval, difference.favours) == (None, None, 0)


def pair_cannot_be_compared(world: World, match: re.Match) -> None:
    assert world.pair(match["a"], match["b"]) not in world.found.comparable()
    assert match["why"] == world.named(match["who"]).why_not_comparable
    incomparable_have_none(world)


def pair_is_apart(world: World, match: re.Match) -> None:
    overall = world.pair(match["a"], match["b"]).overall
    assert overall.favours == (1 if match["word"] == "better" else -1)
    assert float(match["by"]) == pytest.approx(abs(100 * overall.value), abs=0.051)
    ends = sorted(abs(100 * end) for end in overall.interval)
    assert (float(match["near"]), float(match["far"])) == pytest.approx(ends, abs=0.051)


def pair_is_not_apart(world: World, match: re.Match) -> None:
    low, high = world.pair(match["a"], match["b"]).overall.interval
    assert low <= 0 <= high


def board_differs(world: World, match: re.Match) -> None:
    pair = world.pair(match["a"], match["b"])
    ids = [world.found.entrants[place].row.id for place in (pair.first, pair.second)]
    assert world.separated(*ids) == (match["verb"] == "separates") != bool(pair.overall.favours)
    n = len(world.ranks)
    assert match["pairs"] is None or int(match["pairs"]) == n * (n - 1) / 2


def judge_says(world: World, match: re.Match) -> None:
    rank, n = world.ranks[world.row.id], len(world.ranks)
    assert int(match["n"]) == n
    assert (int(match["low"]), int(match["high"] or match["low"])) == (rank.low, rank.high)


def judge_is_not_ranked(world: World, match: re.Match) -> None:
    assert world.row.id not in world.ranks and match["why"]


def judge_is_separated_from(world: World, match: re.Match) -> None:
    rank = world.ranks[world.row.id]
    assert (int(match["k"]), int(match["others"])) == (rank.n_separated, len(world.ranks) - 1)
    for words, names in (("better", match["better"]), ("worse", match["worse"])):
        sign = 1 if words == "better" else -1
        expected = [
            short_name(world.drawn.board.row(other))
            for other in rank.separated_from
            if sign * (world.ranks[other].place - rank.place) > 0
        ]
        assert (names or "").split(", ") == (expected or [""])


def is_large(world: World, match: re.Match) -> None:
    assert int(match["n"]) == TESTED_TOGETHER


def holds_of_an_example(*_) -> None:
    """`test_ranges_can_overlap_…` and `test_compare_can_find_…` show an example."""


def is_measured(*_) -> None:
    """A probability: `bench.ranks` measures it, and tests/bench/test_ranks_bench.py checks that."""


def is_no_rule(*_) -> None:
    """A heading, a name of a control, or how something is drawn."""


Check = Callable[[World, re.Match], None]
NAME = r"[\w -]+ \(tree\)(?:, \w+)?"
RULES: dict[str, Check] = {
    # The board
    r"(Rank|Judges are ranked) by [\w ]+\.|Precision on [\w ]+ ranks the board \(.*": holds_of_ranks,
    r"A range covers every place that the data allow\.|A rank is a range if the data allow several places\.":
        holds_of_ranks,
    r"(\d+(?:–\d+)?): rank by ([\w ]+), separated from (\d+) of (\d+) other judges?": rank_says,
    r"The test set separates (all (?P<all>\d+) judges from each other|the two judges from each other|"
    r"no two of the (?P<n>\d+) judges|(?P<k>\d+) of the (?P<of>\d+) pairs of judges)\.": pairs_say,
    rf"(?P<size>\d+) judges, (?P<first>{NAME}) among them, could each have any rank from (?P<low>\d+) to "
    r"(?P<high>\d+)\.": open_ranks_say,
    r"Two judges whose ranges overlap can still be separated: point at a rank, or tap it, to see from which "
    r"judges its row is separated\.": holds_of_an_example,
    r"All pairs are tested at once: if all judges were equally good, the chance of "
    r"separating any two of them "
    r"would be at most 5 %( \(step-down max-T over resampled tasks\))?\.": is_measured,
    r"Compare tests one pair at a time, so two judges can differ there that are not separated here\.":
        holds_of_an_example,
    r"Judges that cannot be compared are left out: .*": plot_leaves_out,
    r"not ranked|A row without a rank says why\.|.* · another submission of the "
    r"judge is ranked( · on the front)?": unranked_say_why,
    r"on the (precision-recall )?front: no other judge that can be compared has at least the same precision "
    r"and recall, and one of them higher\.?": front_is_not_beaten,
    r"Scored submissions of the judge; the best one is ranked": best_submission_is_ranked,
    r"Ranks are by precision\.|On each day, a judge is ranked by its best submission so far\.|"
    r"The table above shows which other places the data allow today\.|All ranks below those shown share .*":
        holds_of_ranks,
    # About
    r"Two judges are separated if the difference between them is significant; two "
    r"judges whose ranges overlap "
    r"can still be separated, so the board shows from which judges each row is "
    r"separated\.": holds_of_an_example,
    r"The page Compare tests one pair at a time, so two judges can differ significantly there that the board "
    r"does not separate\.": holds_of_an_example,
    r"Two judges with verdicts are compared on the same resamples \(a paired comparison\)\.":
        known_verdicts_are_paired,
    r"A judge's range of ranks starts one after the number of judges that are "
    r"separated above it, and ends at "
    r"the number of ranked judges less those separated below it\.": holds_of_ranks,
    r"If two judges have the same precision, .*": rows_are_in_order,
    r"They are ranked only if their verdicts are known\.": ranked_self_reported_have_verdicts,
    r"With more than (?P<n>\d+) ranked judges it is the studentized range .*": is_large,
    # Compare
    rf"(?P<a>{NAME}) and (?P<b>{NAME}) cannot be compared: (?P<who>{NAME}) is (?P<why>.*)\.":
        pair_cannot_be_compared,
    rf"(?P<a>{NAME}) is (?P<word>better|worse) than (?P<b>{NAME}) overall, by (?P<by>[\d.]+) points "
    r"\(95 %: (?P<near>[\d.]+) to (?P<far>[\d.]+)\)[;,].*": pair_is_apart,
    rf"The test set cannot tell (?P<a>{NAME}) and (?P<b>{NAME}) apart( overall)?[,;] .*": pair_is_not_apart,
    rf"The board (?P<verb>separates|does not separate) (?P<a>{NAME}) and "
    rf"(?P<b>{NAME}) by [\w ]+: (its test is "
    r"computed in another way than the interval on this page|it tests all "
    r"(?P<pairs>\d+) pairs of its judges at "
    r"once and needs a larger difference, while this page tests one pair at a time)\.": board_differs,
    r"(Every interval( not marked with ≈)? is paired: the judges are compared .*|"
    r"Of (?P<of>\d+) pairs, (?P<paired>\d+) (is|are) compared on the same tasks .*)": basis_says,
    r"If .*, the two judges' separate intervals are combined\.": known_verdicts_are_paired,
    r"Coloured intervals exclude zero: the difference is significant\.": colours_exclude_zero,
    r"Each pair is tested by itself, so about one in twenty comparisons .*": is_measured,
    r"The board tests all pairs of judges at once, so it may not separate two judges that differ here\.":
        holds_of_an_example,
    r".* · cannot be compared: .*|Judges that cannot be compared have no differences and no intervals\.":
        incomparable_have_none,
    r"The interval in the table is about [\w ]+, so two judges may differ in the "
    r"test and not in the interval, "
    r"or the other way round\.|approximate: computed from two separate intervals": is_no_rule,
    # A judge's page
    r"Its rank by precision is (?P<low>\d+)(?P<high>)? of (?P<n>\d+)\.": judge_says,
    r"The data allow ranks (?P<low>\d+) to (?P<high>\d+) of (?P<n>\d+) by precision\.": judge_says,
    r"It is not ranked: (?P<why>.*)\.": judge_is_not_ranked,
    r"By precision, the board separates it from (?P<k>\d+) of (?P<others>\d+) other ranked judges?"
    r"([:;] it is better than (?P<better>.*?))?([:;] it is worse than "
    r"(?P<worse>.*?))?\.": judge_is_separated_from,
    # Headings, controls, and how things are drawn
    r"outside the range of the axis|All ranks date from .*|Rank|Rank history|Ranks "
    r"over time.*|.*: rank \d+ from .*|Intervals and ranks|Compared with|"
    r"How intervals and ranks are computed|Metrics Intervals and ranks .*|How do these \d judges differ\?|"
    rf"Is ({NAME}) better than ({NAME})\?|({NAME}) compared with .*|To the right of "
    rf"the line, .*|.* better →.*|"
    r"Labels \w+ · \d+ judges? ranked .*|.* (entered at|moved from|stays at) rank .*|Ranks follow Mogstad .*|"
    r"The board ranks a judge by its best submission\.|ranked(, shown here)?|(McNemar|trajectories that) .*|"
    r"Both wrong by chance|If people and judges find .*|.*differ(ent)? from .*": is_no_rule,
}  # fmt: skip

HTML_OF_ROWS: dict[str, str] = {}
"""The HTML of each row of the board that was read last."""


def check(world: World, html: str) -> None:
    for sentence in sentences_of(html):
        matches = [
            (rule, found) for pattern, rule in RULES.items() if (found := re.fullmatch(pattern, sentence))
        ]
        assert matches, f"no rule for the sentence {sentence!r}"
        for rule, found in matches:
            rule(world, found)


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """A function that gives a client of the pages of a drawn board."""
    service = public_service(tmp_path_factory.mktemp("rules"))
    known = Known(service, Explorer(service.settings, service))
    client = local_client(service, known)

    def showing(drawn: DrawnBoard):
        known.drawn = drawn
        service.records.board = lambda: drawn.board
        service.labels_for_public_figures = lambda: drawn.labels
        return client

    showing.known = known
    return showing


BOARDS = st.tuples(
    st.integers(0, 10_000),  # the seed
    st.integers(1, 4),  # judges with submissions
    st.integers(0, 3),  # judges from papers with counts
    st.integers(0, 2),  # judges from papers with verdicts
    st.sampled_from([0.0, 0.2, 0.6]),  # how much judges differ
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(BOARDS, st.sampled_from(tuple(METRIC_TITLES)))
def test_every_sentence_on_the_board_about_ranks_holds(space, numbers, metric):
    drawn = drawn_board(*numbers)
    html = space(drawn).get(link_to("/", figure=metric, every="1")).text
    HTML_OF_ROWS.clear()
    HTML_OF_ROWS.update(re.findall(r'<tr class="[^"]*" data-row="([^"]*)">(.*?)</tr>', html, re.DOTALL))
    world = World(drawn, metric)
    check(world, html)
    check(world, space(drawn).get("/about").text)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(BOARDS, st.sampled_from(COMPARED_METRICS), st.randoms(use_true_random=False))
def test_every_sentence_on_compare_holds(space, numbers, metric, random):
    drawn = drawn_board(*numbers)
    rows = [row for row in drawn.board.rows if row.provenance != "reference" and row.id != "never"]
    chosen = random.sample(rows, min(len(rows), random.randint(2, 4)))
    client = space(drawn)
    entrants = [
        Entrant(
            space.known.with_figures(row),  # as Compare shows it
            drawn.verdicts[row.id].targets["success"] if row.id in drawn.verdicts else None,
        )
        for row in chosen
    ]
    world = World(drawn, metric, found=compare(entrants, drawn.labels, "success", metric))
    html = client.get(link_to("/compare", judges=[row.id for row in chosen], figure=metric)).text
    check(world, html)
    coloured = re.findall(r'<i class="interval[^"]* (better|worse)', html)
    assert bool(coloured) <= any(
        each.favours
        for pair in world.found.against_first()
        for each in (pair.overall, *pair.by_benchmark.values(), *pair.by_agent.values())
    )


@settings(max_examples=10, deadline=None)
@given(BOARDS)
def test_every_sentence_on_a_judges_page_about_its_rank_holds(space, numbers):
    drawn = drawn_board(*numbers)
    client = space(drawn)
    for row in drawn.board.rows:
        if row.provenance != "reference":
            check(World(drawn, "precision", row=row), client.get(link_to("/judge", id=row.id)).text)


OVERLAPPING = (3, 4, 2, 2, 0.5)


def test_ranges_can_overlap_although_two_judges_are_separated():
    ranks = World(drawn_board(*OVERLAPPING), "precision").ranks
    overlapping = [
        (one, other)
        for (one, first), (other, second) in combinations(ranks.items(), 2)
        if other in first.separated_from and first.low <= second.high and second.low <= first.high
    ]
    assert overlapping


def test_compare_can_find_a_difference_that_the_board_does_not_and_says_why(space):
    drawn = drawn_board(*OVERLAPPING)
    html = space(drawn).get(link_to("/compare", judges=["paper/Paper 2", "s3"])).text
    # 8 ranked judges: 8 * 7 / 2 = 28 pairs
    assert (
        "The board does not separate Paper 2 (tree) and Judge 3 (tree) by precision: "
        "it tests all 28 pairs of "
        "its judges at once and needs a larger difference, while this page tests one pair at a time."
    ) in html
    assert "is better than Judge 3 (tree) overall" in html
