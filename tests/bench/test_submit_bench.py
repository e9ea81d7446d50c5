import re

import pytest


@pytest.mark.slow
@pytest.mark.browser
def test_one_command_opens_submit_beside_a_bare_form_until_both_can_be_used(printed_by):
    fast = ("--kbit", "20000", "--latency", "5", "--rounds", "1")
    printed = printed_by("submit", *fast, statuses=(0, 1))
    ours, bare = (float(re.search(rf"{name} +([\d.]+) s", printed)[1]) for name in ("Submit", "a bare form"))
    told = re.search(r"20000 kbit/s, 5 ms: ([\d.]+) times", printed)
    # Seconds are printed with two digits, so their ratio is less exact if a form was very fast.
    assert float(told[1]) == pytest.approx(ours / bare, abs=0.02, rel=0.01 / bare)
