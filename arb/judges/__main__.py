"""Judges and the engine that runs them. Imports ``leaderboard`` (dev labels) and ``dataset_script``.

``python -m arb judges``: list the judges, run one over a split, and more. Heavy imports wait.
"""

from arb.core.cli import new_command
from arb.judges import registry
from arb.judges.cli import certify, experiments, files, plan, run

app = new_command()
app.command("list")(registry.list_judges)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("show")(files.show)
app.command("export")(files.export)
app.command("ablate")(experiments.ablate)
app.command("probe")(experiments.probe)
app.command("certify")(certify.certify)
app.command("reparse")(files.reparse)
app.command("threshold")(experiments.threshold)


@app.callback()
def about() -> None:
    """Judges of web agents: what there is, and running one to get a prediction file."""


if __name__ == "__main__":
    app(prog_name="python -m arb judges")
