"""``python -m judges``: list the judges, run one over a split, and more. Heavy imports wait."""

from dataset_script.command_line import new_command
from judges import (
    ablate_commands,
    export_commands,
    list_commands,
    plan_commands,
    probe_commands,
    reparse_commands,
    run_commands,
    threshold_commands,
)

app = new_command()
app.command("list")(list_commands.list_judges)
app.command("run")(run_commands.run)
app.command("plan")(plan_commands.plan)
app.command("export")(export_commands.export)
app.command("ablate")(ablate_commands.ablate)
app.command("probe")(probe_commands.probe)
app.command("reparse")(reparse_commands.reparse)
app.command("threshold")(threshold_commands.threshold)


@app.callback()
def about() -> None:
    """Judges of web agents: what there is, and running one to get a prediction file."""


if __name__ == "__main__":
    app(prog_name="python -m judges")
