"""Order the steps of a run, and note what is odd about them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from arb.core.trajectory import Step
from dataset_script.sources.problems import Note


def missing_screenshots(steps: Sequence[Step]) -> list[Note]:
    """Return a list with a note that names the steps without a screenshot; empty if all have one."""
    missing = [str(step.num) for step in steps if step.screenshot is None]
    return [Note("missing_screenshot", f"steps {', '.join(missing)} of {len(steps)}")] if missing else []


Item = TypeVar("Item")


def in_order(items: Sequence[Item], number: Callable[[Item], Any]) -> tuple[Sequence[Item], list[Note]]:
    """Return the items in the order of their numbers, without repeats, and notes on what changed.

    An item that equals the one before with the same number is a repeat. If items with the same number differ,
    or if some have no number, all remain in their recorded order.
    """
    numbers = [number(item) for item in items]
    if not all(type(each) is int for each in numbers) or numbers == sorted({*numbers}):
        return items, []
    kept: dict[int, list[Item]] = {}
    for each, item in zip(numbers, items, strict=True):
        if item not in kept.setdefault(each, []):
            kept[each].append(item)
    repeats = sorted({each for each in numbers if numbers.count(each) > len(kept[each])})
    notes = [Note("repeated_steps", ", ".join(map(str, repeats))[:80])] if repeats else []
    if any(len(group) > 1 for group in kept.values()):
        twice = [each for each, group in kept.items() if len(group) > 1]
        return items, [Note("unordered_steps", ", ".join(map(str, twice))[:80])]
    left = [item for (item,) in kept.values()]
    ordered = [item for _, (item,) in sorted(kept.items())]
    if ordered != left:
        notes.append(Note("reordered", str(numbers)[:80]))
    return ordered, notes


def ordered_steps(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], list[Note]]:
    """Return the steps with increasing numbers, and notes on what changed.

    Steps whose numbers cannot order them are numbered from 0 in their recorded order.
    """
    ordered, notes = in_order(steps, lambda step: step.num)
    numbers = [step.num for step in ordered]
    if numbers != sorted({*numbers}):
        notes.append(Note("renumbered", f"written: {str(numbers)[:80]}"))
        ordered = [replace(step, num=num) for num, step in enumerate(ordered)]
    return tuple(ordered), notes
