"""Tests of disclosed reports: what each audience sees, keyed noise, and intervals of noisy counts."""

import json
from dataclasses import replace
from math import hypot

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import SuiteRules, Trajectory
from leaderboard.board.ranks import DESIGN_EFFECTS
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.labels.labels import LabelSet
from leaderboard.paper.published_files import LABELS
from leaderboard.report import score_report
from submissions.privacy.disclosure import (
    LARGEST_DRAW,
    cell_noise,
    digests_of,
    disclose,
    keyed_normal,
    layered_noise,
    noisy_count,
    noisy_intervals,
)
from tests.support.verdict_tables import verdict_table


def test_without_noise_they_are_those_of_published_rows():
    found = noisy_intervals(200, 100, 95, 0.0)
    assert found["precision_ci"] == pytest.approx(approximate_interval(200, 300, DESIGN_EFFECTS["precision"]))
    assert found["recall_ci"] == pytest.approx(approximate_interval(200, 295, DESIGN_EFFECTS["recall"]))


@pytest.mark.parametrize("positives_sd", [0.0, 3.0])
@pytest.mark.parametrize(
    # 6 true positives of 300 predicted are 0.02; they move F1 = 400 / 595 by 12 / 595. Noise on the positives
    # changes recall and F1 by a share of it, and does not change precision.
    ("figure", "value", "tp_part", "positives_part", "total"),
    [
        ("precision_ci", 200 / 300, 6, 0, 300),
        ("recall_ci", 200 / 295, 6, 200 / 295, 295),
        ("f1_ci", 400 / 595, 12, 400 / 595, 595),
    ],
)
def test_noise_is_added_in_squares_on_either_side(
    figure, value, tp_part, positives_part, total, positives_sd
):
    low, high = noisy_intervals(200, 100, 95, 0.0)[figure]
    margin = 1.959963984540054 * hypot(tp_part, positives_sd * positives_part) / total
    expected = [value - hypot(value - low, margin), value + hypot(high - value, margin)]
    assert noisy_intervals(200, 100, 95, 6.0, positives_sd)[figure] == pytest.approx(expected)


def test_undefined_figures_have_none_and_ends_stay_within_0_and_1():
    assert noisy_intervals(0, 0, 20, 5.0)["precision_ci"] is None
    for interval in noisy_intervals(0, 5, 3, 5.0).values():
        assert 0 <= interval[0] <= interval[1] <= 1


def test_they_hold_the_true_precision_95_times_in_100():
    """For 2,000 judges of true precision 0.65, check that the intervals cover 95 % of the values.

    Each judge calls 300 trajectories positive. The sample varies 1.6 times as much as independent rows, and
    the noise is 6. The standard error of the coverage is sqrt(0.95 x 0.05 / 2000) = 0.005.
    """
    generator = np.random.default_rng(0)
    hits = 300 * (0.65 + np.sqrt(0.65 * 0.35 / 300 * 1.6) * generator.normal(size=2_000))
    shown = np.rint(hits + 6 * generator.normal(size=2_000)).astype(int)
    held = 0
    for tp in shown.tolist():
        low, high = noisy_intervals(tp, 300 - tp, 100, 6.0)["precision_ci"]
        held += low <= 0.65 <= high
    assert 0.935 < held / 2_000 < 0.965


KEY = b"k" * 32
FIGURE = ("version", "success", "overall", "digest")


def test_a_draw_depends_on_the_key_and_on_every_word():
    draw = keyed_normal(KEY, *FIGURE)
    assert draw == keyed_normal(KEY, *FIGURE)
    others = [(*FIGURE[:place], word + "x", *FIGURE[place + 1 :]) for place, word in enumerate(FIGURE)]
    draws = [keyed_normal(b"l" * 32, *FIGURE), *(keyed_normal(KEY, *other) for other in others)]
    assert len({draw, *draws}) == 6


def test_words_cannot_be_cut_elsewhere():
    assert keyed_normal(KEY, "ab", "c") != keyed_normal(KEY, "a", "bc")


