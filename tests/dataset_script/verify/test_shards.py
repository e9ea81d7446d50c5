"""Verification over several processes and shards, and pictures that cannot be decoded."""

import io
import os
import signal
import zlib

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dataset_script.build.pictures import why_undecodable
from dataset_script.verify import check
from dataset_script.verify.check import verify
from tests.support.released_layout import png

NAME = "data/judgments/dev-00000-of-00001.parquet"


def test_processes_find_what_one_process_finds(published, own_suite, monkeypatch):
    published.rows["steps", "test"][0]["screenshot"] = {"bytes": b"no picture", "path": None}
    folder = published.write()
    alone = verify(folder, suite=own_suite)
    monkeypatch.setattr(check, "_ALONE_BYTES", 0)
    assert verify(folder, suite=own_suite, workers=2) == alone
    assert {finding.code for finding in alone.findings} == {"bad_image"}


@pytest.mark.slow
def test_a_process_that_the_system_ends_is_one_message(published, own_suite, monkeypatch):
    monkeypatch.setattr(check, "_ALONE_BYTES", 0)
    monkeypatch.setattr(check, "check_shard", _killed)
    with pytest.raises(OSError, match="--workers 1"):
        verify(published.write(), suite=own_suite, workers=2)


def _killed(*_args, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


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
    published.write_index()
    (finding,) = verify(folder, suite=own_suite).findings
    assert (finding.code, finding.file, finding.names) == (
        "duplicate_id",
        names[1],
        ("shop/Agent-a/shop.1 aer",),
    )


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
