"""The ``suite.toml`` of a new suite: hidden labels, and every rule with what it does."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from dataset_script.suite_rules import SuiteRules

COMMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "files_a_day": "Test files of an account that are scored in 24 hours, over all its judges.",
        "files_a_year": "The same in a year.",
        "account_age_days": "How many days old an account has to be before it submits to test.",
        "age_exempt": 'Accounts that need not be that old, such as ["ada", "bob"].',
        "private_noise": "Noise on the true positives that a submitter sees: its standard deviation.\n"
        "# With few test trajectories it hides the differences between judges; 0 shows exact figures,\n"
        "# and with them whoever submits often enough can work test labels out.",
        "public_noise": "The same on the overall figures of public rows.",
        "public_rows_a_year": "Rows that an account may make public in a year.",
        "round_days": "Public rows appear together, every so many days.",
        "fewest_positives": "A file that calls fewer test trajectories successful waits for a maintainer:\n"
        "# a tenth of them, and 30 where they are many.",
        "ranking_half": "true: rank by a fixed hidden half of the tasks and show figures of the other half.",
    }
)
"""What each rule says, as comments of TOML; a line that follows brings its own ``#``."""

_HEAD: Final = """# "private": the test labels are hidden; figures are shown with noise,
# and public rows appear in rounds.
# "public": anyone can have them anyway, and every figure is shown as it is.
labels = "private"

# Every rule there is, as suggested for this suite.
[rules]
"""


def suggested_rules(test_trajectories: int) -> SuiteRules:
    """The defaults; on a small test split fewer positive verdicts do, or an honest judge would be held."""
    fewest = min(SuiteRules().fewest_positives, max(1, test_trajectories // 10))
    return SuiteRules(fewest_positives=fewest)


def render_suite_toml(made: str, rules: SuiteRules) -> str:
    """The file's text; ``made`` is a line that says how the suite came about."""
    parts = [
        f"# {COMMENTS[field.name]}\n{field.name} = {_toml(getattr(rules, field.name))}\n"
        for field in fields(SuiteRules)
    ]
    return f"# {made}\n\n" + _HEAD + "".join(parts)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return "[" + ", ".join(f'"{name}"' for name in value) + "]"
        case _:
            return repr(value)
