"""Fetching the released layout with the Hub's own client from a Hub on this machine, faults included."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import HfApi
from typer.testing import CliRunner

from arb.core.hub import HubError
from dataset_script.__main__ import app
from dataset_script.sources import hub as hub_module
from dataset_script.sources.hub import FAILURES_IN_A_ROW, PARTS, Selection, choose, fetch
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import HubServer, running_hub

REPO = "the-lab/released"
REPOSITORY = Path(__file__).parents[3]


def released() -> dict[str, bytes]:
    """Two agents on two benchmarks, in the released layout; b has not run on web."""
    files = {"README.md": b"---\nlicense: unknown\n---\nterms\n", "data/annotations.csv": b"labels"}
    for benchmark, agent in (("web", "a"), ("shop", "a"), ("shop", "b")):
        run, task = f"{benchmark}/Agent-{agent}", f"{benchmark}.1"
        files[f"cleaned/{run}/Agent-{agent}_on_{benchmark}/{task}.json"] = b'{"goal": "x"}' * 50
        files[f"screenshots/{run}/{task}/screenshot_step_0.png"] = run.encode() * 300
        files[f"judgments/{run}/aer/{task}.json"] = b'{"judge": "aer"}'
    return files


CLEANED_WEB = "cleaned/web/Agent-a/Agent-a_on_web/web.1.json"
PICTURE_WEB = "screenshots/web/Agent-a/web.1/screenshot_step_0.png"


@pytest.fixture
def hub(monkeypatch):
    with running_hub(monkeypatch) as server:
        server.commit(REPO, released())
        yield server


@pytest.fixture
def out(tmp_path) -> Path:
    return tmp_path / "trajectories"


@pytest.fixture
def get(hub, out):
    """Fetch at the head's commit, or at another revision."""

    def run(selection=Selection(), revision=None, token=False, **options):  # noqa: B008
        api = HfApi(endpoint=hub.url, token=token)
        revision = revision or hub.repository(REPO).head.oid
        return fetch(api, out, selection, REPO, revision, sleep=lambda _seconds: None, **options)

    return run


def data(folder: Path) -> dict[str, bytes]:
    """The files of the released layout in a folder."""
    found = [path for part in PARTS for path in (folder / part).rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def expected(*words: str) -> dict[str, bytes]:
    return {
        path: content
        for path, content in released().items()
        if path.startswith(PARTS) and all(f"{word}/" in path for word in words)
    }


# what is fetched


def test_everything_in_the_released_layout_is_fetched_and_nothing_else(get, out):
    done = get()
    assert data(out) == expected()
    assert (done.files, done.failed) == (10, {})
    assert done.bytes == sum(map(len, expected().values())) + len(released()["README.md"])
    assert (out / "README.md").is_file()  # the card with the terms goes along
    assert not (out / "data").exists()  # the test labels do not


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(parts=("cleaned",)), ["cleaned"]),
        (Selection(benchmarks=("web",)), ["web"]),
        (Selection(agents=("Agent-a",)), ["Agent-a"]),
        (Selection(("judgments",), ("shop",), ("Agent-b",)), ["judgments", "shop", "Agent-b"]),
        (Selection(("cleaned", "screenshots", "judgments"), ("web", "shop")), []),
    ],
)
def test_parts_benchmarks_and_agents_can_be_chosen(get, out, selection, words):
    get(selection)
    assert data(out) == expected(*words) != {}


def test_names_that_are_not_there_are_all_reported_with_those_that_are(get):
    with pytest.raises(HubError) as refused:
        get(Selection(("processed",), ("workarena++",), ("Agent-c",)))
    assert str(refused.value) == (
        "there is no part 'processed'; use one of cleaned, judgments, screenshots; "
        "there is no benchmark 'workarena++'; use one of shop, web; "
        "there is no agent 'Agent-c'; use one of Agent-a, Agent-b"
    )


def test_an_agent_that_has_not_run_on_a_benchmark_is_reported():
    sizes = dict.fromkeys(released(), 1)
    with pytest.raises(HubError, match="no runs of this agent on this benchmark"):
        choose(sizes, Selection(benchmarks=("web",), agents=("Agent-b",)))


def test_a_repository_of_another_layout_is_reported():
    with pytest.raises(HubError, match="not in the released layout"):
        choose({"README.md": 1, "data/dev.parquet": 1}, Selection(benchmarks=("web",)))


def test_the_pinned_commit_is_fetched_although_the_repository_went_on(hub, get, out):
    pinned = hub.repository(REPO).head.oid
    hub.commit(REPO, {CLEANED_WEB: b"later", "cleaned/web/Agent-a/Agent-a_on_web/web.2.json": b"new"})
    assert get(revision=pinned).commit == pinned
    assert data(out) == expected()


