"""``judges plan``: what a run will take, before it is paid."""

from __future__ import annotations

from typing import Annotated

import typer

from dataset_script.command_line import JsonOption, plain_console
from judges.command_options import RunOptions, with_run_options


@with_run_options()
def plan(
    options: RunOptions,
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", help="Count with it: a folder, tokenizer.json, or a model.")
    ] = None,
    seconds_per_call: Annotated[
        float | None,
        typer.Option("--seconds-per-call", help="How long a call takes, where you know it.", min=0.0),
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="At the price of the Batch API.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Count a run's calls, pictures, tokens, dollars and time, without a call.

    Takes the options of `run`. Replies in the cache are used; of the others a typical length is assumed.
    """
    from judges.plan_report import plan_facts, plan_lines, plan_table
    from judges.planning import plan_run

    made = plan_run(options, tokenizer, seconds_per_call, is_batch=batch)
    if as_json:
        import json

        typer.echo(json.dumps(plan_facts(made), indent=2))
        return
    if made.roles:
        plain_console().print(plan_table(made))
    for line in plan_lines(made, options.max_usd, is_batch=batch):
        typer.echo(line)
