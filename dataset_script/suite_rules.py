"""What a suite allows, and what it tells of a scored file: the table ``[rules]`` of its ``suite.toml``.

Limits hold for every suite. Noise, rounds and the ranking half are for suites whose labels are private; the
measurements behind their defaults are told on the About page of such a suite.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class SuiteRules:
    """The numbers of a suite's rules; noise in true positives, ages and rounds in days."""

    files_a_day: int = 2
    """Scored test files of an account in 24 hours, over all its judges, for each label version."""
    files_a_year: int = 20
    account_age_days: int = 0
    """How old an account has to be before it submits to test."""
    age_exempt: tuple[str, ...] = ()
    """Accounts that need not be."""
    private_noise: float = 6.0
    """Standard deviation of the noise on the true positives that a submitter sees."""
    public_noise: float = 3.0
    """The same for the overall figures of public rows; their benchmarks have the larger of the two."""
    public_rows_a_year: int = 2
    """Rows that an account may make public in a year."""
    round_days: int = 30
    """Public rows appear together, every so many days."""
    fewest_positives: int = 30
    """A file that calls fewer trajectories successful waits for a maintainer."""
    ranking_half: bool = False
    """Rank by a fixed hidden half of the tasks and show figures of the other half."""


def read_rules(said: Any) -> SuiteRules:
    """The rules that a ``[rules]`` table gives; what it leaves out has its default.

    Raises ValueError with every problem at once.
    """
    if not isinstance(said, Mapping):
        raise ValueError("rules: write a table, [rules]")
    known = {field.name: field.default for field in fields(SuiteRules)}
    problems = [
        f"rules.{name}: there is no such rule; use {', '.join(known)}" for name in said.keys() - known
    ]
    found = {}
    for name, default in known.items():
        if name in said:
            found[name] = tuple(said[name]) if isinstance(said[name], list) else said[name]
            if (problem := _problem(found[name], default)) is not None:
                problems.append(f"rules.{name}: {problem}")
    if problems:
        raise ValueError("; ".join(sorted(problems)))
    return SuiteRules(**found)


def _problem(value: Any, default: Any) -> str | None:
    match default:
        case bool():
            return None if isinstance(value, bool) else "write true or false"
        case tuple():
            is_names = isinstance(value, tuple) and all(isinstance(name, str) for name in value)
            return None if is_names else 'write a list of names, ["ada", "bob"]'
        case float():
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
            return None if is_number else "write a number from 0"
        case _:
            is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000
            return None if is_count else "write a whole number from 0"
