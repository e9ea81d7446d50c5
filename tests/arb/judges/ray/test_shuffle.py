"""Calls and answers by partition, results by trajectory."""

import json
from functools import cache
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.engine.answers import AnswerStore
from arb.judges.engine.cache import CallCache, answer_line, key_in, reply_in
from arb.judges.ray.shuffle import (
    CHUNK,
    RENDERED,
    SMALLEST_CHUNK,
    Work,
    add_lines,
    chunks,
    find_missing,
    find_replies,
    merge_results,
    read_lines,
)
from arb.judges.run.folder import JUDGMENTS, PREDICTIONS
from arb.judges.run.progress import Progress, Spend
from arb.judges.types import Reply


def key(number: int, partition: int = 7) -> bytes:
    return bytes([partition]) + number.to_bytes(31, "big")


@cache  # a line says when it was made
def line_of(key: bytes, reply: Reply | None = None) -> bytes:
    return answer_line(key.hex(), reply or Reply(f"reply {key[-1]}"))


def calls(*rows: tuple[int, int, int]) -> pa.Table:
    """Shard, session and the number of the key."""
    return pa.table(
        {
            "session": pa.array([session for _, session, _ in rows], pa.int32()),
            "key": pa.array([key(number) for *_, number in rows], pa.binary(32)),
            "shard": pa.array([shard for shard, *_ in rows], pa.int32()),
            "partition": pa.array([7] * len(rows), pa.int32()),
        }
    )


@pytest.fixture
def work(tmp_path):
    return Work(str(tmp_path / "answers"), "plan", "session")


def test_a_call_is_missing_once_however_many_wait_for_it(work):
    AnswerStore(work.url).add(7, {key(1): line_of(key(1))})
    failed = f"{work.url}/{work.session_folder}"
    AnswerStore(failed).add(7, {key(2): line_of(key(2), Reply(state="error", error="500"))})
    found = find_missing(work, calls((1, 0, 3), (0, 5, 3), (0, 4, 1), (0, 4, 2), (1, 1, 4), (0, 6, 3)))
    rows = [(row["shard"], row["session"], row["key"]) for row in found.to_pylist()]
    assert rows == [(0, 5, key(3)), (1, 1, key(4))]  # 1 is answered, 2 has failed; the first shard asks 3


def test_an_answer_goes_to_every_shard_that_waits_for_it(work):
    AnswerStore(work.url).add(7, {key(number): line_of(key(number)) for number in (1, 2, 9)})
    found = find_replies(work, calls((0, 0, 1), (1, 0, 1), (1, 3, 1), (1, 3, 2), (2, 0, 5)))
    assert {(row["shard"], row["key"]) for row in found.to_pylist()} == {
        (0, key(1)), (1, key(1)), (1, key(2)),
    }  # fmt: skip
    assert all(reply_in(row["line"], row["key"].hex()) for row in found.to_pylist())


@given(
    calls=st.dictionaries(st.integers(0, 50), st.integers(1, 3_000), min_size=1, max_size=12),
    workers=st.integers(1, 16),
    in_flight=st.integers(1, 5_000),
)
def test_chunks_cover_every_call_once_are_small_for_few_in_flight_and_end_small(calls, workers, in_flight):
    made = [*chunks(calls, workers, in_flight)]
    assert all(cuts[-1] - cuts[0] <= RENDERED for _, cuts in made)
    chunked = [(shard, start, stop) for shard, cuts in made for start, stop in pairwise(cuts)]
    for shard, number in calls.items():
        rows = [range(start, stop) for of, start, stop in chunked if of == shard]
        assert [row for each in rows for row in each] == [*range(number)]
    left = sum(calls.values())
    for _, start, stop in chunked:
        assert 0 < stop - start <= min(CHUNK, max(SMALLEST_CHUNK, min(left, 2 * in_flight) // workers))
        left -= stop - start


def test_answers_of_the_reply_cache_are_read_once_in_whatever_parts(tmp_path, work):
    cache = CallCache(tmp_path / "calls")
    wanted = [key(number) for number in range(200)]
    for each in wanted:
        cache.put(each.hex(), Reply(f"reply {each[-1]}", cost_usd=0.25))
        cache.note_attempt(each.hex(), "transient", "500")
    cache.close()
    (segment,) = (tmp_path / "calls").glob("segment-*")
    size, part = segment.stat().st_size, 1_000
    rows = [{"name": str(segment), "start": at, "stop": min(at + part, size)} for at in range(0, size, part)]
    read = read_lines(work.url, pa.Table.from_pylist(rows))
    assert read["key"].to_pylist() == wanted
    assert add_lines(work.url, read)["added"].to_pylist() == [200]
    reply = reply_in(AnswerStore(work.url).line(wanted[3]), wanted[3].hex())
    assert (reply.text, reply.cost_usd) == ("reply 3", 0.25)


def test_journals_that_lack_their_end_give_their_whole_lines(work):
    work.place.write("journal/s/c/w.jsonl", line_of(key(1)) + b'{"attempt":"x"}\n' + line_of(key(2))[:-3])
    rows = pa.Table.from_pylist([{"name": "journal/s/c/w.jsonl", "start": -1, "stop": -1}])
    assert [key_in(line) for line in read_lines(work.url, rows)["line"].to_pylist()] == [key(1)]


def result(name: str, state: str = "ok", score: float | None = None) -> bytes:
    answer = {"success": True} if state == "ok" else {}
    record = {"trajectory_id": name, "judge": "j", "state": state, "answer": answer, "calls": []}
    record |= {"input_tokens": 1, "output_tokens": 1, "cost_usd": score}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def ids_in(path) -> list[str]:
    return [json.loads(line)["trajectory_id"] for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("before", [["a", "d"], ["d", "a"]], ids=["in order", "as a killed session left it"])
def test_new_results_go_among_the_old_ones_in_the_order_of_ids(tmp_path, before):
    (tmp_path / JUDGMENTS).write_bytes(b"".join(result(each, "error") for each in before))
    new = [result("b"), result("d"), result("e")]
    with Progress(4, 2, Spend()) as progress:
        assert merge_results(tmp_path, iter(new), iter([b'{"text":"x"}\n']), progress) == 3
    assert ids_in(tmp_path / JUDGMENTS) == ["a", "b", "d", "e"] == ids_in(tmp_path / PREDICTIONS)
    states = [json.loads(line)["state"] for line in (tmp_path / JUDGMENTS).read_bytes().splitlines()]
    assert states == ["error", "ok", "ok", "ok"]  # the new line of d counts
    assert (tmp_path / "prompts.jsonl").read_bytes() == b'{"text":"x"}\n'
