import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arb.core.settings import Settings
from submissions.records.database import StoredFile, open_database, transaction
from submissions.records.files import DatabaseFiles, FileStore, open_files

REPOSITORY = Path(__file__).parents[3]
CONTENT = b'{"trajectory_id": "a", "success": true}\n'


@pytest.fixture
def files(tmp_path) -> FileStore:
    return FileStore(tmp_path / "state" / "files")


def kept(files: FileStore) -> list[Path]:
    return sorted(path for path in files.folder.rglob("*") if path.is_file())


def test_a_file_is_kept_byte_for_byte_under_its_sha256(files):
    sha256 = files.keep(CONTENT)
    assert sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert files.path(sha256) == files.folder / sha256[:2] / sha256
    assert files.path(sha256).read_bytes() == files.read(sha256) == CONTENT


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], CONTENT.replace(b"true", b"null")])
def test_a_damaged_file_is_detected_and_keeping_the_content_again_mends_it(files, damage):
    sha256 = files.keep(CONTENT)
    files.path(sha256).write_bytes(damage)
    with pytest.raises(ValueError, match=f"{sha256} is damaged"):
        files.read(sha256)
    files.keep(CONTENT)
    assert files.read(sha256) == CONTENT
    assert kept(files) == [files.path(sha256)]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "", "0" * 63, "A" * 64, "0" * 63 + "/", "0" * 64 + "\n"]
)
def test_only_a_sha256_names_a_file(files, name):
    with pytest.raises(ValueError, match="64 hexadecimal"):
        files.path(name)


def test_a_write_that_fails_leaves_nothing(files, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    files.folder.mkdir(parents=True)
    (files.folder / hashlib.sha256(CONTENT).hexdigest()[:2]).mkdir()
    with pytest.raises(OSError, match="No space left"):
        files.keep(CONTENT)
    assert kept(files) == []


def test_a_file_has_its_name_only_when_its_bytes_are_on_the_disk(files, monkeypatch):
    order = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append(_kind(handle)), fsync(handle)))
    monkeypatch.setattr(Path, "replace", lambda part, path: (order.append("rename"), replace(part, path)))
    files.keep(CONTENT)
    assert order[-3:] == ["file", "rename", "folder"]
    assert set(order[:-3]) == {"folder"}  # the new folders' own names


def _kind(handle: int) -> str:
    return "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"


def test_files_and_folders_are_their_owners_only(files):
    path = files.path(files.keep(CONTENT))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_threads_that_keep_the_same_and_other_files_at_once_lose_none(files):
    contents = [bytes([n]) * 10_000 for n in range(8)]
    barrier = threading.Barrier(16)

    def work(content: bytes) -> None:
        barrier.wait(timeout=120)
        files.keep(content)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, contents * 2))
    assert kept(files) == sorted(files.path(hashlib.sha256(content).hexdigest()) for content in contents)


KILLED_WHILE_WRITING = """
import os, sys
from pathlib import Path
from submissions.records.files import FileStore

def sync_and_wait(handle):
    print("writing", flush=True)
    sys.stdin.read()

os.fsync = sync_and_wait if sys.argv[2] == "sync" else os.fsync
if sys.argv[2] == "rename":
    Path.replace = lambda part, path: sync_and_wait(None)
folder = Path(sys.argv[1])
(folder / sys.argv[3]).mkdir(parents=True)
FileStore(folder).keep(b"x" * 1_000_000)
"""


@pytest.mark.parametrize("moment", ["sync", "rename"])
def test_a_process_killed_while_writing_leaves_no_half_file_and_the_next_one_keeps_it_whole(files, moment):
    content = b"x" * 1_000_000
    sha256 = hashlib.sha256(content).hexdigest()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_WHILE_WRITING, str(files.folder), moment, sha256[:2]],
        cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=120)
    process.stdin.close()
    process.stdout.close()

    assert not files.path(sha256).exists()
    assert len(kept(files)) == 1  # the partial file, under a temporary name
    assert files.read(files.keep(content)) == content


# Files in the database

SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def engine(database_url):
    return open_database(database_url)


@pytest.fixture
def replicas(engine, tmp_path) -> tuple[DatabaseFiles, DatabaseFiles]:
    """Return two servers that share a database but have separate disks."""
    return tuple(DatabaseFiles(tmp_path / name / "files", engine) for name in ("one", "two"))


def test_files_are_where_the_records_are(tmp_path):
    for url, kind in (
        (None, FileStore),
        ("sqlite://", DatabaseFiles),
        ("postgresql://host/name", DatabaseFiles),
    ):
        assert type(open_files(Settings(state_dir=tmp_path, database_url=url), lambda: None)) is kind


def test_a_file_is_there_for_every_replica_at_once_and_outlives_each_disk(replicas):
    one, two = replicas
    assert one.keep(CONTENT) == two.keep(CONTENT) == SHA256
    assert kept(one) == kept(two) == []
    assert two.read(SHA256) == CONTENT
    assert two.absent([SHA256, "1" * 64]) == ["1" * 64]


def test_what_reads_by_path_gets_a_copy_of_its_own(replicas):
    one, two = replicas
    one.keep(CONTENT)
    path = two.path(SHA256)
    assert path.read_bytes() == CONTENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not two.path("1" * 64).exists()
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        two.path("../x")


def test_a_file_that_is_nowhere_and_one_that_the_database_changed_are_errors(replicas, engine):
    one, two = replicas
    with pytest.raises(FileNotFoundError):
        one.read(SHA256)
    one.keep(CONTENT)
    with transaction(engine) as session:
        session.get(StoredFile, SHA256).content = b"changed"
    with pytest.raises(ValueError, match="damaged"):
        two.read(SHA256)
    one.keep(CONTENT)  # the good content replaces it
    assert two.read(SHA256) == CONTENT


def test_replicas_that_keep_the_same_file_at_once_keep_it_once(replicas):
    barrier = threading.Barrier(6)

    def keep(files: DatabaseFiles) -> str:
        barrier.wait(timeout=120)
        return files.keep(CONTENT)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(keep, replicas * 3)) == [SHA256] * 6
