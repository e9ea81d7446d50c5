"""`bench.build`: every stage at two small sizes, and what is uploaded for one run more."""

import pytest


@pytest.mark.slow
@pytest.mark.shared
def test_every_stage_is_measured_and_an_added_run_uploads_little_else(printed_by, shared, tmp_path):
    options = ["--megabytes", "0", "--runs", "2", "6", "--more-of", "12", "--folder", str(tmp_path)]
    source = ["--source", str(shared / "data" / "released_layout")]
    # At these sizes the start of the processes takes most of the time, so that targets may be missed.
    lines = printed_by("build", *options, *source, statuses=(0, 1)).splitlines()
    assert lines[2].split() == ["runs", "plain", "build", "verify", "publish"]
    assert [line.split()[0] for line in lines[3:5]] == ["2", "6"]
    further = [line.removeprefix("2 to 6: ").rsplit(maxsplit=4) for line in lines[6:12]]
    assert [name for name, *_ in further] == [
        "CPU ms",
        "ms in the program",
        "ms in the kernel",
        "kB read",
        "kB written",
        "calls of write",
    ]
    read, written, calls = (float(build) for _, _plain, build, *_ in further[3:])
    assert read > written > 100 and calls > 1  # a run's page and pictures have 1.7 MB
    flat = [line for line in lines if "the command itself takes" in line]
    assert [line.split()[1] for line in flat] == ["build:", "verify:", "publish:"]
    anew, appended = (float(line.split(": ")[1].split()[0]) for line in lines if "more runs" in line)
    assert 0 < appended < anew  # one run of twelve; built anew, whole files are other ones
    assert not any(tmp_path.iterdir())
