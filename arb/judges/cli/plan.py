"""``judges plan``: what a run will take, before it is paid; as a table with notes, or as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arb.core.cli import JsonOption, next_step, plain_console, print_json
from arb.core.console import text_table
from arb.judges.cli.options import RunOptions, typed, with_run_options

if TYPE_CHECKING:
    from rich.table import Table

    from arb.judges.run.plan import Plan, RolePlan

MAX_PROBLEMS = 5


@with_run_options()
def plan(
    options: RunOptions,
    tokenizer: Annotated[
        str | None, typer.Option(help="Count with it: a folder, tokenizer.json, or a model.")
    ] = None,
    seconds_per_call: Annotated[
        float | None, typer.Option(help="How long a call takes, where you know it.", min=0.0)
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="At the price of the Batch API.")] = False,
    pilot: Annotated[
        int | None,
        typer.Option(help="Judge so many trajectories first, for real, and learn from them.", min=1),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count a run's calls, pictures, tokens, dollars and time; without --pilot no call is made.

    Takes the options of `run`. Replies in the cache are used; others are assumed to have a typical length or,
    with
    --pilot, the length of those of the pilot. The run does not pay for the pilot's replies again.
    """
    from arb.judges.run.config import build_config
    from arb.judges.run.plan import plan_run

    config = build_config(options, will_run=False)
    made = plan_run(config, tokenizer, seconds_per_call, is_batch=batch, pilot=pilot)
    print_plan(made, options.max_usd, is_batch=batch, as_json=as_json)
    if not as_json:
        judge = re.sub(r"[^a-z0-9]+", "-", (options.judge or options.cascade or "").casefold()).strip("-")
        chosen = typed(options, out=f"runs/{judge}", batch=batch)
        next_step("run it", "arb", "judges", "run", *chosen)


def print_plan(plan: Plan, max_usd: float | None, *, is_batch: bool = False, as_json: bool = False) -> None:
    if as_json:
        print_json(plan_facts(plan))
        return
    if plan.roles:
        plain_console().print(plan_table(plan))
    for line in plan_lines(plan, max_usd, is_batch=is_batch):
        typer.echo(line)


def plan_table(plan: Plan) -> Table:
    """A row for each role."""
    table = text_table("role", "model", "calls", "cached", "pictures", "tokens in", "tokens out", "dollars")
    for role in plan.roles:
        table.add_row(
            role.role,
            f"{role.model.provider}: {role.model.model}",
            f"{role.calls:,}",
            f"{role.cached:,}",
            f"{role.images:,}",
            f"{role.input_tokens:,.0f}",
            f"{role.output_tokens:,}",
            dollars(role.usd) if role.calls else "$0",
        )
    return table


def plan_lines(plan: Plan, max_usd: float | None, *, is_batch: bool) -> Iterator[str]:
    """Return what the table leaves to say: sums, time, limits, and how it was counted."""
    from arb.judges.run.progress import duration

    if not plan.roles:
        yield f"{plan.trajectories:,} trajectories; this judge asks no model: no calls, $0"
        return
    if plan.pilot is not None:
        paid = "dollars unknown" if plan.pilot.usd is None else f"${plan.pilot.usd:.4f}"
        yield (
            f"pilot: {plan.pilot.trajectories:,} trajectories judged with {plan.pilot.calls:,} new calls, "
            f"{paid}; the run has their replies, and what follows is without them"
        )
    yield f"{plan.trajectories:,} trajectories, {plan.calls:,} calls"
    yield f"dollars: {dollars(plan.usd)}" + _against(plan.usd, max_usd)
    yield "time: within a day for each stage" if is_batch else f"time: about {duration(plan.seconds)}"
    yield from _problems(plan)
    yield from _short_limits(plan)
    yield ""
    yield "how this was counted:"
    for line in _rules(plan, is_batch):
        yield f"- {line}"