def test_draws_are_standard_normal():
    draws = np.array([keyed_normal(KEY, str(number)) for number in range(20_000)])
    # Standard errors: 1 / sqrt(20000) = 0.007 of the mean, 0.005 of the deviation, 0.0015 of the share.
    assert abs(draws.mean()) < 0.03
    assert abs(draws.std() - 1) < 0.02
    assert abs((np.abs(draws) > 1.96).mean() - 0.05) < 0.007
    assert np.abs(draws).max() < LARGEST_DRAW
    assert 8.2 < LARGEST_DRAW < 8.4


def test_audiences_share_the_finest_noise():
    pairs = []
    for number in range(4_000):
        figure = (*FIGURE[:3], str(number))
        pairs.append(
            [layered_noise(KEY, figure, 3.0, 3.0, "public"), layered_noise(KEY, figure, 3.0, 5.0, "owner")]
        )
    public, owner = np.array(pairs).T
    assert abs(public.std() - 3) < 0.15
    assert abs(owner.std() - 5) < 0.25
    # owner = public + 4 z: no weighted mean of both has less noise than the public figure.
    assert abs(np.corrcoef(public, owner - public)[0, 1]) < 0.06
    assert abs((owner - public).std() - 4) < 0.2


def test_equal_noise_is_the_same_noise():
    assert layered_noise(KEY, FIGURE, 3.0, 3.0, "owner") == layered_noise(KEY, FIGURE, 3.0, 3.0, "public")


def test_less_than_the_finest_is_refused():
    with pytest.raises(ValueError, match="finest"):
        layered_noise(KEY, FIGURE, 3.0, 2.0, "owner")


@given(st.integers(0, 300), st.floats(-50, 50), st.integers(0, 100), st.integers(0, 200))
def test_a_noisy_count_is_whole_and_within_its_bounds(count, noise, least, width):
    shown = noisy_count(count, noise, least, least + width)
    assert isinstance(shown, int)
    assert least <= shown <= least + width
    if least <= count + noise <= least + width:
        assert abs(shown - (count + noise)) <= 0.5


RULES = SuiteRules(private_noise=5.0, public_noise=3.0)
TRAJECTORIES = tuple(
    Trajectory(f"{name}/agent-{agent}/{name}.{task}", name, f"agent-{agent}", f"{name}.{task}", "test")
    for name in ("webarena", "workarena")
    for task in range(50)
    for agent in "ab"
)
N = len(TRAJECTORIES)
WEBARENA = slice(0, 100)


def _file(success, side_effect=None):
    return verdict_table(success=success, side_effect=side_effect)


def _label_set(success, side_effect=None) -> LabelSet:
    success = np.array(success, dtype=np.int8)
    none = np.full(N, -1, dtype=np.int8)
    other = success if side_effect is None else np.array(side_effect, dtype=np.int8)
    return LabelSet(
        "small", "test", "csv", "v1", TRAJECTORIES,
        {"success": success, "side_effect": other, "repetition": other},
        dict.fromkeys(LABELS, none), np.zeros(N, dtype=bool),
    )  # fmt: skip


TRUTH = (np.arange(N) % 3 == 0).astype(np.int8)
CALLED = (np.arange(N) % 2 == 0).astype(np.int8)


def _shown(audience, called=CALLED, truth=TRUTH, rules=RULES, key=KEY, side_effect=None):
    file, labels = _file(called, side_effect), _label_set(truth)
    report = score_report(file, labels, n_resamples=200)
    return disclose(report, digests_of(file, TRAJECTORIES), rules, key, audience)


def _cells(report):
    for found in report["labels"].values():
        if found:
            yield from (found["overall"], *found["by_benchmark"].values(), *found["by_agent"].values())


def test_a_maintainer_sees_the_exact_report():
    file, labels = _file(CALLED), _label_set(TRUTH)
    report = score_report(file, labels, n_resamples=200)
    assert disclose(report, digests_of(file, TRAJECTORIES), RULES, KEY, "maintainer") == report


