"""``python -m dataset_script``: build the dataset, list the suites. Heavy imports wait for the command."""

from core.cli import new_command, plain_console
from core.console import text_table
from dataset_script import commands, hub

app = new_command()
app.command()(commands.build)
app.command()(commands.unblind)
app.command()(commands.verify)
app.command()(commands.sample_tasks)
app.command()(commands.split)
app.command()(commands.new_suite)
app.command()(hub.fetch)
app.command()(hub.publish)


@app.callback()
def _about() -> None:
    """The published dataset: build it from recorded runs, list the suites."""


@app.command()
def suites() -> None:
    """List the shipped suites and their sizes."""
    from core.suite import load_dev_labels, load_suite, shipped_suites
    from core.vocabulary import SPLITS

    figures = (*SPLITS, *(f"tasks {split}" for split in SPLITS), "dev labels")
    table = text_table("benchmark", figures=figures, box=None)
    for name in shipped_suites():
        suite = load_suite(name)
        labelled = {label.trajectory_id for label in load_dev_labels(suite)}
        benchmarks = sorted({trajectory.benchmark for trajectory in suite.trajectories})
        for benchmark in [None, *benchmarks]:
            splits = [[t for t in suite.split(s) if benchmark in (None, t.benchmark)] for s in SPLITS]
            table.add_row(
                name if benchmark is None else f"  {benchmark}",
                *(str(len(group)) for group in splits),
                *(str(len({(t.benchmark, t.task) for t in group})) for group in splits),
                str(sum(t.trajectory_id in labelled for t in splits[0])),
            )
    plain_console().print(table)


if __name__ == "__main__":
    app(prog_name="python -m dataset_script")
