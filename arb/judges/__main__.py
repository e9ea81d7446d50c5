"""The command ``arb judges``: list judges, run one over a split, and more."""

from arb.core.cli import new_command
from arb.judges import registry
from arb.judges.cli import certify, combine, experiments, files, plan, run

app = new_command()
app.command("list")(registry.list_judges)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("show")(files.show)
app.command("export")(files.export)
app.command("ablate")(experiments.ablate)
app.command("probe")(experiments.probe)
app.command("certify")(certify.certify)
app.command("combine")(combine.combine)
app.command("reparse")(files.reparse)
app.command("threshold")(experiments.threshold)


@app.callback()
def about() -> None:
    """List judges of agents, and run one to get a prediction file."""


if __name__ == "__main__":
    app(prog_name="arb judges")
