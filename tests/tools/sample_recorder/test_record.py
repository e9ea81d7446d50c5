import io
import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.ports import hold_port, port_of
from tools.sample_recorder.browser import BrowserMissing, find_browser, first_line
from tools.sample_recorder.record import json_place, picture_bytes, renumbered, runs, write_run
from tools.sample_recorder.sites import PLACES
from tools.sample_recorder.sites.base import HOST, ServingError, serve_sites

REPOSITORY = Path(__file__).parents[3]
ONE = "sample-market/ScriptedAgent-talkative/sample-market.1"


def test_the_browsers_own_numbers_become_the_same_in_every_run():
    def tree(first: int, frame: str) -> dict:
        node = {"nodeId": str(first), "backendDOMNodeId": first, "frameId": frame, "role": {"value": 144}}
        return {"nodes": [node | {"childIds": [str(first + 7)]}, {"nodeId": str(first + 7)}]}

    one, other = renumbered(tree(3, "FE27")), renumbered(tree(84, "2F0E"))
    assert one == other
    assert one["nodes"][0]["childIds"] == [one["nodes"][1]["nodeId"]]
    assert one["nodes"][0]["role"] == {"value": 144}


def test_a_picture_keeps_every_pixel():
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (72, 128, 3), dtype=np.uint8)
    data = picture_bytes(pixels)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data)).convert("RGB")), pixels)


def test_of_an_error_the_line_that_does_not_depend_on_speed_is_kept():
    log = "TimeoutError: Locator.click: Timeout 500ms exceeded.\nCall log:\n  2 x waiting for element"
    assert first_line(log) == "TimeoutError: Locator.click: Timeout 500ms exceeded."
    assert first_line("") == ""


def test_a_run_is_there_when_its_json_is_and_not_before(tmp_path):
    (run,) = runs(ONE)
    place = json_place(tmp_path, run.task, run.character)
    write_run(tmp_path, run.task, run.character, {"steps": []}, [b"picture"])
    assert json.loads(place.read_text()) == {"steps": []}
    assert [path.name for path in tmp_path.rglob("*.webp")] == ["screenshot_step_0.webp"]
    assert list(place.parent.iterdir()) == [place]


def test_runs_are_chosen_by_trajectory_id():
    assert [run.trajectory_id for run in runs(ONE)] == [ONE]
    assert len(runs("*/ScriptedAgent-hasty/*")) == 18
    assert runs("webarena/*") == ()


def test_all_five_sites_answer_on_their_ports_and_leave_them():
    import urllib.request

    with ExitStack() as stack:
        held = {name: stack.enter_context(hold_port(HOST)) for name in PLACES}
        places = {name: replace(place, port=port_of(held[name])) for name, place in PLACES.items()}
        with serve_sites(places):
            for place in places.values():
                assert urllib.request.urlopen(place.url, timeout=120).status == 200
        for place in places.values():
            with pytest.raises(OSError):
                urllib.request.urlopen(place.url, timeout=120)


def test_a_taken_port_is_named():
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        places = {"sample-map": replace(PLACES["sample-map"], port=port)}
        with pytest.raises(ServingError, match=f"sample-map needs port {port}"), serve_sites(places):
            pass


def run_command(*arguments: str, python: str = sys.executable, timeout: float = 180):
    command = [python, "-m", "tools.sample_recorder", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout)


def test_a_pattern_that_fits_no_run_is_reported_in_one_line(tmp_path):
    done = run_command("record", "--out", str(tmp_path), "--only", "nothing/*")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --only nothing/*: no trajectory id matches")


def test_without_browsergym_it_is_reported_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BrowserMissing, match="make record-sample"):
        find_browser(tmp_path)


def test_the_systems_chromium_is_found_by_both_browsers_that_browsergym_opens(tmp_path, monkeypatch):
    """A path given to one of them would not reach the other: the folder looks like Playwright's own."""
    chromium = tmp_path / "bin" / "chromium"
    chromium.parent.mkdir()
    chromium.touch(mode=0o755)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setenv("PATH", str(chromium.parent))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", "")
    for _ in range(2):
        find_browser(tmp_path / "cache")
    (link,) = (tmp_path / "cache" / "browsers").glob("chromium-*/chrome-linux/chrome")
    assert link.readlink() == chromium
    assert os.environ["PLAYWRIGHT_BROWSERS_PATH"] == str(tmp_path / "cache" / "browsers")


def test_a_place_that_the_caller_has_set_stays(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", "/own")
    find_browser(tmp_path)
    assert os.environ["PLAYWRIGHT_BROWSERS_PATH"] == "/own"
    assert list(tmp_path.iterdir()) == []


def recording_python() -> str | None:
    """A Python with BrowserGym: the one that RECORD_PYTHON names, or that of `make record-sample`."""
    named = os.environ.get("RECORD_PYTHON") or str(REPOSITORY / ".venv-record" / "bin" / "python")
    return named if Path(named).is_file() else None


@pytest.mark.slow
@pytest.mark.browser
def test_a_run_recorded_again_is_the_shipped_one(tmp_path, shipped_rows):
    """Twice, byte by byte; and what was seen, done and said is what the repository ships."""
    if (python := recording_python()) is None:
        pytest.skip("no Python with BrowserGym: set RECORD_PYTHON, or run `make record-sample` once")
    (run,) = runs(ONE)
    files = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        done = run_command("record", "--out", str(folder), "--only", ONE, python=python, timeout=300)
        assert done.returncode == 0, done.stderr
        files.append(json_place(folder, run.task, run.character).read_bytes())
    assert files[0] == files[1]
    shipped = [row for row in shipped_rows("steps") if row["trajectory_id"] == ONE]
    recorded = json.loads(files[0])["steps"]
    assert len(recorded) == len(shipped)
    for now, then in zip(recorded, shipped, strict=True):
        for name in ("num", "url", "action", "reasoning", "last_action_error", "axtree", "axtree_pruned"):
            assert now[name] == then[name], (name, now["num"])
