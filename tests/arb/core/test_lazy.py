import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]

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
        [sys.executable, "-c", SCRIPT.format(name=name)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["False False", "DataFrame True True", "module"]


ORDINARY = """
from arb.core.lazy import lazy_imports

with lazy_imports():
    import numpy as np
    import pyarrow.parquet as pq
from numpy.typing import NDArray

print(np.ones(1).tolist(), pq.read_table.__name__)
"""


def test_an_ordinary_import_of_a_submodule_executes_its_lazy_package_first():
    done = subprocess.run(
        [sys.executable, "-c", ORDINARY], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[1.0]", "read_table"]


TWICE = """
from arb.core.lazy import lazy_imports

with lazy_imports():
    import package
from package.part import VALUE
from package.part import __spec__ as spec
import package.part

print(package.part.VALUE is VALUE, spec.origin.endswith("part.py"))
"""


def test_a_submodule_that_its_lazy_package_imports_is_executed_once(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from package.part import VALUE\n")
    (tmp_path / "package" / "part.py").write_text("print('executed')\nVALUE = object()\n")
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-c", TWICE], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["executed", "True True"]


THREADS = """
import sys, threading
from arb.core.lazy import lazy_imports

with lazy_imports():
    import slow_module

barrier, found = threading.Barrier(8), []
def use():
    barrier.wait()
    found.append(slow_module.last)
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found)
"""


def test_threads_wait_until_a_module_is_executed_once(tmp_path):
    slow = "import time\nprint('executed')\nfirst = 1\ntime.sleep(0.2)\nassert first == 1\nlast = 2\n"
    (tmp_path / "slow_module.py").write_text(slow)
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["executed", str([2] * 8)]
