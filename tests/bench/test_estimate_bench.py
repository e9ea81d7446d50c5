"""The simulation of estimates: the textbook interval, and the lines that the command prints."""

import numpy as np
import pytest

from bench import estimate


def test_the_textbook_interval_without_judges_is_that_of_a_mean_without_replacement():
    labels = np.array([1] * 6 + [0] * 14 + [-1] * 80)
    low, high = estimate.textbook_interval(np.zeros((100, 0)), labels, np.arange(100))
    # 0.3 -+ 1.96 * sqrt(20 * 0.3 * 0.7 / 19 / 20 * (1 - 20 / 100)) = 0.3 -+ 0.1843
    assert (low, high) == pytest.approx((0.1157, 0.4843), abs=1e-4)


@pytest.mark.labels
@pytest.mark.shared
def test_each_agent_has_its_judges_and_three_intervals_for_each_choice(official_settings, shared, capsys):
    folder = shared / "data" / "agent-reward-bench" / "verdicts"
    estimate.main(["--verdicts", str(folder), "--draws", "4"])
    lines = capsys.readouterr().out.splitlines()
    assert "Qwen2.5-VL: experts say 22.3 % of 300 runs" in lines
    assert "  nnetnav      says  37.9 %, off by +20.9" in lines  # of Llama 3.3, estimate.md
    for draw in ("uniform", "stratified", "textbook"):
        assert sum(f" {draw} " in line and "saves" in line for line in lines) == 4 * 4
    assert "for every judge and agent: " in lines[-1] and "times as wide as the textbook's" in lines[-2]
