"""The Python face: each function gives what its command gives, and names every problem of its input."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from pandas.api.types import is_numeric_dtype
from typer.testing import CliRunner

import arb
from arb.__main__ import app
from arb.core.suite import load_suite
from leaderboard.__main__ import app as leaderboard_app
from tests.support.crashing_logs import write_crashing_logs

pytestmark = pytest.mark.filterwarnings("error::FutureWarning")
DEV = load_suite("sample").split("dev")


@pytest.fixture(autouse=True)
def sample(monkeypatch):
    monkeypatch.setenv("ARB_SUITE", "sample")


def verdicts(successes: int) -> pd.DataFrame:
    """Verdicts on the sample's dev trajectories: the first so many are successful."""
    ids = [trajectory.trajectory_id for trajectory in DEV]
    return pd.DataFrame({"trajectory_id": ids, "success": [place < successes for place in range(len(ids))]})


def written(folder: Path, name: str, table: pd.DataFrame) -> Path:
    table.to_json(folder / name, orient="records", lines=True)
    return folder / name


def test_importing_it_imports_nothing_heavy():
    code = "import sys, arb; print({'pandas', 'numpy', 'datasets'} & set(sys.modules))"
    root = Path(arb.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_the_board_has_the_published_rows():
    table = arb.board()
    assert {"NNetNav", "AER-C"} <= {*table["judge"]}
    assert table.attrs["suite"] == "agent-reward-bench"


def test_scores_are_those_of_the_command_from_a_file_and_from_a_frame(tmp_path):
    frame = verdicts(len(DEV))
    path = written(tmp_path, "mine.jsonl", frame)
    done = CliRunner().invoke(app, ["score", str(path), "--split", "dev", "--json"])
    theirs = json.loads(done.stdout)["labels"]["success"]["overall"]
    for file in (path, frame):
        row = arb.score(file).loc[("success", "overall", "overall")]
        assert (row["precision"], row["recall"]) == (theirs["precision"], 1)
        assert [row["precision_low"], row["precision_high"]] == theirs["precision_ci"]


def test_what_is_neither_a_path_nor_a_frame_is_refused_by_its_type():
    with pytest.raises(TypeError, match="give a path or a DataFrame of predictions, not dict"):
        arb.score({"a": True}, suite="sample")
    with pytest.raises(TypeError, match="give a path or a DataFrame, not int"):
        arb.validate(5)


def test_a_difference_of_a_judge_with_itself_is_0_and_with_another_that_of_their_scores():
    all_yes, some = verdicts(len(DEV)), verdicts(len(DEV) // 2)
    same, other = (arb.compare(all_yes, each).iloc[0] for each in (all_yes, some))
    assert (same["difference"], same["p_accuracy"]) == (0, 1)
    first, second = (
        arb.score(each).loc[("success", "overall", "overall"), "precision"] for each in (all_yes, some)
    )
    assert other["difference"] == pytest.approx(first - second)


def test_labels_may_be_a_table_of_ones_own_instead_of_those_of_a_suite():
    labels = pd.DataFrame({"run": ["a", "b", "c", "d"], "label": [True, True, False, False]})
    first = pd.DataFrame({"trajectory_id": ["a", "b", "c", "d"], "success": [True, False, True, False]})
    second = first.assign(success=True)
    row = arb.score(first, labels=labels).loc["success", "overall", "overall"]
    assert [row[name] for name in ("tp", "fp", "fn", "tn")] == [1, 1, 1, 1]
    found = arb.compare(first, second, labels=labels, metric="recall").iloc[0]
    assert (found["first"], found["second"], found["difference"]) == ("0", "1", -0.5)  # 1 / 2 and 2 / 2


def test_an_estimate_is_that_of_the_command(tmp_path):
    ids = [f"own/a/task{i}" for i in range(40)]
    judged = pd.DataFrame({"trajectory_id": ids, "success": [i % 4 == 0 for i in range(40)]})
    labelled = judged.head(20)
    files = [written(tmp_path, "judge.jsonl", judged), written(tmp_path, "labels.jsonl", labelled)]
    call = ["estimate", "--verdicts", str(files[0]), "--labels", str(files[1]), "--json"]
    theirs = json.loads(CliRunner().invoke(leaderboard_app, call).stdout)["agents"][0]
    ours = arb.estimate([files[0]], files[1])
    row = ours.loc["a"]
    assert row["judge alone"] == 10 / 40  # every fourth
    assert [row["assisted_low"], row["assisted_high"]] == theirs["assisted"]["ci"]
    assert "not recorded" in ours.attrs["warnings"][0]  # how the labelled runs were drawn
    assert arb.estimate(judged, labelled).loc["a", "assisted"] == theirs["assisted"]["rate"]


def test_an_estimate_counts_the_crashed_runs_that_the_command_counts(tmp_path):
    ids = [f"own/a/task{i}" for i in range(40)]
    judged = pd.DataFrame({"trajectory_id": ids, "success": [i % 4 == 0 for i in range(40)]})
    files = [written(tmp_path, "judge.jsonl", judged), written(tmp_path, "labels.jsonl", judged.head(20))]
    source = {"crashed": [f"own/a/crashed{i}" for i in range(10)], "files": {"found": 50, "read": 40}}
    (tmp_path / "run.json").write_text(json.dumps({"source": source, "selection": {}}))
    call = ["estimate", "--verdicts", str(files[0]), "--labels", str(files[1]), "--json"]
    theirs = json.loads(CliRunner().invoke(leaderboard_app, call).stdout)
    ours = arb.estimate(files[0], files[1])
    assert (ours.loc["a", "n"], ours.loc["a", "assisted"]) == (50, theirs["agents"][0]["assisted"]["rate"])
    assert ours.loc["a", "assisted"] == pytest.approx(10 / 50)  # of 50 runs every fourth of 40
    assert list(ours.attrs["crashed"]["runs"]) == theirs["crashed"]["runs"] == source["crashed"]
    apart = arb.estimate(files[0], files[1], crashed="apart")
    assert (apart.loc["a", "n"], apart.loc["a", "assisted"]) == (40, pytest.approx(10 / 40))
    with pytest.raises(ValueError, match="use one of failures, apart"):
        arb.estimate(files[0], files[1], crashed="appart")
    (tmp_path / "run.json").write_text(json.dumps({"source": source, "selection": {"limit": 40}}))
    part = arb.estimate(files[0], files[1])
    assert part.loc["a", "n"] == 40 and "verdicts cover only some runs" in part.attrs["warnings"][-1]


def test_an_estimate_from_what_a_judge_returned_counts_its_crashed_runs(tmp_path):
    ids = [f"own/a/task{i}" for i in range(40)]
    judged = pd.DataFrame({"trajectory_id": ids, "success": [i % 4 == 0 for i in range(40)]})
    source = {"crashed": [f"own/a/crashed{i}" for i in range(10)]}
    (tmp_path / "run.json").write_text(json.dumps({"source": source, "selection": {}}))
    judged.attrs = {"run": str(tmp_path), "judged": 40}
    labels = pd.DataFrame(judged.head(20).to_dict("list"))
    whole, part = (arb.estimate(verdicts, labels) for verdicts in (judged, judged.head(30)))
    assert whole.loc["a", "n"] == 50  # and 10 crashed
    assert part.loc["a", "n"] == 30  # of a part, it is not known
    told = [
        any("crashed runs are not counted" in each for each in table.attrs["warnings"])
        for table in (whole, part, arb.estimate([judged, judged.head(30)], labels))
    ]
    assert told == [False, True, False]  # the last one has all runs


def test_an_estimate_finds_crashed_runs_in_the_source_as_the_command_does(tmp_path, monkeypatch):
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    logs.mkdir()
    write_crashing_logs(logs, crashed=5)
    ids = [f"t/m_temperature=0.7/{number}" for number in range(5, 20)]
    judged = pd.DataFrame({"trajectory_id": ids, "success": True})
    found = arb.estimate(judged, judged, source=logs)
    # 15 successes of 15 runs and 5 crashes
    assert found.loc["m_temperature=0.7", ["n", "labels_only"]].tolist() == [20, 0.75]


def test_an_estimate_has_both_intervals_and_combines_draws_of_several_people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = [f"own/a/task{i}" for i in range(40)]
    judged = pd.DataFrame({"trajectory_id": ids, "success": [i % 4 == 0 for i in range(40)]})
    written(tmp_path, "judge.jsonl", judged)
    draws = []
    for seed in ("1", "2"):
        call = ["annotation-template", "--for-estimate", "15", "--verdicts", "judge.jsonl", "--seed", seed]
        assert CliRunner().invoke(leaderboard_app, [*call, "--out", f"{seed}.csv"]).exit_code == 0
        draws.append(f"{seed}.draw.json")
    call = ["estimate", "--verdicts", "judge.jsonl", "--labels", "judge.jsonl", "--json"]
    done = CliRunner().invoke(leaderboard_app, [*call, "--draw", draws[0], "--draw", draws[1]])
    (theirs,) = json.loads(done.stdout)["agents"]
    row = arb.estimate(judged, judged, draw=draws).loc["a"]
    assert row["labelled"] == theirs["labelled"] > 15
    ends = [row["labels_only_on_tasks_low"], row["labels_only_on_tasks_high"]]
    assert ends == theirs["labels_only"]["ci_on_tasks"]


def test_an_unknown_number_is_nan_in_a_column_of_numbers(tmp_path):
    none = verdicts(0)  # no verdict is yes, so precision is 0 / 0
    scored, compared = arb.score(none), arb.compare(none, verdicts(3))
    labels = written(tmp_path, "labels.jsonl", verdicts(3).head(2))
    estimated = arb.estimate(verdicts(3), labels)
    assert scored["precision"].isna().any() and compared["difference"].isna().all()
    assert estimated["assisted"].isna().any()  # agents without a label
    for table, texts in ((scored, set()), (compared, {"first", "second"}), (estimated, set())):
        assert {name for name, kind in table.dtypes.items() if not is_numeric_dtype(kind)} == texts
    board = arb.board()
    assert {board[name].dtype.kind for name in ("precision", "recall", "f1", "n")} <= {"f", "i"}


def test_files_called_predictions_have_the_names_of_their_runs(tmp_path):
    files = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        files.append(written(tmp_path / name, "predictions.jsonl", verdicts(3)))
        (tmp_path / name / "run.json").write_text(json.dumps({"judge": {"name": "aer"}}))
    found = arb.compare(*files).iloc[0]
    assert (found["first"], found["second"]) == ("aer (a)", "aer (b)")


@pytest.mark.slow
def test_output_that_is_no_terminal_has_no_escape_codes_in_a_notebook(tmp_path, capsys, monkeypatch):
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
        monkeypatch.setenv(name, "1")  # as ipykernel does
    monkeypatch.setenv("TERM", "xterm-color")
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    arb.judge("always-successful", tmp_path / "run", split="dev")
    file = str(tmp_path / "run" / "predictions.jsonl")
    command = [sys.executable, "-m", "arb", "submissions", "check", file, "--split", "dev"]
    checked = subprocess.run(command, cwd=Path(arb.__file__).parents[1], capture_output=True, text=True)
    said = capsys.readouterr().err
    assert "20 of 20 trajectories judged" in said and "is acceptable" in checked.stdout
    assert "\x1b" not in said + checked.stdout + checked.stderr


def test_every_problem_of_a_file_is_named_at_once():
    frame = verdicts(3)
    frame.loc[0, "trajectory_id"] = "no/such/run"
    frame = pd.concat([frame, frame.tail(1)])
    with pytest.raises(ValueError, match=r"(?s)the predictions: .*no/such/run") as refused:
        arb.score(frame)
    assert len(str(refused.value).splitlines()) >= 2  # the unknown id, and the one that is there twice


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: arb.score("no.jsonl"), FileNotFoundError, "no.jsonl"),
        (lambda: arb.score(verdicts(3), split="tset"), ValueError, "'tset': use one of dev, test"),
        (lambda: arb.score(verdicts(3), suite="none"), ValueError, "no suite 'none'"),
        (lambda: arb.score(verdicts(3), labels="no.csv"), FileNotFoundError, "no.csv: there is no such file"),
        (lambda: arb.compare(verdicts(3)), ValueError, "at least two prediction files"),
        (
            lambda: arb.compare(verdicts(3), verdicts(4), metric="acc"),
            ValueError,
            "'acc' does not exist; .*accuracy",
        ),
        (
            lambda: arb.compare(verdicts(3), verdicts(4), label="looped"),
            ValueError,
            "no target 'looped'; .*repetition",
        ),
        (lambda: arb.board(__file__), ValueError, "test_notebooks.py is not a board.json"),
    ],
)
def test_a_mistake_is_one_clear_message(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_labels_that_cannot_be_had_are_a_value_error(monkeypatch):
    monkeypatch.setenv("ARB_LABELS", "none")
    with pytest.raises(ValueError, match="the labels of test cannot be loaded"):
        arb.score(verdicts(3), split="test")


def test_it_says_to_type_checkers_that_it_is_typed():
    assert (Path(arb.__file__).parent / "py.typed").is_file()


@pytest.mark.slow
def test_a_judge_is_run_and_its_predictions_returned_and_a_wrong_option_is_its_message(tmp_path, capfd):
    table = arb.judge("always-successful", tmp_path / "run", split="dev", limit=3)
    assert table["success"].tolist()[:3] == [True] * 3
    assert (table.attrs["run"], table.attrs["judged"]) == (str(tmp_path / "run"), 3)
    assert "Next," not in capfd.readouterr().err
    with pytest.raises(RuntimeError, match="no-such-judge"):
        arb.judge("no-such-judge", tmp_path / "other", split="dev")
