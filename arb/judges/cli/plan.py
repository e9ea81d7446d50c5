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

    from arb.judges.run.plan import Plan, Range, RolePlan

MAX_PROBLEMS = 5


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
    pilot: Annotated[
        int | None,
        typer.Option(
            "--pilot", help="Judge so many trajectories first, for real, and learn from them.", min=1
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count a run's calls, pictures, tokens, dollars and time; without --pilot no call is made.

    Takes the options of `run`. Replies in the cache are used. The others are assumed to have a typical
    length, or with --pilot that of its replies. What --pilot pays is not paid again by the run.
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
            counted(role.calls),
            counted(role.cached),
            counted(role.images),
            counted(role.input_tokens),
            counted(role.output_tokens),
            dollars(role.usd) if role.calls.high else "$0",
        )
    return table


def plan_lines(plan: Plan, max_usd: float | None, *, is_batch: bool) -> Iterator[str]:
    """What the table leaves to say: sums, time, limits, and how it was counted."""
    if not plan.roles:
        yield f"{plan.trajectories:,} trajectories; this judge asks no model: no calls, $0"
        return
    if plan.pilot is not None:
        paid = "dollars unknown" if plan.pilot.usd is None else f"${plan.pilot.usd:.4f}"
        yield (
            f"pilot: {plan.pilot.trajectories:,} trajectories judged with {plan.pilot.calls:,} new calls, "
            f"{paid}; the run has their replies, and what follows is without them"
        )
    yield f"{plan.trajectories:,} trajectories, {counted(plan.calls)} calls"
    yield f"dollars: {dollars(plan.usd)}" + _against(plan.usd, max_usd)
    yield "time: within a day for each stage" if is_batch else f"time: {times(plan.seconds)}"
    if any(len(set(role.calls)) > 1 for role in plan.roles):
        samples = ", and samples are calls of their own (high)" if plan.has_samples else ""
        yield f"the number of calls depends on what is answered: none says yes (low), all do (high){samples}"
    yield from _problems(plan)
    yield from _short_limits(plan)
    yield ""
    yield "how this was counted (low, expected, high):"
    for line in _rules(plan, is_batch):
        yield f"- {line}"


def plan_facts(plan: Plan) -> dict[str, Any]:
    """The plan for JSON; a price that is unknown is null."""
    from arb.judges.run import plan as planning
    from arb.judges.run import typical_replies as typical

    return {
        "trajectories": plan.trajectories,
        "calls": plan.calls._asdict(),
        "usd": None if plan.usd is None else plan.usd._asdict(),
        "seconds": plan.seconds._asdict(),
        "roles": [_role_facts(role) for role in plan.roles],
        "problems": dict(plan.problems),
        "pilot": None if plan.pilot is None else asdict(plan.pilot),
        "assumptions": {
            "reply_tokens": dict(typical.TYPICAL_TOKENS),
            "reply_tokens_of_other_calls": typical.TYPICAL_TOKENS_OF_OTHERS,
            "shares": dict(typical.SHARES),
            "yes_share": typical.YES_SHARE,
            "reasoning_tokens": dict(typical.REASONING_TOKENS),
            "first_token_s": planning.FIRST_TOKEN_S,
            "tokens_per_s": planning.TOKENS_PER_S,
        },
    }


def counted(numbers: Range) -> str:
    """``12``, or ``8 to 14 (expected 10)``."""
    low, expected, high = (f"{round(each):,}" for each in numbers)
    return expected if low == high else f"{low} to {high} (expected {expected})"


def dollars(usd: Range | None) -> str:
    """Dollars with as many places as small sums need."""
    if usd is None:
        return "unknown"
    places = 2 if usd.expected >= 1 else 4
    low, expected, high = (f"${each:,.{places}f}" for each in usd)
    return expected if low == high else f"{low} to {high} (expected {expected})"


def times(seconds: Range) -> str:
    from arb.judges.run.progress import duration

    low, expected, high = map(duration, seconds)
    return f"about {expected}" if low == high else f"{low} to {high} (expected {expected})"


def _against(usd: Range | None, max_usd: float | None) -> str:
    if max_usd is None:
        return ""
    if usd is None:
        return f"; with --max-usd {max_usd:g} the run will not start, since a price is unknown"
    if usd.high <= max_usd:
        return f"; within --max-usd {max_usd:g}"
    likely = "is expected to" if usd.expected > max_usd else "may"
    return f"; with --max-usd {max_usd:g} the run {likely} stop before its end"


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
        pictures = f"; pictures by {role.image_rule}" if role.images.high else ""
        price = (
            f"price of {role.price_source}" if role.price_source else "price unknown: give it with --price"
        )
        yield f"{role.role}: tokens by {role.text_rule}{pictures}; {price}"
    for role in plan.roles:
        if role.learned:
            known = ", ".join(f"{number:,} of {purpose}" for purpose, number in role.learned.items())
            yield f"{role.role}: replies like those of the pilot ({known})"
    lengths = ", ".join(f"{purpose} {tokens}" for purpose, tokens in typical.TYPICAL_TOKENS.items())
    low, _, high = typical.SHARES.values()
    yield (
        f"other replies, in tokens: {lengths}, else {typical.TYPICAL_TOKENS_OF_OTHERS}; low is {low:g} and "
        f"high {high:g} times that, as far as they are allowed"
    )
    if any(reasons(role.model) and not role.learned for role in plan.roles):
        low, expected, high = typical.REASONING_TOKENS.values()
        yield f"hidden reasoning: {low}, {expected}, {high:,} tokens a reply, as far as they are allowed"
    if any(role.cached_input_tokens.expected for role in plan.roles):
        shares = [
            role.cached_input_tokens.expected / max(1, role.input_tokens.expected) for role in plan.roles
        ]
        of_roles = ", ".join(f"{share:.0%}" for share in shares)
        yield f"of the input the provider had in its own cache so far: {of_roles}; high is without"
    if is_batch:
        yield "the price of batches where the table has one (half), else the full price"
    else:
        yield (
            f"a call takes {planning.FIRST_TOKEN_S:g} s and a second for {planning.TOKENS_PER_S:g} tokens of "
            "reply, unless --seconds-per-call says otherwise; calls in flight and limits a minute as given"
        )
    if plan.has_samples:
        yield (
            "the samples of a question are one request (n), its input paid once; high: each is a request of "
            "its own, as where the endpoint does not take n"
        )
    yield "replies that have to be asked for again, and prompts that turn out too long, are not counted"


def _role_facts(role: RolePlan) -> dict[str, Any]:
    facts = {each.name: getattr(role, each.name) for each in fields(role)}
    facts |= {"model": role.model.model, "provider": role.model.provider}
    return {name: value._asdict() if isinstance(value, tuple) else value for name, value in facts.items()}
