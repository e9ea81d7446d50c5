"""A corpus of any size in the released layout: the recorded runs, replicated, with enlarged pages.

All forms of a page (tree as text, full and pruned, raw tree, boxes, the agent's prompt) grow by the same
factor, with new ids, numbers and words. So the parts that the dataset keeps grow along with those that it
drops, and the corpus compresses no better than real pages.
"""

import json
import os
import random
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE_MEGABYTES = (5, 180)
"""The smallest and the largest file. Released ones have 17 to 23 MB on average and 184 MB at most."""

_VARIANTS = {"axtree": 300, "axtree_pruned": 300}
_OTHER_VARIANTS = 24
"""Fields that the dataset drops need fewer variants than those that it keeps and compresses."""

_WORD = re.compile(r"[a-z]{5,}")


@dataclass(frozen=True)
class EnlargeableStep:
    """A step's JSON in pieces: the fixed part, and each large field's beginning, insertable texts and end."""

    fixed: str
    fields: dict[str, tuple[str, list[str], str]]

    def json(self, factor: int, generator: random.Random) -> str:
        """Return the step with its page ``factor`` times as large."""
        parts = [self.fixed]
        for begin, variants, end in self.fields.values():
            parts += [begin, *generator.choices(variants, k=factor - 1), end]
        return "".join([*parts, "}"])


def make_corpus(source: Path, folder: Path, total_bytes: int, seed: int = 0) -> int:
    """Write about ``total_bytes`` of cleaned files with screenshots, and a suite; return the number of files.

    ``folder/source`` is in the released layout, ``folder/suite`` is the suite of its trajectories.
    """
    generator, runs = random.Random(seed), _prepared(source)
    rows, written = [], 0
    while written < total_bytes:
        path, head, steps = generator.choice(runs)
        size = _file_bytes(generator) if len(rows) > 3 else FILE_MEGABYTES[len(rows) % 2] * 1_000_000
        size = min(size, max(total_bytes - written, FILE_MEGABYTES[0] * 1_000_000))
        one = sum(len(step.json(1, generator)) for step in steps)
        more = sum(len(step.json(2, generator)) for step in steps) - one
        factor = max(1, 1 + round((size - one) / more))
        text = head + ",".join(step.json(factor, generator) for step in steps) + "]}"
        number = len(rows)
        task = f"{path.stem.split('.')[0]}.{number}"
        place = folder / "source" / path.relative_to(source).with_name(f"{task}.json")
        place.parent.mkdir(parents=True, exist_ok=True)
        written += place.write_bytes(text.encode())
        _link_screenshots(source, folder / "source", path, task)
        rows.append(f"{path.parts[-4]}/{path.parts[-3]}/{task},{'dev' if number % 6 == 0 else 'test'}")
    (folder / "suite").mkdir()
    (folder / "suite" / "trajectories.csv").write_text("trajectory_id,split\n" + "\n".join(rows) + "\n")
    return len(rows)


def make_runs(source: Path, folder: Path, count: int, seed: int = 0) -> None:
    """Write ``count`` cleaned files of 0.5 to 2 MB, and a suite, as `make_corpus` does.

    Each run has its own pictures of 120 kB, as released ones have. They contain 90 kB of noise in a comment.
    """
    generator, runs = random.Random(seed), _prepared(source)
    rows = []
    for number in range(count):
        path, head, steps = runs[number % len(runs)]
        agent, task = path.parts[-3], f"{path.stem.split('.')[0]}.{number}"
        place = folder / "source" / path.relative_to(source).with_name(f"{task}.json")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(head + ",".join(step.json(4, generator) for step in steps) + "]}")
        pictures = folder / "source" / "screenshots" / path.parts[-4] / agent / task
        pictures.mkdir(parents=True)
        for picture in (source / "screenshots" / path.parts[-4] / agent / path.stem).iterdir():
            noise = [_comment(generator.randbytes(9_000)) for _ in range(10)]
            data = picture.read_bytes()
            (pictures / picture.name).write_bytes(b"".join([data[:-12], *noise, data[-12:]]))
        rows.append(f"{path.parts[-4]}/{agent}/{task},{'dev' if number % 6 == 0 else 'test'}")
    (folder / "suite").mkdir()
    (folder / "suite" / "trajectories.csv").write_text("trajectory_id,split\n" + "\n".join(rows) + "\n")


