"""Pages of the documentation as a reader follows them: each command and each Python block, from the top."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.llm_server.process import LLMProcess
from tests.support.ports import hold_port, port_of
from tests.support.waiting import until_served

REPOSITORY = Path(__file__).parents[2]
FOLLOWED = (
    "README.md",
    *(
        f"docs/{page}.md"
        for page in (
            "index", "score", "validate", "data", "run_judges", "own_agent", "own_judge", "operate",
            "read_the_board",
        )
    ),
)  # fmt: skip
"""Pages that need nothing but Python and an endpoint, in the order of the menu."""
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

    ``home`` is empty at first. No variable is the product's, and nothing leads to this repository.
    """

    folder: Path
    programs: Path
    home: Path

    def variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        path = os.pathsep.join((str(self.programs), "/usr/bin", "/bin"))
        return {**kept, "PATH": path, "HOME": str(self.home), "NO_PROXY": "127.0.0.1", "HF_HUB_OFFLINE": "1"}

    def run(self, command: list[str], said: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables(), capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, f"{said}\n{done.stdout}\n{done.stderr}"
        assert "python -m" not in done.stderr, done.stderr  # the next step is typed as `arb`
        return done.stdout

    def type(self, line: str) -> str:
        """Type a line; fill in what it wrote for a person to label."""
        said = self.run(["bash", "-c", line], line)
        if "annotation-template" in line:
            _label(self.folder / re.search(r"--out (\S+)", line)[1])
        return said

    def follow(self, page: str) -> None:
        """Do all that the page says, but for `make` and `docker`: CI and `tests/space/test_docker.py` do."""
        text = text_of(page)
        with LLMProcess() as endpoint, self._served(SPACE in text and "gradio_client" in text) as address:
            code: list[str] = []
            for before, language, block in blocks(text):
                block = block.replace(ENDPOINT, endpoint.base_url).replace(SPACE, address)
                if language == "bash":
                    for line in commands_of(block):
                        if not line.startswith(("make ", "docker ")):
                            self.type(line)
                elif name := re.search(r"`(\w+\.py)`", before):
                    (self.folder / name[1]).write_text(block)
                else:
                    code.append(block)
            if code:
                self.run(["python", "-c", "\n".join(code)], "\n".join(code))

    @contextmanager
    def _served(self, wanted: bool) -> Iterator[str]:
        """The address of a Space that the reader has started, if it is wanted."""
        if not wanted:
            yield SPACE
            return
        held = hold_port()
        address = f"http://127.0.0.1:{port_of(held)}"
        settings = {"ARB_LABELS": "none", "ARB_STATE_DIR": str(self.home / "state")}
        command = [str(self.programs / "arb"), "space", "serve", "--port", str(port_of(held))]
        with (self.home / "space.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env={**self.variables(), **settings}, stdout=log, stderr=log
            )
        try:
            until_served(address, lambda: process.poll() is not None, self.home / "space.log")
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=SECONDS)
            held.close()


def follow_all(readers: Iterator[Reader]) -> None:
    """Follow every page, each with a reader of its own."""
    for page, reader in zip(FOLLOWED, readers, strict=False):
        if page == "docs/own_agent.md":
            _write_logs(reader.folder)
        reader.follow(page)
        if page == "docs/own_agent.md":
            _check_estimate(reader)


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
