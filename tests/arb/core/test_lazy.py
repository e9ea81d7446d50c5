import subprocess
import sys

SCRIPT = """
import sys
from arb.core.lazy import lazy_imports

with lazy_imports():
    import pandas as pd

    from leaderboard import report

print("pandas.core" in sys.modules, "leaderboard.judge_precision.scores" in sys.modules)
print(pd.DataFrame.__name__, callable(report.{name}), "pandas.core" in sys.modules)
import json.tool
print(type(json.tool).__name__)
"""


def test_a_module_imported_in_the_block_loads_when_a_name_of_it_is_used():
    import leaderboard.report as report

    name = next(name for name, value in vars(report).items() if callable(value))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(name=name)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False False", "DataFrame True True", "module"]
