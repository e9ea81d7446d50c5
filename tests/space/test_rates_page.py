"""The success rates page: what it says of experts, judges and rules, and that it never shows a label."""

import pytest

from dataset_script.settings import Settings
from leaderboard.rates import Evaluator, rate_of
from space.pages.rates import benchmarks_of, body_html, default_of
from space.rates_view import view_rates, view_training
from submissions.service import SubmissionService
from tests.space.conftest import shown_text
from tests.submissions.synthetic import with_rules

AGENTS = ("ann", "bob", "cyd")


def evaluator(name, **successes):
    """An evaluator with so many successes of ten runs for each agent on one benchmark."""
    return Evaluator(name, "made up", {("shop", agent): rate_of(k, 10) for agent, k in successes.items()})


EXPERTS = evaluator("Experts", ann=8, bob=5, cyd=2)
JUDGE = evaluator("Judge", ann=6, bob=7, cyd=3)


def test_agents_stand_in_the_order_of_the_first_evaluator_with_a_cell_for_each():
    view = view_rates([EXPERTS, JUDGE], "shop")
    assert [(line.agent, line.n, [cell.text for cell in line.cells]) for line in view.lines] == [
        ("ann", 10, ["80.0", "60.0"]),
        ("bob", 10, ["50.0", "70.0"]),
        ("cyd", 10, ["20.0", "30.0"]),
    ]
    assert "8 of 10 runs" in view.lines[0].cells[0].words


def test_an_agent_without_runs_has_a_dash():
    view = view_rates([EXPERTS, evaluator("Judge", ann=6)], "shop")
    assert view.lines[1].cells[1].text == "–"


def test_sentences_count_over_and_underestimates_and_name_the_swapped_pair():
    # ann 8 -> 6 is below, bob 5 -> 7 and cyd 2 -> 3 above; the widest gap is 20 points, first met at ann
    first, second = view_rates([EXPERTS, JUDGE], "shop").sentences
    assert "2 of 3 agents above and 1 of 3 agents below experts" in first
    assert "20.0 points too low for ann" in first
    assert "it puts bob above ann" in second
    assert view_rates([EXPERTS, JUDGE], "shop").orders[1].swaps == ("bob above ann",)


def test_an_evaluator_that_agrees_everywhere_is_said_to():
    assert "gives every agent the rate" in view_rates([EXPERTS, EXPERTS], "shop").sentences[0]


@pytest.mark.labels
def test_the_official_page_tells_what_section_5_tells(official_settings, tmp_path):
    service = SubmissionService(official_settings.model_copy(update={"state_dir": tmp_path}))
    text = shown_text(body_html(service, "webarena", default_of(service)))
    # paper, section 5: rule-based puts Qwen2.5-VL above GPT-4o on WebArena, experts do not; 42.3 against 25.6
    assert "Rule-based, paper puts none above and all 4 agents below experts on WebArena" in text
    assert "it puts Qwen2.5-VL above GPT-4o, experts the reverse" in text
    _, kept = view_training(service.board())
    rule_based = next(line for line in kept if line.row_id == "paper/rule-based")
    # 165 right and 32 wrong kept: 1,000 * 32 / 197 = 162.4; 130 successes lost: 659.9
    assert (round(rule_based.kept.wrong, 1), round(rule_based.kept.lost, 1)) == (162.4, 659.9)


def test_experts_are_not_shown_where_the_labels_are_hidden(service):
    with_rules(service, is_public=False)
    text = shown_text(body_html(service, "overall", []))
    assert "the labels are hidden" in text
    assert "Experts" not in text


def test_a_wrong_benchmark_or_judge_in_the_address_is_said_and_not_echoed_as_markup(service, hostile):
    html = body_html(service, hostile, [hostile])
    assert "There are no rates by" in html
    assert "<script>alert" not in html
    assert "<img src=x" not in html


def test_the_benchmarks_of_the_suite_are_offered(service):
    found = {trajectory.benchmark for trajectory in service.suite.split("test")}
    assert set(benchmarks_of(service)) == {"overall", *found}
    assert isinstance(service.settings, Settings)
