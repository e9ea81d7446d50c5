"""Success rates from verdicts on all runs and labels on some: the estimate, its interval, draws, warnings."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.predictions.table import Predictions
from arb.core.suite import load_suite
from bench.estimate import simulate
from leaderboard.labels.labels import load_labels
from leaderboard.success_rates.estimate import (
    JudgeRate,
    _without_judges,
    compare_agents,
    estimate_agents,
    estimate_rate,
    labels_needed,
    t_quantile,
)
from leaderboard.success_rates.runs import (
    AgentRuns,
    draw_runs,
    read_draw,
    read_labels,
    read_runs,
    stratum_sizes,
)
from leaderboard.verdict_files import read_verdict_file

ALONE = np.arange(1_000)
"""Every run on a task of its own."""


def test_the_quantile_is_students():
    from scipy.stats import t as student

    for degrees in (4, 10, 57, 1_000):
        assert t_quantile(degrees) == pytest.approx(student.ppf(0.975, degrees), abs=1e-3)


def test_without_judges_the_rate_is_that_of_the_labelled_runs():
    labels = np.array([1] * 6 + [0] * 14 + [-1] * 80)
    found = estimate_rate(np.zeros((100, 0)), labels, ALONE[:100])
    assert found.rate == pytest.approx(6 / 20)
    # Variance of a mean without replacement: 0.3 * 0.7 / 19 * (1 - 20 / 100) = 0.00884; n = 0.21 / 0.00884 =
    # 23.75, but no fewer than 20 / 0.8 = 25; t with 19 degrees 2.093, its square 4.381.
    # (0.3 + 4.381 / 50 -+ sqrt(4.381 * (0.21 / 25 + 4.381 / 2500))) / (1 + 4.381 / 25) = 0.3298 -+ 0.1795
    assert found.ci == pytest.approx((0.1503, 0.5093), abs=2e-4)


def test_with_one_judge_the_rate_is_post_stratified_by_its_verdict():
    # 40 of 100 runs are called successful. Labelled: of 10 such 7 succeeded, of 10 others 1.
    verdicts = np.array([1] * 40 + [0] * 60)[:, None]
    labels = np.full(100, -1)
    labels[:10] = [1] * 7 + [0] * 3
    labels[40:50] = [1] + [0] * 9
    found = estimate_rate(verdicts, labels, ALONE[:100])
    assert found.rate == pytest.approx(0.4 * 7 / 10 + 0.6 * 1 / 10)


def test_several_judges_weigh_as_in_a_regression_of_the_label_on_them():
    generator = np.random.default_rng(0)
    truth = generator.random(400) < 0.3
    verdicts = np.column_stack([truth ^ (generator.random(400) < wrong) for wrong in (0.1, 0.3)]).astype(
        float
    )
    labels = np.where(generator.permutation(400) < 80, truth, -1)
    known = labels >= 0
    ones = np.column_stack([np.ones(400), verdicts])
    coefficients, *_ = np.linalg.lstsq(ones[known], labels[known].astype(float), rcond=None)
    found = estimate_rate(verdicts, labels, ALONE[:400])
    assert found.rate == pytest.approx(float(ones.mean(axis=0) @ coefficients))
    assert found.width < estimate_rate(np.zeros((400, 0)), labels, ALONE[:400]).width


def test_strata_weigh_by_their_runs_not_by_their_labels():
    # 20 of 80 runs are labelled in one stratum, 20 of 20 in the other: 5 of 20 and 15 of 20 succeeded.
    strata = np.array([0] * 80 + [1] * 20)
    labels = np.array([1] * 5 + [0] * 15 + [-1] * 60 + [1] * 15 + [0] * 5)
    found = estimate_rate(np.zeros((100, 0)), labels, ALONE[:100], strata)
    assert found.rate == pytest.approx(0.8 * 5 / 20 + 0.2 * 15 / 20)


def test_runs_of_one_task_are_one_draw_and_widen_the_interval():
    # Ten tasks of which each run ends alike: 40 labels say no more than 10.
    labels = np.concatenate([np.repeat([1, 0, 0, 1, 0, 0, 0, 1, 0, 0], 4), np.full(160, -1)])
    of_tasks = np.concatenate([np.repeat(np.arange(10), 4), np.arange(10, 170)])
    clustered = estimate_rate(np.zeros((200, 0)), labels, of_tasks)
    assert clustered.rate == pytest.approx(0.3)
    assert clustered.width > 1.5 * estimate_rate(np.zeros((200, 0)), labels, ALONE[:200]).width


def test_all_runs_labelled_leave_nothing_open():
    found = estimate_rate(np.zeros((20, 0)), np.array([1] * 5 + [0] * 15), ALONE[:20])
    assert (found.rate, found.ci) == (0.25, (0.25, 0.25))


@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_are_all_alike_are_not_certain(value):
    labels = np.concatenate([np.full(20, value), np.full(180, -1)])
    low, high = estimate_rate(np.zeros((200, 0)), labels, ALONE[:200]).ci
    # 0.025 ** (1 / 20) = 0.832: up to 16.8 % of the runs that are not labelled may be otherwise
    assert (high if value == 0 else 1 - low) == pytest.approx(0.168 * 0.9, abs=1e-3)


def test_a_judge_that_was_right_on_every_labelled_run_is_not_certain():
    verdicts = np.array([1, 0] * 100)[:, None]
    labels = np.where(ALONE[:200] < 20, verdicts[:, 0], -1)
    found = estimate_rate(verdicts, labels, ALONE[:200])
    assert found.rate == pytest.approx(0.5)
    assert found.width == pytest.approx(2 * 0.168 * 0.9, abs=1e-3)


def test_few_labels_give_no_estimate():
    labels = np.array([1] * 4 + [0] * 5 + [-1] * 50)
    found = estimate_rate(np.zeros((59, 0)), labels, ALONE[:59])
    assert (found.rate, found.ci) == (None, None)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(-1, 1)), min_size=1, max_size=60),
    st.integers(1, 5),
)
def test_any_labels_give_a_rate_within_what_they_leave_open(rows, n_strata):
    table = np.array(rows)
    n = len(table)
    found = estimate_rate(table[:, :2], table[:, 2], ALONE[:n] // 2, ALONE[:n] % n_strata)
    if found.rate is not None:
        low, high = found.ci
        assert (table[:, 2] == 1).sum() / n - 1e-12 <= low <= found.rate + 1e-12
        assert found.rate <= high + 1e-12 and high <= 1 - (table[:, 2] == 0).sum() / n + 1e-12


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 100))
def test_groups_are_drawn_from_in_proportion_two_or_more_of_each(sizes, total):
    found = stratum_sizes(sizes, total)
    least = sum(min(size, 2) for size in sizes)
    assert sum(found) == max(least, min(total, sum(sizes)))
    assert all(min(2, size) <= drawn <= size for drawn, size in zip(found, sizes, strict=True))


def runs_of(n: int, agent: str = "one") -> AgentRuns:
    """``n`` runs of an agent, of which a judge calls every fourth successful."""
    return AgentRuns.of({"judge": {f"own/{agent}/task-{number}": number % 4 == 0 for number in range(n)}})


def test_a_draw_is_of_each_agent_the_same_for_its_seed_and_recorded():
    ids = [*runs_of(100).ids, *runs_of(50, "two").ids]
    runs = AgentRuns.of({"judge": {run: int(run.rpartition("-")[2]) % 4 == 0 for run in ids}})
    draw = draw_runs(runs, 20, seed=1)
    assert [(stratum.agent, stratum.n, len(stratum.drawn)) for stratum in draw.strata] == [
        ("one", 100, 20),
        ("two", 50, 20),
    ]
    assert draw == draw_runs(runs, 20, seed=1)
    assert draw.strata != draw_runs(runs, 20, seed=2).strata
    stratified = draw_runs(runs, 20, stratified=True)
    # of 100 runs 25 are called successful: 5 of 20 are drawn from these
    assert [(s.verdicts, s.n, len(s.drawn)) for s in stratified.strata[:2]] == [
        ({"judge": False}, 75, 15),
        ({"judge": True}, 25, 5),
    ]


def test_only_drawn_runs_count_and_what_is_missing_is_said():
    runs = runs_of(100)
    draw = draw_runs(runs, 20)
    drawn = draw.drawn
    other = next(run for run in runs.ids if run not in drawn)
    labels = {
        **dict.fromkeys(drawn[:15], False),
        **dict.fromkeys(drawn[15:19], True),
        other: True,
        "x/y/z": True,
    }
    (found,), warnings = estimate_agents(runs, labels, draw)
    assert found.labelled == 19
    assert found.judge_alone == (JudgeRate("judge", 0.25, 0),)
    assert found.labels_only.rate == pytest.approx(4 / 19)
    text = "\n".join(warnings)
    assert "labelled runs without a verdict are left out: 1, such as x/y/z" in text
    assert f"labelled runs outside the draw are left out: 1, such as {other}" in text
    assert f"1 of 20 drawn runs are not labelled or answered Unsure, such as {drawn[19]}" in text


def test_a_draw_by_verdicts_needs_these_verdicts_as_they_were():
    runs = runs_of(100)
    draw = draw_runs(runs, 20, stratified=True)
    labels = dict.fromkeys(draw.drawn, False)
    assert estimate_agents(runs, labels, draw)[1] == ()
    with pytest.raises(ValueError, match="draw used the verdicts of judge, which are not given"):
        estimate_agents(AgentRuns.of({"other": dict.fromkeys(runs.ids, True)}), labels, draw)
    changed = {"judge": dict.fromkeys(runs.ids[:50], True) | dict.fromkeys(runs.ids[50:], False)}
    (warning,) = estimate_agents(AgentRuns.of(changed), labels, draw)[1]
    assert "runs or verdicts changed since the draw" in warning


def test_tasks_of_two_benchmarks_that_share_a_name_are_two():
    runs = AgentRuns.of(
        {"judge": {f"{folder}/one/{n}": False for folder in ("shop", "map") for n in range(10)}}
    )
    _, warnings = estimate_agents(runs, dict.fromkeys(runs.ids[:12], False))
    assert not any("repeat a task" in warning for warning in warnings)


def test_labels_of_unknown_origin_are_compared_with_the_other_runs():
    runs = runs_of(200)
    labels = {f"own/one/task-{number}": True for number in range(0, 120, 4)}  # only runs called successful
    (_,), warnings = estimate_agents(runs, labels)
    assert any("not recorded" in warning for warning in warnings)
    assert any("may not be a random draw" in warning for warning in warnings)


def test_a_draw_of_half_of_the_runs_is_expected_to_be_closer_to_all_of_them():
    # Of 200 runs 50 are called successful: variance 0.25 * 0.75 * 200 / 199. Of the 100 labelled runs 35 are:
    # 0.10 away. The error of a draw without replacement is sqrt(0.1884 / 100 * (1 - 100 / 200)) = 0.0307, so
    # that is 3.3 errors (p = 0.001); without the last factor 2.3 (p = 0.02, above the 0.01 that warns).
    numbers = [*range(0, 140, 4), *[number for number in range(200) if number % 4][:65]]
    _, warnings = estimate_agents(runs_of(200), {f"own/one/task-{number}": True for number in numbers})
    assert any("may not be a random draw" in warning for warning in warnings)


def test_labels_alone_of_a_stratified_draw_have_the_interval_of_a_uniform_one():
    # 25 of 50 runs are labelled in each of two strata, 13 and 12 of them with success: 25 of 50 in all.
    labels = np.array([*[1] * 13, *[0] * 12, *[-1] * 25, *[1] * 12, *[0] * 13, *[-1] * 25])
    found = _without_judges(labels, np.arange(100), np.repeat([0, 1], 50))
    uniform = estimate_rate(np.zeros((100, 0)), labels, np.arange(100), None)
    assert found.rate == pytest.approx(0.5)
    assert found.ci == pytest.approx(uniform.ci)


def test_repeats_of_a_task_are_one_cluster_and_few_labels_are_said():
    runs = AgentRuns.of(
        {"judge": {f"own/one/{task}{again}": False for task in range(20) for again in ("", "~2")}}
    )
    labels = dict.fromkeys(runs.ids[:12], False)
    (found,), warnings = estimate_agents(runs, labels)
    assert found.labelled == 12
    assert any("20 of 40 runs repeat a task" in warning for warning in warnings)
    _, warnings = estimate_agents(runs, dict(list(labels.items())[:5]))
    assert any("5 of 40 runs have a label; label 10 or more" in warning for warning in warnings)


def predictions(*ids: str, success: list[int]) -> Predictions:
    return Predictions(ids, {"success": np.array(success, np.int8)})


def test_judges_of_one_name_are_told_apart_by_their_verdicts_in_any_order_and_a_copy_is_refused():
    files = [(f"{n}.csv", "j", (predictions("own/one/1", success=[n]), [])) for n in (0, 1)]
    runs, findings = read_runs(files)
    swapped, _ = read_runs(files[::-1])
    assert findings == [] and sorted(runs.verdicts) == sorted(swapped.verdicts)
    for judge, verdicts in runs.verdicts.items():
        # the name has the start of the SHA-256 of "own/one/1\t0\n" or "own/one/1\t1\n"
        sha = hashlib.sha256(f"own/one/1\t{verdicts[0]}\n".encode()).hexdigest()
        assert judge == f"j ({sha[:6]})" and swapped.verdicts[judge] == verdicts
    _, (finding,) = read_runs([files[0], files[0]])
    assert (finding.file, finding.code) == ("0.csv", "duplicate_file")


@pytest.mark.parametrize("recorded", ["old name", "new name"])
def test_a_draw_fits_a_renamed_file_by_its_verdicts(recorded):
    ids = [f"own/one/{n}" for n in range(20)]
    read = (predictions(*ids, success=[0, 1] * 10), [])
    first, _ = read_runs([("a.csv", recorded, read)])
    draw = draw_runs(first, 20, stratified=True)
    now, _ = read_runs([("b.csv", "new name", read)])
    found, findings = read_draw("d", draw.to_json().encode(), now.hashes)
    assert findings == []
    assert [each.verdicts for each in found.strata] == [{"new name": False}, {"new name": True}]


def test_spellings_of_an_id_name_one_run_and_labels_take_the_ids_of_the_verdicts():
    one = predictions("v/a/v.resized.7", "v/a/v.8", success=[1, 0])
    two = predictions("v/a/v.7", success=[1])
    runs, _ = read_runs([("one.jsonl", "one", (one, [])), ("two.jsonl", "two", (two, []))])
    assert runs.ids == ("v/a/v.resized.7", "v/a/v.8")
    labels = predictions("v/a/v.improved.7", success=[1])
    assert read_labels("labels.csv", (labels, []), runs) == ({"v/a/v.resized.7": True}, [])


def test_a_file_of_very_many_agents_or_very_long_ids_is_refused_at_once():
    many = Predictions(tuple(f"own/{agent}/1" for agent in range(101)), {"success": np.ones(101, np.int8)})
    _, (finding,) = read_runs([("many.csv", "many", (many, []))])
    assert (
        finding.message
        == "the ids contain 101 different agents (the second part of an id); at most 100 are allowed."
    )
    long = Predictions(("own/a/" + "x" * 500,), {"success": np.ones(1, np.int8)}, row_numbers=np.array([2]))
    _, (finding,) = read_runs([("long.csv", "long", (long, []))])
    assert finding.code == "malformed_id" and len(finding.message) < 400


def test_a_plan_says_how_many_labels_a_width_needs():
    # 1.96^2 * 0.25 / 0.05^2 = 384 labels of endlessly many runs; of 300: 1 / (1 / 384.1 + 1 / 300) = 168.4
    assert labels_needed(300, 0.05) == 169
    assert labels_needed(10**9, 0.05) == 385
    labels = np.array([1] * 30 + [0] * 30 + [-1] * 240)
    pilot = estimate_rate(np.zeros((300, 0)), labels, ALONE[:300])
    assert abs(labels_needed(300, pilot.width / 2, 60, pilot) - 60) <= 1


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say():
    generator = np.random.default_rng(3)
    truth = (generator.random(300) < 0.25).astype(int)
    judge = np.where(generator.random(300) < 0.15, 1 - truth, truth)[:, None].astype(float)
    for stratified in (False, True):
        found = simulate(judge, truth, ALONE[:300], 400, stratified)
        # of 400 draws 95 % are 380 with a standard deviation of 4.4
        assert 0.92 <= found.covered <= 0.98
    assert found.saved(simulate(judge[:, :0], truth, ALONE[:300], 400)) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["aer-c", "nnetnav", "rule-based"])
def test_the_real_judges_assist_with_honest_intervals(judge, shared, official_test_labels):
    folder = shared / "data" / "agent-reward-bench" / "verdicts"
    verdicts = read_verdict_file(folder / f"{judge}.jsonl", load_suite(), "test", 50_000_000)
    agents = np.array([trajectory.agent for trajectory in official_test_labels.trajectories])
    for agent in sorted(set(agents)):
        rows = agents == agent
        truth = (official_test_labels.primary["success"][rows] == 1).astype(int)
        column = (verdicts.targets["success"][rows] == 1).astype(float)[:, None]
        found = simulate(column, truth, ALONE[: rows.sum()], 300)
        assert 0.90 <= found.covered <= 0.99  # 285 of 300 with a standard deviation of 3.8


def effective_labels(n):
    """Return the labels that Wilson's interval stands for, with 50 labelled of ``n`` runs and one judge."""
    pattern = [(1, 1)] * 18 + [(1, 0)] * 2 + [(0, 0)] * 28 + [(0, 1)] * 2  # verdict, label
    verdicts = np.array([verdict for verdict, _ in pattern] * (n // 50))[:, None]
    labels = np.array([label for _, label in pattern] + [-1] * (n - 50))
    found = estimate_rate(verdicts, labels, np.arange(n))
    middle = sum(found.ci) / 2
    # middle = (p + z^2 / 2n) / (1 + z^2 / n)
    return t_quantile(48) ** 2 * (middle - 0.5) / (found.rate - middle)


def test_the_more_of_all_runs_are_labelled_the_less_is_left_to_chance():
    """The variance of a draw without replacement has the factor 1 - labelled / n."""
    assert effective_labels(100) / effective_labels(10_000) == pytest.approx((1 - 0.005) / (1 - 0.5))


# -- tasks like these


def test_labels_of_all_runs_settle_the_rate_of_these_runs_but_not_of_the_agent():
    labels = np.array([1] * 30 + [0] * 70)
    found = estimate_rate(np.zeros((100, 0)), labels, ALONE[:100])
    assert found.ci == (0.3, 0.3)
    # The variance of the mean of 100 tasks is 0.3 * 0.7 / 99, so that 99 rows count. Wilson, z = 1.96:
    # (0.3 + 3.84 / 198 -+ 1.96 * sqrt(0.21 / 99 + 3.84 / (4 * 99^2))) / (1 + 3.84 / 99) = 0.3075 -+ 0.0890
    assert found.ci_on_tasks == pytest.approx((0.2184, 0.3963), abs=1e-3)


def test_twelve_successes_of_twelve_leave_the_agents_rate_open():
    found = estimate_rate(np.zeros((12, 0)), np.ones(12, dtype=int), ALONE[:12])
    assert found.rate == 1 and found.ci == (1, 1)
    low, high = found.ci_on_tasks
    assert 0.65 < low < 0.8 and high == 1


def runs_of_two(generator, n=200):
    """Two agents on the same tasks: hard tasks are hard for both, and the second fails on some others too."""
    easy = generator.random(n) < 0.5
    success = {"A": easy, "B": easy & (generator.random(n) < 0.7)}
    ids, truth = [], []
    for agent, column in success.items():
        ids += [f"shop/{agent}/shop.{task}" for task in range(n)]
        truth += column.tolist()
    judge = np.array(truth) ^ (generator.random(2 * n) < 0.1)
    labels = dict(zip(ids, truth, strict=True))
    return AgentRuns(tuple(ids), {"judge": judge.astype(int)}), labels


def test_two_agents_are_compared_task_by_task():
    runs, labels = runs_of_two(np.random.default_rng(5))
    generator = np.random.default_rng(6)
    drawn = set(generator.choice(runs.ids[:200], 60, replace=False)) | set(
        generator.choice(runs.ids[200:], 60, replace=False)
    )
    known = {run: value for run, value in labels.items() if run in drawn}
    found = compare_agents(runs, known, "A", "B")
    assert found.tasks == 200
    a, b = estimate_agents(runs, known)[0]
    assert found.difference == pytest.approx(a.assisted.rate - b.assisted.rate)
    # With independent errors, the half width would be the root of the sum of both squares; it is narrower.
    halves = [(each.assisted.ci_on_tasks[1] - each.assisted.ci_on_tasks[0]) / 2 for each in (a, b)]
    half = (found.ci_on_tasks[1] - found.ci_on_tasks[0]) / 2
    assert half < np.hypot(*halves)
    assert found.ci[1] - found.ci[0] < 2 * half  # these runs are a part of the uncertainty


def test_a_comparison_uses_only_labels_of_drawn_runs():
    runs, labels = runs_of_two(np.random.default_rng(5))
    draw = draw_runs(runs, 60)
    drawn = {run: labels[run] for run in draw.drawn}
    successes = {run: value for run, value in labels.items() if value and "/A/" in run}  # chosen, not drawn
    assert compare_agents(runs, drawn | successes, "A", "B", draw) == compare_agents(
        runs, drawn, "A", "B", draw
    )


def test_agents_without_common_tasks_or_labels_are_not_compared():
    runs, _ = runs_of_two(np.random.default_rng(5), n=20)
    assert compare_agents(runs, {}, "A", "B").difference is None
    with pytest.raises(KeyError):
        compare_agents(runs, {}, "A", "C")


@pytest.mark.slow
@pytest.mark.labels
@pytest.mark.shared
def test_the_interval_on_tasks_covers_the_agents_rate_on_the_real_verdicts(shared, official_settings):
    """Tasks are drawn with replacement from those of an agent; its rate on all of them is the truth."""
    suite = load_suite()
    truth = load_labels(suite, "test", official_settings).primary["success"]
    file = shared / "data/agent-reward-bench/verdicts/aer-c.jsonl"
    verdicts = read_verdict_file(file, suite, "test", official_settings.max_upload_bytes).targets["success"]
    trajectories = suite.split("test")
    generator = np.random.default_rng(0)
    for agent in sorted({each.agent for each in trajectories}):
        rows = np.array([n for n, each in enumerate(trajectories) if each.agent == agent and truth[n] >= 0])
        rate, covered = truth[rows].mean(), 0
        for _ in range(500):
            drawn = generator.choice(rows, len(rows))
            labels = np.full(len(rows), -1)
            labels[:60] = truth[drawn[:60]]
            judge = (verdicts[drawn] == 1).astype(int)[:, None]
            low, high = estimate_rate(judge, labels, np.arange(len(rows))).ci_on_tasks
            covered += low <= rate <= high
        # 95 % of 500 has a standard deviation of 1 point
        assert 0.92 <= covered / 500 <= 0.98, agent


@pytest.mark.slow
@pytest.mark.labels
@pytest.mark.shared
def test_the_paired_comparison_finds_the_better_agent_more_often_than_two_intervals(
    shared, official_settings
):
    """On the 206 tasks that both tried, Claude's and Llama's rates differ by 18 points."""
    suite = load_suite()
    truth = load_labels(suite, "test", official_settings).primary["success"]
    file = shared / "data/agent-reward-bench/verdicts/aer-c.jsonl"
    verdicts = read_verdict_file(file, suite, "test", official_settings.max_upload_bytes).codes("success")
    better, worse = (
        "GenericAgent-anthropic_claude-3.7-sonnet",
        "GenericAgent-meta-llama_Llama-3.3-70B-Instruct",
    )
    test = suite.split("test")
    tried = [
        {
            (each.benchmark, each.task)
            for each, label in zip(test, truth, strict=True)
            if each.agent == agent and label >= 0
        }
        for agent in (better, worse)
    ]
    both = tried[0] & tried[1]
    rows = [
        n
        for n, each in enumerate(test)
        if each.agent in (better, worse) and (each.benchmark, each.task) in both
    ]
    ids = [test[n].trajectory_id for n in rows]
    runs = AgentRuns(tuple(ids), {"aer-c": verdicts[rows]})
    labels = dict(zip(ids, (truth[rows] == 1).tolist(), strict=True))
    difference = compare_agents(runs, labels, better, worse).difference  # with all labels
    apart = paired = covered = 0
    for seed in range(200):
        drawn = draw_runs(runs, 60, seed).drawn
        known = {run: labels[run] for run in drawn}
        low, high = compare_agents(runs, known, better, worse).ci
        paired += low > 0
        covered += low <= difference <= high
        first, second = (each.assisted.ci for each in estimate_agents(runs, known)[0])
        apart += first[0] > second[1]
    # The standard deviation of a share of 95 % in 200 draws is 1.5 points.
    assert covered / 200 >= 0.92
    assert paired / 200 >= 0.93
    assert apart < paired


def test_crashed_runs_are_failures_whose_number_is_known():
    """Of 80 runs 40 are labelled, 20 of them yes; 20 more crashed: the rate is 20/40 * 80/100 = 40 %."""
    labels = np.array([1, 0] * 20 + [-1] * 40)
    without = estimate_rate(np.zeros((80, 0)), labels, ALONE[:80])
    crashed = np.array([False] * 80 + [True] * 20)
    found = estimate_rate(np.zeros((100, 0)), np.concatenate([labels, [-1] * 20]), ALONE[:100], None, crashed)
    assert found.rate == pytest.approx(0.4)
    assert found.ci == pytest.approx(tuple(0.8 * end for end in without.ci))
    # On tasks like these, the share of crashes is uncertain, too, so the interval is wider than 0.8 times.
    (low, high), (lowest, highest) = found.ci_on_tasks, without.ci_on_tasks
    assert high - low > 0.8 * (highest - lowest)


def test_with_labels_of_all_runs_that_did_not_crash_the_rate_is_exact():
    """12 of 40 runs succeeded, and 10 crashed: 12/50 = 24 %."""
    labels = np.array([1] * 12 + [0] * 28 + [-1] * 10)
    crashed = np.array([False] * 40 + [True] * 10)
    found = estimate_rate(np.zeros((50, 0)), labels, ALONE[:50], None, crashed)
    assert (found.rate, found.ci) == (0.24, (0.24, 0.24))
    low, high = found.ci_on_tasks
    assert 0.1 < low < 0.24 < high < 0.4


def test_crashed_runs_lower_a_difference_on_common_tasks():
    """Both succeed on every second of 60 tasks, all labelled; the second agent crashed on 15 of them."""
    ids = [f"b/{agent}/t{number}" for agent in "xy" for number in range(60)]
    failures = {f"b/y/t{number}" for number in range(15)}
    judged = {run: int(run.rpartition("t")[2]) % 2 == 0 for run in ids if run not in failures}
    runs = AgentRuns.of({"judge": judged}).with_failures(sorted(failures))
    assert len(runs.ids) == 120 and int(runs.crashed.sum()) == 15
    found = compare_agents(runs, judged, "x", "y")
    # 30 of 60 and, without the even ones of 0 to 14 (8), 22 of 60
    assert found.rates == pytest.approx((30 / 60, 22 / 60))
    assert found.difference == pytest.approx(8 / 60)
    agents, _ = estimate_agents(runs, judged)
    assert [each.judge_alone[0].rate for each in agents] == pytest.approx([0.5, 22 / 60])


def test_no_label_is_needed_without_a_run_that_can_be_labelled():
    assert labels_needed(0, 0.1) == 0


def test_an_agent_of_which_every_run_crashed_has_a_rate_of_zero():
    """None of 20 tasks: on tasks like these, the rate is at most 1 - 0.025 ** (1 / 20) = 16.8 %."""
    failures = [f"b/x/t{number}" for number in range(20)]
    runs = AgentRuns.of({"judge": {"b/y/t1": True}}).with_failures(failures)
    (crashed, other), warnings = estimate_agents(runs, {})
    assert (crashed.agent, crashed.assisted.rate, crashed.assisted.ci) == ("x", 0.0, (0.0, 0.0))
    assert crashed.assisted.ci_on_tasks == pytest.approx((0, 0.168), abs=0.001)
    assert crashed.labels_only == crashed.assisted and other.assisted.rate is None
    assert not any(warning.startswith("x:") for warning in warnings)
