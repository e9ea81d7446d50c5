import json
import shutil
from collections import Counter
from datetime import date

import pytest

from arb.core.ids import TrajectoryId
from arb.core.vocabulary import BENCHMARK_TITLES, BENCHMARKS, EVIDENCE
from leaderboard.paper.audit import OVERALL, Counts, audit_row
from leaderboard.paper.published import load_published_rows
from leaderboard.paper.published_files import (
    LABELS,
    PUBLISHED,
    ROW_SPLITS,
    PublishedDataError,
    read_published_files,
)

ROWS = {row.row_id: row for row in load_published_rows()}
PAPER = [row for row in ROWS.values() if row.provenance == "published"]
CLAUDE_TREE = "paper/claude-3.7-sonnet-tree"


def cells_of(row, label):
    published = row.labels[label]
    if published is not None:
        yield OVERALL, published.overall
        yield from published.by_benchmark.items()


def test_the_papers_13_judges_come_in_the_order_of_its_table_1():
    assert [(row.judge, row.group, row.inputs) for row in PAPER] == [
        ("Rule-based", "", "reward"),
        ("AER-C", "Existing", "caption"),
        ("AER-V", "Existing", "screenshot"),
        ("NNetNav", "Existing", "changes"),
        ("Claude 3.7 Sonnet", "Simplified", "tree"),
        ("GPT-4o", "Simplified", "tree"),
        ("GPT-4o Mini", "Simplified", "tree"),
        ("Llama 3.3", "Simplified", "tree"),
        ("Qwen2.5-VL", "Simplified", "tree"),
        ("Claude 3.7 Sonnet", "Simplified", "screenshot"),
        ("GPT-4o", "Simplified", "screenshot"),
        ("GPT-4o Mini", "Simplified", "screenshot"),
        ("Qwen2.5-VL", "Simplified", "screenshot"),
    ]
    assert [row.kind for row in PAPER] == ["Rule-based"] + ["LLM judge"] * 12
    assert {row.date for row in PAPER} == {date(2025, 4, 11)}


def test_the_cell_that_fits_no_whole_numbers_says_that_one_judgment_is_missing():
    success = ROWS[CLAUDE_TREE].labels["success"]
    cell = success.by_benchmark["workarena++"]
    # R = 32/51 = 62.7 (of 52: 61.5 or 63.5), P = 32/48 = 66.7
    assert (cell.counts, cell.n, cell.positives, cell.no_verdict) == (Counts(32, 16, 19, 280), 348, 52, 1)
    assert "fits 51 positives of 347: one judgment missing" in cell.note


def test_a_reading_of_the_released_judgments_settles_the_row_that_fits_no_whole_numbers():
    cell = ROWS[CLAUDE_TREE].labels["success"].overall
    # 1,100 verdicts, so 6 of 1,106 are missing; R = 240/294 = 81.6, P = 240/349 = 68.8
    assert (cell.counts, cell.counts.n, cell.no_verdict) == (Counts(240, 109, 54, 697), 1100, 6)
    assert cell.note.endswith(
        "a reading of the released judgments (jstiltner/assurance-planner) counts 1,100 verdicts, "
        "6 unparseable, 1 of them positive: 240 of 294 and 240 of 349 fit exactly"
    )
    assert cell.note.startswith("no whole numbers fit 295 positives of 1106")


def test_a_reading_finds_the_missing_verdict_on_a_negative_that_figures_cannot_show():
    cell = ROWS["paper/gpt-4o-mini-tree"].labels["success"].overall
    # precision 254/413 and recall 254/295 do not involve TN: 651 and 652 print the same
    assert (cell.status, cell.counts, cell.no_verdict) == ("unique", Counts(254, 159, 41, 651), 1)
    assert "1,105 verdicts, 1 unparseable, none of them positive" in cell.note


def test_readings_confirm_the_audited_counts_of_the_six_other_judges():
    files, confirmed = read_published_files(), set()
    for row_id, read in files.readings.items():
        if not row_id.startswith("paper/"):
            continue
        audited = audit_row(files.figures[row_id], files.marginals)["success"].cells[OVERALL].counts
        if audited == read["success"].counts:
            confirmed.add(row_id)
    assert confirmed == {
        "paper/rule-based", "paper/aer-c", "paper/nnetnav", "paper/gpt-4o-tree", "paper/llama-3.3-tree",
        "paper/qwen2.5-vl-tree",
    }  # fmt: skip


