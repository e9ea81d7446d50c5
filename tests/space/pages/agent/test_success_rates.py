"""The success rates page: what it says of experts, judges and rules, and that it never shows a label."""

import re

import pytest

from leaderboard.success_rates.rates import Evaluator, rate_of
from space.pages.agent.success_rates import view_rates, view_training
from space.web.frame import render
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.space_app import public_with_three
from tests.support.submissions import send, verdicts, with_rules


def evaluator(name, **successes):
    """An evaluator with so many successes of ten runs for each agent on one benchmark."""
    return Evaluator(name, "made up", {("shop", agent): rate_of(k, 10) for agent, k in successes.items()})


EXPERTS = evaluator("Experts", ann=8, bob=5, cyd=2)
JUDGE = evaluator("Judge", ann=6, bob=7, cyd=3)


def test_agents_are_in_the_order_of_the_first_evaluator():
    view = view_rates([EXPERTS, JUDGE], "shop")
    assert list(view["agents"]) == ["ann", "bob", "cyd"]
    assert view["agents"]["ann"] == 10


def test_a_rate_says_what_it_rests_on_and_an_agent_without_trajectories_has_none():
    evaluators = [EXPERTS, evaluator("Judge", ann=6)]
    table = render("agent/rates.html", view=view_rates(evaluators, "shop"), agent_title=str)
    assert 'title="8 of 10 trajectories, 80.0 %, 95 % interval' in table
    assert 'title="no trajectories"' in table


def test_sentences_count_over_and_underestimates_and_name_the_swapped_pair():
    # ann 8 -> 6 is below, bob 5 -> 7 and cyd 2 -> 3 above; the widest gap is 20 points, first met at ann
    first, second = view_rates([EXPERTS, JUDGE], "shop")["sentences"]
    assert "higher rates than the experts to 2 of 3 agents on shop, and lower rates to 1 of 3 agents" in first
    assert "The largest difference is −20.0 points, for ann." in first
    assert "bob above ann" in second
    assert view_rates([EXPERTS, JUDGE], "shop")["orders"][1][2] == ["bob above ann"]


def test_an_evaluator_that_agrees_everywhere_is_said_to():
    assert "gives every agent the same rate" in view_rates([EXPERTS, EXPERTS], "shop")["sentences"][0]


@pytest.mark.labels
def test_the_official_page_tells_what_section_5_tells(official_settings, tmp_path):
    service = SubmissionsApp(official_settings.model_copy(update={"state_dir": tmp_path}))
    text = shown_text(page_at(service, "/rates", benchmark="webarena"))
    # paper, section 5: rule-based puts Qwen2.5-VL above GPT-4o on WebArena, experts do not; 42.3 against 25.6
    assert "Rule-based (reward, paper) gives higher rates than the experts to no agent on WebArena" in text
    assert "ranks agents differently from the experts: Qwen2.5-VL above GPT-4o" in text
    _, kept = view_training(service.records.board().ranking("success"), "success")
    rule_based = next(effect for row, _, effect in kept if row.id == "paper/rule-based")
    # 165 right and 32 wrong kept: 1,000 * 32 / 197 = 162.4; 130 successes lost: 659.9
    assert (round(rule_based.wrong, 1), round(rule_based.lost, 1)) == (162.4, 659.9)


@pytest.mark.labels
def test_a_judge_that_cannot_be_compared_has_no_interval_in_the_table_on_training(
    official_settings, tmp_path
):
    service = SubmissionsApp(official_settings.model_copy(update={"state_dir": tmp_path / "state"}))
    _, kept = view_training(service.records.board().ranking("success"), "success")
    intervals = {row.id: effect.wrong_interval for row, _, effect in kept}
    assert intervals["reported/hunter-seeker"] is None and intervals["paper/rule-based"]
    html = page_at(service, "/rates")
    line = html[html.index('id="rates-training"') :].partition("Hunter-Seeker")[2].partition("</tr>")[0]
    assert "cannot be compared: tuned on test" in line
    assert '<i class="' not in line


def test_experts_are_not_shown_where_the_labels_are_hidden(service):
    with_rules(service, is_public=False)
    text = shown_text(page_at(service, "/rates"))
    assert "the labels are private" in text
    assert "Experts" not in text


def test_a_wrong_benchmark_or_judge_in_the_address_is_said_and_not_echoed_as_markup(service, hostile):
    html = page_at(service, "/rates", status=422, benchmark=hostile, by=[hostile])
    assert "There is no evaluator with the id" in html
    assert "The address of this page has an invalid value for benchmark." in html
    assert "<script>alert" not in html
    assert "<img src=x" not in html


def estimates_in(html: str) -> dict[str, list[str]]:
    """The cells of the first table of estimates by agent."""
    table = html.partition('<table class="sheet estimates">')[2].partition("</table>")[0]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", table)
    return {name: [shown_text(cell) for cell in re.findall(r"<td.*?</td>", cells)] for name, cells in rows}


def test_estimates_are_of_a_recorded_draw_of_as_many_labels_as_the_address_says(tmp_path):
    service, ids = public_with_three(tmp_path)
    found = estimates_in(page_at(service, "/rates", labels=12, judges=[ids["Beta"]]))
    # 15 runs of each agent, 5 succeeded; Beta misses two of ten and calls four more successful
    assert found.keys() == {"agent-a", "agent-b"}
    for labels, alone, only, assisted, by_all, saved in found.values():
        assert (labels, by_all) == ("12 of 15", "33.3")
        assert " to " in only and " to " in assisted
        assert float(alone) in (33.3, 40.0, 46.7) and saved
    assert estimates_in(page_at(service, "/rates", labels=12, judges=[ids["Beta"]])) == found
    assert estimates_in(page_at(service, "/rates", labels=12, judges=[ids["Gamma"]])) != found
    text = shown_text(page_at(service, "/rates", labels=12))
    assert "the 12 runs whose SHA-256 of seed (0) and id is lowest" in text
    assert (
        "Without labels, a judge is off by up to" in text and "agents. In the long run, 95 % of such" in text
    )


def test_a_number_of_labels_or_a_judge_that_there_is_not_is_said(tmp_path):
    service, _ = public_with_three(tmp_path)
    text = shown_text(page_at(service, "/rates", status=422, labels=9, judges=["no-such"]))
    assert "The address of this page has an invalid value for labels" in text
    assert "There is no evaluator with the id 'no-such'" in text


def test_nothing_is_estimated_from_hidden_labels(service):
    with_rules(service, is_public=False)
    send(service, verdicts(service.suite))
    for status, address in ((200, {}), (422, {"split": "test", "labels": 20})):
        html = page_at(service, "/rates", status=status, **address)
        assert estimates_in(html) == {}
        assert "Test" not in re.findall(r"<option[^>]*>([^<]*)</option>", html)
