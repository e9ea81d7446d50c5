"""What a stranger makes Gradio keep is bounded: bodies, uploads, unread results and open streams."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gradio as gr
import httpx
import pytest
from fastapi import HTTPException, Request, UploadFile
from fastapi.testclient import TestClient
from gradio.queueing import Event, Queue
from gradio.server_messages import ProcessCompletedMessage
from gradio_client import Client, handle_file
from starlette.routing import Mount

from space.app import create_app
from space.gradio_app import limits, uploads
from space.gradio_app.app import MOST_SESSIONS
from space.gradio_app.limits import (
    SMALLEST_RESULT,
    UNREAD_BYTES,
    UNREAD_BYTES_EACH,
    UNREAD_SECONDS,
    UnreadResults,
)
from space.gradio_app.uploads import KEPT_SECONDS, MOST_FILES, MOST_FILES_EACH, UploadStore
from space.web.body_limits import GRADIO_JSON_BYTES
from tests.space.gradio_app.conftest import Running, running
from tests.support.submissions import settings_for
from tests.support.waiting import eventually

SECONDS = 120
JSON = {"content-type": "application/json"}
FILE_BYTES = 100_000


@pytest.fixture(scope="module")
def client(suite_folder, tmp_path_factory) -> Iterator[TestClient]:
    settings = settings_for(
        suite_folder,
        tmp_path_factory.mktemp("limits") / "state",
        max_upload_bytes=FILE_BYTES,
        checks_a_minute=1_000_000,
    )
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


def queue_of(client: TestClient) -> Queue:
    (mounted,) = [
        route.app
        for route in client.app.routes
        if isinstance(route, Mount) and hasattr(route.app, "get_blocks")
    ]
    return mounted.get_blocks()._queue


def number_of(client: TestClient, endpoint: str) -> int:
    """The number by which a page's script calls an endpoint."""
    found = client.get("/config").json()["dependencies"]
    return next(each["id"] for each in found if each["api_name"] == endpoint)


# Bodies

OPEN_POSTS = ("queue/join", "cancel", "reset")