def test_the_judgment_that_one_judge_misses_is_left_out_of_its_other_labels():
    for label in ("side_effect", "repetition"):
        cell = ROWS[CLAUDE_TREE].labels[label].by_benchmark["workarena++"]
        assert (cell.status, cell.no_verdict, cell.counts.n) == ("unique", 1, cell.n - 1)


@pytest.mark.parametrize(
    ("row_id", "counts"),
    [
        ("paper/aer-c", Counts(212, 101, 83, 710)),
        ("paper/nnetnav", Counts(243, 220, 52, 591)),
        ("paper/rule-based", Counts(165, 32, 130, 779)),
    ],
)
def test_audited_counts_are_those_of_the_released_verdicts(row_id, counts):
    assert ROWS[row_id].labels["success"].overall.counts == counts


@pytest.mark.parametrize("row", PAPER, ids=lambda row: row.row_id)
@pytest.mark.parametrize("label", LABELS)
def test_counts_of_the_benchmarks_sum_to_the_overall_counts(row, label):
    if row.labels[label] is None:
        assert row.group != "Simplified"
        return
    parts = [row.labels[label].by_benchmark[benchmark].counts for benchmark in BENCHMARKS]
    whole = row.labels[label].overall.counts
    if whole is None or None in parts:
        assert label == "side_effect"
        return
    summed = Counts(*map(sum, zip(*parts, strict=True)))
    assert summed[:3] == whole[:3]
    # a reading of the judgments knows of missing negatives, of which it does not say the benchmark
    assert summed.tn - whole.tn == {CLAUDE_TREE: 5, "paper/gpt-4o-mini-tree": 1}.get(row.row_id, 0) * (
        label == "success"
    )


@pytest.mark.parametrize("row", PAPER, ids=lambda row: row.row_id)
@pytest.mark.parametrize("label", LABELS)
def test_counts_give_back_the_printed_figures(row, label):
    for _, cell in cells_of(row, label):
        if cell.counts is None:
            continue
        tp, fp, fn, _ = cell.counts
        assert abs(tp / (tp + fp) - cell.precision) <= 0.0005 + 1e-12
        assert abs(tp / (tp + fn) - cell.recall) <= 0.0005 + 1e-12
        # F1 comes from P and R of four digits, which moves it by at most 0.0001
        assert abs(2 * tp / (2 * tp + fp + fn) - cell.f1) <= 0.0006 + 1e-12


def test_side_effects_are_settled_where_the_figures_allow_it_and_nowhere_chosen():
    statuses = Counter(cell.status for row in PAPER for _, cell in cells_of(row, "side_effect"))
    assert statuses == {"unique": 34, "narrowed": 1, "several": 19}
    for row in PAPER:
        for _, cell in cells_of(row, "side_effect"):
            assert (cell.counts is None) == (cell.status == "several") == (cell.fits > 1)
            assert bool(cell.note) == (cell.status != "unique" or cell.no_verdict > 0)
    # 63 fit alone (P = R = 0); of the overall FP 194 + 9 = 203 the other benchmarks have 194
    cell = ROWS["paper/claude-3.7-sonnet-screenshot"].labels["side_effect"].by_benchmark["workarena"]
    assert (cell.status, cell.counts) == ("narrowed", Counts(0, 9, 2, 53))


def test_the_self_reported_judges_of_the_upstream_form_have_whole_numbers_and_no_recall_by_benchmark():
    reported = {row.row_id: row for row in ROWS.values() if row.split == "test (inferred)"}
    overall = {row_id: row.labels["success"].overall for row_id, row in reported.items()}
    assert {row_id: (cell.status, cell.counts) for row_id, cell in overall.items()} == {
        # 213/299 = 71.24, 213/295 = 72.20
        "reported/world-state-model-7b": ("unique", Counts(213, 86, 82, 725)),
        # 215/296 = 72.64, 215/295 = 72.88; TNR 730/811 = 90.01 and NPV 730/810 = 90.12, as its file prints
        "reported/world-state-model-7b-2": ("unique", Counts(215, 81, 80, 730)),
    }
    second = reported.pop("reported/world-state-model-7b-2")
    assert second.source_url.startswith("https://github.com/SunzeY/SEAgent/blob/c8887f157")
    assert all(second.labels.values())
    for row in reported.values():
        assert row.source_url.startswith("https://github.com/McGill-NLP/agent-reward-bench/issues/")
        assert row.labels["side_effect"] is row.labels["repetition"] is None
        for cell in row.labels["success"].by_benchmark.values():
            assert (cell.precision is not None, cell.recall, cell.f1) == (True, None, None)
    # 53.8 with at most 8 true positives: 7/13
    cell = reported["reported/world-state-model-7b"].labels["success"].by_benchmark["assistantbench"]
    assert (cell.status, cell.counts) == ("unique", Counts(7, 6, 1, 94))


