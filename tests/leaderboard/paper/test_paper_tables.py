"""The paper's tables: what is printed, what is computed, and that every difference is explained."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from arb.core.suite import load_suite
from leaderboard.labels.labels import load_labels
from leaderboard.paper.evidence import gather
from leaderboard.paper.published import PUBLISHED
from leaderboard.paper.rate_tables import count_behind, is_rounded_twice, printed_rates
from leaderboard.paper.table import DERIVED, FROM_COUNTS, FROM_VERDICTS, PaperCell, to_markdown
from leaderboard.paper.tables import TABLES
from leaderboard.success_rates.rates import evaluate_agents
from leaderboard.verdict_files import read_verdict_file

REPOSITORY = Path(__file__).parents[3]
FILES = ("aer-c", "nnetnav", "rule-based")


@pytest.fixture(scope="module")
def labels(official_settings):
    return load_labels(load_suite(), "test", official_settings)


@pytest.fixture(scope="module")
def without_files(labels):
    return gather(labels)


@pytest.fixture(scope="module")
def with_files(labels, shared):
    folder = shared / "data" / "agent-reward-bench" / "verdicts"
    suite = load_suite()
    verdicts = {name: read_verdict_file(folder / f"{name}.jsonl", suite, "test", 5_000_000) for name in FILES}
    return gather(labels, verdicts)


@pytest.mark.labels
def test_the_experts_column_of_table_6_comes_out_in_every_cell(labels):
    experts = evaluate_agents("x", "labels", labels.primary["success"], labels.trajectories, "published")
    lines = printed_rates()
    assert len(lines) == 23  # 19 of benchmarks (no Llama on VisualWebArena), 4 overall
    printed = [f"{100 * line.expert:.1f}" for line in lines]
    assert [f"{100 * experts.rate(line.benchmark, line.agent).value:.1f}" for line in lines] == printed


@pytest.mark.labels
@pytest.mark.shared
@pytest.mark.parametrize("number", TABLES)
def test_every_figure_that_differs_or_is_absent_says_why(with_files, number):
    table = TABLES[number](with_files)
    for name, cell in table.cells():
        if cell.agrees is not True and cell.printed is not None:
            assert cell.note, name
        assert len(table.columns) == len(table.rows[0].cells)


@pytest.mark.labels
@pytest.mark.parametrize(
    ("number", "agreeing", "computed"),
    # Table 1: 13 judges of 8 figures. Table 2: 4 rows of 9, side effects several fits. Table 3: 36 less 3 of
    # Llama on VisualWebArena. Table 6: 69 less 6 rates that are no whole number of runs.
    [(1, 103, 104), (2, 23, 24), (3, 30, 33), (6, 60, 63), (7, 74, 75), (8, 418, 426)],
)
def test_nearly_every_computed_figure_is_the_printed_one(without_files, number, agreeing, computed):
    known = [cell.agrees for _, cell in TABLES[number](without_files).cells() if cell.agrees is not None]
    assert (sum(known), len(known)) == (agreeing, computed)


@pytest.mark.labels
@pytest.mark.shared
def test_verdict_files_give_the_same_figures_as_the_counts_behind_the_printed_ones(without_files, with_files):
    for number in (1, 8):
        pairs = zip(TABLES[number](without_files).rows, TABLES[number](with_files).rows, strict=True)
        for fitted, counted in pairs:
            assert [c.computed for c in fitted.cells] == [c.computed for c in counted.cells], fitted.headings
        by_judge = {row.headings[-1]: row.basis for row in TABLES[number](with_files).rows}
        assert {name for name, basis in by_judge.items() if basis == FROM_VERDICTS} == {
            "AER-C", "NNetNav", "Rule-based",
        }  # fmt: skip
        assert set(by_judge.values()) == {FROM_VERDICTS, FROM_COUNTS}


@pytest.mark.labels
@pytest.mark.shared
def test_the_summary_counts_figures_of_verdicts_and_of_derived_counts_apart(without_files, with_files):
    # 13 judges of 8 figures, 3 of them with verdicts
    assert TABLES[1](with_files).summary() == (
        "79 of 80 figures computed from counts derived from the printed metrics equal the printed ones; "
        "24 of 24 figures computed from verdicts equal the printed ones"
    )
    assert TABLES[1](without_files).is_derived
    assert DERIVED in to_markdown(TABLES[1](without_files))
    assert not TABLES[12](with_files).is_derived


@pytest.mark.labels
def test_the_missing_judgment_of_claude_is_a_remark(without_files):
    remarks = " ".join(TABLES[1](without_files).remarks)
    assert "Claude 3.7 S. (A)" in remarks
    assert "294 positives of 1105: one judgment missing" in remarks
    assert "1,100 verdicts, 6 unparseable, 1 of them positive" in remarks


@pytest.mark.labels
def test_gpt_4os_rates_by_agent_add_up_to_the_verdicts_behind_table_8(without_files):
    # P 70.2 R 89.1 of 119 on WebArena: TP 106, FP 45, so 151; rates 64.1, 50.0, 27.6, 52.6 of 78, 78, 76, 78
    # runs: 50 + 39 + 21 + 41 = 151
    remarks = " ".join(TABLES[6](without_files).remarks)
    assert "151 on WebArena" in remarks
    assert "disagree" not in remarks


@pytest.mark.labels
@pytest.mark.shared
def test_tables_of_one_agent_are_counted_from_its_runs(labels, with_files):
    table = TABLES[12](with_files)  # GPT-4o
    row = next(row for row in table.rows if row.headings == ("WebArena", "Rule-based"))
    runs = np.array([t.benchmark == "webarena" and "gpt-4o" in t.agent for t in labels.trajectories])
    verdicts = with_files.verdicts["paper/rule-based"].codes("success")[runs]
    truth = labels.primary["success"][runs]
    assert row.cells[0].computed == pytest.approx(truth[verdicts == 1].mean())  # precision
    assert row.cells[1].computed == pytest.approx(verdicts[truth == 1].mean())  # recall
    assert "repeat its Table 8" in table.remarks[0]


def test_without_labels_the_rates_are_printed_and_nothing_is_computed():
    table = TABLES[6](gather(None))
    assert all(cell.computed is None and cell.note for _, cell in table.cells())


@pytest.mark.parametrize(
    ("rate", "n", "runs"),
    # 50/78 = 64.10; 7/87 = 8.046, to four digits 8.05, then 8.1; no share of 27 runs lies near 0.8 %
    [(0.641, 78, 50), (0.081, 87, 7), (0.008, 27, None)],
)
def test_the_count_behind_a_printed_rate_is_found(rate, n, runs):
    assert count_behind(rate, n) == runs


def test_rounding_twice_is_not_rounding_once():
    assert is_rounded_twice(7 / 87, 0.081)
    assert not is_rounded_twice(7 / 87, 0.080)


def test_a_cell_half_way_agrees_with_either_neighbour():
    assert PaperCell(0.717, 0.7175).agrees  # 71.75 prints as 71.7 or 71.8
    assert PaperCell(0.717, 0.7176).agrees is False
    assert PaperCell(None, 0.5).agrees is None


def test_a_judge_that_the_paper_does_not_have_is_named_with_the_names_in_use():
    with pytest.raises(ValueError, match=r"'grok' is not a judge of the paper.*gpt-4o-noscreen"):
        gather(None, {"grok": object()})


@pytest.mark.parametrize("number", TABLES)
def test_markdown_has_a_cell_for_every_column(number):
    table = TABLES[number](gather(None))
    width = len(table.headings) + len(table.columns) + 1  # and what the row was computed from
    lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {width + 1}
    assert len(lines) == len(table.rows) + 2


@pytest.mark.slow
def test_the_command_refuses_all_that_is_wrong_at_once(tmp_path):
    good, bad = tmp_path / "aer-c.jsonl", tmp_path / "absent.jsonl"
    good.write_text("[]\n")
    command = ["-m", "leaderboard", "tables", "--table", "1", "--verdicts", str(good), "--verdicts", str(bad)]
    done = subprocess.run([sys.executable, *command], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 1
    assert "aer-c.jsonl" in done.stderr
    assert "absent.jsonl" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_printed_rates_hold_every_agent_and_benchmark_once():
    with (PUBLISHED / "success_rates.csv").open(newline="") as file:
        cells = [(line["benchmark"], line["agent"]) for line in csv.DictReader(file)]
    assert len(set(cells)) == len(cells) == 23