def test_an_owner_sees_overall_figures_alone_and_the_public_benchmarks_too():
    owner, public = (_shown(audience)["labels"]["success"] for audience in ("owner", "public"))
    assert (owner["by_benchmark"], owner["by_agent"], public["by_agent"]) == ({}, {}, {})
    assert set(public["by_benchmark"]) == {"webarena", "workarena"}
    assert owner["overall"]["noise"] == {"tp_sd": 5.0, "positives_sd": 3.0}
    assert public["overall"]["noise"] == {"tp_sd": 3.0, "positives_sd": 3.0}
    assert public["by_benchmark"]["webarena"]["noise"] == {"tp_sd": 5.0, "positives_sd": 3.0}
    # All files share one draw, so seeing more files reveals no more.
    assert owner["overall"]["positives"] == public["overall"]["positives"]
    other = _shown("owner", 1 - CALLED)["labels"]["success"]["overall"]
    assert other["positives"] == owner["overall"]["positives"]
    assert cell_noise(SuiteRules(private_noise=2.0, public_noise=3.0)) == 3.0


def test_a_report_has_the_keys_of_the_exact_one_and_noise():
    exact = score_report(_file(CALLED), _label_set(TRUTH), n_resamples=200)
    shown = _shown("public")
    assert set(shown) == set(exact)
    for cell in _cells(shown):
        assert set(cell) == {*exact["labels"]["success"]["overall"], "noise"}
    json.dumps(shown, allow_nan=False)


def test_nothing_that_a_report_may_hold_one_day_slips_out():
    file = _file(CALLED)
    report = {
        **score_report(file, _label_set(TRUTH), n_resamples=0),
        "counts_by_task": [[1, 2]],
        "cost": {"a": 1},
    }
    report["labels"]["success"]["overall"]["secret"] = 1
    shown = disclose(report, digests_of(file, TRAJECTORIES), RULES, KEY, "public")
    assert "counts_by_task" not in shown and "secret" not in shown["labels"]["success"]["overall"]
    assert shown["cost"] == {"a": 1}  # from the file


@given(st.integers(0, 2**32), st.sampled_from(["owner", "public"]))
def test_counts_fit_together_and_every_figure_follows_from_them(seed, audience):
    generator = np.random.default_rng(seed)
    called = generator.integers(-1, 2, N).astype(np.int8)
    truth = (generator.random(N) < 0.3).astype(np.int8)
    truth[[0, 150]], truth[[1, 151]] = 1, 0
    shown = _shown(audience, called, truth, key=seed.to_bytes(8, "big"))
    for cell in _cells(shown):
        assert min(cell["tp"], cell["fp"], cell["fn"], cell["tn"]) >= 0
        counts = (cell[name] for name in ("tp", "fp", "fn", "tn", "no_verdict"))
        assert {name: cell[name] for name in figures(0, 0, 0, 0)} == figures(*counts)
    overall = shown["labels"]["success"]["overall"]
    assert overall["tp"] + overall["fp"] == int((called == 1).sum())
    assert abs(overall["positives"] - int(truth.sum())) <= 3 * LARGEST_DRAW
    assert overall["coverage"] == pytest.approx(float((called >= 0).mean()))


def test_what_is_shown_depends_on_the_labels_through_the_counts_alone():
    """Labels with equal counts per benchmark change the bootstrap, but nothing that is shown."""
    other = TRUTH.copy()
    for inside in (WEBARENA, slice(100, 200)):
        for answer in (0, 1):  # reversed among trajectories with equal verdicts
            rows = np.flatnonzero(CALLED[inside] == answer) + inside.start
            other[rows] = np.sort(TRUTH[rows])
    assert (other != TRUTH).any()
    exact = [score_report(_file(CALLED), _label_set(labels), n_resamples=500) for labels in (TRUTH, other)]
    cells = [report["labels"]["success"]["overall"] for report in exact]
    assert cells[0]["tp"] == cells[1]["tp"] and cells[0]["precision_ci"] != cells[1]["precision_ci"]
    for audience in ("owner", "public"):
        assert _shown(audience, truth=TRUTH) == _shown(audience, truth=other)


