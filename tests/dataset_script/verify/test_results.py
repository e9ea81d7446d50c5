"""What a verification stores of each shard, and what the next one takes from it."""

import io
import json
import os
import zlib

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dataset_script.build import pictures
from dataset_script.build.pictures import why_undecodable
from dataset_script.by_id import write_index
from dataset_script.verify import check
from dataset_script.verify.check import verify
from tests.support.released_layout import png

NAME = "data/judgments/dev-00000-of-00001.parquet"


@pytest.fixture
def run(published, own_suite, tmp_path, monkeypatch):
    """Verify with a cache; returns the report and the names of the shards that were checked."""
    checked = []
    check_shard = check.check_shard
    monkeypatch.setattr(
        check, "check_shard", lambda *a, **k: checked.append(a[1].name) or check_shard(*a, **k)
    )
    monkeypatch.setattr(check, "_moment", lambda _state: -1)  # files may be as new as these are

    def verify_once(**options):
        checked.clear()
        report = verify(published.path, suite=own_suite, cache=tmp_path / "cache", **options)
        return report, sorted(checked)

    return verify_once


def test_a_second_verification_opens_no_shard_and_finds_the_same(published, run, monkeypatch):
    for row in published.rows["steps", "dev"]:
        row["reasoning"] = '{"reward": 1}'
    published.write()
    first, checked = run()
    assert len(checked) == 13 and first.findings

    monkeypatch.setattr(check.hashlib, "file_digest", None)  # nothing is hashed either
    assert run() == (first, [])


@pytest.mark.parametrize("keeps_times", [False, True])
def test_a_changed_byte_is_found_even_where_size_and_time_were_put_back(published, run, keeps_times):
    path = published.write() / NAME
    assert run()[0].ok
    before, data = path.stat(), bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    if keeps_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    report, checked = run()

    assert checked == [NAME]
    assert ("other_bytes", NAME) in {(finding.code, finding.file) for finding in report.findings}


def test_the_times_of_files_that_were_just_written_are_not_trusted(published, run, monkeypatch, tmp_path):
    monkeypatch.setattr(check, "_moment", lambda _state: 10**12)
    published.write()
    run()
    (seen,) = (tmp_path / "cache").glob("seen-*.json")
    assert json.loads(seen.read_bytes()) == {}  # a later change might bear the same time
    assert run()[1] == []  # hashed again; what was found in those bytes is known


def test_other_canaries_and_full_check_every_shard_again(published, run):
    published.write()
    assert len(run()[1]) == 13
    assert run()[1] == []
    assert len(run(canaries=["planted-text"])[1]) == 13
    assert len(run(trust="nothing")[1]) == 13


def test_trusting_hashes_alone_reads_every_byte_and_checks_none_again(published, run, monkeypatch):
    published.write()
    run()
    hashed = []
    digest = check.hashlib.file_digest
    monkeypatch.setattr(check.hashlib, "file_digest", lambda *a: hashed.append(a) or digest(*a))
    assert run(trust="hashes")[1] == []
    assert len(hashed) == 13


def test_a_verification_that_was_stopped_goes_on(published, run, monkeypatch):
    published.write()

    def stop(done, _total, _name):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(progress=stop)
    assert len(run()[1]) == 13 - 5


def test_processes_find_what_one_process_finds(published, own_suite, monkeypatch):
    published.rows["steps", "test"][0]["screenshot"] = {"bytes": b"no picture", "path": None}
    folder = published.write()
    alone = verify(folder, suite=own_suite)
    monkeypatch.setattr(check, "_ALONE_BYTES", 0)
    assert verify(folder, suite=own_suite, workers=2) == alone
    assert {finding.code for finding in alone.findings} == {"bad_image"}


def test_a_row_in_two_shards_is_a_duplicate(published, own_suite):
    folder = published.write()
    old, names = NAME, [f"data/judgments/dev-0000{n}-of-00002.parquet" for n in (0, 1)]
    table = pq.read_table(folder / old)
    (folder / old).unlink()
    del published.manifest["files"][old]
    for name, rows in zip(names, (table, table.slice(0, 1)), strict=True):
        pq.write_table(rows, folder / name)
        published.describe(name, "judgments", "dev", rows.num_rows)
    published.write_manifest()

    (finding,) = verify(folder, suite=own_suite).findings

    assert (finding.code, finding.file, finding.names) == (
        "duplicate_id",
        names[1],
        ("shop/Agent-a/shop.1 aer",),
    )


def test_each_picture_is_decoded_once(published, own_suite, monkeypatch):
    decoded = []
    monkeypatch.setattr(
        "dataset_script.verify.rows.why_undecodable",
        lambda data: decoded.append(data) or pictures.why_undecodable(data),
    )
    folder = published.write()
    shards = published.manifest["files"].items()
    write_index((folder, [(entry["configuration"], entry["split"], name) for name, entry in shards]))
    assert verify(folder, suite=own_suite).ok
    # 3 runs of 3 steps, and for each split the goal's; a final picture is the last step's
    assert len(decoded) == 9 + 2
    assert len(set(decoded)) == 9 - 3 + 1  # pictures of the dev run and of the test run are alike


def test_without_an_index_last_pictures_are_decoded_again(published, own_suite, monkeypatch):
    decoded = []
    monkeypatch.setattr("dataset_script.verify.rows.why_undecodable", decoded.append)
    verify(published.write(), suite=own_suite)
    assert len(decoded) == 9 + 2 + 3


def test_a_broken_last_picture_is_found_in_both_configurations(published, own_suite):
    broken = {"bytes": png(0)[:-20], "path": None}
    published.rows["steps", "dev"][2]["screenshot"] = broken
    published.rows["trajectories_with_screenshot", "dev"][0]["final_screenshot"] = broken
    found = [(f.code, f.file.split("/")[1]) for f in verify(published.write(), suite=own_suite).findings]
    assert found == [("bad_image", "steps"), ("bad_image", "trajectories_with_screenshot")]


def picture(mode: str, size: tuple[int, int]) -> bytes:
    file = io.BytesIO()
    Image.effect_noise(size, 50).convert(mode).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1", "LA", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (33, 7), (300, 200)])
def test_whole_pictures_of_every_kind_pass(mode, size):
    if mode == "I;16":
        file = io.BytesIO()
        Image.new("I;16", size).save(file, "PNG")
        assert why_undecodable(file.getvalue()) is None
    else:
        assert why_undecodable(picture(mode, size)) is None


WHOLE = picture("RGB", (40, 30))


def pillow_refuses(data: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            image.verify()
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            image.load()
    except Exception:
        return True
    return False


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255), st.booleans())
def test_no_damage_that_pillow_sees_passes(at, flip, mends_checksums):
    data = bytearray(WHOLE)
    data[at] ^= flip
    if mends_checksums:  # what a program writes that does not know better
        data = bytearray(with_checksums(bytes(data)))
    if pillow_refuses(bytes(data)):
        assert why_undecodable(bytes(data)) is not None


@given(st.integers(0, len(WHOLE) - 13))  # the last 12 bytes say that it ends
def test_a_picture_that_was_cut_off_does_not_pass(size):
    assert why_undecodable(WHOLE[:size]) is not None


def with_checksums(data: bytes) -> bytes:
    """The PNG with every chunk's checksum right, as far as its chunks can be told apart."""
    parts, at = [data[:8]], 8
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4])
        body = data[at + 4 : at + 8 + size]
        parts += [data[at : at + 4], body, zlib.crc32(body).to_bytes(4)]
        at += 12 + size
    return b"".join(parts)