REPORTED = [row for row in ROWS.values() if row.evidence == "reported"]


def test_of_a_row_without_a_known_split_or_protocol_nothing_is_derived():
    assert {row.row_id for row in REPORTED} >= {
        "reported/qwen2.5-vl-72b-single", "reported/72b-gui-judge",
        "reported/72b-voting-4", "reported/72b-voting-4-multi-res", "reported/72b-voting-4-ensemble",
        "reported/jev-27b-vl",
    }  # fmt: skip
    for row in REPORTED:
        for _, cell in cells_of(row, "success"):
            if cell is not None:
                assert (cell.counts, cell.positives, cell.no_verdict, cell.bounds) == (None,) * 4
                assert cell.status == "reported" and cell.note == ""
    # CODA's ensemble: taken as of test, its figures would give 1,104 trajectories, 2 without a verdict
    cell = ROWS["reported/72b-voting-4-ensemble"].labels["success"].overall
    assert (cell.precision, cell.recall, cell.f1, cell.n) == (0.812, 0.768, None, None)
    # evaluated on dev and test together: the number is known, and how many of them are positive is not
    assert ROWS["reported/jev-27b-vl"].labels["success"].overall.n == 1302


def test_a_judge_that_was_tuned_on_test_says_so():
    row = ROWS["reported/hunter-seeker"]
    assert (row.test_labels_used, row.split) == (True, "test")
    assert "cross-validation" in row.protocol and row.note.startswith("Tuned on test")
    # 80/93 = 86.02, 80/295 = 27.12, F1 = 160/388 = 41.24
    assert row.labels["success"].overall.counts == Counts(80, 13, 215, 798)


def test_every_row_says_what_it_was_evaluated_on_or_that_its_source_does_not():
    for row in ROWS.values():
        assert row.source and row.source_url.startswith("https://")
        assert bool(row.protocol) == bool(row.split)
        if not row.protocol:
            assert "name" in row.note or "without a split" in row.note
    assert {row.split for row in ROWS.values()} <= set(ROW_SPLITS)
    assert {row.split for row in PAPER} == {"test"}


def test_the_evidence_of_a_row_follows_from_what_fits_its_figures():
    assert {row.evidence for row in PAPER} == {"unique counts"}
    for row in ROWS.values():
        assert row.evidence in EVIDENCE
        assert (row.evidence == "reported") == (not row.is_derivable and row.provenance != "reference")
        assert (row.evidence == "verdicts") == (row.provenance == "reference" or row.has_verdicts)


def test_the_counts_of_webjudge_are_those_of_its_released_verdicts():
    webjudge = {row_id: row for row_id, row in ROWS.items() if row.has_verdicts}
    found = {row_id: row.labels["success"].overall for row_id, row in webjudge.items()}
    assert {row_id: cell.counts for row_id, cell in found.items()} == {
        "reported/webjudge-o4-mini": Counts(141, 31, 154, 780),  # 141/172 = 82.0, 141/295 = 47.8
        "reported/webjudge-7b": Counts(171, 55, 124, 756),  # 171/226 = 75.7, 171/295 = 58.0
        "reported/webjudge-gpt-4o": Counts(210, 75, 85, 736),  # 210/285 = 73.7, 210/295 = 71.2
    }
    assert not any(cell.note for cell in found.values())
    for row in webjudge.values():
        assert row.split == "test" and row.protocol.startswith("first annotator")
        assert "Xue et al." in row.note and "CC BY 4.0" in row.note


