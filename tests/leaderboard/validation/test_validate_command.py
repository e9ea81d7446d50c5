"""`arb validate` and `arb.validate`: a spreadsheet becomes a report, a gate, and a list of errors to read."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import arb
from arb.__main__ import app


def row(n: int) -> str:
    human = "yes" if n % 2 else "no"
    second = "yes" if n % 2 or n < 4 else "no"
    judge = "yes" if n % 2 or n < 10 else "no"
    return f"r{n},{human},{second},{judge},{0.9 if n % 2 else 0.2},{'shop' if n < 20 else 'forum'}\n"


TABLE = "id,human,second,judge,other,site\n" + "".join(map(row, range(40)))
"""Twenty yeses. The judge finds all of them and errs on 0, 2, 4, 6 and 8: its precision is 20 / 25."""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(TABLE)
    return "runs.csv"


def validate(*options: str):
    return CliRunner().invoke(app, ["validate", *options])


COLUMNS = ("--label", "human", "--verdict", "judge", "--verdict", "other")


def test_a_spreadsheet_gives_a_report_in_one_command(file):
    done = validate(file, *COLUMNS, "--label", "second", "--by", "site", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["format"], found["level"], found["n"], found["positives"]) == (1, 0.95, 40, 20)
    judge, other = found["judges"]
    assert [judge[name] for name in ("tp", "fp", "fn", "tn", "no_verdict")] == [20, 5, 0, 15, 0]
    assert judge["precision"]["value"] == 0.8 and judge["recall"]["value"] == 1
    assert judge["by"]["site"]["forum"]["precision"]["value"] == 1  # all five errors are before row 20
    assert (other["auroc"], other["brier"]) == (1, pytest.approx((0.1**2 + 0.2**2) / 2))
    (pair,) = found["pairs"]
    assert pair["precision"]["value"] == pytest.approx(-0.2)
    (ceiling,) = found["agreement"]
    assert (ceiling["n"], ceiling["agreement"]) == (40, 0.95)  # they differ on rows 0 and 2
    assert found["combination"]["f1"] == 1


def test_the_printed_report_has_the_metrics_and_says_what_it_assumes(file):
    done = validate(file, *COLUMNS)
    assert done.exit_code == 0, done.output
    assert "40 labelled rows, 50.0 % positive" in done.stdout and "80.0" in done.stdout
    assert "name their group (--group)" in done.stderr.replace("\n", " ")


def test_the_page_is_one_file_without_scripts(file, tmp_path):
    assert validate(file, *COLUMNS, "--html", "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "<svg" in page and "<script" not in page and "80.0" in page


def test_rows_that_judges_get_wrong_are_listed_with_those_of_all_judges_first(tmp_path, file):
    text = TABLE.replace("r0,no,yes,yes,0.2", "r0,no,yes,yes,0.9")
    (tmp_path / "runs.csv").write_text(text)
    assert validate(file, *COLUMNS, "--disagreements", "errors.csv").exit_code == 0
    lines = pd.read_csv(tmp_path / "errors.csv")
    assert lines["id"].tolist()[0] == "r0"  # both judges are wrong on the first row
    assert lines["judges_wrong"].tolist() == [2, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("requirement", "code"),
    [
        ("precision>=0.8", 0),
        ("precision.low>=0.8", 1),
        ("recall.high<=1", 0),
        ("precision>=80", 2),  # in percent, it could never be met
        ("precision>=0.8.0", 2),
        ("precision>=much", 2),
        ("speed>1", 2),
    ],
)
def test_a_requirement_is_a_gate(file, requirement, code):
    done = validate(file, "--label", "human", "--verdict", "judge", "--require", requirement)
    assert done.exit_code == code, done.output
    assert code != 1 or "judge: precision.low>=0.8 is not met" in done.stderr


def test_a_required_figure_that_is_undefined_is_told_apart(tmp_path, file):
    (tmp_path / "few.csv").write_text("label,verdict\nyes,no\nno,no\n")
    done = validate("few.csv", "--require", "precision>=0.5")
    assert done.exit_code == 3 and "is undefined" in done.stderr


def test_runs_without_a_label_make_recall_and_kappa_doubtful_unless_weights_say_how_they_were_drawn(
    tmp_path, file
):
    # Ten yeses of the judge are labelled of 50, and ten noes of 50: each labelled row stands for five runs.
    (tmp_path / "labels.csv").write_text(
        "id,label,weight\n"
        + "".join(f"r{n},{'yes' if n < 8 else 'no'},{1 if n < 10 else 9}\n" for n in range(20))
    )
    (tmp_path / "judge.csv").write_text(
        "id,verdict\n" + "".join(f"r{n},{'yes' if n < 10 else 'no'}\n" for n in range(100))
    )
    plain = validate("--labels", "labels.csv", "--verdicts", "judge.csv")
    assert "Labels are missing for 80 rows" in plain.stderr
    done = validate("--labels", "labels.csv", "--verdicts", "judge.csv", "--weights", "weight", "--json")
    found = json.loads(done.stdout)
    (judge,) = found["judges"]
    # weighted: TP 8, FP 2, TN 10 * 9 = 90
    assert [judge[name] for name in ("tp", "fp", "fn", "tn")] == [8, 2, 0, 90]
    assert not any("no label" in warning for warning in found["warnings"])


def test_a_report_on_weighted_rows_says_that_the_figures_of_scores_have_no_weights(tmp_path, file):
    weighted = pd.read_csv(file).assign(weight=[3, *[1] * 39])
    weighted.to_csv(tmp_path / "weighted.csv", index=False)
    plain = validate("weighted.csv", *COLUMNS)
    weighted = validate("weighted.csv", *COLUMNS, "--weights", "weight")
    assert "without weights" not in plain.stderr
    assert "AUROC, the Brier score and the calibration plot count every row once" in weighted.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give one table, or both --labels FILE and --verdicts FILE"),
        (
            ("runs.csv", "--label", "humans"),
            "has no column humans; correct --label (its columns: id, human",
        ),
        (("runs.csv", "--verdict", "site", "--label", "human"), "runs.csv, column site: row 2 has 'shop'"),
        (("runs.csv", *COLUMNS, "--group", "task"), "has no column task; correct --group (its columns"),
    ],
)
def test_a_mistake_is_one_message_that_says_what_to_do(file, options, message):
    done = validate(*options)
    assert done.exit_code == 2 and message in done.stderr and "Traceback" not in done.output


def test_dataframes_give_the_same_figures(file):
    frame = pd.read_csv(file)
    found = arb.validate(frame, label="human", verdict=["judge", "other"])
    assert found["precision"].tolist() == [0.8, 1.0] and found["judge"].tolist() == ["judge", "other"]
    assert found["precision_low"].iloc[0] < 0.8 < found["precision_high"].iloc[0]
    assert found.attrs["n"] == 40


@pytest.mark.shared
def test_the_verdicts_of_agent_as_a_judge_on_devai_have_the_published_precision(shared):
    table = shared / "data" / "suites" / "devai" / "requirements.csv"
    found = arb.validate(table, label="human_satisfied", verdict="agent_as_a_judge_gray_box", group="task")
    assert (round(100 * found["precision"][0], 1), round(100 * found["recall"][0], 1)) == (84.6, 87.5)
