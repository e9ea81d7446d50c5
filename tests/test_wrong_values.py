"""Wrong values: what every command says about them, swept over the options that the commands have.

A new option is swept, too. If it reads a file or has a format, its command needs a call in `CALLS`.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import arb.core.suites
from arb.__main__ import app

JUDGED = "simplified-neither --suite sample --split dev --model m --base-url http://127.0.0.1:9/v1"
SAMPLE = "run/predictions.jsonl --suite sample --split dev"
CALLS = {
    "data build": "--source logs --out new",
    "data inspect-source": "logs",
    "data new-suite": "--source logs --dev-share 0.5 --out new",
    "data sample-tasks": "--metadata wrong.any",
    "data split": "--ids wrong.any --dev-tasks 1",
    "data unblind": "run/predictions.jsonl --key wrong.any --out new",
    "data verify": "run",
    "judges ablate": f"{JUDGED.partition(' ')[2]} --out new",
    "judges combine": "run run --out new.json",
    "judges certify": f"{JUDGED} --out new",
    "judges plan": JUDGED,
    "judges probe": f"{JUDGED} --out new",
    "judges run": f"{JUDGED} --out new",
    "judges threshold": "run --out new",
    "leaderboard agreement": "--suite sample",
    "leaderboard annotation-template": "--for-estimate 1 --out new.csv",
    "leaderboard annotations": "wrong.any --out new.csv --suite sample",
    "leaderboard board": "wrong.any",
    "leaderboard calibrate": SAMPLE,
    "leaderboard ceiling": SAMPLE,
    "leaderboard dev-labels": "--annotations wrong.any --suite suite --replace",
    "leaderboard estimate": "--verdicts run/predictions.jsonl --plan",
    "leaderboard export": "wrong.any --out new",
    "compare": f"run/predictions.jsonl {SAMPLE}",
    "compare --labels": "run/predictions.jsonl run/predictions.jsonl",
    "score": SAMPLE,
    "score --labels": "run/predictions.jsonl",
    "space serve": "--source logs",
    "submissions annotate import": "wrong.any --format csv --person a=b",
    "submissions annotate resolve": "--decisions wrong.any",
    "submissions check": SAMPLE,
    "submissions publish-labels": "wrong.any --why because",
    "submissions receipt": "wrong.any --key x",
    "submissions submit": (
        "run/predictions.jsonl --suite sample --space http://127.0.0.1:9 --account ada --judge mine "
        "--kind Rule-based --inputs other --authors Ada --no-test-labels-used"
    ),
    "validate": "wrong.any",
    "validate --labels": "--verdicts run/predictions.jsonl",
    "validate --verdicts": "--labels run/predictions.jsonl",
}
"""A call of each command whose options read a wrong.any or have a format; `wrong.any` has wrong content."""
WITH_THE_HUB = {"data publish", "hub publish-all"}
"""Commands that ask the Hub first: what they read is checked there."""
CONTENTS = {"binary": bytes(range(256)) * 20, "list": b"[]", "empty": b""}


def commands(command=None, words=()):
    """Every command by its words."""
    command = command or get_command(app)
    if not hasattr(command, "list_commands"):
        yield " ".join(words), command
        return
    for name in command.list_commands(None):
        yield from commands(command.get_command(None, name), (*words, name))


def parameters():
    """Every option and argument that takes a value, with the words and the command that have it."""
    for words, command in commands():
        for each in command.params:
            if not getattr(each, "is_flag", False) and each.name != "help":
                yield words, command, each


def type_of(parameter) -> str:
    descriptor = getattr(parameter, "type_descriptor", None)  # of newer versions of typer
    return str(descriptor.annotation if descriptor else parameter.type)


def typed(parameter, value: str, command) -> list[str]:
    """How the value is typed; the arguments before an argument get the value, too."""
    if parameter.param_type_name == "option":
        return [parameter.opts[0], *[value] * (2 if "tuple" in type_of(parameter).lower() else 1)]
    names = [each.name for each in command.params if each.param_type_name == "argument"]
    return [value] * (1 + names.index(parameter.name))


def refusal(command, parameter, value: str) -> str:
    """What the parser says before the command runs; nothing if it only misses other options."""
    try:
        command.make_context(command.name, typed(parameter, value, command)).close()
    except Exception as refused:  # click's, of which newer versions of typer have their own copy
        said = refused.format_message()
        return said if said.startswith("Invalid value") else ""
    return ""


def test_every_path_number_and_choice_is_checked_before_its_command_runs(tmp_path, monkeypatch):
    """A path below a file can neither be read nor written."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    unchecked, checked = [], 0
    for words, command, each in parameters():
        kind = type_of(each)
        value = "file/x" if "Path" in kind else "x"
        if "Path" in kind or re.search("Literal|Choice|int|float", kind, re.IGNORECASE):
            said, checked = refusal(command, each, value), checked + 1
            if each.opts[0].lower() not in said.lower():
                unchecked.append(f"{words} {each.opts[0]} {value}: {said}")
    assert (unchecked, checked > 200) == ([], True)


