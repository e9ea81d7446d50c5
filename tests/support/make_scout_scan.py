"""Makes `tests/leaderboard/validation/scout/`: what Inspect Scout itself writes of twelve transcripts.

    python -m venv /tmp/scout && /tmp/scout/bin/pip install inspect_scout==0.6.1
    /tmp/scout/bin/python tests/support/make_scout_scan.py

Runs 0, 3, 6 and 9 succeeded, according to `validation.csv`. Scanners: `succeeded` says so of even runs and
fails on run 9; `confidence` gives n / 12; `findings` gives labels, none of them for some runs; `fields` gives
an object.
"""

import asyncio
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from inspect_ai.model import ChatMessageUser
from inspect_scout import Result, Transcript, scan, scanner, transcripts_db, transcripts_from, validation_set

OF_THIS_MACHINE = {
    "scan_error_traceback", "scan_git_origin", "scan_git_version", "scan_git_commit", "scanner_file",
    "timestamp",
}  # fmt: skip
FOLDER = Path(__file__).parents[1] / "leaderboard" / "validation" / "scout"


def number_of(transcript):
    return int(transcript.transcript_id.removeprefix("run-"))


@scanner(messages="all")
def succeeded():
    async def run(transcript: Transcript) -> Result:
        if number_of(transcript) == 9:
            raise ValueError("no")
        return Result(value=number_of(transcript) % 2 == 0)

    return run


@scanner(messages="all")
def confidence():
    async def run(transcript: Transcript) -> Result:
        return Result(value=number_of(transcript) / 12)

    return run


@scanner(messages="all")
def findings():
    async def run(transcript: Transcript) -> list[Result]:
        return [
            Result(label=name, value=True)
            for name, step in (("loop", 3), ("cheat", 4))
            if number_of(transcript) % step == 0
        ]

    return run


@scanner(messages="all")
def fields():
    async def run(transcript: Transcript) -> Result:
        return Result(value={"done": number_of(transcript) % 2 == 0, "sure": number_of(transcript) / 12})

    return run


async def insert(place: str) -> None:
    transcripts = [
        Transcript(transcript_id=f"run-{n:02}", source_type="test", messages=[ChatMessageUser(content="do")])
        for n in range(12)
    ]
    async with transcripts_db(place) as database:
        await database.insert(transcripts)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    cases = "".join(f"run-{n:02},{str(n % 3 == 0).lower()},dev\n" for n in range(12))
    (FOLDER / "validation.csv").write_text(f"id,target,split\n{cases}")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(insert(f"{folder}/transcripts"))
        status = scan(
            [succeeded(), confidence(), findings(), fields()],
            transcripts=transcripts_from(f"{folder}/transcripts"),
            scans=f"{folder}/scans",
            validation={"succeeded": validation_set(FOLDER / "validation.csv")},
            display="none",
        )
        for file in Path(status.location).glob("*.parquet"):
            table = pq.read_table(file)
            ours = [name for name in table.column_names if name not in OF_THIS_MACHINE]
            pq.write_table(table.select(ours), FOLDER / file.name, compression="zstd")


if __name__ == "__main__":
    main()
