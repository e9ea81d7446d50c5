from dataclasses import replace

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from arb.core.suite import load_suite
from arb.core.suites.profile import SuiteProfile
from leaderboard.board.board import make_board
from leaderboard.paper.published import load_published_rows
from space.pages.judge.summary import eval_results_yaml, judge_bibtex
from tests.support.boards import board, cell, label, row

ALPHA = row(
    "Alpha & Omega_2",
    label(cell(60, 20, 40, 880)),
    id="0123456789ab",
    authors="Ada Lovelace, Bob {B} et al.",
    link="https://example.org/a_b?c=1",
    labels={"repetition": label(cell(1, 2, 0, 3)), "side_effect": label(cell(0, 0, 1, 9))},
)


OFFICIAL = load_suite()
OURS = replace(OFFICIAL, name="our-bench", profile=SuiteProfile("Our Bench", citation="@misc{ours}"))


def entries(found_board, found_row, profile=OURS.profile):
    return parse_eval_result_entries(yaml.safe_load(eval_results_yaml(found_board, found_row, profile)))


def test_the_hub_reads_an_entry_for_each_label_with_a_precision():
    found = entries(board(ALPHA), ALPHA)
    # success 60/80, repetition 1/3; on side effects it never said yes, so there is no precision
    assert [(entry.task_id, entry.value) for entry in found] == [("success", 75.0), ("repetition", 33.3)]
    assert {entry.dataset_id for entry in found} == {"OWNER/small"}
    assert (found[0].date, found[0].source_url) == ("2026-01-02", "https://example.org/a_b?c=1")
    assert "recall 60.0; 1,000 test trajectories; submission 0123456789ab" in found[0].notes


def test_the_paper_rows_name_the_official_dataset():
    found_board = make_board("agent-reward-bench", (), load_published_rows(), None)
    aer = next(found for found in found_board.rows if found.id == "paper/aer-c")
    (entry, *_) = entries(found_board, aer, OFFICIAL.profile)
    assert (entry.dataset_id, entry.task_id, entry.value) == (
        "McGill-NLP/agent-reward-bench",
        "success",
        67.7,
    )


def test_a_row_without_link_has_no_source_and_one_without_precision_no_entry():
    plain = row("Plain", label(cell(1, 1, 1, 1)))
    assert entries(board(plain), plain)[0].source_url is None
    never = row("Never", label(cell(0, 0, 1, 1)))
    assert eval_results_yaml(board(never), never, OURS.profile) == ""


def test_the_dataset_is_the_one_that_the_suite_links_to():
    links = (("code", "https://example.org/x/y"), ("data", "https://huggingface.co/datasets/lab/our-bench"))
    assert entries(board(ALPHA), ALPHA, SuiteProfile("Ours", links=links))[0].dataset_id == "lab/our-bench"


def test_hostile_text_stays_text_in_yaml(hostile):
    spoken = row(hostile, label(cell(1, 1, 1, 1)), id="a", link="https://example.org/", source=hostile)
    assert entries(board(spoken), spoken)[0].source_name == hostile


def test_bibtex_tells_the_judge_and_then_the_paper():
    found = judge_bibtex(ALPHA, OFFICIAL)
    assert found.startswith("@misc{alphaomega22026,\n")
    assert r"title        = {{Alpha \& Omega\_2 (tree), a judge of web agents}}," in found
    assert r"author       = {Ada Lovelace and Bob \{B\} and others}," in found
    assert "submission 0123456789ab" in found
    assert found.count("@article{lu2025agentrewardbench,") == 1


def test_on_another_suite_its_own_citation_follows_or_none():
    found = judge_bibtex(ALPHA, OURS)
    assert "howpublished = {Our Bench leaderboard, submission 0123456789ab}" in found
    assert found.endswith("}\n\n@misc{ours}") and "agentrewardbench" not in found.lower()
    assert judge_bibtex(ALPHA, replace(OURS, profile=SuiteProfile("Ours"))).endswith("\n}")


def test_rows_of_the_paper_are_cited_by_the_paper():
    paper = row("AER-C", label(cell(1, 1, 1, 1)), "published", id="paper/aer-c")
    assert judge_bibtex(paper, OFFICIAL).startswith("@article{lu2025agentrewardbench,")
    assert "@misc" not in judge_bibtex(paper, OFFICIAL)


@pytest.mark.parametrize("name", ["}", "{", "\\input{/etc/passwd}", "%", "a}, note = {b", "日本"])
def test_no_name_breaks_out_of_its_braces(name):
    hostile = row(name, label(cell(1, 1, 1, 1)), id="a", authors=name, link="https://x.org/{}")
    found = judge_bibtex(hostile, OFFICIAL)
    entry = found.partition("\n\n@article")[0]
    bare = entry.replace(r"\{", "").replace(r"\}", "")
    depth = 0
    for place, character in enumerate(bare):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth > 0 or place < len("@misc") or place == len(bare) - 1
    assert depth == 0
    assert r"\input" not in entry
