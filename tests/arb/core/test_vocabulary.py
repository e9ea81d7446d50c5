from arb.core import vocabulary


def test_every_benchmark_has_a_title_and_a_short_title():
    assert tuple(vocabulary.BENCHMARK_TITLES) == vocabulary.BENCHMARKS
    assert tuple(vocabulary.BENCHMARK_SHORT_TITLES) == vocabulary.BENCHMARKS


def test_only_one_state_carries_a_verdict():
    assert vocabulary.STATES[0] == "ok"
    assert (
        len(set(vocabulary.STATES)) == 7
    )  # ok and the six ways to give no verdict (docs/reference, columns and states)
