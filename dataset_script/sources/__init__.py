"""Read recorded runs in any supported format. `open_source` recognises the format of a folder."""

import re
from dataclasses import replace
from itertools import islice
from pathlib import Path

from arb.core.plugins import leave_out, load_plugins
from dataset_script.sources.base import (
    SourceError,
    TrajectorySource,
    content_of,
    find_links_out,
    link_names,
    no_runs,
)
from dataset_script.sources.mixed import MixedSource


def open_source(
    folder: Path, also_allowed: tuple[str, ...] = (), agent_from: tuple[str, ...] = ()
) -> TrajectorySource:
    """Return the source of the runs in a folder or a log file. A folder may have runs in several formats.

    The built-in kinds come in the order of `arb.core.plugins.BUILT_IN`, then those of installed packages,
    which name a subclass of `TrajectorySource` in an entry point of the group ``arb.sources``. A published
    dataset has no other formats. ``also_allowed`` are classes, each ``module.class``, that the pickles of
    AgentLab may contain. ``agent_from`` are the facts to name agents after. Raises SourceError if no kind
    recognises the folder.
    """
    if not folder.exists():
        raise SourceError(f"{folder}: this path does not exist; check its spelling")
    found: list[TrajectorySource] = []
    for name, kind in load_plugins("arb.sources"):
        if not (isinstance(kind, type) and issubclass(kind, TrajectorySource)):
            leave_out("arb.sources", name, f"{kind!r} is not a subclass of TrajectorySource")
        elif kind.recognises(folder):
            found.append(replace(kind.open(folder, also_allowed), agent_from=agent_from))
            if kind.kind == "published":
                break
    if found:
        return found[0] if len(found) == 1 else MixedSource(folder, tuple(found), agent_from=agent_from)
    if _holds_spans(folder):
        raise SourceError(
            f"{folder}: contains spans of OpenTelemetry, which cannot be read, because its conventions for "
            'agents are still marked "Development"; write the runs as logs of Inspect (.eval), as ATIF or as '
            "results of AgentLab"
        )
    raise no_runs(
        folder,
        "contains no runs in a known format; name a folder with cleaned/ or trajectories/cleaned/ in it "
        "(the released layout), a dataset built here (manifest.json), AgentLab's results (exp_args.pkl), "
        "those of Online-Mind2Web (<agent>/<task_id>/result.json), histories of browser-use (save_to_file), "
        "logs of Inspect (.eval, .json), or trajectories in ATIF (Harbor's jobs folder)",
        link_names(find_links_out(folder), folder),
    )


def _holds_spans(path: Path) -> bool:
    """Return whether the file, or one of a folder's first 20 JSON files, begins like OpenTelemetry spans."""
    files = (path,) if path.is_file() else islice(path.rglob("*.json*"), 20)
    return any(re.match(rb'\s*\{\s*"resourceSpans"\s*:', content_of(file, 200)) for file in files)
