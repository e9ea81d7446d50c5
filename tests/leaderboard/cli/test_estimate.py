"""`estimate` and `annotation-template --for-estimate`, as people call them."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.core.files import atomic_write
from arb.core.formats import FORMATS
from leaderboard.__main__ import app
from leaderboard.success_rates import runs
from tests.support.crashing_logs import write_crashing_logs


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a command beside two judges' verdicts on 40 runs of each of two agents.

    Every fourth run of ``a`` and every second run of ``b`` succeeded; one judge is always right, the other
    calls everything successful.
    """
    monkeypatch.chdir(tmp_path)
    for judge in ("right", "lenient"):
        rows = [
            {"trajectory_id": run_id, "success": judge == "lenient" or succeeded(run_id)}
            for run_id in (f"own/{agent}/task-{number}" for agent in "ab" for number in range(40))
        ]
        atomic_write(Path(f"{judge}.jsonl"), "".join(json.dumps(row) + "\n" for row in rows))
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def succeeded(run_id: str) -> bool:
    """Whether the run succeeded, as the fixture has it."""
    _, agent, task = run_id.split("/")
    return int(task.removeprefix("task-")) % (4 if agent == "a" else 2) == 0


def fill_in(path: Path) -> None:
    """What an annotator does with the template."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = ["trajectory_id,success"]
    lines += [f"{row['trajectory_id']},{'yes' if succeeded(row['trajectory_id']) else 'no'}" for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_drawn_labelled_and_estimated(run, tmp_path):
    options = ("--verdicts", "right.jsonl", "--verdicts", "lenient.jsonl")
    drawn = run("annotation-template", "--for-estimate", "20", *options, "--stratified", "--out", "open.csv")
    assert "open.csv: 40 runs of 2 agents" in drawn.stdout
    record = json.loads((tmp_path / "open.draw.json").read_text())
    # of 40 runs of a 10 succeeded: 5 of 20 drawn runs are from these
    assert [(s["agent"], s["n"], len(s["drawn"])) for s in record["strata"]] == [
        ("a", 30, 15), ("a", 10, 5), ("b", 20, 10), ("b", 20, 10),
    ]  # fmt: skip
    fill_in(tmp_path / "open.csv")
    done = run("estimate", *options, "--labels", "open.csv", "--draw", "open.draw.json", "--json")
    found = json.loads(done.stdout)
    assert found["warnings"] == []
    a, b = found["agents"]
    assert (a["agent"], a["n"], a["labelled"]) == ("a", 40, 20)
    assert a["judge_alone"] == [
        {"judge": "right", "rate": 0.25, "no_verdict": 0},
        {"judge": "lenient", "rate": 1.0, "no_verdict": 0},
    ]
    assert a["assisted"]["rate"] == pytest.approx(0.25)
    assert b["assisted"]["rate"] == pytest.approx(0.5)
    low, high = a["assisted"]["ci"]
    assert low < 0.25 < high
    assert 0 < a["saved"] < 1
    known = ("--labels", "open.csv", "--draw", "open.draw.json")
    shown = run("estimate", *options, *known, "--agent", "b")
    assert "lenient" in shown.stdout and "50.0" in shown.stdout and "│ a " not in shown.stdout
    assert shown.stderr.startswith("Next, ") and "--agent b --plan" in shown.stderr
    done = run("estimate", *options, *known, "--compare", "b", "a", "--json")
    difference = json.loads(done.stdout)["difference"]
    assert (difference["first"], difference["tasks"], difference["difference"]) == (
        "b",
        40,
        pytest.approx(0.25),
    )
    assert (
        "b - a: 25.0 points on 40 common tasks"
        in run("estimate", *options, *known, "--compare", "b", "a").stdout
    )
    assert (
        "there is no run of c; use one of a, b"
        in run("estimate", *options, *known, "--compare", "a", "c").stderr
    )
    twice = run("estimate", *options, *known, "--compare", "a", "b", "--compare", "b", "a")
    assert twice.exit_code == 2
    assert "--compare is given more than once. Use it once per command." in twice.stderr
    done = run("estimate", "--verdicts", "right.jsonl", *known)
    assert done.exit_code == 1 and "the draw used the verdicts of lenient, which are not given" in done.stderr


def test_a_plan_needs_no_labels_and_is_better_with_some(run, tmp_path):
    done = run("estimate", "--verdicts", "right.jsonl", "--plan", "--half-width", "10", "--json")
    found = json.loads(done.stdout)
    # 1.96^2 * 0.25 = 0.9604: 0.9604 / (0.1^2 + 0.9604 / 40) = 28.2
    assert [(row["labels_only"], row["assisted"]) for row in found["agents"]] == [(29, None)] * 2
    run("annotation-template", "--for-estimate", "12", "--verdicts", "right.jsonl", "--out", "open.csv")
    fill_in(tmp_path / "open.csv")
    shown = run("estimate", "--verdicts", "right.jsonl", "--labels", "open.csv", "--plan").stdout
    assert "Labels needed for an interval of ± 5 points" in shown


def test_annotations_in_the_released_format_are_labels(run, tmp_path):
    header = (
        "annotator_name,benchmark,task_id,model_name,trajectory_success,trajectory_side_effect,"
        "trajectory_optimality,trajectory_looping"
    )
    rows = [
        f"ann,own,task-{number},a,{'Successful' if number % 4 == 0 else 'Unsuccessful'},No,2. Suboptimal,No"
        for number in range(20)
    ]
    (tmp_path / "released.csv").write_text("\n".join([header, *rows]) + "\n")
    done = run("estimate", "--verdicts", "lenient.jsonl", "--labels", "released.csv", "--json")
    found = json.loads(done.stdout)
    assert found["agents"][0]["labelled"] == 20
    assert found["agents"][0]["labels_only"]["rate"] == pytest.approx(5 / 20)
    assert found["agents"][1]["assisted"] == {"rate": None, "ci": None, "ci_on_tasks": None}
    assert any("not recorded" in warning for warning in found["warnings"])
    assert any("b: 0 of 40 runs have a label" in warning for warning in found["warnings"])


def test_everything_that_is_wrong_with_the_files_is_said_at_once(run, tmp_path):
    (tmp_path / "bad.csv").write_text("trajectory_id,success\nown/a/1,maybe\n")
    (tmp_path / "ids.csv").write_text("trajectory_id,success\nown/a/1,yes\ntwo/parts,no\n")
    (tmp_path / "twice.csv").write_text("trajectory_id,success\nown/a/1,yes\nown/a/1,no\n")
    done = run("estimate", "--verdicts", "bad.csv", "--verdicts", "twice.csv", "--labels", "bad.csv")
    assert done.exit_code == 1
    repeated = (
        "twice.csv: trajectory_id: 1 row has a trajectory that is also in an earlier row (row 3: 'own/a/1')"
    )
    assert "bad.csv: " in done.stderr and repeated in done.stderr
    done = run("estimate", "--verdicts", "ids.csv", "--labels", "ids.csv")
    assert (
        "1 row has an id that is not of the form <benchmark>/<agent>/<task_id> (row 3: 'two/parts')"
        in done.stderr
    )
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "twice.csv")
    assert done.exit_code == 1 and repeated in done.stderr
    (tmp_path / "others.csv").write_text("trajectory_id,success\nown/c/1,yes\nown/c/2,yes\n")
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "others.csv")
    assert done.exit_code == 1 and "no labelled run has a verdict: 'own/c/1' is labelled, " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--verdicts", "right.jsonl"), "needs labels of some runs"),
        (("--verdicts", "right.jsonl", "--plan", "--agent", "c"), "there is no run of c; use one of a, b"),
        (
            ("--verdicts", "right.jsonl", "--labels", "right.jsonl", "--draw", "right.jsonl"),
            "is not JSON. Use the file that annotation-template --for-estimate wrote",
        ),
        (
            ("--verdicts", "right.jsonl", "--plan", "--agent", "a", "--compare", "a", "b"),
            "--agent keeps one agent, and --compare needs two; leave one of the options out",
        ),
    ],
)
def test_a_call_that_cannot_be_answered_says_what_to_give(run, arguments, message):
    done = run("estimate", *arguments)
    assert done.exit_code != 0
    assert message in done.stderr


@pytest.mark.parametrize(
    "content", ["[]", "{", '{"format": "draw-1"}', '{"format": "draw-2", "strata": [1]}', "\x00"]
)
def test_a_record_that_is_none_is_refused_in_a_line(run, tmp_path, content):
    (tmp_path / "draw.json").write_text(content)
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "right.jsonl", "--draw", "draw.json")
    assert done.exit_code == 1
    assert "draw.json: " in done.stderr and "Traceback" not in done.stderr


def test_a_record_of_a_newer_draw_is_refused_with_what_to_do(run, tmp_path):
    assert runs.DRAW_FORMAT == f"draw-{FORMATS['record of a draw']}" == "draw-2"
    (tmp_path / "draw.json").write_text('{"format": "draw-3", "groups": []}')
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "right.jsonl", "--draw", "draw.json")
    assert done.exit_code == 1
    assert "or a newer version wrote it: then upgrade this program" in " ".join(done.stderr.split())


def test_the_options_of_a_template_belong_together(run, tmp_path):
    done = run("annotation-template", "--for-estimate", "5", "--out", "new.csv")
    assert "needs judges' verdicts" in done.stderr
    done = run("annotation-template", "--annotator", "Ada", "--stratified", "--out", "new.csv")
    assert "need --for-estimate" in done.stderr
    for ignored in (("--annotator", "Ada"), ("--split", "dev"), ("--share", "0.5")):
        done = run("annotation-template", "--for-estimate", "5", *ignored, "--out", "new.csv")
        assert done.exit_code == 2
        assert "cannot be used with --for-estimate" in " ".join(done.stderr.split())
    assert not (tmp_path / "new.csv").exists()


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_labels(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize("stratified", [(), ("--stratified",)])
def test_more_runs_are_drawn_into_the_same_file_and_its_answers_stay(run, tmp_path, stratified):
    verdicts = ("--verdicts", "right.jsonl")
    call = ("annotation-template", *verdicts, "--out", "open.csv", "--for-estimate")
    assert run(*call, "12", *stratified, "--seed", "3").exit_code == 0
    first = read_rows(tmp_path / "open.csv")
    for row in first:
        row.update(success="yes" if succeeded(row["trajectory_id"]) else "no", note="mine, kept")
    write_labels(tmp_path / "open.csv", first)
    plan = run("estimate", *verdicts, "--labels", "open.csv", "--draw", "open.draw.json", "--plan")
    assert "draw more runs, into the file with your labels" in plan.stderr
    assert "--out open.csv" in plan.stderr
    done = run(*call, "20")
    # 20 of each agent, of which 12 were drawn before: 40 - 24 = 16
    assert "open.csv: 40 runs of 2 agents, 16 of them new" in done.stdout
    rows = read_rows(tmp_path / "open.csv")
    assert rows[:24] == first
    assert len({row["trajectory_id"] for row in rows}) == 40
    assert {row["success"] for row in rows[24:]} == {""}
    record = json.loads((tmp_path / "open.draw.json").read_text())
    assert record["seed"] == 3
    assert {r for each in record["strata"] for r in each["drawn"]} == {row["trajectory_id"] for row in rows}
    assert any(each["verdicts"] for each in record["strata"]) == bool(stratified)
    fill_in(tmp_path / "open.csv")
    found = json.loads(
        run("estimate", *verdicts, "--labels", "open.csv", "--draw", "open.draw.json", "--json").stdout
    )
    assert (found["warnings"], [agent["labelled"] for agent in found["agents"]]) == ([], [20, 20])
    assert "0 of them new" in run(*call, "5").stdout


def test_a_draw_that_was_extended_at_once_or_in_steps_is_the_same(run, tmp_path):
    call = ("annotation-template", "--verdicts", "right.jsonl", "--for-estimate")
    run(*call, "11", "--out", "steps.csv")
    run(*call, "23", "--out", "steps.csv")
    run(*call, "23", "--out", "once.csv")
    steps, once = (
        {row["trajectory_id"] for row in read_rows(tmp_path / f"{n}.csv")} for n in ("steps", "once")
    )
    assert steps == once


def test_a_file_that_cannot_be_extended_is_left_alone_with_the_reason(run, tmp_path):
    call = ("annotation-template", "--verdicts", "right.jsonl", "--for-estimate", "12", "--out", "open.csv")
    run(*call, "--stratified")
    before = (tmp_path / "open.csv").read_bytes()
    done = run(*[each.replace("right", "lenient") for each in call])
    assert done.exit_code == 1
    assert "open.draw.json was drawn by verdicts that are not given or have changed" in done.stderr
    record = tmp_path / "open.draw.json"
    record.rename(tmp_path / "elsewhere.json")
    assert "open.csv already exists, but open.draw.json does not; restore it" in run(*call).stderr
    assert (tmp_path / "open.csv").read_bytes() == before
    (tmp_path / "elsewhere.json").rename(record)
    (tmp_path / "open.csv").write_text("id,label\n1,yes\n")
    assert "open.csv has no column trajectory_id" in run(*call).stderr


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ((), ("--stratified",), "seed 0 and without strata. Leave out --stratified, or name a new file"),
        (("--seed", "3"), ("--seed", "0"), "seed 3 and without strata. Leave out --seed, or name a new file"),
        (
            ("--stratified",),
            ("--stratified", "--seed", "3"),
            "seed 0 and with strata. Leave out --seed, or name a new file",
        ),
        ((), ("--stratified", "--seed", "3"), "Leave out --stratified and --seed, or name a new file"),
    ],
)
def test_options_that_contradict_an_existing_draw_are_refused(run, tmp_path, first, then, message):
    call = ("annotation-template", "--verdicts", "right.jsonl", "--out", "open.csv", "--for-estimate")
    assert run(*call, "12", *first).exit_code == 0
    before = (tmp_path / "open.csv").read_bytes()
    done = run(*call, "20", *then)
    assert done.exit_code == 1 and message in done.stderr
    assert (tmp_path / "open.csv").read_bytes() == before
    assert run(*call, "12", *first).exit_code == 0  # the same options contradict nothing


@pytest.mark.parametrize("version", ["this", "an earlier one"])
def test_a_stratified_draw_with_too_few_labels_for_strata_is_repeated_and_gets_strata(run, tmp_path, version):
    rows = [f"own/a/{number},{'yes' if number % 2 else 'no'}\n" for number in range(20)]
    (tmp_path / "half.csv").write_text("trajectory_id,success\n" + "".join(rows))
    call = ("annotation-template", "--verdicts", "half.csv", "--out", "open.csv", "--for-estimate")
    assert run(*call, "5", "--stratified").exit_code == 0
    record = tmp_path / "open.draw.json"
    written = json.loads(record.read_text())
    assert written.pop("stratified") and [each["verdicts"] for each in written["strata"]] == [None]
    if version == "an earlier one":
        record.write_text(json.dumps(written))
    assert "0 of them new" in run(*call, "5", "--stratified").stdout
    # Two strata need 2 x 5 labels, so 12 labels are 6 in each half.
    assert "12 runs of 1 agent, 7 of them new" in run(*call, "12").stdout
    strata = json.loads(record.read_text())["strata"]
    assert [(each["n"], len(each["drawn"])) for each in strata] == [(10, 6), (10, 6)]


def test_the_same_tasks_are_drawn_for_all_agents_unless_they_are_stratified(run, tmp_path):
    call = ("annotation-template", "--verdicts", "right.jsonl", "--for-estimate", "12", "--out")
    run(*call, "tasks.csv")
    drawn = {agent: set() for agent in "ab"}
    for row in read_rows(tmp_path / "tasks.csv"):
        _, agent, task = row["trajectory_id"].split("/")
        drawn[agent].add(task)
    assert drawn["a"] == drawn["b"] and len(drawn["a"]) == 12


def test_two_files_of_labels_and_draws_add_up_and_contradictions_are_named(run, tmp_path):
    verdicts = ("--verdicts", "right.jsonl")
    for seed in ("1", "2"):
        call = ("--for-estimate", "12", "--seed", seed, "--out", f"{seed}.csv")
        run("annotation-template", *verdicts, *call)
        fill_in(tmp_path / f"{seed}.csv")
    both = {row["trajectory_id"] for n in "12" for row in read_rows(tmp_path / f"{n}.csv")}
    known = [each for n in "12" for each in ("--labels", f"{n}.csv", "--draw", f"{n}.draw.json")]
    found = json.loads(run("estimate", *verdicts, *known, "--json").stdout)
    assert found["warnings"] == []
    assert [agent["labelled"] for agent in found["agents"]] == [
        sum("/a/" in r for r in both),
        sum("/b/" in r for r in both),
    ]
    assert 24 < len(both) < 48
    rows = read_rows(tmp_path / "1.csv")
    write_labels(
        tmp_path / "2.csv", [{**row, "success": "yes" if row["success"] == "no" else "no"} for row in rows]
    )
    done = run("estimate", *verdicts, "--labels", "1.csv", "--labels", "2.csv")
    assert done.exit_code == 1
    assert (
        f"2.csv: '{rows[0]['trajectory_id']}' has another label than in 1.csv (24 such runs)" in done.stderr
    )
    run("annotation-template", *verdicts, "--for-estimate", "12", "--stratified", "--out", "3.csv")
    done = run("estimate", *verdicts, "--labels", "1.csv", "--draw", "1.draw.json", "--draw", "3.draw.json")
    assert "3.draw.json: covers different runs or strata of a than 1.draw.json does" in done.stderr


def test_runs_without_a_verdict_are_reported_and_count_neither_way(run, tmp_path):
    rows = [json.loads(line) for line in (tmp_path / "right.jsonl").read_text().splitlines()]
    for row in rows[:20]:  # runs 0 to 19 of a, of which 5 succeeded
        row["success"] = None
    atomic_write(Path("some.jsonl"), "".join(json.dumps(row) + "\n" for row in rows[:-4]))  # and four of b
    labelled = [
        {"trajectory_id": row["trajectory_id"], "success": str(succeeded(row["trajectory_id"]))}
        for row in rows
    ]
    write_labels(tmp_path / "all.csv", labelled[::2])
    done = run(
        "estimate", "--verdicts", "some.jsonl", "--verdicts", "right.jsonl", "--labels", "all.csv", "--json"
    )
    found = json.loads(done.stdout)
    assert (
        "some has no verdict on 24 of 80 runs; they count neither as successes nor as failures"
        in found["warnings"][0]
    )
    a, b = found["agents"]
    # of runs 20 to 39 of a, 5 succeeded; of runs 0 to 35 of b, 18
    assert a["judge_alone"][0] == {"judge": "some", "rate": 5 / 20, "no_verdict": 20}
    assert b["judge_alone"][0] == {"judge": "some", "rate": 18 / 36, "no_verdict": 4}
    assert [each["no_verdict"] for each in (a["judge_alone"][1], b["judge_alone"][1])] == [0, 0]
    none = [{**row, "success": None} if "/a/" in row["trajectory_id"] else row for row in rows]
    atomic_write(Path("none.jsonl"), "".join(json.dumps(row) + "\n" for row in none))
    found = json.loads(run("estimate", "--verdicts", "none.jsonl", "--labels", "all.csv", "--json").stdout)
    assert found["agents"][0]["judge_alone"] == [{"judge": "none", "rate": None, "no_verdict": 40}]
    assert found["agents"][0]["assisted"]["rate"] == pytest.approx(found["agents"][0]["labels_only"]["rate"])
    shown = run("estimate", "--verdicts", "none.jsonl", "--labels", "all.csv")
    assert (shown.exit_code, "Traceback" in shown.stderr) == (0, False)


def test_the_file_to_label_carries_goal_answer_and_a_link(run, tmp_path):
    for agent in "ab":
        for number in range(40):
            messages = [
                {"role": "user", "content": f"=Find town {number},\nplease."},
                {"role": "assistant", "content": "It is Ålesund."},
            ]
            path = tmp_path / "logs" / agent / f"task-{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"benchmark": "own", "messages": messages}))
    call = ("annotation-template", "--verdicts", "right.jsonl", "--out", "open.csv", "--for-estimate")
    assert run(*call, "12", "--source", "logs", "--space", "https://my.space/").exit_code == 0
    rows = read_rows(tmp_path / "open.csv")
    for row in rows:
        number = row["trajectory_id"].rpartition("-")[2]
        assert row["goal"] == f"'=Find town {number},\nplease."
        assert row["answer"] == "It is Ålesund."
        assert row["link"] == f"https://my.space/trajectories?id={row['trajectory_id']}"
        row["success"] = "yes" if succeeded(row["trajectory_id"]) else "no"
    write_labels(tmp_path / "open.csv", rows)
    done = run(
        "estimate", "--verdicts", "right.jsonl", "--labels", "open.csv", "--draw", "open.draw.json", "--json"
    )
    assert [agent["labelled"] for agent in json.loads(done.stdout)["agents"]] == [12, 12]
    run(*call, "13")
    assert [row["goal"] for row in read_rows(tmp_path / "open.csv")][24:] == ["", ""]
    run(*call, "13", "--source", "logs")
    assert all(row["goal"] and row["link"] for row in read_rows(tmp_path / "open.csv"))
    for path in (tmp_path / "logs").rglob("*.json"):
        path.write_text(json.dumps({"benchmark": "other", "messages": messages}))
    done = run(*call, "14", "--source", "logs")
    assert "logs contains none of the drawn runs, such as own/a/" in done.stderr


@pytest.fixture
def logs(run, tmp_path, monkeypatch):
    """Logs in a folder, and verdicts and labels of all runs that can be judged: the warm ones succeed."""
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "logs").mkdir()
    write_crashing_logs(tmp_path / "logs", crashed=5)
    (tmp_path / "logs" / "notes.txt").write_text("n")
    ids = [f"t/m_temperature=0/{number}" for number in range(20)]
    ids += [f"t/m_temperature=0.7/{number}" for number in range(5, 20)]
    rows = [{"trajectory_id": each, "success": "=0.7" in each} for each in ids]
    for name in ("verdicts", "labels"):
        atomic_write(Path(f"{name}.jsonl"), "".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "logs"


OF_LOGS = ("estimate", "--verdicts", "verdicts.jsonl", "--labels", "labels.jsonl")


def test_crashed_runs_of_the_source_count_as_failures_unless_they_are_set_apart(run, logs):
    done = run(*OF_LOGS, "--source", "logs", "--json")
    found = json.loads(done.stdout)
    cold, warm = found["agents"]
    # 20 runs without a success, and 15 successes of 15 runs and 5 crashes: 15/20 = 75 %
    assert [(each["agent"], each["n"]) for each in (cold, warm)] == [
        ("m_temperature=0", 20), ("m_temperature=0.7", 20),
    ]  # fmt: skip
    assert [each["labels_only"]["rate"] for each in (cold, warm)] == [0.0, 0.75]
    assert found["crashed"]["count_as"] == "failures" and len(found["crashed"]["runs"]) == 5
    assert "5 runs crashed; counted as failures (--crashed apart leaves crashed runs out):" in done.stderr
    assert "files: 3 found = 2 read + 1 named" in done.stderr and "notes.txt" in done.stderr
    apart = json.loads(run(*OF_LOGS, "--source", "logs", "--crashed", "apart", "--json").stdout)
    assert [(each["n"], each["labels_only"]["rate"]) for each in apart["agents"]] == [(20, 0.0), (15, 1.0)]
    assert apart["crashed"]["count_as"] == "apart"


def test_a_plan_asks_for_no_labels_of_crashed_runs(run, logs):
    plan = (*OF_LOGS[:3], "--source", "logs", "--plan", "--half-width", "1", "--json")
    rows = json.loads(run(*plan).stdout)["agents"]
    # For ± 1 point, all runs need a label: 20, and 15 of 20 of which 5 crashed.
    assert [(row["n"], row["labels_only"]) for row in rows] == [(20, 20), (20, 15)]


def test_a_plan_asks_for_labels_of_crashed_runs_that_were_judged(run, logs):
    crashed = [f"t/m_temperature=0.7/{number}" for number in range(8)]
    source = {"crashed": crashed, "files": {"found": 3, "read": 2}}
    Path("run.json").write_text(json.dumps({"source": source, "selection": {}}))
    done = run(*OF_LOGS[:3], "--plan", "--half-width", "1", "--json")
    # 15 runs have a verdict, 3 of them crashed; 5 others crashed: 20 runs, of which 15 need a label.
    warm = json.loads(done.stdout)["agents"][1]
    assert (warm["n"], warm["labels_only"]) == (20, 15)


def test_crashed_runs_count_for_the_one_agent_if_the_ids_of_verdicts_name_none(run, logs):
    Path("verdicts.csv").write_text("trajectory_id,success\n" + "".join(f"{n},yes\n" for n in range(15)))
    plan = ("estimate", "--verdicts", "verdicts.csv", "--source", "logs", "--plan", "--half-width", "1")
    (row,) = json.loads(run(*plan, "--json").stdout)["agents"]
    # 15 runs with a verdict and 5 crashed ones, which need no label
    assert (row["agent"], row["n"], row["labels_only"]) == ("all runs", 20, 15)


def test_crashed_runs_are_known_from_the_run_json_of_a_judge_that_saw_all_runs(run, logs):
    source = {"crashed": [f"t/m_temperature=0.7/{n}" for n in range(5)], "files": {"found": 3, "read": 2}}
    for selection, n in (({}, 20), ({"limit": 35}, 15), ({"agent": ["m_temperature=0"]}, 15)):
        Path("run.json").write_text(json.dumps({"source": source, "selection": selection}))
        done = run(*OF_LOGS, "--json")
        assert json.loads(done.stdout)["agents"][1]["n"] == n
        assert "files: 3 found = 2 read + 1 named" in done.stderr
        assert ("verdicts cover only some runs" in done.stderr) == ("limit" in selection)
    Path("run.json").write_text(json.dumps({"source": source, "selection": {"shard": "1/2"}}))
    done = run(*OF_LOGS, "--source", "logs", "--json")
    assert json.loads(done.stdout)["agents"][1]["n"] == 15


@pytest.mark.slow
def test_agents_of_judged_runs_are_named_after_chosen_facts(run, logs):
    named = json.loads(run(*OF_LOGS, "--source", "logs", "--agent-from", "log", "--json").stdout)
    assert [(each["agent"], each["n"]) for each in named["agents"]] == [("cold", 20), ("warm", 20)]
    done = run(*OF_LOGS, "--source", "logs", "--agent-from", "model", "--json")
    (one,) = json.loads(done.stdout)["agents"]
    assert (one["agent"], one["n"], one["labels_only"]["rate"]) == ("m", 40, 15 / 40)
    assert "m: temperature is 0 or 0.7" in done.stderr
    refused = run(*OF_LOGS, "--agent-from", "model")
    assert refused.exit_code == 2 and "add --source" in refused.stderr
    wrong = run(*OF_LOGS, "--source", "logs", "--agent-from", "colour")
    assert wrong.exit_code == 2 and "choose from: agent, log, model, temperature" in wrong.stderr


def test_labels_and_verdicts_may_have_any_ids_and_columns(run, tmp_path):
    # run-0 to run-39; every fourth succeeded, and the judge is right on all; ten runs are labelled
    rows = [(f"run-{n}", n % 4 == 0) for n in range(40)]
    (tmp_path / "labels.csv").write_text(
        "run,label,comment\n" + "".join(f"{name},{'pass' if ok else 'fail'},\n" for name, ok in rows[:10])
    )
    (tmp_path / "judge.csv").write_text("run,verdict\n" + "".join(f"{name},{int(ok)}\n" for name, ok in rows))
    done = run("estimate", "--verdicts", "judge.csv", "--labels", "labels.csv", "--json")
    assert done.exit_code == 0, done.output
    (agent,) = json.loads(done.stdout)["agents"]
    assert (agent["agent"], agent["n"], agent["labelled"]) == ("all runs", 40, 10)
    assert agent["judge_alone"] == [{"judge": "judge", "rate": 0.25, "no_verdict": 0}]
    assert agent["labels_only"]["rate"] == pytest.approx(0.3)  # runs 0, 4 and 8 of ten
    draw = ("annotation-template", "--for-estimate", "5", "--verdicts", "judge.csv", "--out", "draw.csv")
    assert run(*draw).exit_code == 0


def test_a_table_without_clear_columns_is_refused_with_the_columns_that_are_needed(run, tmp_path):
    (tmp_path / "labels.csv").write_text("run,first,second\nown/a/task-1,yes,no\n")
    done = run("estimate", "--verdicts", "right.jsonl", "--labels", "labels.csv")
    assert done.exit_code == 1
    assert (
        "labels.csv: trajectory_id: this column is missing (the file has 'run', 'first', 'second')"
        in done.stderr
    )
