"""Open recorded runs in any form: `open_source` finds which kind of source a folder is."""

import re
from itertools import islice
from pathlib import Path

from dataset_script.sources.base import (
    SourceError,
    TrajectorySource,
    content_of,
    find_links_out,
    link_names,
    no_runs,
)


def open_source(folder: Path, also_allowed: tuple[str, ...] = ()) -> TrajectorySource:
    """Return the source in a folder or in one log file. The kinds are tried in the order below.

    ``also_allowed`` are classes of own agents in AgentLab's pickles, each as ``module.class``. Raises
    SourceError if the folder has another form.
    """
    # Imported here because every module of this package passes through this file.
    from dataset_script.sources.agentlab import AgentLabSource  # noqa: PLC0415 - read by one module's users
    from dataset_script.sources.atif import AtifSource  # noqa: PLC0415 - as above
    from dataset_script.sources.browser_use import BrowserUseSource  # noqa: PLC0415 - as above
    from dataset_script.sources.inspect_log import InspectSource  # noqa: PLC0415 - as above
    from dataset_script.sources.online_mind2web import OnlineMind2WebSource  # noqa: PLC0415 - as above
    from dataset_script.sources.published import PublishedSource  # noqa: PLC0415 - as above
    from dataset_script.sources.released import ReleasedSource  # noqa: PLC0415 - as above

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
    """Return whether one of the first JSON files begins like spans of OpenTelemetry's exporters (OTLP)."""
    files = (path,) if path.is_file() else islice(path.rglob("*.json*"), 20)
    return any(re.match(rb'\s*\{\s*"resourceSpans"\s*:', content_of(file, 200)) for file in files)
