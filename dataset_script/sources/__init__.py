"""Read recorded runs in any supported format. `open_source` recognises the format of a folder."""

from dataclasses import replace
from pathlib import Path

from arb.core.plugins import leave_out, load_plugins
from dataset_script.sources.base import TrajectorySource
from dataset_script.sources.files import find_links_out, link_names, no_runs
from dataset_script.sources.mixed import MixedSource
from dataset_script.sources.nearest import nearest_format
from dataset_script.sources.problems import SourceError


def open_source(
    folder: Path, also_allowed: tuple[str, ...] = (), agent_from: tuple[str, ...] = ()
) -> TrajectorySource:
    """Return the source of the runs in a folder or a log file. A folder may have runs in several formats.

    The built-in kinds are tried in the order of `arb/core/plugins.toml`. Those of installed packages follow;
    a package names a subclass of `TrajectorySource` in an entry point of the group ``arb.sources``. A
    published dataset is not searched for other formats. ``also_allowed`` are further classes, each as
    ``module.class``, that AgentLab's pickles may contain. Agents are named after the facts in ``agent_from``.
    Raises SourceError if no kind recognises the folder.
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
    nearest, is_known = nearest_format(folder)
    if is_known:
        raise no_runs(folder, f"contains no runs in a known format; {nearest}", _links(folder))
    raise no_runs(
        folder,
        "contains no runs in a known format; name a folder with cleaned/ or trajectories/cleaned/ in it "
        "(the released layout), a dataset built here (manifest.json), AgentLab's results (exp_args.pkl), "
        "those of Online-Mind2Web (<agent>/<task_id>/result.json), histories of browser-use (save_to_file), "
        "logs of Inspect (.eval, .json), trajectories in ATIF (Harbor's jobs folder), results of OSWorld "
        "(traj.jsonl) or AndroidWorld, or chat messages (JSON, JSONL)" + (nearest and f"; {nearest}"),
        _links(folder),
    )


def _links(folder: Path) -> tuple[str, ...]:
    return link_names(find_links_out(folder), folder)
