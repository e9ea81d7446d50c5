"""The ablation's table: what was measured, and the paper's figures beside it where they are of that model."""

import io

from rich.console import Console

from arb.core.suites.targets import default_targets
from arb.judges.cli.experiments import VARIANTS, _printed, ablation_table
from arb.judges.registry import find_judge

CELL = {
    "precision": 0.5, "precision_ci": [0.25, 0.75], "recall": 1.0, "recall_ci": [0.9, 1.0],
    "f1": 2 / 3, "f1_ci": None,
}  # fmt: skip
REPORT = {"labels": {"success": {"overall": CELL}, "side_effect": {"overall": CELL}, "repetition": None}}


def printed_table(published):
    text = io.StringIO()
    variants = [{"tree": tree, "screenshot": shot, "report": REPORT} for _, tree, shot in VARIANTS]
    Console(file=text, width=140).print(ablation_table(variants, default_targets(), published))
    return text.getvalue()


def test_the_variants_see_what_their_names_say():
    for family, has_axtree, has_screenshot in VARIANTS:
        judge = find_judge(family)
        assert (judge.has_axtree, judge.has_screenshot) == (has_axtree, has_screenshot)


def test_the_papers_figures_stand_beside_the_measured_ones():
    text = printed_table(_printed())
    lines = [line for line in text.splitlines() if "Success" in line]
    # Table 2: with tree and screenshot 62.1, 81.7, 70.6; with neither 60.7, 73.9, 66.7
    assert [word for word in lines[0].split() if word[0].isdigit()] == [
        "50.0", "25.0", "75.0", "62.1", "100.0", "90.0", "100.0", "81.7", "66.7", "70.6"
    ]  # fmt: skip
    assert all(figure in lines[3] for figure in ("60.7", "73.9", "66.7"))
    assert len(lines) == 4
    assert "Repetition" not in text  # no verdicts on it


def test_for_another_model_there_are_no_figures_of_the_paper():
    text = printed_table({})
    assert "paper" not in text
    assert "62.1" not in text
