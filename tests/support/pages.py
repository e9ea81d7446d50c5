"""Pages of the documentation as a reader follows them: each command and each Python block, from the top."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tests.support.llm_server.process import LLMProcess
from tests.support.ports import hold_port, port_of
from tests.support.waiting import until_served

REPOSITORY = Path(__file__).parents[2]
OF_A_CLUSTER = ["ray[data]"] if find_spec("ray") else []
FOLLOWED = (
    "README.md",
    *(
        f"docs/{page}.md"
        for page in (
            "index", "score", "validate", "data", "run_judges", "judges", "own_agent", "own_judge", "operate",
            "read_the_board", "any_suite", "plugins", *(["scale"] if OF_A_CLUSTER else []),
        )
    ),
)  # fmt: skip
"""Pages that need nothing but Python and an endpoint. `own_suite` follows two that need people and a Hub."""
SERVE = "arb space serve"
ENDPOINT = "http://127.0.0.1:8000/v1"
SPACE = "http://127.0.0.1:7860"
"""What the pages call the reader's endpoint and Space; a test has its own."""
SECONDS = 240


def text_of(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


def blocks(text: str) -> list[tuple[str, str, str]]:
    """The fenced blocks of bash and Python from the top: the line before, the language, the content."""
    fence = r"(?:^([^\n]*)\n\n)?^```(bash|python)\n(.*?)^```"
    return re.findall(fence, text, flags=re.MULTILINE | re.DOTALL)


def commands_of(block: str) -> list[str]:
    """The commands of a block as they stand there, with their continued lines or their text."""
    lines, found = iter(block.splitlines()), []
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        command = line
        while command.endswith("\\"):
            command += f"\n{next(lines)}"
        if end := re.search(r"<<'(\w+)'$", line):  # a text up to the line with this word
            command += "".join(f"\n{each}" for each in iter(lambda: next(lines), end[1])) + f"\n{end[1]}"
        found.append(command)
    return found


def lines_of(page: str) -> list[str]:
    """The command lines of a page from the top."""
    return [
        line
        for _, language, block in blocks(text_of(page))
        if language == "bash"
        for line in commands_of(block)
    ]


def inspect_log(model: str, answers: list[str]) -> dict:
    """A log of Inspect with a run per answer."""
    samples = []
    for number, answer in enumerate(answers):
        call = {"id": "1", "function": "look_up", "arguments": {"town": number}}
        messages = [
            {"role": "user", "content": f"Find town {number}.", "source": "input"},
            {"role": "assistant", "content": "I look it up.", "tool_calls": [call]},
            {"role": "tool", "content": f"Town {number} is Bergen.", "tool_call_id": "1"},
            {"role": "assistant", "content": answer},
        ]
        goal = messages[0]["content"]
        samples.append({"id": number, "epoch": 1, "input": goal, "target": "Bergen", "messages": messages})
    spec = {"task": "towns", "task_id": model, "created": "2026-01-01T00:00:00+00:00", "model": model}
    return {"version": 2, "status": "success", "eval": spec, "samples": samples}


@dataclass
class Reader:
    """Somebody who types what a page says, in a folder, with the programs of an environment.

    ``home`` is empty at first. No variable is the product's, and nothing leads to this repository, but for
    ``settings``, which lead to a Hub and a port of the test's. ``said`` has what each line printed.
    """

    folder: Path
    programs: Path
    home: Path
    settings: dict[str, str] = field(default_factory=lambda: {"HF_HUB_OFFLINE": "1"})
    exports: list[str] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        pip = self.programs / "pip"  # environments of tests have none
        if not pip.exists():
            python = self.programs / "python"
            pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --python {python} "$@"\n')
            pip.chmod(0o755)

    def variables(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in ("LANG", "TMPDIR") or name.startswith("PIP_")
        }
        path = os.pathsep.join((str(self.programs), "/usr/bin", "/bin"))
        return {**kept, "PATH": path, "HOME": str(self.home), "NO_PROXY": "127.0.0.1", **self.settings}

    def run(self, command: list[str], said: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables(), capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, f"{said}\n{done.stdout}\n{done.stderr}"
        assert "python -m" not in done.stderr, done.stderr  # the next step is typed as `arb`
        return done.stdout

    def type(self, line: str) -> str:
        """Type a line, and fill in what it wrote for a person to label. Exports hold for later lines."""
        if line.startswith("export "):
            self.exports.append(line)
            return ""
        said = self.said[line] = self.run(self._shell(line), line)
        if "annotation-template --for-estimate" in line:
            _label(self.folder / re.search(r"--out (\S+)", line)[1])
        return said

    def _shell(self, line: str) -> list[str]:
        return ["bash", "-c", "\n".join(["set -eu -o pipefail", *self.exports, line])]

    def follow(self, page: str) -> None:
        """Do all that the page says, but for `make` and `docker`: CI and `tests/space/test_docker.py` do."""
        text = text_of(page)
        self.exports.clear()
        is_asked = SPACE in text and "gradio_client" in text
        own = {"ARB_LABELS": "none", "ARB_STATE_DIR": str(self.home / "state")}
        with LLMProcess() as endpoint, ExitStack() as stack:
            address = stack.enter_context(self.serving(**own)) if is_asked else SPACE
            code: list[str] = []
            for before, language, block in blocks(text):
                block = block.replace(ENDPOINT, endpoint.base_url).replace(SPACE, address)
                if language == "bash":
                    for line in commands_of(block):
                        if line == SERVE:
                            address = stack.enter_context(self.serving())
                        elif not line.startswith(("make ", "docker ")):
                            self.type(line)
                elif name := re.search(r"`(\w+\.py)`", before):
                    (self.folder / name[1]).write_text(block)
                else:
                    code.append(block)
            if code:
                self.run(["python", "-c", "\n".join(code)], "\n".join(code))

    @contextmanager
    def serving(self, **settings: str) -> Iterator[str]:
        """The address of a Space that the reader starts in another terminal."""
        held = hold_port()
        address = f"http://127.0.0.1:{port_of(held)}"
        self.settings["ARB_PORT"] = str(port_of(held))  # so commands find the Space without its address
        environment = {**self.variables(), **settings}
        with (self.home / "space.log").open("wb") as log:
            command = self._shell(f"exec {SERVE}")
            process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log, stderr=log)
        try:
            until_served(address, lambda: process.poll() is not None, self.home / "space.log")
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=SECONDS)
            held.close()
            del self.settings["ARB_PORT"]


