import re

import pytest

from bench import trajectories as bench


def test_the_median_the_95th_and_the_longest_are_printed(capsys):
    # 1 to 100: the median is 50.5 (printed as 50 or 51), 95 of them are at most 96, counted from 0
    assert bench.tell("opened", list(range(1, 101))) == (50.5, 96)
    assert re.search(r"opened +5[01]? ms +96 ms +100 ms +\(100 opened\)", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.browser
def test_one_command_opens_trajectories_beside_reading_the_whole_split(printed_by, tmp_path):
    printed = printed_by("trajectories", "--quick", "--folder", str(tmp_path))
    for line in (
        r"51 trajectories, \d+ MB",
        r"story and picture over HTTP +\d+ ms +\d+ ms",
        r"in Chromium, until visible +\d+ ms",
        r"the Space: \d+ MB after its start, \d+ MB at most",
        r"the whole split with pandas +\d+ ms +\d+ MB",
        r"the whole split with datasets +\d+ ms +\d+ MB",
    ):
        assert re.search(line, printed), line
    assert list(tmp_path.iterdir()) == []  # the dataset was removed
