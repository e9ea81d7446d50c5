"""Names for the judges of prediction files, for commands and functions that read several files."""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def judge_of_run(file: Path) -> str | None:
    """Return the judge's name in the run.json next to a prediction file, or None."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        name = json.loads(file.with_name("run.json").read_bytes())["judge"]["name"]
        return name if isinstance(name, str) and name else None
    return None


def judge_names(files: Sequence[Path]) -> list[str]:
    """Return the name of each prediction file's judge. A name does not depend on the order of the files.

    A file called ``predictions`` is named after the judge in the run.json next to it, else after its folder.
    Any other file is named after itself. Equal names get the part of the path in which the files differ.
    """
    paths = [file.absolute() for file in files]
    names = list(map(_name_of, paths))
    uses = Counter(names)
    twins = {name: [path for path in paths if _name_of(path) == name] for name in uses if uses[name] > 1}
    return [
        f"{name} ({_differing_part(path, twins[name])})" if name in twins else name
        for name, path in zip(names, paths, strict=True)
    ]


def _name_of(path: Path) -> str:
    if path.stem != "predictions":
        return path.stem
    return judge_of_run(path) or path.parent.name or path.stem


def _differing_part(path: Path, paths: Sequence[Path]) -> str:
    """Return the shortest end of a path that no other path has, without the file's name if all share it."""
    last = -1 if len({each.name for each in paths}) == 1 else None
    lengths = range(2 if last else 1, len(path.parts))
    for length in lengths:
        end = path.parts[-length:last]
        if all(each == path or each.parts[-length:last] != end for each in paths):
            return "/".join(end)
    return str(path)