def test_the_same_positives_show_the_same_figures_and_other_ones_other_noise():
    def tp(called, **changes):
        return _shown("owner", called, **changes)["labels"]["success"]["overall"]["tp"]

    with_nulls = np.where(CALLED == 1, 1, -1)
    assert tp(CALLED) == tp(with_nulls) == tp(CALLED, side_effect=CALLED)
    # Additional negatives do not change the exact count, so any difference is noise.
    negatives = np.flatnonzero((TRUTH == 0) & (CALLED == 0))[:40]
    seen = []
    for filler in negatives:
        called = CALLED.copy()
        called[filler] = 1
        seen.append(tp(called))
    assert 3 < np.std(seen) < 7  # 5, of 40 draws


def test_files_without_or_with_nothing_but_positives_show_what_anyone_knows():
    none, all_of_them = (_shown("public", np.full(N, said)) for said in (0, 1))
    for cell in _cells(none):
        assert (cell["tp"], cell["fp"], cell["precision"], cell["precision_ci"]) == (0, 0, None, None)
    for cell in _cells(all_of_them):
        assert (cell["tp"], cell["npv"]) == (cell["positives"], None)


def test_benchmarks_whose_labels_are_all_alike_are_withheld_with_the_others():
    truth = TRUTH.copy()
    truth[WEBARENA] = 0
    shown = _shown("public", truth=truth)["labels"]["success"]
    assert shown["by_benchmark"] == {} and shown["overall"]["n"] == N
    assert _shown("owner", truth=np.ones(N))["labels"]["success"] is None


def test_unsure_labels_do_not_show_in_the_number_of_predicted_positives():
    """The number of positives does not show whether a file calls an unsure trajectory positive."""
    truth = TRUTH.copy()
    truth[[0, 101]] = -1
    base = np.zeros(N, dtype=np.int8)
    base[10:60] = 1
    seen = set()
    for row in (0, 1, 101, 102):
        called = base.copy()
        called[row] = 1
        cell = _shown("owner", called, truth)["labels"]["success"]["overall"]
        seen.add((cell["tp"] + cell["fp"], cell["no_verdict"], cell["n"]))
    assert seen == {(50, 0, 198)}  # 51 of 200 rows are 50.49 of 198


def test_a_label_without_verdicts_stays_none():
    assert _shown("owner")["labels"]["side_effect"] is None


def test_other_policies_and_audiences_are_refused():
    file, labels = _file(CALLED), _label_set(TRUTH)
    digests = digests_of(file, TRAJECTORIES)
    published = score_report(file, labels, policy="published", n_resamples=0)
    with pytest.raises(ValueError, match="published"):
        disclose(published, digests, RULES, KEY, "owner")
    with pytest.raises(ValueError, match="audience"):
        disclose(published, digests, RULES, KEY, "everyone")


def test_the_noise_is_another_under_another_label_version():
    file, labels = _file(CALLED), _label_set(TRUTH)
    digests = digests_of(file, TRAJECTORIES)
    seen = set()
    for number in range(20):
        report = score_report(file, replace(labels, version=f"v{number}"), n_resamples=0)
        seen.add(disclose(report, digests, RULES, KEY, "owner")["labels"]["success"]["overall"]["tp"])
    assert len(seen) > 5


def test_noise_has_the_size_that_is_named():
    hits = int(((TRUTH == 1) & (CALLED == 1)).sum())
    for audience, count, exact, sd in (
        ("owner", "tp", hits, 5.0),
        ("public", "tp", hits, 3.0),
        ("owner", "positives", TRUTH.sum(), 3.0),
    ):
        seen = [
            _shown(audience, key=bytes([number]) * 32)["labels"]["success"]["overall"][count]
            for number in range(150)
        ]
        # Standard error of a deviation from 150 draws: sd / sqrt(300) = 6 %.
        assert abs(np.std(seen) / sd - 1) < 0.2
        assert abs(np.mean(seen) - exact) < 4 * sd / np.sqrt(150)
