"""Recorded runs in any form: `open_source` finds which kind of source a folder is."""

import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataset_script.sources.base import TrajectorySource


def open_source(folder: Path, also_allowed: tuple[str, ...] = ()) -> "TrajectorySource":
    """The source in a folder, or in a file for logs that are one; the kinds are tried in the order below.

    ``also_allowed`` are classes of one's own agents, each ``module.class``, in AgentLab's pickles. Raises
    SourceError when it is none of them.
    """
    # Here and not above: a command that takes one constant of this package would read them all.
    from dataset_script.sources.agentlab import AgentLabSource
    from dataset_script.sources.atif import AtifSource
    from dataset_script.sources.base import SourceError, find_links_out, link_names, no_runs
    from dataset_script.sources.browser_use import BrowserUseSource
    from dataset_script.sources.inspect_log import InspectSource
    from dataset_script.sources.online_mind2web import OnlineMind2WebSource
    from dataset_script.sources.published import PublishedSource
    from dataset_script.sources.released import ReleasedSource

    web = (ReleasedSource, PublishedSource, AgentLabSource, OnlineMind2WebSource, BrowserUseSource)
    for kind in (*web, InspectSource, AtifSource):
        if kind.recognises(folder):
            return kind(folder, also_allowed) if kind is AgentLabSource else kind(folder)
    if _holds_spans(folder):
        raise SourceError(
            f"{folder}: holds spans of OpenTelemetry, whose conventions for agents are still marked "
            '"Development" and are not read; have the runs written as logs of Inspect (.eval), as ATIF or as '
            "AgentLab's results"
        )
    raise no_runs(
        folder,
        "holds no runs that can be read; name a folder with cleaned/ in it (or in trajectories/: "
        "the released layout), a dataset built here (manifest.json), AgentLab's results (exp_args.pkl), "
        "those of Online-Mind2Web (<agent>/<task_id>/result.json), histories of browser-use (save_to_file), "
        "logs of Inspect (.eval, .json), or trajectories in ATIF (Harbor's jobs folder)",
        link_names(find_links_out(folder), folder),
    )


def _holds_spans(path: Path) -> bool:
    """Whether one of the first files of JSON in it begins as OpenTelemetry's exporters write spans (OTLP)."""
    from dataset_script.sources.base import content_of

    files = (path,) if path.is_file() else islice(path.rglob("*.json*"), 20)
    return any(re.match(rb'\s*\{\s*"resourceSpans"\s*:', content_of(file, 200)) for file in files)