def test_a_branch_is_taken_at_its_commit(hub, get, out):
    assert get(revision="main").commit == hub.repository(REPO).head.oid
    assert json.loads((out / "fetched.json").read_text()) == {
        "repo": REPO,
        "commit": hub.repository(REPO).head.oid,
    }


def test_a_folder_never_mixes_two_commits(hub, get, out):
    first = get(Selection(parts=("cleaned",))).commit
    hub.commit(REPO, {CLEANED_WEB: b"later"})
    with pytest.raises(HubError, match=f"contains files of {REPO} at {first}; name another folder"):
        get(revision="main")
    assert data(out) == expected("cleaned")


def test_a_listing_of_many_pages_is_read_to_its_end(hub, get, out):
    hub.api.page_size = 4
    get()
    assert data(out) == expected()


@pytest.mark.shared
def test_the_recorded_runs_come_out_byte_for_byte(hub, out, shared):
    source = shared / "data/released_layout"
    commit = hub.add_folder("the-lab/recorded", source)
    done = fetch(HfApi(endpoint=hub.url, token=False), out, repo="the-lab/recorded", revision=commit.oid)
    assert data(out) == data(source)
    assert done.files == done.fetched == len(data(source)) > 40  # this one has no card


# going on


def test_a_second_run_asks_for_nothing(hub, get):
    get()
    asked = len(hub.seen)
    assert get().fetched == 0
    assert len(hub.seen) == asked


def test_only_what_is_missing_or_damaged_is_fetched(hub, get, out):
    get()
    (out / CLEANED_WEB).unlink()
    (out / PICTURE_WEB).write_bytes(b"cut off")
    hub.served.clear()
    assert get().fetched == 2
    assert data(out) == expected()
    assert set(hub.served) - {""} == {CLEANED_WEB, PICTURE_WEB}


def test_more_can_be_fetched_into_the_same_folder(get, out):
    get(Selection(parts=("cleaned",)))
    done = get(Selection(benchmarks=("web",)))
    assert (done.files, done.fetched) == (4, 2)  # with the card; web's cleaned file was there
    assert data(out) == expected("cleaned") | expected("web")


def test_progress_counts_each_byte_once_also_after_cuts(hub, get):
    card = len(released()["README.md"])
    total = sum(map(len, expected().values())) + card
    told = []
    hub.fail("GET", f"resolve/.*/{CLEANED_WEB}", cut=100)
    hub.fail("GET", "/objects/", cut=100, times=2)
    get(progress=lambda done, wanted: told.append((done, wanted)))
    assert told[0] == (card, total) and told[-1] == (total, total)
    assert max(done for done, _ in told) == total
    told.clear()
    get(progress=lambda done, wanted: told.append((done, wanted)))
    assert told == [(total, total)]


# what the Hub does


def test_a_connection_that_is_cut_goes_on_from_where_it_was(hub, get, out):
    size, at = 25_000_000, 21_000_000
    hub.commit(REPO, {CLEANED_WEB: b"x" * size})
    hub.fail("GET", "/objects/", cut=at)
    get(Selection(("cleaned",), ("web",)))
    assert (out / CLEANED_WEB).stat().st_size == size
    kept = 20 * 1024 * 1024  # the client writes pieces of 10 MiB
    assert hub.served[CLEANED_WEB] == at + (size - kept)


def test_a_connection_that_breaks_hard_is_tried_again_and_its_bytes_count_once(hub, get, out):
    size, told = 25_000_000, []
    hub.commit(REPO, {CLEANED_WEB: b"x" * size})
    hub.fail("GET", "/objects/", cut=21_000_000, reset=True)
    done = get(Selection(("cleaned",), ("web",)), progress=lambda done, _total: told.append(done))
    assert (out / CLEANED_WEB).stat().st_size == size and done.failed == {}
    assert max(told) == told[-1] == done.bytes
    assert hub.served[CLEANED_WEB] > size  # the client begins anew


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("path", ["resolve/.*/cleaned", "/tree/", "/objects/"])
def test_a_fault_that_passes_is_waited_for(hub, get, out, status, path):
    hub.fail("GET", path, status=status, times=2)
    assert get().failed == {}
    assert data(out) == expected()


def test_when_nothing_works_any_more_it_ends_early_and_says_so(hub, get):
    many = {f"cleaned/web/Agent-a/run/web.{number}.json": b"{}" for number in range(100)}
    hub.commit(REPO, many)
    hub.fail("HEAD", "/resolve/.*/cleaned", status=403, times=1_000)
    with pytest.raises(
        HubError,
        match=f"{FAILURES_IN_A_ROW} files in a row could not be fetched.*run the same command again",
    ):
        get()
    assert len(hub.requests("HEAD", "/cleaned/")) < 2 * FAILURES_IN_A_ROW + 8  # eight are under way


def test_a_hub_that_cannot_be_reached_is_reported(hub, get):
    hub.fail("GET", "/tree/", status=503, times=1_000)
    with pytest.raises(HubError, match="the list of files cannot be fetched now; try again"):
        get()