def test_a_structural_baseline_has_the_counts_that_its_predictions_give_on_all_of_test():
    row = ROWS["reported/agent-judge-structural"]
    # 223/362 = 61.60, 223/295 = 75.59
    assert row.labels["success"].overall.counts == Counts(223, 139, 72, 672)
    assert (row.evidence, row.test_labels_used, row.has_verdicts) == ("unique counts", None, False)


def test_a_row_without_precision_is_taken(tmp_path):
    changed_copy(tmp_path, "figures.csv", "jev-27b-vl,success,overall,78.4,", "jev-27b-vl,success,overall,,")
    rows = {row.row_id: row for row in load_published_rows(tmp_path / "published")}
    cell = rows["reported/jev-27b-vl"].labels["success"].overall
    assert (cell.precision, cell.recall, cell.status) == (None, 0.702, "reported")


def test_the_second_annotator_is_scored_as_a_judge_of_the_first():
    labels = ROWS["reference/second-annotator"].labels
    success = labels["success"].overall
    # P = 33/39 = 84.6, R = 33/39 = 84.6; the first annotator was unsure of one of the 106
    assert (success.counts, success.n) == (Counts(33, 6, 6, 60), 105)
    assert (success.precision, success.recall, success.f1, success.status) == (
        33 / 39,
        33 / 39,
        33 / 39,
        "exact",
    )
    assert labels["side_effect"].overall.n == labels["repetition"].overall.n == 106
    assert labels["success"].by_benchmark["assistantbench"] is None


def test_constant_answers_are_scored_exactly_on_every_label_and_benchmark():
    always, never = ROWS["reference/always-successful"], ROWS["reference/never-successful"]
    yes, no = always.labels["success"].overall, never.labels["success"].overall
    # 295 of 1106 are successes: P = 26.7, F1 = 590 / (590 + 811)
    assert (yes.counts, yes.precision, yes.recall, yes.f1) == (
        Counts(295, 811, 0, 0), 295 / 1106, 1.0, 590 / 1401,
    )  # fmt: skip
    assert (no.counts, no.precision, no.recall, no.f1) == (Counts(0, 0, 295, 811), None, 0.0, 0.0)
    assert always.labels["side_effect"].overall.counts == Counts(72, 1033, 0, 0)
    assert always.labels["repetition"].by_benchmark["workarena++"].counts == Counts(272, 76, 0, 0)
    for row in (always, never):
        assert all(cell.status == "exact" for label in LABELS for _, cell in cells_of(row, label))


def test_every_released_judgment_folder_of_the_13_names_one_row():
    folders = (
        "functional aer aerv nnetnav claude-3.7-sonnet-noscreen claude-3.7-sonnet-noaxtree gpt-4o-noscreen "
        "gpt-4o-noaxtree gpt-4o-mini-noaxtree gpt-4o-mini-noscreen qwen-2.5-vl-noaxtree "
        "qwen-2.5-vl-noscreen llama-3.3-70b-noscreen"
    )
    owners = [row.row_id for folder in folders.split() for row in ROWS.values() if folder in row.aliases]
    assert sorted(owners) == sorted(row.row_id for row in PAPER)
    # "noscreen" leaves the tree
    assert "gpt-4o-noscreen" in ROWS["paper/gpt-4o-tree"].aliases


