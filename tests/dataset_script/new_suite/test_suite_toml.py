"""The suite.toml of a new suite holds every rule with its default, and a word on each."""

import tomllib
from dataclasses import fields

from dataset_script.new_suite.suite_toml import COMMENTS, render_suite_toml
from dataset_script.suite_rules import SuiteRules, read_rules


def test_every_rule_is_written_out_with_its_default_and_what_it_does():
    text = render_suite_toml("Made by a test.")
    said = tomllib.loads(text)
    assert said["labels"] == "private"
    assert list(said["rules"]) == [field.name for field in fields(SuiteRules)] == list(COMMENTS)
    assert read_rules(said["rules"]) == SuiteRules()
    lines = text.splitlines()
    assert lines[0] == "# Made by a test."
    for name in said["rules"]:
        (place,) = (number for number, line in enumerate(lines) if line.startswith(f"{name} = "))
        assert lines[place - 1].startswith("# ")
