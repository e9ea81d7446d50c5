"""Which rows and figures the table shows, and where intervals stand on its axis."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.pages.leaderboard.query import LeaderboardQuery, address_of_choice, choice_in, options_of
from space.pages.leaderboard.table import spans, view_board
from space.web.cells import cost_cell
from tests.support.boards import board, cell, label, row, second_annotator
from tests.support.leaderboard_client import table_html


def ends(view) -> tuple[float, float]:
    """The ends of the axis."""
    return round(view.axis.low, 9), round(view.axis.high, 9)


def judges(found) -> list[str]:
    return [line.row.judge for line in found.rows]


@pytest.fixture
def three():
    """Precision 90, 75 and 60 %, of three kinds."""
    return board(
        row(
            "Alpha", label(cell(90, 10, 30, 170, ci=[0.8, 0.95]), (1, 1, 1)), kind="LLM judge", model="GPT-X"
        ),
        row(
            "Beta",
            label(cell(75, 25, 45, 155, ci=[0.6, 0.85]), (2, 2, 3)),
            "published",
            kind="Rule-based",
            inputs="caption",
        ),
        row("Gamma", label(cell(60, 40, 60, 140, ci=[0.48, 0.7]), (3, 2, 3)), kind="Ensemble", account="eve"),
    )


# Which rows


def test_rows_come_in_the_boards_order_and_references_apart(three):
    view = view_board(board(second_annotator(), *three.rows[::-1]), LeaderboardQuery())
    assert judges(view) == ["Alpha", "Beta", "Gamma"]
    assert [line.row.judge for line in view.references] == ["Second annotator"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"kinds": ["Rule-based"]}, ["Beta"]),
        ({"kinds": ["Rule-based", "Ensemble"]}, ["Beta", "Gamma"]),
        ({"kinds": ["Human"]}, []),
        ({"provenances": ["published"]}, ["Beta"]),
        ({"provenances": ["scored"], "kinds": ["Rule-based"]}, []),
        ({"inputs": ["caption"]}, ["Beta"]),
        ({"inputs": ["caption", "tree"], "kinds": ["Ensemble"]}, ["Gamma"]),
        ({"search": "alp"}, ["Alpha"]),
        ({"search": "gpt-x"}, ["Alpha"]),
        ({"search": "  LOVELACE  gamma "}, ["Gamma"]),
        ({"search": "eve"}, ["Gamma"]),
        ({"search": "alpha beta"}, []),
        ({"search": "[(*"}, []),
        ({"search": " "}, ["Alpha", "Beta", "Gamma"]),
    ],
)
def test_filters_and_search_keep_the_rows_that_fit_all_of_them(three, choice, expected):
    assert judges(view_board(three, LeaderboardQuery(**choice))) == expected


def test_reference_rows_stay_whatever_is_filtered(three):
    view = view_board(
        board(*three.rows, second_annotator()), LeaderboardQuery(search="nobody", kinds=["Ensemble"])
    )
    assert view.rows == ()
    assert len(view.references) == 1


def test_a_judge_shows_its_best_submission_and_all_of_them_on_demand():
    best = row("Twice", label(cell(9, 1, 1, 9), (1, 1, 1)), id="a")
    other = row("Twice", label(cell(5, 5, 5, 5), best=False), id="b")
    assert [line.row.id for line in view_board(board(best, other), LeaderboardQuery()).rows] == ["a"]
    every = view_board(board(best, other), LeaderboardQuery(every_submission=True))
    assert [line.row.id for line in every.rows] == ["a", "b"]


def test_a_row_without_the_chosen_label_is_not_shown(three):
    assert judges(view_board(three, LeaderboardQuery(label="repetition"))) == []
    looping = row("Delta", None, labels={"repetition": label(cell(3, 1, 1, 5), (1, 1, 1))})
    assert judges(view_board(board(*three.rows, looping), LeaderboardQuery(label="repetition"))) == ["Delta"]
    assert "Delta" not in judges(view_board(board(*three.rows, looping), LeaderboardQuery()))


def test_kinds_are_those_of_judges_in_order(three):
    kinds = options_of(board(*three.rows, second_annotator()))["kind"]
    assert list(kinds) == ["Ensemble", "LLM judge", "Rule-based"]


# One agent


@pytest.fixture
def by_agent():
    """Two judges with figures of two agents, and a row of a paper with none."""

    def judged(name: str, one: dict, other: dict, rank):
        found = label(cell(60, 40, 60, 140), rank, webarena=cell(1, 1, 1, 1))
        return row(name, {**found, "by_agent": {"one": one, "other": other}})

    return board(
        row("Paper", label(cell(90, 10, 30, 170), (1, 1, 1)), "published"),
        judged("Alpha", cell(30, 10, 20, 40, ci=[0.6, 0.85]), cell(30, 30, 40, 100), (2, 2, 3)),
        judged("Beta", cell(20, 20, 30, 30, ci=[0.35, 0.65]), cell(40, 20, 30, 110), (3, 2, 3)),
    )


def test_an_agents_figures_are_of_its_runs_and_the_columns_compare_agents(by_agent):
    found = view_board(by_agent, LeaderboardQuery(agent="one"))
    assert found.parts == {"one": "one", "other": "other"}
    alpha = next(line for line in found.rows if line.row.judge == "Alpha")
    assert (alpha.main.text, alpha.others[0].text) == ("75.0", "60.0")  # 30 of 40 called, 30 of 50 found
    assert [part.text for part in alpha.benchmarks] == ["75.0", "50.0"]
    assert ends(found) == (0.3, 0.9)  # 35 to 85 %


def test_a_subset_of_the_suite_is_chosen_like_an_agent_and_not_together_with_one(by_agent):
    alpha = by_agent.rows[1]
    hard = {**alpha.labels["success"], "by_subset": {"difficulty=hard": cell(3, 1, 2, 4)}}
    found = board(by_agent.rows[2], replace(alpha, labels={"success": hard}))
    options = options_of(found)
    assert options["subset"] == {"difficulty=hard": "difficulty: hard"}
    choice, refused = choice_in("subset=difficulty%3Dhard&agent=one", options, 2)
    assert (choice.subset, choice.agent, refused) == ("difficulty=hard", "", [])
    assert choice.note.endswith("To see the agent, choose all trajectories instead of the subset.")
    view = view_board(found, choice)
    assert judges(view) == ["Alpha", "Beta"] and view.rows[0].main.text == "75.0"  # 3 of 4; Beta has none
    assert "difficulty%3Dhard" in address_of_choice(choice)
    assert "from the chosen subset" in table_html(found, choice)


def test_rows_without_figures_of_the_agent_come_last_and_stay_blank(by_agent):
    found = view_board(by_agent, LeaderboardQuery(agent="one"))
    assert judges(found) == ["Alpha", "Beta", "Paper"]
    last = found.rows[-1]
    assert (last.main.text, last.main.hover, last.interval) == ("–", "not known", None)
    assert judges(view_board(by_agent, LeaderboardQuery())) == ["Paper", "Alpha", "Beta"]


def test_the_agents_to_choose_from_are_those_that_the_board_has_figures_of(by_agent, three):
    assert options_of(by_agent)["agent"] == {"one": "one", "other": "other"}
    assert options_of(three)["agent"] == {}
    official = replace(by_agent, suite="agent-reward-bench")
    assert options_of(official)["agent"]["GenericAgent-gpt-4o-2024-11-20"] == "GPT-4o"


# Costs and tries


def test_costs_have_a_column_on_their_own_if_two_rows_have_them_and_submissions_if_a_judge_has_several(three):
    assert view_board(three, LeaderboardQuery()).has_attempts
    published = [replace(found, provenance="published", attempts=None) for found in three.rows]
    assert not view_board(board(*published), LeaderboardQuery()).has_attempts
    assert list(view_board(board(*published), LeaderboardQuery()).facts) == ["source"]
    assert list(view_board(three, LeaderboardQuery()).facts) == ["source"]  # one submission of each judge
    several = [replace(three.rows[0], attempts=2), *three.rows[1:]]
    assert list(view_board(board(*several), LeaderboardQuery()).facts) == ["submissions", "source"]
    priced = replace(three.rows[0], cost={"usd_per_1000": 1234.5, "rows": 100, "of": 120})
    both = [priced, replace(priced, id="other"), three.rows[1]]
    assert list(view_board(board(*both), LeaderboardQuery()).facts) == ["cost", "source"]
    assert list(view_board(board(priced, three.rows[1]), LeaderboardQuery()).facts) == ["source"]
    found = view_board(board(priced, three.rows[1]), LeaderboardQuery(columns=("cost",)))
    assert list(found.facts) == ["cost"]  # a reader can choose it
    assert list(view_board(board(priced), LeaderboardQuery()).facts) == ["cost", "source"]  # one judge
    known, unknown = (cost_cell(line.row.cost) for line in found.rows)
    assert (known.text, known.value) == ("1,234.50", 1234.5)
    assert "from 100 of 120 rows" in known.hover
    assert (unknown.text, unknown.value) == ("", None)


# Which figures


def test_the_chosen_figure_orders_and_ranks_and_the_human_reference_stays_apart():
    # Precision 90, 80, 60 %; recall 90 of 180, 80 of 100, 60 of 150; FPR 10 of 110, 20 of 40, 40 of 400
    counts = {
        "A": cell(90, 10, 90, 100, ci=[0.8, 0.95], recall_ci=[0.42, 0.58]),
        "B": cell(80, 20, 20, 20, ci=[0.7, 0.88], recall_ci=[0.71, 0.87]),
        "C": cell(60, 40, 90, 360, ci=[0.5, 0.7], recall_ci=[0.32, 0.48]),
    }
    rows = [
        row(name, label(found, (n, n, n)), "published") for n, (name, found) in enumerate(counts.items(), 1)
    ]
    found = board(*rows, second_annotator())
    assert judges(view_board(found, LeaderboardQuery())) == ["A", "B", "C"]
    recall = view_board(found, LeaderboardQuery(figure="recall"))
    assert judges(recall) == ["B", "A", "C"]
    assert recall.rows[0].rank.range_text("–") == "1"  # 71 to 87 % lies above 42 to 58 %
    html = table_html(found, LeaderboardQuery(figure="recall"))
    # B is better than A, and than C: 71 to 87 % lies above 32 to 48 %
    assert 'aria-label="1: rank by recall, separated from 2 of 2 other judges">1</button>' in html
    assert 'title="Rank by recall. A range covers every place that the data allow."' in html
    lowest = view_board(found, LeaderboardQuery(figure="fpr"))
    assert judges(lowest) == ["A", "C", "B"]  # the fewest false alarms first
    # A first click sorts from the lowest.
    assert "sort=figure" in table_html(found, LeaderboardQuery(figure="fpr"))
    assert [line.row.judge for line in lowest.references] == ["Second annotator"]


def test_a_judge_stands_with_the_submission_that_is_best_by_the_chosen_figure():
    precise = row("Twice", label(cell(9, 1, 91, 99), (1, 1, 1)), id="precise")
    generous = row("Twice", label(cell(90, 90, 10, 10), best=False), id="generous")
    found = board(precise, generous)
    assert [line.row.id for line in view_board(found, LeaderboardQuery()).rows] == ["precise"]
    assert [line.row.id for line in view_board(found, LeaderboardQuery(figure="recall")).rows] == ["generous"]


def test_rows_ranked_by_a_hidden_half_have_no_rank_by_other_figures():
    found = board(row("A", {**label(cell(9, 1, 1, 9), (1, 1, 1)), "ranked_by": "a half that is not shown"}))
    (line,) = view_board(found, LeaderboardQuery(figure="f1")).rows
    assert line.rank is None
    assert "ranked only by precision, on a hidden half" in table_html(found, LeaderboardQuery(figure="f1"))
    assert view_board(found, LeaderboardQuery()).rows[0].rank.range_text("–") == "1"


def test_a_published_row_that_cannot_be_compared_says_why_it_has_no_rank():
    found = board(row("A", label(cell(9, 1, 1, 9)), "published", split=None, protocol=None))
    (line,) = view_board(found, LeaderboardQuery()).rows
    assert line.rank is None
    html = table_html(found, LeaderboardQuery())
    assert re.search(r'<td class="rank[^>]*>not ranked</td>', html)
    why = re.search('<em title="([^"]*)">reported without split or protocol</em>', html)
    assert "protocol not named" in why[1]


def test_the_chosen_figure_is_the_main_one_and_the_others_stand_beside_it(three):
    precision = view_board(three, LeaderboardQuery()).rows[0]
    assert (precision.main.text, [other.text for other in precision.others]) == ("90.0", ["75.0", "81.8"])
    recall = view_board(three, LeaderboardQuery(figure="recall"))
    assert recall.other_figures == ("precision", "f1")
    assert recall.rows[0].main.text == "75.0"  # 90 of 120
    assert len(view_board(three, LeaderboardQuery(figure="npv")).other_figures) == 3


def test_benchmarks_are_columns_in_the_official_order_then_a_suites_own():
    found = {"workarena__": cell(8, 2, 1, 1), "webarena": cell(1, 3, 1, 1), "my_shop": cell(0, 0, 1, 1)}
    view = view_board(board(row("A", label(cell(9, 5, 3, 3), (1, 1, 1), **found))), LeaderboardQuery())
    assert tuple(view.parts.values()) == ("WebArena", "WorkArena++", "my+shop")
    assert [found.text for found in view.rows[0].benchmarks] == ["25.0", "80.0", "–"]


# Columns that the reader chooses, and the front


def test_chosen_columns_come_in_the_tables_order_and_stay_in_every_address(three):
    choice, refused = choice_in("columns=model,npv,weights&columns=recall", options_of(three), 3)
    assert (choice.columns, refused) == (("recall", "npv", "model", "weights"), [])
    found = view_board(three, choice)
    assert (found.other_figures, list(found.facts)) == (("recall", "npv"), ["model", "weights"])
    assert address_of_choice(choice, sort="cost") == "/?sort=cost&columns=recall,npv,model,weights"
    html = table_html(three, choice)
    assert re.findall(r'data-heading="([^"]*)"', html)[:5] == ["Rank", "Precision", "Recall", "NPV", "Model"]


def test_the_usual_columns_are_no_choice_and_unknown_ones_are_refused(three):
    options = options_of(three)
    usual = ",".join(options["usual_columns"])
    assert usual == "precision,recall,f1,source"
    assert choice_in(f"columns={usual}", options, 3)[0] == LeaderboardQuery()
    assert choice_in("columns=colour", options, 3) == (LeaderboardQuery(), ["columns"])


def test_the_only_benchmark_of_a_suite_has_no_column_of_its_own(three):
    def usual(*names):
        rows = []
        for each in three.rows:
            score = each.score("success")
            parts = dict.fromkeys(names, score["overall"])
            rows.append(replace(each, labels={"success": {**score, "by_benchmark": parts}}))
        return set(options_of(board(*rows))["usual_columns"])

    assert "webarena" not in usual("webarena")
    assert {"webarena", "workarena"} <= usual("webarena", "workarena")


def test_a_models_cell_links_to_it_and_unknown_facts_are_empty(three):
    facts = {
        "maker": "Meta",
        "weights": "open",
        "licence": "A <licence>",
        "model_link": "https://m.example/x",
    }
    known = replace(three.rows[0], **facts)
    columns = ("model", "maker", "weights", "licence")
    html = table_html(board(known, three.rows[1]), LeaderboardQuery(columns=columns))
    assert '<a href="https://m.example/x" rel="noopener" target="_blank">GPT-X</a>' in html
    assert "A &lt;licence&gt;" in html
    assert html.count('class="fact unknown"') == 3  # of the second row; its model is named


def test_rows_sort_by_facts_and_rows_without_them_come_last(three):
    first, second, third = three.rows
    rows = board(replace(first, maker="Zeta"), second, replace(third, maker="alpha"))
    assert judges(view_board(rows, LeaderboardQuery(sort="maker"))) == ["Gamma", "Alpha", "Beta"]
    assert judges(view_board(rows, LeaderboardQuery(sort="-maker"))) == ["Alpha", "Gamma", "Beta"]


def test_rows_sort_by_date(three):
    first, second, third = three.rows
    rows = board(first, replace(second, date="2026-01-01"), replace(third, date="2026-01-03"))
    assert judges(view_board(rows, LeaderboardQuery(sort="date"))) == ["Beta", "Alpha", "Gamma"]
    assert judges(view_board(rows, LeaderboardQuery(sort="-date"))) == ["Gamma", "Alpha", "Beta"]


def test_the_front_has_the_judges_that_none_beats_in_precision_and_recall():
    # precision and recall: A 90, 50; B 80, 80; C 75, 75 (below B); D 60, 90; E as B
    # X has 95, 95, but cannot be compared
    counts = {"A": (90, 10, 90), "B": (80, 20, 20), "C": (75, 25, 25), "D": (90, 60, 10), "E": (80, 20, 20)}
    rows = [row(name, label(cell(tp, fp, fn, 100))) for name, (tp, fp, fn) in counts.items()]
    unknown = row("X", label(cell(95, 5, 5, 100)), "published", split="", protocol="")
    everyone = board(*rows, unknown, second_annotator())
    front = {"A", "B", "D", "E"}
    assert view_board(everyone, LeaderboardQuery()).front == front
    assert view_board(everyone, LeaderboardQuery(search="C", figure="recall", sort="judge")).front == front
    html = table_html(everyone, LeaderboardQuery())
    marked = re.findall(r'data-row="(.)"(?:(?!</tr>).)*?class="mark front"', html, re.DOTALL)
    assert set(marked) == front


def test_a_phone_can_sort_by_every_column_and_reverse_the_chosen_one(three):
    html = table_html(three, LeaderboardQuery(sort="-recall"))
    offered = re.findall(r'<option value="([^"]*)"( selected)?>', html)
    assert ("-recall", " selected") in offered
    names = [value for value, _ in offered]
    assert names == ["", "rank", "judge", "-figure", "-recall", "recall", "-f1", "date"]
    options = options_of(three)
    assert [choice_in(f"sort={name}", options, 3)[1] for name in names] == [[]] * 8
    assert html.count(" sorted") == 3  # the recall of each row


# Ranks


@pytest.mark.parametrize(
    ("apart", "text", "data", "words"),
    [
        (["B", "C"], "1", 'data-place="1" data-apart="1-2"', "separated from 2 of 2 other judges"),
        (["C"], "1–2", 'data-place="1" data-apart="2"', "separated from 1 of 2 other judges"),
        ([], "1–3", 'data-place="1"', "separated from 0 of 2 other judges"),
    ],
)
def test_a_rank_is_a_button_that_says_from_whom_the_row_is_separated(apart, text, data, words):
    rank = (1, 1, 3 - len(apart))
    first = row("A", label(cell(9, 1, 1, 9), rank, apart=apart))
    others = [row(name, label(cell(8, 2, 1, 9), (2, 1, 3), apart=[])) for name in "BC"]
    html = table_html(board(first, *others), LeaderboardQuery())
    label_of_it = f'aria-label="{text}: rank by precision, {words}"'
    assert f'<button type="button" class="range" {data} {label_of_it}>{text}</button>' in html
    assert """data-ranked='["A (tree)", "B (tree)", "C (tree)"]'""" in html


def test_a_board_that_lists_no_pairs_says_from_how_many_a_row_is_separated():
    first = row("A", label(cell(9, 1, 1, 9), (1, 1, 2)))
    html = table_html(board(first, row("B", label(cell(8, 2, 1, 9), (2, 1, 2)))), LeaderboardQuery())
    assert "data-ranked" not in html and "data-apart" not in html
    assert "see from how many judges its row is separated" in html


@given(st.sets(st.integers(0, 40)))
def test_numbers_are_written_as_spans_and_none_is_lost(numbers):
    found = []
    for span in spans(sorted(numbers)).split():
        low, _, high = span.partition("-")
        found += range(int(low), int(high or low) + 1)
    assert found == sorted(numbers)
    assert spans([0, 1, 2, 3, 7]) == "0-3 7"


def test_a_row_that_needs_a_reward_says_so():
    html = table_html(
        board(row("Rules", label(cell(9, 1, 1, 9), (1, 1, 1)), inputs="reward")), LeaderboardQuery()
    )
    assert "needs the environment&#39;s reward" in html


def test_a_row_that_cannot_be_compared_has_a_dot_and_no_interval():
    found = label(cell(9, 1, 1, 9, ci=[0.6, 0.95]))
    tuned = row("A", found, "self-reported", test_labels_used=True)
    (line,) = view_board(board(tuned), LeaderboardQuery()).rows
    assert line.interval.width == 0
    assert line.why_not_ranked == "tuned on test"


# The axis


def test_the_axis_is_in_whole_tens_and_holds_every_interval(three):
    view = view_board(three, LeaderboardQuery())  # 48 to 95 %
    assert ends(view) == (0.4, 1.0)
    first = view.rows[0].interval
    # 0.8 to 0.95 on 0.4 to 1.0: from 2/3, a quarter wide, the dot at 5/6
    assert (first.left, first.width, first.dot) == (66.67, 25.0, 83.33)
    assert not first.off


def test_the_human_reference_is_a_line_through_all_rows(three):
    assert view_board(three, LeaderboardQuery()).human is None
    # 11/13 = 0.846 on 0.4 to 1.0
    assert view_board(board(*three.rows, second_annotator()), LeaderboardQuery()).human == 74.36


def test_a_reference_outside_the_axis_is_marked_and_does_not_stretch_it(three):
    always = row("Always", label(cell(30, 270, 0, 0, ci=[0.05, 0.15]), best=False), "reference")
    view = view_board(board(*three.rows, always), LeaderboardQuery())
    assert ends(view) == (0.4, 1.0)
    assert view.references[0].interval.off
    assert (view.references[0].interval.dot, view.references[0].interval.width) == (0.0, 0.0)


def test_a_human_reference_outside_the_axis_is_no_line(three):
    low = board(row("Low", label(cell(10, 90, 30, 170, ci=[0.05, 0.15]), (1, 1, 1))), second_annotator())
    found = view_board(low, LeaderboardQuery())
    assert ends(found) == (0.0, 0.2)
    assert found.human is None
    assert (found.references[0].interval.off, found.references[0].interval.dot) == (1, 100.0)
