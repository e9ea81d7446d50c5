"""What is outside stays as it is: commands, boards, files, REST and records against files in `golden/`.

Where a change outside is meant, write the files anew and look at their difference:
`UPDATE_GOLDEN=1 python -m pytest tests/test_golden.py`.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from arb.core.settings import Settings
from arb.judges.run.run_facts import PROVIDER_CLIENTS
from tests.golden import outside
from tests.support.golden import assert_golden


@contextmanager
def _with_three_judges(folder: Path) -> Iterator[tuple[TestClient, Settings]]:
    settings = outside.write_suite(folder)
    with outside.running(settings) as client:
        outside.submit(client, outside.verdicts(client, misses=1, false_alarms=0), "Alpha")
        outside.submit(client, outside.verdicts(client, misses=2, false_alarms=4, side_effect=True), "Beta")
        outside.submit(client, outside.verdicts(client, misses=0, false_alarms=20, cost_usd=0.01), "Gamma")
        yield client, settings


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """A Space over the small suite with three scored judges, and its settings; tests only read it."""
    with _with_three_judges(tmp_path_factory.mktemp("golden")) as found:
        yield found


@pytest.fixture(scope="module")
def space_of_four(tmp_path_factory):
    """Another one, its settings, and the receipt of a fourth judge on it."""
    with _with_three_judges(tmp_path_factory.mktemp("of-four")) as (client, settings):
        content = outside.verdicts(client, misses=3, false_alarms=3)
        yield client, settings, outside.submit(client, content, "Fourth", "Bob")


@pytest.mark.parametrize("package", outside.PACKAGES)
def test_every_command_has_its_options(package):
    assert_golden(f"help_{package.replace(' ', '_')}.txt", outside.help_texts(package))


def test_the_board_of_three_judges_is_as_before(space):
    client, _ = space
    found = outside.board_of(client)
    board = found.pop("board.json")
    lines = [outside.compact({key: value for key, value in board.items() if key != "rows"})]
    lines += [outside.compact(row) for row in board["rows"]]
    lines += [outside.compact(row) for row in found["board.csv"]]
    lines += [outside.compact(found["judges"])]
    assert_golden("board.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("name", "path"),
    [("leaderboard", "/"), ("judge", "/judge?id=<id-0>"), ("compare", "/compare?judges=<id-0>,<id-1>")],
)
def test_a_page_has_its_text(space, name, path):
    client, _ = space
    assert_golden(f"page_{name}.txt", outside.page_text(client, path))


def test_a_receipt_a_status_and_findings_have_their_fields(space_of_four):
    client, _, receipt = space_of_four
    good = outside.verdicts(client, misses=1, false_alarms=0)
    bad = b'{"trajectory_id": "nowhere/a/b", "success": "perhaps"}\nnot json\n' + good + good[:60]
    checks = {}
    for name, content in (("good", good), ("bad", bad), ("empty", b"")):
        answer = client.post("/api/check", files={"file": ("verdicts.jsonl", content)}).json()
        codes = [[each["level"], each["code"]] for each in answer.pop("findings")]
        checks[name] = {"shape": outside.shape(answer), "findings": codes}
    found = {"submission": outside.shape(receipt), "checks": checks}
    found["readyz"] = outside.shape(client.get("/readyz").json())
    found["templates"] = {
        f"{split}.{form}": outside.digest(client.get(f"/api/template?split={split}&format={form}").content)
        for split in ("dev", "test")
        for form in ("jsonl", "csv")
    }
    assert_golden("answers.json", outside.canonical(found))


def test_rest_has_its_paths_and_fields(space):
    client, _ = space
    assert_golden("rest.json", outside.canonical(outside.rest_surface(client)))


def test_the_database_has_its_tables_and_the_records_their_kinds(space):
    _, settings = space
    found = {"tables": outside.database_schema(settings), "event kinds": outside.event_kinds()}
    assert_golden("records.json", outside.canonical(found))


@pytest.mark.slow
def test_an_export_of_the_records_has_its_files_and_fields(space_of_four, tmp_path):
    _, settings, _ = space_of_four
    given = {
        "ARB_SUITE": settings.suite,
        "ARB_LABELS": settings.labels,
        "ARB_STATE_DIR": str(settings.state_dir),
    }
    outside.command("submissions", "verify", **given)
    outside.command("submissions", "export", "--out", str(tmp_path / "out"), **given)
    files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    names = sorted({path.relative_to(tmp_path / "out").parts[0] for path in files})
    lines = [path for path in files if path.suffix == ".jsonl" and "files" not in path.parts]
    events = [json.loads(line) for path in lines for line in path.read_text().splitlines()]
    kinds = {event["kind"]: outside.shape(event) for event in events if "kind" in event}
    assert_golden("export.json", outside.canonical({"names": names, "events": kinds}))


def test_the_shipped_sample_has_its_rows():
    assert_golden("sample.json", outside.canonical(outside.folder_listing(outside.SAMPLE)))


@pytest.mark.slow
def test_a_dataset_built_from_the_sample_has_its_rows(tmp_path):
    built = tmp_path / "built"
    outside.command("dataset_script", "build", "--source", str(outside.SAMPLE), "--out", str(built))
    outside.command("dataset_script", "verify", str(built))
    assert_golden("built.json", outside.canonical(outside.folder_listing(built)))


@pytest.mark.parametrize("judge", ["always-successful", "Rule-based"])
def test_a_run_has_its_files(judge, tmp_path):
    run = tmp_path / "run"
    given = {"ARB_CACHE_DIR": str(tmp_path / "cache")}
    options = ("--suite", "sample", "--split", "dev", "--out", str(run))
    outside.command("arb", "judges", "run", judge, *options, **given)
    records = [json.loads(line) for line in (run / "judgments.jsonl").read_text().splitlines()]
    configuration = json.loads((run / "run.json").read_text())
    for made_by in (configuration["versions"], *(each["versions"] for each in configuration["sessions"])):
        made_by["commit"] = made_by["commit"] or ""  # None where there is no checkout
        for optional in (*PROVIDER_CLIENTS, "ray", "torch"):  # there only where the extras are installed
            made_by.pop(optional, None)
    found = {
        "files": sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()),
        "predictions": outside.digest((run / "predictions.jsonl").read_bytes()),
        "first prediction": (run / "predictions.jsonl").read_text().splitlines()[0],
        "judgment": outside.shape(records[0]),
        "judgments": sorted(compact_verdict(record) for record in records),
        "run.json": outside.shape(configuration),
    }
    assert_golden(f"run_{judge.lower()}.json", outside.canonical(found))


def compact_verdict(record: dict) -> str:
    """A judgment without its times."""
    return outside.compact({key: value for key, value in record.items() if isinstance(value, str | bool)})


def test_figures_of_a_file_on_dev_are_as_before(tmp_path):
    run = tmp_path / "run"
    given = {"ARB_CACHE_DIR": str(tmp_path / "cache")}
    options = ("--suite", "sample", "--split", "dev")
    outside.command("arb", "judges", "run", "always-successful", *options, "--out", str(run), **given)
    file = str(run / "predictions.jsonl")
    score = json.loads(outside.command("arb", "score", file, *options, "--json", **given))
    checked = json.loads(outside.command("submissions", "check", file, *options, "--json", **given))
    audit = json.loads(outside.command("leaderboard", "audit", "--json"))
    found = {"score": score, "check": checked, "audit": outside.digest(outside.compact(audit))}
    assert_golden("figures.json", outside.canonical(found))


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.labels
def test_the_official_board_and_the_figures_of_real_files_are_as_before(shared, official_settings, tmp_path):
    settings = official_settings.model_copy(update={"state_dir": tmp_path / "state"})
    folder = shared / "data" / "agent-reward-bench" / "verdicts"
    files = [folder / f"{judge}.jsonl" for judge in ("aer-c", "nnetnav", "rule-based")]
    with outside.running(settings) as client:
        for path in files:  # the suite takes two files a day of an account
            outside.submit(client, path.read_bytes(), path.stem, account=f"of-{path.stem}")
        found = outside.board_of(client)
    lines = [
        outside.compact([row["judge"], row["provenance"], outside.digest(outside.compact(row))])
        for row in found["board.json"]["rows"]
    ]
    lines += [outside.digest(outside.compact(row)) for row in found["board.csv"]]
    lines += [outside.digest(outside.compact(found["judges"]))]
    for path in files:
        for policy in ("strict", "published"):
            score = ("arb", "score", str(path), "--split", "test", "--policy", policy, "--json")
            lines.append(f"{path.stem} {policy} {outside.digest(outside.command(*score))}")
    for name in ("agreement", "ceiling"):
        lines.append(f"{name} {outside.digest(outside.command('leaderboard', name, '--json'))}")
    tables = outside.command("leaderboard", "tables", "--verdicts", str(files[0]))
    numbers = re.findall(r"\d+(?:\.\d+)?", tables)
    lines.append(f"tables {len(numbers)} numbers {outside.digest(' '.join(numbers))}")
    assert_golden("official.txt", "\n".join(lines) + "\n")