def plan_facts(plan: Plan) -> dict[str, Any]:
    """The plan for JSON; a price that is unknown is null."""
    from arb.judges.run import plan as planning
    from arb.judges.run import typical_replies as typical

    return {
        "trajectories": plan.trajectories,
        "calls": plan.calls,
        "usd": plan.usd,
        "seconds": plan.seconds,
        "roles": [_role_facts(role) for role in plan.roles],
        "problems": dict(plan.problems),
        "pilot": None if plan.pilot is None else asdict(plan.pilot),
        "assumptions": {
            "reply_tokens": dict(typical.TYPICAL_TOKENS),
            "reply_tokens_of_other_calls": typical.TYPICAL_TOKENS_OF_OTHERS,
            "yes_share": typical.YES_SHARE,
            "reasoning_tokens": typical.REASONING_TOKENS,
            "first_token_s": planning.FIRST_TOKEN_S,
            "tokens_per_s": planning.TOKENS_PER_S,
        },
    }


def dollars(usd: float | None) -> str:
    """Return dollars with as many places as small sums need, or ``unknown``."""
    if usd is None:
        return "unknown"
    return f"${usd:,.{2 if usd >= 1 else 4}f}"


def _against(usd: float | None, max_usd: float | None) -> str:
    if max_usd is None:
        return ""
    if usd is None:
        return f"; with --max-usd {max_usd:g} the run will not start, since a price is unknown"
    if usd <= max_usd:
        return f"; within --max-usd {max_usd:g}"
    return f"; with --max-usd {max_usd:g} the run is expected to stop before its end"


def _problems(plan: Plan) -> Iterator[str]:
    if not plan.problems:
        return
    yield f"{len(plan.problems):,} trajectories will end in the state `error`:"
    for trajectory_id, problem in list(plan.problems.items())[:MAX_PROBLEMS]:
        yield f"  {trajectory_id}: {problem}"
    if len(plan.problems) > MAX_PROBLEMS:
        yield f"  and {len(plan.problems) - MAX_PROBLEMS:,} more"


def _short_limits(plan: Plan) -> Iterator[str]:
    """Warn about output limits that a reasoning model may spend before it answers."""
    from arb.judges.engine.reasoning import output_room

    for role in plan.roles:
        if role.model.max_output_tokens < (room := output_room(role.model)):
            yield (
                f"warning: {role.role}: {role.model.model} reasons before it answers, and "
                f"{role.model.max_output_tokens:,} tokens may end within its thoughts; leave "
                f"--max-output-tokens out, or set it to {room} or more"
            )


def _rules(plan: Plan, is_batch: bool) -> Iterator[str]:
    from arb.judges.engine.reasoning import reasons
    from arb.judges.run import plan as planning
    from arb.judges.run import typical_replies as typical

    for role in plan.roles:
        pictures = f"; pictures by {role.image_rule}" if role.images else ""
        price = (
            f"price of {role.price_source}" if role.price_source else "price unknown: give it with --price"
        )
        yield f"{role.role}: tokens by {role.text_rule}{pictures}; {price}"
    if plan.pilot is not None:
        yield "replies like those of the pilot, in tokens and in words"
    lengths = ", ".join(f"{purpose} {tokens}" for purpose, tokens in typical.TYPICAL_TOKENS.items())
    yield (
        f"other replies, in tokens: {lengths}, else {typical.TYPICAL_TOKENS_OF_OTHERS}, as far as they are "
        f"allowed; {typical.YES_SHARE:.0%} of them say yes"
    )
    if plan.pilot is None and any(reasons(role.model) for role in plan.roles):
        yield f"hidden reasoning: {typical.REASONING_TOKENS} tokens a reply, as far as they are allowed"
    if any(role.cached_input_tokens for role in plan.roles):
        shares = [role.cached_input_tokens / max(1, role.input_tokens) for role in plan.roles]
        yield "of the input the provider had in its own cache: " + ", ".join(
            f"{share:.0%}" for share in shares
        )
    if is_batch:
        yield "the price of batches where the table has one (half), else the full price"
    else:
        yield (
            f"a call takes {planning.FIRST_TOKEN_S:g} s and a second for {planning.TOKENS_PER_S:g} tokens of "
            "reply, unless --seconds-per-call says otherwise; calls in flight and limits a minute as given"
        )
    if plan.has_samples:
        yield (
            "the samples of a question are one request (n), its input paid once; if the endpoint does not "
            "take n, each sample is a request of its own"
        )
    yield "replies that have to be asked for again, and prompts that turn out too long, are not counted"


def _role_facts(role: RolePlan) -> dict[str, Any]:
    facts = {each.name: getattr(role, each.name) for each in fields(role)}
    return facts | {"model": role.model.model, "provider": role.model.provider}
