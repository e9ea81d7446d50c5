"""Count the code: ``python -m bench.size`` (``--json``: one object; ``--no-walks``: a quick look).

Product modules are those of the packages without ``__init__``, ``__main__`` and migrations. A walk visits a
module when one of its functions is called. It does not count modules that are only imported, nor those of the
leaderboard's page, which another thread makes once the receipt is written.
"""

import argparse
import ast
import contextlib
import csv
import io
import json
import runpy
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("arb", "dataset_script", "leaderboard", "submissions", "space")
NO_PRODUCT = ("__init__.py", "__main__.py")
AIMS = {"lines": 58_000, "test lines": 63_000, "upload": 25, "judges run": 30}


def product_modules() -> list[Path]:
    """Return all product modules, sorted."""
    found = [path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")]
    return sorted(path for path in found if path.name not in NO_PRODUCT and "migrations" not in path.parts)


def sizes() -> dict[str, Any]:
    """Return the numbers of modules, lines and classes, by what they count, and the longest modules."""
    modules = product_modules()
    texts = {path: path.read_text(encoding="utf-8") for path in modules}
    lines = {path: len(text.splitlines()) for path, text in texts.items()}
    nodes = [node for text in texts.values() for node in ast.walk(ast.parse(text))]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    tests = sorted((REPOSITORY / "tests").rglob("*.py"))
    longest = sorted(((count, _name(path)) for path, count in lines.items()), reverse=True)[:5]
    by_package: dict[str, list[int]] = {}
    for path in modules:
        package = by_package.setdefault(path.relative_to(REPOSITORY).parts[0], [0, 0])
        package[0] += 1
        package[1] += lines[path]
    return {
        "modules": len(modules),
        "lines": sum(lines.values()),
        "median lines": statistics.median(lines.values()),
        "mean lines": round(statistics.mean(lines.values())),
        "classes": len(classes),
        "dataclasses": sum(any("dataclass" in ast.dump(d) for d in each.decorator_list) for each in classes),
        "longest modules": longest,
        "by package": by_package,
        "test lines": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tests),
    }


class Passed:
    """A profiler for `watching`, which collects the product modules whose functions are called."""

    def __init__(self) -> None:
        self._modules = frozenset(map(str, product_modules()))
        self._seen: set[str] = set()
        self.is_on = False

    def names(self) -> list[str]:
        """Return the modules that were visited since this was last called."""
        found, self._seen = self._seen, set()
        return sorted(_name(Path(path)) for path in found)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a module, as called by ``sys.setprofile``."""
        path = frame.f_code.co_filename
        if not self.is_on or event != "call" or path in self._seen or path not in self._modules:
            return
        if not _is_importing(frame):
            self._seen.add(path)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def watching(passed: Passed) -> Iterator[None]:
    """Let ``passed`` watch this thread, and threads that start in the block."""
    threading.setprofile(passed)
    sys.setprofile(passed)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def upload_walk() -> list[str]:
    """Return the modules visited by the second upload over REST; the first upload opens the records."""
    from fastapi.testclient import TestClient

    from arb.core.settings import Settings
    from space.app import create_app

    passed = Passed()
    with tempfile.TemporaryDirectory() as name, watching(passed):
        folder = Path(name)
        settings = Settings(
            suite=str(_small_suite(folder)),
            labels=f"csv:{folder / 'labels.csv'}",
            state_dir=folder / "state",
            database_url=None,
        )
        with TestClient(create_app(settings)) as client:
            for answer in ("yes", "no"):
                header, *rows = client.get("/api/template?split=test&format=csv").text.splitlines()
                lines = [",".join(header.split(",")[:2]), *(f"{row.split(',')[0]},{answer}" for row in rows)]
                content = "\n".join(lines)
                form = {"account": "ada", "judge": answer, "kind": "LLM judge", "inputs": "tree"}
                passed.is_on = answer == "no"
                sent = client.post(
                    "/api/submissions",
                    files={"file": ("verdicts.csv", content)},
                    data={**form, "model": "m", "authors": "Ada", "test_labels_used": "false"},
                )
                passed.is_on = False
                if sent.status_code != 201:
                    raise SystemExit(f"The file was not accepted: {sent.text}")
    return passed.names()


def _small_suite(folder: Path) -> Path:
    suite = folder / "small"
    suite.mkdir()
    (suite / "suite.toml").write_text('labels = "public"\n')
    ids = [f"webarena/agent-{agent}/webarena.{task}" for agent in "ab" for task in range(12)]
    with (suite / "trajectories.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("trajectory_id", "split"), *((each, "test") for each in sorted(ids))])
    columns = "annotator_name benchmark task_id model_name exp_name trajectory_success trajectory_side_effect"
    header = [*columns.split(), "trajectory_optimality", "trajectory_looping"]
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for place, (benchmark, agent, task) in enumerate(each.split("/") for each in sorted(ids)):
            said = "Successful" if place % 3 == 0 else "Unsuccessful"
            writer.writerow(["x", benchmark, task, agent, "run", said, "No", "2. Suboptimal", "No"])
    return suite


def run_walk() -> list[str]:
    """Return the modules that ``judges run`` with a model visits, over three trajectories of the sample."""
    from tests.support.llm_server.server import LLMServer

    passed = Passed()
    with tempfile.TemporaryDirectory() as name, LLMServer(script="judges") as server, watching(passed):
        arguments = ["simplified-axtree", "--suite", "sample", "--split", "dev", "--limit", "3"]
        arguments += ["--provider", "any", "--base-url", server.base_url, "--model", "m", "--price", "m=1,1"]
        arguments += ["--out", f"{name}/run", "--cache", f"{name}/cache"]
        passed.is_on = True
        _command("arb", "judges", "run", *arguments)
        passed.is_on = False
    return passed.names()


def _command(package: str, *arguments: str) -> None:
    before, sys.argv = sys.argv, [package, *arguments]
    heard = io.StringIO()
    try:
        with contextlib.redirect_stderr(heard):
            runpy.run_module(package, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise SystemExit(f"{package} {' '.join(arguments)}: {heard.getvalue()}") from None
    finally:
        sys.argv = before


def _name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def main() -> None:
    """Print the sizes and the walks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-walks", action="store_true")
    options = parser.parse_args()
    found = sizes()
    walks: dict[str, Callable[[], list[str]]] = {"upload": upload_walk, "judges run": run_walk}
    found["walks"] = {} if options.no_walks else {name: walk() for name, walk in walks.items()}
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"product modules {found['modules']}, lines {found['lines']:,} (at most {AIMS['lines']:,})")
    print(f"test lines {found['test lines']:,} (at most {AIMS['test lines']:,})")
    print(f"lines per module: median {found['median lines']:g}, mean {found['mean lines']}")
    print(f"classes {found['classes']}, dataclasses {found['dataclasses']}")
    for package, (modules, lines) in found["by package"].items():
        print(f"  {package:15} {modules:4} modules {lines:7,} lines")
    print("longest modules:", *(f"{name} {n}" for n, name in found["longest modules"]))
    for walk, passed in found["walks"].items():
        print(f"{walk} visits {len(passed)} modules (at most {AIMS[walk]}):")
        print("  " + "\n  ".join(passed))


if __name__ == "__main__":
    main()
