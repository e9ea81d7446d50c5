from arb.core import vocabulary


def test_only_one_state_carries_a_verdict():
    assert vocabulary.STATES[0] == "ok"
    assert (
        len(set(vocabulary.STATES)) == 7
    )  # ok and the six ways to give no verdict (docs/reference, columns and states)
