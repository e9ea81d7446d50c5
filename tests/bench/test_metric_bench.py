import re

import numpy as np
import pytest

from bench import metric as bench


@pytest.mark.slow
def test_one_command_prints_the_ratio_and_the_seconds(printed_by):
    printed = printed_by("metric", "--quick")
    assert "1,106 rows, 300 tasks, 10 cells, 500 resamples" in printed
    assert re.search(r"ratio +[\d,]+ x", printed)
    assert re.search(r"scikit-learn +[\d.]+ s +\(scaled up from 2 resamples", printed)
    assert "compute, 10,000 predictions" in printed
    assert re.search(r"evaluate's own way +[\d.]+ s", printed)


def test_what_is_compared_gives_the_same_intervals():
    columns = bench.made_up_columns()
    theirs = bench.scikit_learn_intervals(columns, 6)
    assert len(theirs) == 10  # overall, five benchmarks, four agents
    assert bench.same_intervals(columns, theirs, 6)
    assert not bench.same_intervals(columns, theirs, 7)


def test_the_made_up_file_is_like_a_real_one():
    columns = bench.made_up_columns()
    labels, verdicts = columns["references"], columns["predictions"]
    assert len(labels) == 1106
    assert 0.24 < labels.mean() < 0.30  # test has 295 of 1,106, 26.7 %
    assert 0.6 < labels[verdicts == 1].mean() < 0.8
    assert len(np.unique(columns["clusters"])) == 300


def test_different_intervals_are_not_timed(monkeypatch, capsys):
    monkeypatch.setattr(bench, "same_intervals", lambda *_: False)
    assert bench.bench_report(20, 1) is False
    assert "ratio" not in capsys.readouterr().out