@pytest.mark.shared
def test_figures_are_those_of_the_papers_tables_7_and_8(shared):
    lines = (shared / "paper.txt").read_text(encoding="utf-8").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("Table 6:"))
    table_7 = next(i for i, line in enumerate(lines) if line.startswith("Table 7:"))
    table_8 = next(i for i, line in enumerate(lines) if line.startswith("Table 8:"))
    by_title = {title: benchmark for benchmark, title in BENCHMARK_TITLES.items()}
    by_alias = {alias: row for row in PAPER for alias in (row.judge, *row.aliases)}

    compared = 0
    benchmark = OVERALL
    for line in lines[start:table_7] + lines[table_7:table_8]:
        fields = [field for field in line.split("\t") if field]
        if fields and fields[0] in by_title:
            benchmark = by_title[fields.pop(0)]
        if len(fields) != 10 or fields[0] == "Judge":
            continue
        row = by_alias[fields[0]]
        for label, printed in zip(LABELS, (fields[1:4], fields[4:7], fields[7:10]), strict=True):
            cell = dict(cells_of(row, label)).get(benchmark)
            ours = (
                ["-"] * 3
                if cell is None
                else [f"{100 * x:.1f}" for x in (cell.precision, cell.recall, cell.f1)]
            )
            assert ours == printed, (row.row_id, label, benchmark)
            compared += 1
    # 13 judges, 3 labels, overall and 5 benchmarks
    assert compared == 13 * 3 * 6


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "row_id"),
    [("aer-c", "paper/aer-c"), ("nnetnav", "paper/nnetnav"), ("rule-based", "paper/rule-based")],
)
def test_audited_judges_say_yes_as_often_on_each_benchmark_as_their_real_verdicts(shared, name, row_id):
    path = shared / "data" / "agent-reward-bench" / "verdicts" / f"{name}.jsonl"
    verdicts = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    said_yes = Counter(TrajectoryId.parse(v["trajectory_id"]).benchmark for v in verdicts if v["success"])
    cells = ROWS[row_id].labels["success"].by_benchmark
    assert {b: cells[b].counts.tp + cells[b].counts.fp for b in BENCHMARKS} == said_yes


def changed_copy(folder, name, old, new):
    copy = folder / "published"
    if not copy.exists():
        shutil.copytree(PUBLISHED, copy)
    text = (copy / name).read_text(encoding="utf-8")
    assert old in text
    (copy / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    return copy


def test_names_every_wrong_field_with_its_file_and_row(tmp_path):
    changed_copy(tmp_path, "figures.csv", "assistantbench,25.0", "assistantbench,250")
    changed_copy(tmp_path, "figures.csv", "paper/aer-c,success,webarena", "paper/aer-d,success,webarena")
    changed_copy(tmp_path, "figures.csv", "paper/aer-c,success,workarena++", "paper/aer-c,success,workarena")
    changed_copy(tmp_path, "marginals.csv", "success,overall,1106,295", "success,overall,1106,296")
    changed_copy(tmp_path, "marginals.csv", "side_effect,workarena,64", "side_effect,workarena,six")
    changed_copy(tmp_path, "judges.csv", "2025-08-06,self-reported", "summer,told,extra")
    folder = changed_copy(tmp_path, "second_annotator.csv", "repetition,workarena++", "looping,workarena++")
    with pytest.raises(PublishedDataError) as caught:
        load_published_rows(folder)
    message = str(caught.value)
    for expected in (
        "figures.csv row 3, precision '250': Value error, '250' is not a percentage",
        "figures.csv row 11, row_id 'paper/aer-d': there is no such row in judges.csv",
        "figures.csv row 13, benchmark 'workarena': success on workarena is given twice",
        "marginals.csv: success: overall is not the sum of the benchmarks",
        "marginals.csv row 12, n 'six': Input should be a valid integer",
        "judges.csv row 17, date 'summer': Input should be a valid date",
        "judges.csv row 17, provenance 'told': use one of published, self-reported, reference",
        "judges.csv row 17: more fields than columns",
        "second_annotator.csv row 7, label 'looping': use one of success, side_effect, repetition",
    ):
        assert expected in message


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("judges.csv", ",aerv,", ",aer,", "judges.csv row 4, aliases: aer already names an earlier row"),
        ("judges.csv", "/webjudge-7b,", "/webjudge-8b,", "reported/webjudge-8b has no line in figures.csv"),
        ("marginals.csv", "benchmark,n,", "benchmark,rows,", "first line must be label,benchmark,n,"),
        ("readings.csv", "aer-c,success,212", "aer-c,success,213", "row 3, row_id 'paper/aer-c': 213/101/83"),
    ],
    ids=["a name of two rows", "a judge without figures", "other columns", "a reading of other figures"],
)
def test_what_contradicts_the_other_files_or_their_form_is_refused(tmp_path, name, old, new, said):
    folder = changed_copy(tmp_path, name, old, new)
    with pytest.raises(PublishedDataError, match=said):
        load_published_rows(folder)


def test_a_missing_file_is_named(tmp_path):
    folder = changed_copy(tmp_path, "judges.csv", "AER-C", "AER-C")
    (folder / "marginals.csv").unlink()
    with pytest.raises(PublishedDataError, match=r"marginals.csv: not found"):
        load_published_rows(folder)