@pytest.mark.parametrize(("token", "status"), [(False, 401), ("hf_revoked", 401), ("hf_stranger", 404)])
def test_a_private_repository_is_distinguished_from_nothing(hub, get, token, status):
    hub.api.accounts["hf_stranger"] = Account("stranger")
    hub.repository(REPO).private = True
    with pytest.raises(HubError, match=f"the Hub answered {status}") as refused:
        get(token=token)
    assert "hf_" not in str(refused.value)
    hub.api.accounts["hf_member"] = Account("someone", ("the-lab",))
    assert get(token="hf_member").files == 10
    assert {seen.token for seen in hub.seen if seen.place == "cdn"} == {None}


@pytest.mark.parametrize("revision", ["v9", "0" * 40])
def test_a_revision_that_is_not_there_is_reported(get, revision):
    with pytest.raises(HubError, match=f"{REPO} at {revision}: the Hub answered 404"):
        get(revision=revision)


# this machine


def test_a_disk_that_is_too_small_is_reported_before_anything_is_fetched(get, out, monkeypatch):
    full_disk = SimpleNamespace(disk_usage=lambda _folder: SimpleNamespace(free=1))
    monkeypatch.setattr(hub_module, "shutil", full_disk)
    with pytest.raises(HubError, match=r"but only 0\.0 GB are free"):
        get()
    assert data(out) == {}


def test_a_disk_that_fills_up_is_reported_with_the_file(get, out, monkeypatch):
    def full(self, repo, path, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(HfApi, "hf_hub_download", full)
        with pytest.raises(HubError, match=rf"No space left on device: '{out}/\w+.*; run the same command"):
            get()
    assert data(out) == {}
    get()
    assert data(out) == expected()


def test_two_fetches_into_one_folder_do_not_get_into_each_others_way(hub, get, out):
    started, go_on = threading.Event(), threading.Event()
    hub.fail("GET", CLEANED_WEB, first=lambda: (started.set(), go_on.wait(120)))
    first = threading.Thread(target=get)
    first.start()
    assert started.wait(120)
    with pytest.raises(HubError, match="another fetch is writing to it"):
        get()
    go_on.set()
    first.join()
    assert data(out) == expected()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_within_moments_leaves_whole_files_and_can_go_on(out, number):
    with HubServer() as hub:
        hub.commit(REPO, released())
        half = threading.Event()
        size = len(released()[PICTURE_WEB])
        hub.fail("GET", "/objects/", times=100, first=lambda: half.wait(300))  # pictures do not come
        command = [sys.executable, "-m", "dataset_script", "fetch", "--repo", REPO, "--revision", "main"]
        environment = {
            **os.environ, "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        process = subprocess.Popen(
            [*command, "--out", str(out)],
            cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while len(hub.requests("GET", "/objects/")) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=300)  # with pictures still on their way, which do not come
        half.set()
        assert process.returncode == 130, said
        assert said.splitlines()[-1].startswith("error: interrupted;") and "Traceback" not in said
        there = data(out)
        assert there.items() <= expected().items() and PICTURE_WEB not in there and size > 0
        assert not list(out.rglob("*.incomplete"))
        hub.faults.clear()
        again = [*command, "--out", str(out)]
        subprocess.run(again, cwd=REPOSITORY, env=environment, check=True, timeout=300)
        assert data(out) == expected()


# the command


@pytest.fixture
def run(hub, out):
    def fetch_command(*more: str):
        fixed = ["fetch", "--repo", REPO, "--revision", "main", "--out", str(out)]
        return CliRunner().invoke(app, [*fixed, *more])

    return fetch_command


def test_the_command_takes_several_names_and_tells_bytes_and_files(run, out):
    result = run("--benchmark", "web", "--benchmark", "shop", "--agent", "Agent-a", "--part", "cleaned")
    assert result.exit_code == 0, result.output
    assert data(out) == expected("cleaned", "Agent-a")
    assert f"{out}: 3 files, 0.0 MB, 2 of them fetched now" in result.stdout
    assert "0.0 of 0.0 MB" in result.stderr  # two files of 650 bytes


def test_the_command_exits_1_names_what_failed_and_fetches_the_others(hub, run, out):
    hub.fail("HEAD", CLEANED_WEB, status=403, times=1_000)
    result = run()
    assert result.exit_code == 1
    assert data(out) == {path: content for path, content in expected().items() if path != CLEANED_WEB}
    assert f"failed: {CLEANED_WEB}: the Hub answered 403" in result.stdout
    assert "1 files could not be fetched" in result.stderr


def test_the_command_tells_a_users_mistake_in_one_line(run):
    result = run("--benchmark", "absent")
    assert result.exit_code == 2
    assert "error: there is no benchmark 'absent'; use one of shop, web" in result.stderr