def swept(of) -> list[tuple[str, str]]:
    """The words of each command, with a parameter for which ``of`` is true."""
    return [(words, each.opts[0]) for words, command, each in parameters() if of(words, command, each)]


def has_a_format(words, _command, each) -> bool:
    is_option = each.param_type_name == "option"
    return is_option and bool(each.metavar) and "Path" not in type_of(each) and words not in WITH_THE_HUB


def reads_a_file(words, command, each) -> bool:
    if "Path" not in type_of(each) or words in WITH_THE_HUB:
        return False
    exists, is_file = refusal(command, each, "absent-file"), refusal(command, each, ".")
    return "does not exist" in exists and "is a directory" in is_file


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Path:
    """A folder with a run, a suite, logs of Inspect, and an empty folder for the state."""
    folder = tmp_path_factory.mktemp("start")
    suite = Path(arb.core.suites.__file__).parent / "sample"
    shutil.copytree(suite, folder / "suite")
    ids = [
        line.split(",")[0] for line in (suite / "trajectories.csv").read_text().splitlines() if ",dev" in line
    ]
    (folder / "run").mkdir()
    rows = [json.dumps({"trajectory_id": each, "success": True}) for each in ids]
    (folder / "run" / "predictions.jsonl").write_text("\n".join(rows) + "\n")
    logs = Path(__file__).parent / "dataset_script" / "sources" / "inspect_logs" / "0.3.285" / "towns"
    shutil.copytree(logs, folder / "logs")
    return folder


def call(words: str, option: str, value: str, folder: Path, monkeypatch):
    """The result of a call of the command with this value, in a copy of the folder."""
    monkeypatch.chdir(folder)
    for name in ("ARB_SUITE", "HF_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CACHE_DIR", "STATE_DIR"):
        monkeypatch.setenv(f"ARB_{name}", str(folder / name))
    command = dict(commands())[words]
    parameter = next(each for each in command.params if each.opts[0] == option)
    rest = CALLS.get(f"{words} {option}", CALLS[words]).split()
    if option in rest:
        place = rest.index(option)
        del rest[place : place + 2]
    elif parameter.param_type_name == "argument" or option == "--cascade":
        rest = rest[1:]
    elif option == "--cascade-band":
        rest = ["--cascade", "simplified-neither,simplified-axtree", *rest[words != "judges ablate" :]]
    return CliRunner().invoke(app, [*words.split(), *typed(parameter, value, command), *rest])


def assert_one_message(done, *names: str) -> None:
    assert done.exit_code in (1, 2) and isinstance(done.exception, SystemExit), done.exception
    assert done.stderr.lower().count("error: ") <= 1 and "Errno" not in done.output, done.output
    assert any(each in done.output for each in names), done.output


@pytest.mark.parametrize(("words", "option"), swept(has_a_format))
def test_a_value_that_does_not_have_its_format_is_refused_with_the_options_name(
    words, option, start, tmp_path, monkeypatch
):
    folder = shutil.copytree(start, tmp_path / "here")
    assert_one_message(call(words, option, "x", folder, monkeypatch), option, "no run of x")


@pytest.mark.slow
@pytest.mark.parametrize(("words", "option"), swept(reads_a_file))
def test_a_file_with_wrong_content_is_named_with_what_is_wrong(words, option, start, tmp_path, monkeypatch):
    for name, content in CONTENTS.items():
        folder = shutil.copytree(start, tmp_path / name)
        (folder / "wrong.any").write_bytes(content)
        assert_one_message(call(words, option, "wrong.any", folder, monkeypatch), "wrong")
