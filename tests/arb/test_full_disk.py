"""Commands on a disk that is full: one line that names the file or folder, and nothing half-written."""

import pytest
from typer.testing import CliRunner

from arb.__main__ import app
from dataset_script.build.blind import read_key
from tests.support.disks import small_disk
from tests.support.released_layout import SourceFolder
from tests.support.small_suite import SUITE_IDS, suite_with

TABLE = "run,human,judge\n" + "".join(f"run-{n},{n % 2},{n // 2 % 2}\n" for n in range(400))
SCOUT = ("--id", "run", "--label", "human", "--verdict", "judge", "--to", "scout")
SAMPLE_RUN = "sample-forum/ScriptedAgent-careful/sample-forum.4"


@pytest.fixture
def arb(monkeypatch, tmp_path):
    """Return a function that runs a command in the test's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ARB_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def assert_one_line_names(path: str, done) -> None:
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert (done.exit_code, len(errors)) == (2, 1), done.output
    assert path in errors[0] and "No space left on device" in errors[0]
    assert ".part-" not in errors[0]
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("size", "out", "command"),
    [
        ("4k", "test.jsonl", "submissions template --split test --out"),
        ("4k", "exported", "leaderboard export --out"),
        ("4k", "scout", f"validate runs.csv {' '.join(SCOUT)} --out"),
        ("24k", "scout", f"validate runs.csv {' '.join(SCOUT)} --out"),
        ("16k", "data", "data get --sample --out"),
        ("1m", "data", "data get --sample --out"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_left(size, out, command, arb, tmp_path):
    (tmp_path / "runs.csv").write_text(TABLE)
    with small_disk(tmp_path / "disk", size):
        done = arb(*command.split(), tmp_path / "disk" / out)
        assert_one_line_names(f"{tmp_path}/disk/{out}", done)
        assert list((tmp_path / "disk").iterdir()) == []


@pytest.mark.parametrize(
    ("size", "workers"),
    [("16k", 1), ("64k", 1), ("200k", 1), pytest.param("200k", 2, marks=pytest.mark.slow)],
)
def test_a_build_that_does_not_fit_is_named_and_resumes(workers, size, arb, tmp_path):
    source, suite = SourceFolder(tmp_path / "source"), tmp_path / "own-suite"
    for trajectory_id in SUITE_IDS:
        source.put(trajectory_id)
    suite.mkdir()
    suite_with(suite, "", SUITE_IDS)
    out = tmp_path / "disk" / "out"
    command = ("data", "build", "--source", source.path, "--suite", suite, "--workers", workers)
    with small_disk(tmp_path / "disk", size) as grow:
        assert_one_line_names(str(out), arb(*command, "--out", out))
        assert not out.exists()
        assert grow()
        assert arb(*command, "--out", out).exit_code == 0
        assert (out / "README.md").is_file()


def test_a_key_that_does_not_fit_leaves_no_file_without_a_key(tmp_path):
    path = tmp_path / "disk" / "out.blind-key"
    with small_disk(tmp_path / "disk", "4k") as grow:
        (tmp_path / "disk" / "other").write_bytes(bytes(4096))
        with pytest.raises(OSError, match="No space left") as found:
            read_key(path, create=True)
        assert (found.value.filename, path.exists()) == (str(path), False)
        assert grow()
        assert read_key(path, create=True) == read_key(path)


def test_pictures_that_do_not_fit_are_named_and_none_is_half_written(arb, tmp_path):
    assert arb("data", "get", "--sample").exit_code == 0
    with small_disk(tmp_path / "disk", "8k"):
        pictures = tmp_path / "disk" / "pictures"
        done = arb("data", "show", "agent-reward-bench", SAMPLE_RUN, "--pictures", pictures)
        assert_one_line_names(f"{pictures}/step-", done)
        assert not any(path.is_file() for path in (tmp_path / "disk").rglob("*"))
