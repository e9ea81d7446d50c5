"""27 hostile folders and files, each given to `inspect-source`: a line that says what is wrong, and no more.

No traceback, nothing of a file outside of the folder, nothing run, nothing written, no terminal escapes.
"""

import gzip
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataset_script.__main__ import app
from dataset_script.sources import files

SECRET = "CANARY-6f1d"
ATIF = {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "session_id": "s"}
INSPECT = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}


def atif(*steps: object, **changes: object) -> str:
    ask = {"step_id": 1, "source": "user", "message": "Do it"}
    return json.dumps(ATIF | {"steps": [ask, *steps]} | changes)


def with_picture(path: str) -> str:
    source = {"type": "image", "source": {"media_type": "image/png", "path": path}}
    observed = {"results": [{"content": [source]}]}
    return atif({"step_id": 2, "source": "agent", "message": "Done", "observation": observed})


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


class _Runs:
    """Unpickled it would make a file."""

    def __reduce__(self):
        return os.mkdir, ("made-by-a-pickle",)


def agentlab(folder: Path, arguments: bytes, step: bytes = b"") -> None:
    run = folder / "study" / "run"
    run.mkdir(parents=True)
    (run / "exp_args.pkl").write_bytes(arguments)
    (run / "summary_info.json").write_text("{}")
    (run / "step_0.pkl.gz").write_bytes(step)


def history(screenshot: str | None) -> str:
    state = {"url": "http://x", "title": "x", "tabs": [], "screenshot_path": screenshot}
    done = {"is_done": True, "extracted_content": "Done"}
    step = {"model_output": {"action": [{"done": {"text": "Done"}}]}, "result": [done], "state": state}
    return json.dumps({"history": [step]})


def mind2web(folder: Path, result: object) -> Path:
    run = folder / "agent" / "task-1"
    run.mkdir(parents=True)
    (run / "result.json").write_text(json.dumps(result))
    return run


def file(name: str, content: str | bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))

    return make


def link(name: str, content: str = "") -> Callable[[Path], None]:
    """A link to the file outside, with a trajectory beside it that names the link."""

    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(folder.parent / "outside" / "secret.json")
        if content:
            (folder / "trajectory.json").write_text(content)

    return make


def circle(folder: Path) -> None:
    (folder / "again").symlink_to(folder)


def linked_pictures(folder: Path) -> None:
    result = {"task_id": "task-1", "task": "Do it", "action_history": ["CLICK"], "thoughts": ["x"]}
    (mind2web(folder, result) / "trajectory").symlink_to(folder.parent / "outside")


HEADER = json.dumps(INSPECT).encode()
BOMB = b" " * 3_000_000
DEEP = "[" * 100_000 + "]" * 100_000
STEP = gzip.compress(pickle.dumps({"action": "noop()"}))
FOLDERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "nothing in it": (lambda folder: None, "contains no runs"),
    "text alone": (file("notes.txt", "x" * 10_000), "contains no runs"),
    "a folder that leads into itself": (circle, "contains no runs"),
    "a pipe for a log": (lambda folder: os.mkfifo(folder / "log.json"), "contains no runs"),
    "a log that is a link out": (link("log.eval"), "log.eval"),
    "a trajectory that is a link out": (link("trajectory.json"), "trajectory.json"),
    "a log cut off": (file("log.eval", zipped(**{"header.json": b"{}"})[:-30]), "log.eval"),
    "a log that is no archive": (file("log.eval", b"\x00\xff" * 500), "log.eval"),
    "a log whose samples are a bomb": (
        file("log.eval", zipped(**{"header.json": HEADER, "samples/1_epoch_1.json": BOMB})),
        "is larger than 0.002 GB",
    ),
    "a log with members outside": (
        file("log.eval", zipped(**{"../../secret.json": b"{}", "header.json": b"[]"})), "log.eval",
    ),
    "a log whose samples are no list": (
        file("log.json", json.dumps(INSPECT | {"samples": {"a": 1}})), "log.json",
    ),
    "JSON 100,000 deep": (file("trajectory.json", DEEP), "contains no runs"),
    "JSON 100,000 deep in a trajectory": (
        file("trajectory.json", atif()[:-1] + ', "extra": ' + DEEP + "}"), "trajectory.json",
    ),
    "JSON cut off": (file("trajectory.json", atif()[:-5]), "trajectory.json"),
    "bytes that are no UTF-8": (
        file("trajectory.json", atif().encode()[:-2] + b"\xff\xfe]}"), "trajectory.json",
    ),
    "a version that does not exist": (file("trajectory.json", atif(schema_version="ATIF-v9.9")), "ATIF-v9.9"),
    "steps of other types": (
        file("trajectory.json", atif(steps=[3, None, [], {"source": 7}])), "trajectory.json",
    ),
    "a picture by an absolute path": (
        file("trajectory.json", with_picture("/etc/hostname")), "outside the source",
    ),
    "a picture above the folder": (
        file("trajectory.json", with_picture("../outside/secret.json")), "outside the source",
    ),
    "a picture that is a link out": (link("away.png", with_picture("away.png")), "leaves the source"),
    "a picture at an address": (
        file("trajectory.json", with_picture("http://127.0.0.1:9/secret.png")), "an address",
    ),
    "a history with a picture outside": (
        file("agent/task-1.json", history("../../outside/secret.json")), "secret.json is not in the source",
    ),
    "a history of numbers": (file("agent/task-1.json", '{"history": [{"result": []}, 3]}'), "task-1.json"),
    "a result that is a list": (lambda folder: mind2web(folder, [1, 2]) and None, "result.json"),
    "pictures in a linked folder": (linked_pictures, "link"),
    "a pickle that calls": (
        lambda folder: agentlab(folder, pickle.dumps(_Runs()), STEP), "mkdir",
    ),
    "a pickle that is cut off": (
        lambda folder: agentlab(folder, pickle.dumps({"a": 1})[:-3], STEP), "exp_args.pkl",
    ),
}  # fmt: skip


def test_there_are_27_hostile_folders():
    assert len(FOLDERS) == 27


@pytest.mark.parametrize("name", FOLDERS)
def test_a_hostile_folder_is_one_message_that_names_what_is_wrong(tmp_path, monkeypatch, name):
    outside, folder = tmp_path / "outside", tmp_path / "runs"
    outside.mkdir()
    folder.mkdir()
    (outside / "secret.json").write_text(atif({"step_id": 2, "source": "agent", "message": SECRET}))
    make, says = FOLDERS[name]
    make(folder)
    monkeypatch.chdir(outside)
    monkeypatch.setattr(files, "MOST_JSON_BYTES", 2_000_000)  # a gigabyte in use
    done = CliRunner().invoke(app, ["inspect-source", str(folder), "--json"])
    assert says in done.output, done.output[:2000]
    assert "Traceback" not in done.output and SECRET not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert [path.name for path in outside.iterdir()] == ["secret.json"]  # nothing was run or written
