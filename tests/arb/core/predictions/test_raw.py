import gzip
import io
import pickle
import zipfile

import pytest

from arb.core.predictions import read_predictions
from arb.core.predictions.findings import Finding
from arb.core.predictions.raw import ReadingLimits, recognise, to_text

ROW = '{"trajectory_id": "a/b/c", "success": true}\n'


def codes(content: bytes) -> list[str]:
    table, findings = read_predictions(content)
    assert table is None
    return [finding.code for finding in findings]


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("predictions.jsonl", ROW)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PAR1....PAR1", "parquet"),
        (ROW.encode(), "jsonl"),
        (b"\xef\xbb\xbf \r\n" + ROW.encode(), "jsonl"),
        (b"[1]", "jsonl"),
        (b"trajectory_id,success\n", "csv"),
        (b'"trajectory_id";success\n', "csv"),
    ],
)
def test_the_format_is_found_in_the_content(content, kind):
    assert recognise(content) == kind


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_file"),
        (b" \r\n\t\n", "empty_file"),
        (b"\xef\xbb\xbf\n", "empty_file"),
        (gzip.compress(ROW.encode(), mtime=0), "compressed"),
        (zipped(), "compressed"),
        (b"\x28\xb5\x2f\xfd rest", "compressed"),
        (pickle.dumps({"a": 1}), "not_text"),
        (b"\x89PNG\r\n\x1a\n", "not_text"),
        (b"PARE....PARE", "encrypted"),
        (ROW.encode("utf-16"), "wrong_encoding"),
        (ROW.encode("utf-16-le"), "wrong_encoding"),
        (ROW.encode("utf-16-be"), "wrong_encoding"),
        (ROW.encode("utf-32"), "wrong_encoding"),
        (ROW.replace("true", "tr\0ue").encode(), "nul_bytes"),
    ],
)
def test_what_is_no_prediction_file_is_named_for_what_it_is(content, code):
    assert code in codes(content)


def test_bytes_that_are_not_utf8_are_named_with_line_and_offset():
    # Line 1: 3 ASCII bytes, 0xe9, LF (offsets 0 to 4); line 2: 7 clean bytes (5 to 11); line 3 begins at 12.
    content = "id,é\nid,abc\né\n".encode("latin-1")
    text, (finding,) = to_text(content)
    assert text is None
    assert (finding.code, finding.rows, finding.count) == ("wrong_encoding", (1, 3), 2)
    assert "line 1: byte 0xe9 at offset 3" in finding.message
    assert "line 3: byte 0xe9 at offset 12" in finding.message


def test_offsets_count_the_byte_order_mark():
    _, (finding,) = to_text(b"\xef\xbb\xbfab\xff")
    assert "offset 5" in finding.message  # 3 bytes of mark, then a, b


def test_a_byte_order_mark_is_accepted():
    table, findings = read_predictions(b"\xef\xbb\xbf" + ROW.encode())
    assert (table.rows, findings) == (1, [])
    table, findings = read_predictions(b"\xef\xbb\xbftrajectory_id,success\na/b/c,1\n")
    assert (table.rows, findings) == (1, [])


@pytest.mark.parametrize("content", [ROW + ROW, "trajectory_id,success\na/b/c,1\na/b/d,0\n"])
def test_lines_that_end_in_carriage_returns_alone_are_read_with_a_warning(content):
    table, findings = read_predictions(content.replace("\n", "\r").encode())
    assert table.rows == 2
    assert [(finding.level, finding.code) for finding in findings] == [("warning", "line_ends")]


@pytest.mark.parametrize("content", [ROW + ROW, "trajectory_id,success\na/b/c,1\na/b/d,0\n"])
def test_windows_line_ends_are_read_as_they_are(content):
    table, findings = read_predictions(content.replace("\n", "\r\n").encode())
    assert (table.rows, findings) == (2, [])
    assert table.trajectory_ids[0] == "a/b/c"


def test_a_file_over_the_size_limit_is_not_read():
    content = ROW.encode()
    limits = ReadingLimits(max_bytes=len(content))
    assert read_predictions(content, limits)[0].rows == 1
    table, (finding,) = read_predictions(content + b"\n", limits)
    assert table is None
    assert isinstance(finding, Finding)
    assert finding.code == "too_large"
    assert f"{len(content):,}" in finding.message
