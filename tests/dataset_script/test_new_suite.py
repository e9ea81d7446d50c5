"""The suite.toml of a new suite holds every rule, and a word on each."""

import tomllib
from dataclasses import fields

from core.suite import SuiteRules, read_rules
from dataset_script.new_suite import COMMENTS, render_suite_toml, suggested_rules


def test_every_rule_is_written_out_with_what_it_does():
    text = render_suite_toml("Made by a test.", SuiteRules(age_exempt=("ada", "bob"), ranking_half=True))
    said = tomllib.loads(text)
    assert said["labels"] == "private"
    assert list(said["rules"]) == [field.name for field in fields(SuiteRules)] == list(COMMENTS)
    assert read_rules(said["rules"]) == SuiteRules(age_exempt=("ada", "bob"), ranking_half=True)
    lines = text.splitlines()
    assert lines[0] == "# Made by a test."
    for name in said["rules"]:
        (place,) = (number for number, line in enumerate(lines) if line.startswith(f"{name} = "))
        assert lines[place - 1].startswith("# ")


def test_a_small_test_split_asks_for_fewer_positive_verdicts_and_keeps_every_other_default():
    # a tenth of 52 is 5; 30 is the default, a tenth of 300; and one is the least
    assert [suggested_rules(n).fewest_positives for n in (3, 52, 299, 300, 1106)] == [1, 5, 29, 30, 30]
    assert suggested_rules(300) == SuiteRules()
