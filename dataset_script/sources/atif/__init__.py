"""Read runs in ATIF, Harbor's Agent Trajectory Interchange Format (v1.0 to v1.8), without Harbor.

    <job>/<trial>/result.json, agent/trajectory.json    Harbor's jobs folder
    <job>/<trial>/steps/<step>/agent/trajectory.json    a trial in several steps: each step is a run
    <any>.json                                          trajectories of any other program

The names, the model, the times and the exception's class are read from a trial's result.json; its rewards are
ignored. Without a result.json, a run is named after its file, or after the folder of a ``trajectory.json``.

The format is described in Harbor's RFC 0001 and its models (``harbor.models.trajectories``). A step has a
source (system, user, agent), a message and, if the agent acted, tool calls with their results. A long run
continues in the file of ``continued_trajectory_ref``; steps that were copied there for context are left out.
A subagent is in ``subagent_trajectories`` (found by ``trajectory_id``, as several may share their
``session_id``) or in a ``trajectory_path``. It is not listed as a run of its own: its actions become steps of
the run that called it, marked with the subagent's name.
"""

from dataset_script.sources.atif.source import AtifSource

__all__ = ["AtifSource"]
