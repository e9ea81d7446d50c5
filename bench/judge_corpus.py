"""Recorded runs to judge, made up: as many as a test split has, in the released layout, with screenshots."""

import json
import os
import random
import struct
import zlib
from pathlib import Path

from core.suite import Trajectory, load_suite

STEPS = 8
TREE_CHARACTERS = 30_000
SCREENSHOT_BYTES = 150_000
SCREENSHOTS = 40
"""Different pictures; every run ends on one of them."""


def make_runs(folder: Path, number: int, seed: int = 0) -> None:
    """Write ``cleaned/`` and ``screenshots/`` of the official suite's first so many test trajectories."""
    generator = random.Random(seed)
    pictures = [_picture(folder / "pictures" / f"{index}.png", generator) for index in range(SCREENSHOTS)]
    for place, trajectory in enumerate(load_suite().split("test")[:number]):
        benchmark, agent, task = trajectory.trajectory_id.split("/")
        run = folder / "cleaned" / benchmark / agent / f"{agent}_on_{benchmark}" / f"{task}.json"
        run.parent.mkdir(parents=True, exist_ok=True)
        run.write_text(json.dumps(_run(trajectory, task, generator)))
        for step in range(STEPS):
            picture = folder / "screenshots" / benchmark / agent / task / f"screenshot_step_{step}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            os.link(pictures[(place + step) % SCREENSHOTS], picture)


def _run(trajectory: Trajectory, task: str, generator: random.Random) -> dict:
    place = f"screenshots/{trajectory.trajectory_id}/screenshot_step_"
    return {
        "benchmark": trajectory.benchmark,
        "agent": trajectory.agent,
        "goal": f"Find the price of item {task} and put it into the basket.\n",
        "valid": True,
        "summary_info": {"cum_reward": 0.0},
        "steps": [_step(number, f"{place}{number}.png", generator) for number in range(STEPS)],
    }


def _step(number: int, screenshot: str, generator: random.Random) -> dict:
    is_last = number == STEPS - 1
    lines = [f"[{place}] link 'item {generator.randrange(10**6)}'" for place in range(TREE_CHARACTERS // 24)]
    return {
        "num": number,
        "url": f"http://shop.example/page/{number}",
        "action": None if is_last else f"click('{generator.randrange(1000)}')",
        "reasoning": None if is_last else "The next page should show the item that is asked for. " * 4,
        "screenshot_path": screenshot,
        "axtree": "\n".join(lines),
        "axtree_pruned": "\n".join(lines[::2]),
    }


def _picture(path: Path, generator: random.Random) -> Path:
    """A grey PNG of noise: as many bytes as a screenshot has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    width = 500
    height = SCREENSHOT_BYTES // width
    rows = b"".join(b"\0" + generator.randbytes(width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts))
    return path


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