@pytest.mark.parametrize("path", OPEN_POSTS)
@pytest.mark.parametrize("has_length", [True, False])
def test_json_for_gradio_is_refused_unread_beyond_its_limit(client, path, has_length):
    body = b'{"data": [' + b"{}," * (GRADIO_JSON_BYTES // 3) + b"{}]}"
    content = body if has_length else iter([body[:1000], body[1000:]])
    answer = client.post(f"/gradio_api/{path}", content=content, headers=JSON)
    assert answer.status_code == 413
    assert answer.json() == {"detail": "the body has more than 64,000 bytes; send a smaller one"}


def test_json_for_gradio_cannot_call_itself_a_form_to_be_larger(client):
    headers = {"content-type": "multipart/form-data; boundary=x"}
    answer = client.post("/gradio_api/queue/join", content=b"x" * FILE_BYTES, headers=headers)
    assert answer.status_code == 413


# Uploads


def upload(client: TestClient, content: bytes, name: str = "a.jsonl"):
    return client.post("/gradio_api/upload", files={"files": (name, content)})


class Now:
    """A clock that a test sets."""

    seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def store(suite_folder, tmp_path, now) -> UploadStore:
    return UploadStore(settings_for(suite_folder, tmp_path / "state", max_upload_bytes=FILE_BYTES), now)


def save(store: UploadStore, sender: str, number: int, size: int = FILE_BYTES) -> Path:
    """Store a file whose content and name follow from its number."""
    with tempfile.TemporaryFile() as file:
        file.write(str(number).encode().rjust(size))
        file.seek(0)
        return asyncio.run(store.save(sender, UploadFile(file, filename=f"{number}.jsonl")))


def test_uploads_lie_in_the_state_folder_and_not_in_one_that_users_of_the_machine_share(
    suite_folder, tmp_path, monkeypatch
):
    # The folder of another user, to which nothing can be written.
    (tmp_path / "gradio").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("GRADIO_TEMP_DIR")
    settings = settings_for(suite_folder, tmp_path / "state")
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        answer = upload(client, b"{}")
        assert answer.status_code == 200
        (path,) = map(Path, answer.json())
        folder = settings.state_dir.resolve() / "uploads"
        assert path.is_relative_to(folder) and path.read_bytes() == b"{}"
        assert folder.stat().st_mode & 0o077 == 0  # nobody else may look
    assert not path.exists()  # deleted when the Space ends


def test_one_address_stores_so_many_bytes_and_is_told_when_to_come_back(client):
    sent = [upload(client, str(number).encode().rjust(FILE_BYTES)) for number in range(MOST_FILES_EACH + 1)]
    assert [answer.status_code for answer in sent] == [200] * MOST_FILES_EACH + [429]
    # 20 files of 100,000 bytes
    assert sent[-1].json()["detail"].startswith("uploads from one address take 2 MB, which is the limit")
    assert KEPT_SECONDS - SECONDS < int(sent[-1].headers["retry-after"]) <= KEPT_SECONDS
    Path(sent[0].json()[0]).unlink()  # a file that is gone does not count
    assert upload(client, b"{}").status_code == 200


def test_a_small_file_counts_for_what_it_takes_of_a_disk(store):
    most = MOST_FILES_EACH * FILE_BYTES // uploads.SMALLEST  # 20 * 100,000 // 4,096 = 488
    for number in range(most):
        store._holdings.add(Path(str(number)), "a", uploads.SMALLEST)
    store._forget_deleted = lambda sender: None
    with pytest.raises(HTTPException, match="uploads from one address"):
        store.require_room("a")


def test_the_same_file_again_counts_once(store):
    assert save(store, "a", 1) == save(store, "a", 1)
    assert store._holdings.total == FILE_BYTES


def test_an_upload_is_deleted_after_its_time_and_makes_room(store, now):
    paths = [save(store, "a", number) for number in range(MOST_FILES_EACH)]
    with pytest.raises(HTTPException) as refused:
        save(store, "a", 99)
    assert refused.value.headers["Retry-After"] == str(KEPT_SECONDS)
    now.seconds += KEPT_SECONDS + 1
    store.sweep()
    assert not any(path.exists() or path.parent.exists() for path in paths)
    assert save(store, "a", 99).is_file()


def test_where_all_together_store_too_much_the_one_with_the_most_gives_way(store):
    senders = MOST_FILES // MOST_FILES_EACH  # 200 / 20 = 10 of them fill the disk
    paths = {
        (sender, number): save(store, f"address {sender}", 100 * sender + number)
        for sender in range(senders)
        for number in range(MOST_FILES_EACH)
    }
    honest = save(store, "honest", 9_999)
    assert honest.is_file()
    gone = [key for key, path in paths.items() if not path.exists()]
    assert [number for _, number in gone] == [0]  # the oldest file of one of them


def test_nobody_gives_way_to_one_who_would_store_more(store, monkeypatch):
    monkeypatch.setattr(store, "_most", 2 * FILE_BYTES)
    save(store, "a", 1)
    save(store, "b", 2)
    with pytest.raises(HTTPException) as refused:
        save(store, "a", 3)
    assert refused.value.status_code == 503
    assert refused.value.headers["Retry-After"] == str(KEPT_SECONDS)
    assert "uploads from all addresses" in str(refused.value.detail)


def test_what_a_killed_process_left_counts_and_is_deleted_after_its_time(suite_folder, tmp_path, now, store):
    left = save(store, "a", 1)
    again = UploadStore(settings_for(suite_folder, tmp_path / "state", max_upload_bytes=FILE_BYTES), now)
    assert again._holdings.total == FILE_BYTES
    now.seconds += KEPT_SECONDS + 1
    again.sweep()
    assert not left.exists()


def test_a_call_leaves_no_further_file_behind(client):
    (path,) = upload(client, b"{}\n").json()
    folder = Path(path).parents[1]
    before = sorted(folder.rglob("*"))
    data = [{"path": path, "meta": {"_type": "gradio.FileData"}}, "test"]
    assert "process_completed" in call(client, number_of(client, "check_1"), data)
    assert sorted(folder.rglob("*")) == before


# Unread results


def join(client: TestClient, event: int, data: list, session: str) -> None:
    asked = {"fn_index": event, "data": data, "session_hash": session}
    client.post("/gradio_api/queue/join", json=asked).raise_for_status()


def call(client: TestClient, event: int, data: list, session: str = "one") -> str:
    """What the page's script does: join the queue, listen to the end."""
    join(client, event, data, session)
    return client.get(f"/gradio_api/queue/data?session_hash={session}").text


@pytest.mark.slow
def test_results_that_nobody_reads_do_not_pile_up(client, caplog):
    queue, board = queue_of(client), number_of(client, "board")
    for number in range(200):
        join(client, board, [], f"unread {number}")
        eventually(lambda: not queue.event_ids_to_events)
    most = UNREAD_BYTES_EACH // SMALLEST_RESULT  # 1,000,000 // 16,000 = 62
    assert len(queue.pending_messages_per_session) <= most + 1
    assert len(queue.pending_event_ids_session) <= most + 1
    assert len(queue.event_analytics) <= 1
    assert len(queue.server_app.state_holder.session_data) <= MOST_SESSIONS
    assert queue.events_recorded > queue.event_count_at_last_cache == 0  # no summary was made of them
    assert '"success":true' in call(client, board, [], "reader")  # the latest one is there
    late = client.get("/gradio_api/queue/data?session_hash=unread 0")
    assert '"session_not_found":true' in late.text
    assert "the request failed" not in caplog.text


@pytest.fixture
def queue() -> Queue:
    with gr.Blocks() as blocks:
        gr.api(lambda: 1, api_name="f")
    return blocks._queue


def finish(queue: Queue, session: str, sender: str, text: str = "") -> Event:
    """A result that nobody reads: of a call that joined the queue and was processed."""
    scope = {"type": "http", "headers": [], "client": (sender, 1)}
    event = Event(session, queue.blocks.fns[0], Request(scope), None)
    queue.pending_messages_per_session.setdefault(session, asyncio.Queue())
    queue.pending_event_ids_session.setdefault(session, set()).add(event._id)
    queue.send_message(event, ProcessCompletedMessage(output={"data": [text]}, success=True))
    return event


def sender_of(request) -> str:
    return request.client.host


def test_the_oldest_results_of_the_sender_with_the_most_go_first(queue):
    UnreadResults(queue, sender_of)
    size = UNREAD_BYTES_EACH // 10 - 100  # ten fit beside each other
    finish(queue, "honest", "honest", "x" * size)
    senders = UNREAD_BYTES // UNREAD_BYTES_EACH
    for number in range(20):
        for sender in range(senders):
            finish(queue, f"{sender} {number}", str(sender), "x" * size)
    left = queue.pending_messages_per_session
    assert "honest" in left
    assert all(f"{sender} 19" in left and f"{sender} 0" not in left for sender in range(senders))
    # 4,000,000 bytes of at most 100,000 each
    assert len(left) <= UNREAD_BYTES // size
    assert set(queue.pending_event_ids_session) == set(left)


def test_one_result_over_the_bound_can_still_be_read(queue):
    UnreadResults(queue, sender_of)
    finish(queue, "small", "a")
    finish(queue, "large", "a", "x" * (UNREAD_BYTES + 1))
    assert set(queue.pending_messages_per_session) == {"large"}
    finish(queue, "next", "a")
    assert set(queue.pending_messages_per_session) == {"next"}


def test_a_result_is_dropped_after_its_time_and_so_is_a_session_that_waits_for_nothing(queue, now):
    results = UnreadResults(queue, sender_of, now)
    finish(queue, "old", "a")
    now.seconds += UNREAD_SECONDS + 1
    finish(queue, "new", "a")
    read = finish(queue, "read", "a")
    queue.pending_event_ids_session["read"].remove(read._id)  # what a stream does
    queue.pending_event_ids_session["lost"] = {"an event whose client left while it ran"}
    queue.pending_messages_per_session["left"] = asyncio.Queue()
    results.sweep()
    assert set(queue.pending_messages_per_session) == {"new"}
    assert set(queue.pending_event_ids_session) == {"new"}


# Streams


@pytest.fixture
def space(suite_folder, tmp_path, monkeypatch) -> Iterator[Running]:
    monkeypatch.setattr(limits, "MOST_STREAMS_EACH", 3)
    monkeypatch.setattr("space.app.TIDY_EVERY_SECONDS", 3600)  # it would end the streams
    with running(settings_for(suite_folder, tmp_path / "state"), tmp_path / "files") as found:
        yield found


@contextmanager
def open_stream(space: Running) -> Iterator[int]:
    """The status of one more stream of a session in which nothing happens any more."""
    address = f"{space.url}/gradio_api/queue/data?session_hash=idle"
    with httpx.stream("GET", address, timeout=SECONDS) as answer:
        yield answer.status_code


def test_few_streams_of_one_address_are_open_at_once_and_the_server_answers(space):
    with httpx.Client(base_url=space.url, timeout=SECONDS) as client:
        call(client, number_of(client, "board"), [], "idle")
        with open_stream(space) as first, open_stream(space) as second, open_stream(space) as third:
            assert (first, second, third) == (200, 200, 200)
            refused = client.get("/gradio_api/queue/data?session_hash=idle")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
            assert "too many responses are open" in refused.json()["detail"]
            assert client.get("/healthz").status_code == 200
        eventually(lambda: '"success":true' in call(client, number_of(client, "board"), [], "other"))


@pytest.mark.slow
def test_a_client_of_gradio_checks_many_files_one_after_the_other(space):
    client = Client(space.url, verbose=False)
    for misses in range(1, 6):
        file = handle_file(space.file(space.valid(misses=misses), f"{misses}.jsonl"))
        assert client.predict(file, "test", api_name="/check")["acceptable"]
    jobs = [client.submit(api_name="/board") for _ in range(5)]
    assert all("rows" in job.result(timeout=SECONDS) for job in jobs)
