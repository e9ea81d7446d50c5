"""The command ``judges plan``, which estimates the calls, costs and time of a run."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from arb.core.cli import JsonOption, next_step, plain_console, print_json
from arb.core.console import text_table
from arb.core.lazy import lazy_imports
from arb.judges.cli.options import RunOptions, typed, with_run_options
from arb.judges.cli.text import dollars, print_template

if TYPE_CHECKING:
    from rich.table import Table

with lazy_imports():
    from arb.judges.engine import reasoning
    from arb.judges.run import config as run_config
    from arb.judges.run import plan as planning
    from arb.judges.run import progress
    from arb.judges.run import typical_replies as typical


@with_run_options()
def plan(
    options: RunOptions,
    tokenizer: str | None = None,
    seconds_per_call: float | None = None,
    batch: bool = False,
    pilot: int | None = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the calls, tokens, dollars and time of a run before you pay for it.

    Takes the same options as `run`. Calls no model unless you use --pilot. Calls that are already in the
    cache cost nothing. For all other calls, the plan assumes replies of a typical length or, with --pilot,
    of the same length as the pilot's. Pilot replies are cached, so the run does not pay for them again.
    """
    config = run_config.build_config(options, will_run=False)
    made = planning.plan_run(config, tokenizer, seconds_per_call, is_batch=batch, pilot=pilot)
    print_plan(made, options.max_usd, is_batch=batch, as_json=as_json)
    if not as_json and len(made.problems) < made.trajectories:
        judge = re.sub(r"[^a-z0-9]+", "-", (options.judge or options.cascade or "").casefold()).strip("-")
        chosen = typed(options, out=f"runs/{judge}", batch=batch)
        next_step("run it", "judges", "run", *chosen)


def print_plan(
    plan: planning.Plan, max_usd: float | None, *, is_batch: bool = False, as_json: bool = False
) -> None:
    """Print a plan as JSON, or as a table with totals and assumptions below it."""
    if as_json:
        print_json(plan_facts(plan))
        return
    if plan.roles:
        plain_console().print(plan_table(plan))
    rooms = [(role, reasoning.output_room(role.model)) for role in plan.roles]
    print_template(
        "plan.txt.j2",
        plan=plan,
        max_usd=max_usd,
        is_batch=is_batch,
        time=progress.duration(plan.seconds),
        short_limits=[(role, room) for role, room in rooms if role.model.max_output_tokens < room],
        has_reasoning=any(reasoning.reasons(role.model) for role in plan.roles),
        assumptions=_assumptions(),
    )


def plan_table(plan: planning.Plan) -> Table:
    """Return a table of calls, tokens and dollars, with one row per role of the judge."""
    table = text_table("role", "model", "calls", "cached", "pictures", "tokens in", "tokens out", "dollars")
    for role in plan.roles:
        counts = (role.calls, role.cached, role.images, role.input_tokens, role.output_tokens)
        usd = dollars(role.usd) if role.calls else "$0"
        model = f"{role.model.provider}: {role.model.model}"
        table.add_row(role.role, model, *(f"{number:,.0f}" for number in counts), usd)
    return table


def plan_facts(plan: planning.Plan) -> dict[str, Any]:
    """Return the plan as a JSON object. Amounts in dollars are None if a price is unknown."""
    return {
        "trajectories": plan.trajectories,
        "calls": plan.calls,
        "usd": plan.usd,
        "seconds": plan.seconds,
        "roles": [
            {**asdict(role), "model": role.model.model, "provider": role.model.provider}
            for role in plan.roles
        ],
        "problems": dict(plan.problems),
        "pilot": None if plan.pilot is None else asdict(plan.pilot),
        "assumptions": _assumptions(),
    }


def _assumptions() -> dict[str, Any]:
    return {
        "reply_tokens": dict(typical.TYPICAL_TOKENS),
        "reply_tokens_of_other_calls": typical.TYPICAL_TOKENS_OF_OTHERS,
        "yes_share": typical.YES_SHARE,
        "reasoning_tokens": typical.REASONING_TOKENS,
        "first_token_s": planning.FIRST_TOKEN_S,
        "tokens_per_s": planning.TOKENS_PER_S,
    }
