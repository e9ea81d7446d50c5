"""The bench of judges prints both ratios, CPU seconds and peak memory, of calls that were really made."""

import re

import pytest

from bench.judges import SCREENSHOT_BYTES, make_runs
from bench.support.judge_ways import messages_of


@pytest.mark.slow
def test_one_command_prints_ratios_cpu_seconds_and_memory_for_text_and_pictures(printed_by):
    printed = printed_by("judges", "--quick")
    for shown in ("text only", "with a screenshot of 150 kB each"):
        assert f"40 calls of 200 ms, 64 in flight, {shown}" in printed
    number = r"[\d.]+"
    figures = rf"{number} calls/s +{number} s +{number} CPU s +{number} MB at most"
    assert re.search(rf"judges run, 80 calls +{figures}", printed)  # two samples of each of the 40
    assert re.search(rf"peak memory of those +{number} MB \(target at most 77\)", printed)
    for way in ("bare loop", "judges run", r"one at a time \(2 calls\)"):
        assert len(re.findall(rf"{way} +{figures}", printed)) == 2
    assert len(re.findall(rf"of the bare loop's rate +{number}%", printed)) == 2
    assert len(re.findall(rf"times one at a time +{number} ", printed)) == 2
    assert len(re.findall(rf"peak memory +{number} MB", printed)) == 2


def test_the_made_up_runs_are_read_as_recorded_ones_and_no_two_prompts_are_alike(tmp_path):
    make_runs(tmp_path, 5)
    text, pictures = (messages_of(str(tmp_path), 5, with_images) for with_images in (False, True))
    assert len({str(each) for each in text}) == 5
    assert all(len(str(each)) > 30_000 for each in text)
    for messages in pictures:
        (picture,) = [part for part in messages[1]["content"] if part["type"] == "image_url"]
        assert len(picture["image_url"]["url"]) > SCREENSHOT_BYTES  # base64 takes a third more
