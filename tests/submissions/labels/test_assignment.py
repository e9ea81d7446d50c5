"""Who annotates what: even, seeded, never the same person twice, and nothing taken from anybody."""

from collections import Counter
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from arb.core.ids import TrajectoryId
from submissions.labels.assignment import chosen, new_assignments

BENCHMARKS = ("assistantbench", "visualwebarena", "webarena")


def ids(n: int) -> list[str]:
    """This many trajectories, the benchmarks in turn."""
    return [f"{BENCHMARKS[place % 3]}/agent/{place}" for place in range(n)]


def people(n: int) -> list[str]:
    return [f"annotator-{place + 1}" for place in range(n)]


def standing(assignments) -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for trajectory_id, who, place in assignments:
        found.setdefault(trajectory_id, {})[place] = who
    return found


def benchmark(trajectory_id: str) -> str:
    return TrajectoryId.parse(trajectory_id).benchmark


sizes = st.integers(0, 40)
shares = st.sampled_from((0.0, 0.1, 0.25, 0.5, 1.0))
seeds = st.integers(0, 1_000)


@given(n=sizes, m=st.integers(1, 6), share=shares, seed=seeds)
def test_every_trajectory_gets_one_first_annotation_and_the_share_a_second_by_another(n, m, share, seed):
    found = standing(new_assignments(ids(n), people(m), {}, (), [share], seed))
    assert found.keys() == set(ids(n))
    assert all(1 in places for places in found.values())
    seconds = [places for places in found.values() if 2 in places]
    assert len(seconds) == (int(share * n + 0.5) if m > 1 else 0)
    assert all(places[1] != places[2] for places in seconds)


@given(n=sizes, m=st.integers(1, 6), share=shares, seed=seeds)
def test_first_annotations_are_even_in_each_benchmark_and_over_all(n, m, share, seed):
    firsts = [(who, benchmark(name)) for name, who, place in
              new_assignments(ids(n), people(m), {}, (), [share], seed) if place == 1]  # fmt: skip
    by_benchmark, overall = Counter(firsts), Counter(who for who, _ in firsts)
    for name in BENCHMARKS:
        counts = [by_benchmark[who, name] for who in people(m)]
        assert max(counts) - min(counts) <= 1
    counts = [overall[who] for who in people(m)]
    assert max(counts) - min(counts) <= 1


@given(n=sizes, m=st.integers(2, 6), share=shares, seed=seeds)
def test_second_annotations_are_spread_over_the_benchmarks(n, m, share, seed):
    found = new_assignments(ids(n), people(m), {}, (), [share], seed)
    sizes_of = Counter(benchmark(name) for name in ids(n))
    seconds = Counter(benchmark(name) for name, _, place in found if place == 2)
    for name, size in sizes_of.items():
        assert abs(seconds[name] - sum(seconds.values()) * size / n) < 1


@given(
    n=sizes, more=sizes, m=st.integers(1, 5), joining=st.integers(0, 3), share=shares, seed=seeds,
    other_seed=seeds,
)  # fmt: skip
def test_adding_people_and_trajectories_later_keeps_what_is_assigned(
    n, more, m, joining, share, seed, other_seed
):
    before = new_assignments(ids(n), people(m), {}, (), [share], seed)
    added = new_assignments(ids(n + more), people(m + joining), standing(before), (), [share], other_seed)
    assert not {(name, place) for name, _, place in before} & {(name, place) for name, _, place in added}
    whole = standing([*before, *added])
    assert whole.keys() == set(ids(n + more))
    assert all(len(set(places.values())) == len(places) for places in whole.values())


@given(n=sizes, m=st.integers(1, 5), share=shares, seed=seeds)
def test_once_all_is_assigned_nothing_is_added(n, m, share, seed):
    before = new_assignments(ids(n), people(m), {}, (), [share], seed)
    assert new_assignments(ids(n), people(m), standing(before), (), [share], seed) == []


@given(n=sizes, m=st.integers(2, 5), share=shares, seed=seeds, data=st.data())
def test_who_leaves_keeps_what_is_finished_and_the_rest_goes_to_others(n, m, share, seed, data):
    before = new_assignments(ids(n), people(m), {}, (), [share], seed)
    gone, *left = people(m)
    theirs = [(name, who) for name, who, _ in before if who == gone]
    finished = {key for key in theirs if data.draw(st.booleans())}
    added = new_assignments((), left, standing(before), finished, [share], seed)
    whole = standing([*before, *added])
    freed = {
        name for name, who, place in before if who == gone and place == 1 and (name, gone) not in finished
    }
    # Only a trajectory whose other place is the last person's has nobody left for it.
    for name in freed:
        assert whole[name][1] != gone or set(left) <= {whole[name].get(2)}
    assert {
        name for name, _ in finished if whole[name].get(1) != gone and whole[name].get(2) != gone
    } == set()
    assert all(who != gone for _, who, _ in added)


@given(n=sizes, m=st.integers(1, 5), share=shares, seed=seeds)
def test_the_same_seed_gives_the_same_draw(n, m, share, seed):
    once = new_assignments(ids(n), people(m), {}, (), [share], seed)
    again = new_assignments(reversed(ids(n)), people(m)[::-1], {}, (), [share], seed)
    assert once == again


def test_people_meet_the_benchmarks_mixed_and_second_annotations_among_the_first():
    found = new_assignments(ids(120), people(2), {}, (), [0.5], 1)
    mine = [(benchmark(name), place) for name, who, place in found if who == "annotator-1"]
    longest = max(len(list(run)) for _, run in groupby(mine, key=lambda each: each[0]))
    assert longest < 20  # 40 of 120 are of one benchmark: sorted ones would stand together
    assert {place for _, place in mine[:30]} == {1, 2}


@given(n=sizes, m=st.integers(3, 6), seed=seeds)
def test_with_three_times_every_trajectory_goes_to_three_people_and_evenly(n, m, seed):
    found = new_assignments(ids(n), people(m), {}, (), [1.0, 1.0], seed)
    assert all(sorted(places) == [1, 2, 3] for places in standing(found).values())
    assert all(len(set(places.values())) == 3 for places in standing(found).values())
    counts = [Counter(who for _, who, _ in found)[who] for who in people(m)]
    assert sum(counts) == 3 * n
    assert max(counts) - min(counts) <= 3  # at most one at each of the three places


def test_people_with_the_same_trajectories_get_them_in_orders_of_their_own():
    found = new_assignments(ids(30), people(3), {}, (), [1.0, 1.0], seed=1)
    orders = [tuple(name for name, who, _ in found if who == person) for person in people(3)]
    assert {frozenset(order) for order in orders} == {frozenset(ids(30))}
    assert len(set(orders)) == 3
    # The first ten of one person are not the first ten of another: 10 * 10 / 30 = 3.3 are on average.
    assert all(len(set(one[:10]) & set(other[:10])) < 8 for one in orders for other in orders if one != other)


@given(n=sizes, most=st.integers(0, 50), seed=seeds)
def test_a_choice_of_trajectories_is_even_over_the_benchmarks(n, most, seed):
    found = chosen(ids(n), most, seed)
    assert len(found) == len(set(found)) == min(n, most)
    counts = Counter(map(benchmark, found))
    for name, size in Counter(map(benchmark, ids(n))).items():
        assert abs(counts[name] - len(found) * size / n) < 1
