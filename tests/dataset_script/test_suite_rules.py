"""The rules in a suite's suite.toml: read, defaulted, and refused with every problem at once."""

import pytest

from dataset_script.suite import SuiteError, load_suite
from dataset_script.suite_rules import SuiteRules, read_rules


def test_what_is_left_out_has_its_default():
    assert read_rules({}) == SuiteRules()
    assert read_rules({"files_a_day": 3, "private_noise": 4, "age_exempt": ["ada"]}) == SuiteRules(
        files_a_day=3, private_noise=4, age_exempt=("ada",)
    )


def test_every_problem_is_told_at_once():
    said = {"files_a_day": "two", "private_noise": -1, "age_exempt": "ada", "ranking_half": 1, "speed": 9}
    with pytest.raises(ValueError) as refused:
        read_rules(said)
    message = str(refused.value)
    for rule, words in (
        ("files_a_day", "whole number"),
        ("private_noise", "number from 0"),
        ("age_exempt", "list of names"),
        ("ranking_half", "true or false"),
        ("speed", "there is no such rule"),
    ):
        assert f"rules.{rule}" in message and words in message
    with pytest.raises(ValueError, match=r"\[rules\]"):
        read_rules(3)


def test_a_suite_has_the_rules_of_its_file(tmp_path):
    row = "webarena/agent-a/webarena.1,test\n"
    (tmp_path / "trajectories.csv").write_text(f"trajectory_id,split\n{row}")
    (tmp_path / "suite.toml").write_text('labels = "private"\n[rules]\nfiles_a_year = 7\n')
    assert load_suite(tmp_path).rules == SuiteRules(files_a_year=7)
    (tmp_path / "suite.toml").write_text('labels = "secret"\n[rules]\nfiles_a_year = -7\n')
    with pytest.raises(SuiteError, match=r"labels 'secret'.*rules\.files_a_year"):
        load_suite(tmp_path)