def follow_and_check(reader: Reader, page: str) -> None:
    """Follow one of the pages with what it says that a reader has, and check what its commands print."""
    if page == "docs/own_agent.md":
        _write_logs(reader.folder)
    if page == "docs/plugins.md":  # the page says to copy them from the repository
        shutil.copytree(REPOSITORY / "examples", reader.folder / "examples", dirs_exist_ok=True)
    reader.follow(page)
    if page == "docs/plugins.md":
        assert "No failed action" in reader.said["arb judges list"]
        assert "shop/my-agent/laptop" in reader.said["arb data inspect-source examples/source/runs"]
    if page == "docs/own_agent.md":
        _check_estimate(reader)
    if page == "docs/any_suite.md":
        _check_board(reader)


def _write_logs(folder: Path) -> None:
    """40 runs of each of two agents; the first one finds every second town."""
    logs = folder / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    (logs / "first.json").write_text(json.dumps(inspect_log("lab/first", ["Bergen", "I give up."] * 20)))
    (logs / "second.json").write_text(json.dumps(inspect_log("lab/second", ["Bergen"] * 40)))


def _label(path: Path) -> None:
    """What a person would write: every town of the second agent, and those with even numbers of the first."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        _, agent, task = row["trajectory_id"].split("/")
        row["success"] = "yes" if agent == "lab_second" or task.endswith(tuple("02468")) else "no"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def _check_estimate(reader: Reader) -> None:
    files = "--verdicts runs/logs/predictions.jsonl --labels to-label.csv --draw to-label.draw.json"
    first, second = json.loads(reader.type(f"arb leaderboard estimate {files} --json"))["agents"]
    assert [first["agent"], second["agent"]] == ["lab_first", "lab_second"]
    assert [first["n"], first["labelled"]] == [40, 30]
    low, high = first["assisted"]["ci"]
    assert low <= 0.5 <= high  # 20 of 40
    assert second["labels_only"]["rate"] == 1.0


def _check_board(reader: Reader) -> None:
    """The judge of the guide is scored on grades and steps whose labels come from three people."""
    labels = (reader.folder / "ours" / "labels.csv").read_text().splitlines()
    assert sum(line.split(",")[3].startswith("annotator-") for line in labels) == 3 * (72 + 534)
    (version,) = json.loads(reader.type("arb submissions label-versions --json"))
    assert len(version["left_out"]) == 4
    rows = json.loads((reader.folder / "ours" / "board.json").read_text())["rows"]
    (row,) = (each for each in rows if each["judge"] == "Long is wrong")
    grades, steps = (row["labels"][name]["overall"] for name in ("quality", "helps"))
    assert grades["n"] == 52 and 0 < grades["weighted_kappa"] < 1
    # 373 steps of test runs, of which three are open: one yes, one no, one unsure
    assert steps["n"] == 370 and 0 < steps["first_error_accuracy"] < 1