def _comment(noise: bytes) -> bytes:
    """Return noise as a text chunk of a PNG file."""
    chunk = b"tEXtnoise\0" + noise.replace(b"\0", b"\1")
    return (len(chunk) - 4).to_bytes(4) + chunk + zlib.crc32(chunk).to_bytes(4)


def _file_bytes(generator: random.Random) -> int:
    """Return a log-normal size between the bounds: mostly about 20 MB, with a tail."""
    low, high = FILE_MEGABYTES
    return int(min(max(generator.lognormvariate(2.8, 0.8), low), high) * 1_000_000)


@cache
def _prepared(source: Path) -> list[tuple[Path, str, list[EnlargeableStep]]]:
    """Return (path, head, steps) of the recorded runs; slower than writing a few hundred runs from them."""
    generator = random.Random(0)
    return [(path, *_prepare(path, generator)) for path in sorted(source.glob("cleaned/*/*/*/*.json"))]


def _prepare(path: Path, generator: random.Random) -> tuple[str, list[EnlargeableStep]]:
    run = json.loads(path.read_bytes())
    steps = run.pop("steps")
    return json.dumps(run)[:-1] + ', "steps": [', [_enlargeable(step, generator) for step in steps]


def _enlargeable(step: dict[str, Any], generator: random.Random) -> EnlargeableStep:
    fields: dict[str, tuple[str, list[str], str]] = {}
    for name in ("axtree", "axtree_pruned"):
        text = json.dumps(step.pop(name))
        more = [f"\\n{_varied(text[1:-1], generator)}" for _ in range(_VARIANTS[name])]
        fields[name] = (f', "{name}": {text[:-1]}', more, '"')
    nodes = json.dumps(step.pop("axtree_obj")["nodes"])
    fields["axtree_obj"] = (f', "axtree_obj": {{"nodes": {nodes[:-1]}', list(_more(nodes, generator)), "]}")
    messages = json.dumps(step.pop("chat_messages"))
    if messages != "[]":
        more = list(_more(messages, generator))
        fields["chat_messages"] = (f', "chat_messages": {messages[:-1]}', more, "]")
    for name in ("bounding_boxes", "extra_element_properties"):
        boxes = json.dumps(step.pop(name))
        renamed = boxes.replace('{"', '{"b', 1).replace('}, "', '}, "b')
        fields[name] = (f', "{name}": {boxes[:-1]}', list(_more(renamed, generator)), "}")
    return EnlargeableStep(json.dumps(step)[:-1], fields)


def _more(text: str, generator: random.Random) -> Iterator[str]:
    """Yield further members for a list or object in JSON, to be inserted before its closing bracket."""
    for _ in range(_OTHER_VARIANTS):
        yield f", {_with_other_numbers(text[1:-1], generator)}"


def _with_other_numbers(text: str, generator: random.Random) -> str:
    """Replace each number by a random number of the same length. Escapes such as \\u2019 stay."""

    def other(found: re.Match[str]) -> str:
        digits = len(found[0])
        return str(generator.randrange(10 ** (digits - 1), 10**digits))

    return re.sub(r"(?<!\\u)(?<![0-9a-f])\d+(?![0-9a-f])", other, text)


def _varied(text: str, generator: random.Random) -> str:
    """Replace numbers and long words of the text. Escapes stay, since they contain no long words."""
    return _WORD.sub(
        lambda found: "".join(generator.choices("etaoinshrdlucmf", k=len(found[0]))),
        _with_other_numbers(text, generator),
    )


def _link_screenshots(source: Path, target: Path, path: Path, task: str) -> None:
    """Copy the recorded pictures once, and link them into a folder for each run."""
    agent = path.parts[-3]
    originals = target.parent / "pictures" / agent / path.stem
    if not originals.is_dir():
        shutil.copytree(source / "screenshots" / path.parts[-4] / agent / path.stem, originals)
    folder = target / "screenshots" / path.parts[-4] / agent / task
    folder.mkdir(parents=True)
    for picture in originals.iterdir():
        os.link(picture, folder / picture.name)
