"""What the project shows outside, by commands, HTTP and files alone; no module of ours but those named here.

Where the application and its settings move, only two of the imports below follow.
"""

import ast
import csv
import hashlib
import html
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from arb.core.settings import Settings
from space.app import create_app
from tests.support import commands

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("dataset_script", "leaderboard", "arb judges", "submissions", "space")
SAMPLE = REPOSITORY / "dataset_script" / "sample" / "data"
DECLARED = {
    "kind": "LLM judge", "inputs": "tree", "model": "some-model", "authors": "Ada, Bob",
    "link": "https://example.org/judge", "test_labels_used": "false",
}  # fmt: skip


def command(*arguments: str, folder: Path = REPOSITORY, **environment: str) -> str:
    """What `python -m ...` prints, at a fixed width and without the caller's settings."""
    return commands.run(arguments, _environment(**environment), folder)


def _environment(**more: str) -> dict[str, str]:
    own = ("ARB_", "SPACE_", "OAUTH_", "DATABASE_URL", "HF_TOKEN")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return kept | {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONPATH": str(REPOSITORY), **more}


HELP = """
import contextlib, io, re, runpy, sys
texts, queue = [], [sys.argv[1:]]
while queue:
    words = queue.pop(0)
    sys.argv, shown = [*words, "--help"], io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    texts.append(f"$ python -m {' '.join(words)} --help\\n{shown.getvalue().rstrip()}\\n")
    listed = shown.getvalue().partition("\\nCommands:\\n")[2]
    queue += [[*words, name] for name in re.findall(r"^  (\\S+)", listed, re.MULTILINE)]
print("\\n".join(texts), end="")
"""
"""Prints the `--help` of a package and of every command under it, each run as `python -m` runs it."""


def help_texts(package: str) -> str:
    """`--help` of a package and of every command under it."""
    done = subprocess.run(
        [sys.executable, "-c", HELP, *package.split()],
        cwd=REPOSITORY, env=_environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def write_suite(folder: Path) -> Settings:
    """A suite of 30 test and 8 dev trajectories whose labels follow their place, and settings for it."""
    suite = folder / "small"
    suite.mkdir(parents=True)
    (suite / "suite.toml").write_text(
        'labels = "public"\n[rules]\nfiles_a_day = 1000\nfiles_a_year = 100000\n'
    )
    names = [f"assistantbench.improved.validation.{n}" for n in range(3)]
    names += [f"webarena.{n}" for n in range(6)]
    names += [f"workarena.servicenow.{kind}" for kind in ("list-0", "list-1", "list-2")]
    names += [f"workarena.servicenow.order-{n}-l2" for n in range(3)]
    tasks = {"test": names, "dev": [f"webarena.{n}" for n in range(100, 104)]}
    header = ("annotator_name", "benchmark", "task_id", "model_name", "exp_name", "trajectory_success")
    header += ("trajectory_side_effect", "trajectory_optimality", "trajectory_looping")
    listed, labelled = [("trajectory_id", "split")], [header]
    for split, found in tasks.items():
        ids = sorted(f"{name.split('.')[0]}/agent-{agent}/{name}" for name in found for agent in "ab")
        listed += [(each, split) for each in ids]
        for place, (benchmark, agent, task) in enumerate(each.split("/") for each in ids):
            answers = ("Successful" if place % 3 == 0 else "Unsuccessful", "Yes" if place % 5 == 0 else "No")
            looping = "Yes" if place % 2 == 0 else "No"
            labelled.append(("someone", benchmark, task, agent, "run", *answers, "2. Suboptimal", looping))
    for path, rows in ((suite / "trajectories.csv", listed), (folder / "labels.csv", labelled)):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return Settings(
        suite=str(suite),
        labels=f"csv:{folder / 'labels.csv'}",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
        database_url=None,
    )


def running(settings: Settings) -> TestClient:
    """A client of the Space for these settings; its lifespan is the `with` block."""
    return TestClient(create_app(settings))


def verdicts(client: TestClient, misses: int, false_alarms: int, **columns: Any) -> bytes:
    """Verdicts on test, right but for so many labels (every third trajectory is a success)."""
    lines = client.get("/api/template?split=test").text.splitlines()
    rows = []
    for place, trajectory_id in enumerate(json.loads(line)["trajectory_id"] for line in lines):
        answer = place % 3 == 0
        if answer and misses:
            answer, misses = False, misses - 1
        elif not answer and false_alarms:
            answer, false_alarms = True, false_alarms - 1
        row = {"trajectory_id": trajectory_id, "success": answer}
        rows.append(json.dumps({**row, **columns, "score": 0.9 if answer else 0.2}))
    return ("\n".join(rows) + "\n").encode()


def submit(client: TestClient, content: bytes, judge: str, account: str = "Ada") -> dict:
    """The answer to a submission over REST, which must be taken."""
    form = {**DECLARED, "account": account, "judge": judge}
    answer = client.post("/api/submissions", files={"file": ("verdicts.jsonl", content)}, data=form)
    assert answer.status_code == 201, answer.text
    return answer.json()


def changing_texts(client: TestClient) -> dict[str, str]:
    """What differs from run to run, by the name that stands for it in golden files."""
    board = client.get("/api/board.json").json()
    changing = {"digest": board["digest"]}
    for number, row in enumerate(each for each in board["rows"] if each["provenance"] == "scored"):
        changing |= {f"id-{number}": row["id"], f"date-{number}": row["date"]}
    return changing


def page_text(client: TestClient, path: str) -> str:
    """The text of a page, a line for each piece between tags, with ids and days written over."""
    changing = changing_texts(client)
    for name, found in changing.items():
        path = path.replace(f"<{name}>", found)
    answer = client.get(path)
    assert answer.status_code == 200, path
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", "", answer.text, flags=re.DOTALL)
    for name, found in changing.items():
        page = page.replace(found, f"&lt;{name}&gt;")
        shortened = rf"{re.escape(found[:10])}[\w:.+-]*"
        page = re.sub(shortened, f"&lt;{name.split('-')[0]}&gt;", page)
    page = re.sub(r"\b\d{1,2} [A-Z][a-z]{2} 20\d\d\b", "&lt;day&gt;", page)
    page = re.sub(r"\b\d\d:\d\d UTC", "&lt;time&gt;", page)
    pieces = (" ".join(html.unescape(piece).split()) for piece in re.split(r"<[^>]*>", page))
    return "\n".join(piece for piece in pieces if piece) + "\n"


def board_of(client: TestClient) -> dict[str, Any]:
    """board.json, board.csv and the judges, with ids and days that differ from run to run written over."""
    changing = changing_texts(client)
    answers = {
        "board.json": client.get("/api/board.json").text,
        "board.csv": client.get("/api/board.csv").text,
        "judges": client.get("/api/judges").text,
    }
    for name, text in answers.items():
        for replacement, found in changing.items():
            text = text.replace(found, f"<{replacement}>")
        answers[name] = text if name.endswith(".csv") else json.loads(text)
    answers["board.csv"] = list(csv.reader(io.StringIO(answers["board.csv"])))
    return answers


def shape(value: Any) -> Any:
    """The field names of JSON with the types of what they hold; of a list, its first entry."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value).__name__


def canonical(value: Any) -> str:
    """JSON in one spelling, a line an entry of the first two levels so that a difference can be read."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, default=str) + "\n"


def compact(value: Any) -> str:
    """JSON in one spelling, in one line."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def digest(content: bytes | str) -> str:
    """The first 16 digits of the SHA-256."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


def parquet_rows(path: Path) -> dict[str, Any]:
    """Columns, types, number and digest of the rows, whatever the writer's version."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows = hashlib.sha256()
    for row in table.to_pylist():
        rows.update(_plain(row).encode())
    columns = {field.name: str(field.type) for field in table.schema}
    return {"rows": table.num_rows, "columns": columns, "digest": rows.hexdigest()[:16]}


def _plain(value: Any) -> str:
    def bytes_as_digest(found: Any) -> str:
        return digest(found) if isinstance(found, bytes) else str(found)

    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=bytes_as_digest)


def folder_listing(folder: Path) -> dict[str, Any]:
    """Every file under a folder: rows of Parquet, else the digest of the bytes."""
    return {
        str(path.relative_to(folder)): parquet_rows(path)
        if path.suffix == ".parquet"
        else digest(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rest_surface(client: TestClient) -> dict[str, Any]:
    """Paths, methods, parameters, body fields and statuses of the described REST, without its prose."""
    described = client.get("/api/openapi.json").json()
    schemas = described.get("components", {}).get("schemas", {})

    def fields(schema: dict) -> list[str]:
        if "$ref" in schema:
            return fields(schemas[schema["$ref"].rsplit("/", 1)[1]])
        inherited = {name for part in schema.get("allOf", ()) for name in fields(part)}
        return sorted(inherited | set(schema.get("properties", {})))

    surface = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {})
            surface[f"{method.upper()} {path}"] = {
                "parameters": sorted(f"{p['in']} {p['name']}" for p in operation.get("parameters", ())),
                "body": {kind: fields(content.get("schema", {})) for kind, content in sorted(body.items())},
                "statuses": sorted(operation["responses"]),
            }
    return surface


def database_schema(settings: Settings) -> dict[str, Any]:
    """Tables with columns, types, keys and indexes of a new database after its migrations."""
    with sqlite3.connect(settings.state_dir / "records.sqlite") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        return {
            table: {
                "columns": [list(row[1:]) for row in connection.execute(f"PRAGMA table_info({table})")],
                "references": sorted(
                    list(row[2:5]) for row in connection.execute(f"PRAGMA foreign_key_list({table})")
                ),
                "indexes": sorted(
                    [row[1], row[2]] for row in connection.execute(f"PRAGMA index_list({table})")
                ),
            }
            for table in sorted(tables)
            if not table.startswith("sqlite_")
        }


def event_kinds() -> list[str]:
    """The kinds of events: the one Literal of `submissions` that has both `submitted` and `scored`."""
    found = [
        kinds for kinds in _literals(REPOSITORY / "submissions") if {"submitted", "scored"} <= set(kinds)
    ]
    assert len(found) == 1, found
    return sorted(found[0])


def _literals(package: Path) -> Iterable[list[str]]:
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "Literal":
                yield [each.value for each in ast.walk(node.slice) if isinstance(each, ast.Constant)]
