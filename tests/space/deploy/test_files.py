"""Tests of the files for the Space: the packages and their data, no other files, and no test labels."""

import dataclasses
import json
import shutil

import pyarrow
import pytest
from pyarrow import parquet

from arb.core.hub import PublishError
from arb.core.suite import load_suite
from space.deploy.files import BESIDE, PACKAGES, ROOT, SITE, is_ours, label_problems, space_files
from tests.support.annotations import OWN_QUESTIONS
from tests.support.submissions import write_suite


@pytest.fixture
def checkout(tmp_path):
    """Return a checkout with one file in each package."""
    root = tmp_path / "checkout"
    for package in PACKAGES:
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").write_text("")
    for name in BESIDE:
        (root / name).write_text("x")
    return root


def test_packages_and_requirements_go_and_tests_docs_and_benchmarks_stay():
    files = space_files(["agent-reward-bench"])
    assert {name.split("/")[0] for name in files} - {SITE} == {*PACKAGES, *BESIDE}
    for needed in (
        "space/static/style.css", "space/templates/frame/head.html",
        "submissions/records/migrations/script.py.mako",
        "arb/core/suites/agent-reward-bench/trajectories.csv", "leaderboard/published/figures.csv",
        "dataset_script/sample/data/manifest.json", "arb/judges/catalog/prompts/aer.txt",
    ):  # fmt: skip
        assert files[needed] == ROOT / needed
    assert not [name for name in files if "__pycache__" in name or "/." in name]
    assert all(is_ours(name) for name in files)


def test_the_documentation_goes_where_it_was_built_with_the_suite_that_it_is_of(checkout):
    (checkout / "site" / "assets").mkdir(parents=True)
    (checkout / "site" / "index.html").write_text("x")
    (checkout / "site" / "assets" / "docs.css").write_text("x")
    pages = {"site/index.html", "site/assets/docs.css"}
    assert {name for name in space_files(["agent-reward-bench"], checkout) if "site" in name} == pages
    assert not pages & space_files(["sample"], checkout).keys()
    assert is_ours("site/index.html")  # so that deleted pages are removed


def test_caches_and_hidden_files_are_passed_over(checkout):
    (checkout / "space" / "__pycache__").mkdir()
    (checkout / "space" / "__pycache__" / "app.cpython-311.pyc").write_bytes(b"x")
    (checkout / "space" / ".env").write_text("HF_TOKEN=hf_x")
    assert len(space_files(["sample"], checkout)) == len(PACKAGES) + len(BESIDE)


def test_what_nobody_knows_is_refused_by_name_all_at_once(checkout):
    (checkout / "space" / "records.sqlite").write_bytes(b"x")
    (checkout / "arb" / "weights.pkl").write_bytes(b"x")
    (checkout / "space" / "link.csv").symlink_to(checkout / "LICENSE")
    (checkout / "requirements.txt").unlink()
    with pytest.raises(PublishError) as refused:
        space_files(["sample"], checkout)
    for name in ("space/records.sqlite", "arb/weights.pkl", "space/link.csv", "requirements.txt"):
        assert f"{name}: " in str(refused.value)


def test_a_suite_of_ones_own_goes_where_its_name_finds_it_and_nothing_beside_it(tmp_path, checkout):
    write_suite(tmp_path)
    (tmp_path / "small" / "labels.csv").write_text("not a file of a suite")
    (tmp_path / "small" / "guidelines.md").write_text("- Look at the end.")
    files = space_files([tmp_path / "small"], checkout)
    own = {name for name in files if name.startswith("arb/core/suites/")}
    names = ("trajectories.csv", "suite.toml", "guidelines.md")
    assert own == {f"arb/core/suites/small/{name}" for name in names}


def test_a_suite_with_a_shipped_name_and_other_content_is_refused(tmp_path, checkout):
    folder = tmp_path / "sample"
    shutil.copytree(load_suite("sample").dev_labels_path.parent, folder)
    space_files([folder], checkout)  # the same content is fine
    (folder / "trajectories.csv").write_text("trajectory_id,split\nwebarena/a/b,test\n")
    with pytest.raises(PublishError, match="a shipped suite has this name"):
        space_files([folder], checkout)


@pytest.fixture
def suite(tmp_path):
    write_suite(tmp_path / "made")
    return load_suite(tmp_path / "made" / "small")


@pytest.fixture
def guard(suite, tmp_path):
    def run(name: str, content: bytes, labels=None) -> list[str]:
        path = tmp_path / name
        path.write_bytes(content)
        problems = label_problems({f"leaderboard/{name}": path}, [suite], labels)
        path.unlink()  # a copy of the labels, in which the canaries would be found
        return problems

    return run


def test_the_released_form_is_found(guard, tmp_path):
    # Labels of 30 test and 8 dev trajectories: 30 rows are problems.
    (problem,) = guard("notes.csv", (tmp_path / "made" / "labels.csv").read_bytes())
    assert problem.startswith("leaderboard/notes.csv: 30 rows")
    assert "Successful" not in problem and "webarena" not in problem


def first(suite, split) -> str:
    return suite.split(split)[0].trajectory_id


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.csv", lambda i: f"trajectory_id,success\n{i},true\n".encode()),
        ("a.csv", lambda i: f"Trajectory_ID,Repetition\n{i},false\n".encode()),
        ("a.tsv", lambda i: f"trajectory_id\toptimality\n{i}\t3\n".encode()),
        ("a.txt", lambda i: f"trajectory_id,looping\n{i},true\n".encode()),
        ("a.jsonl", lambda i: json.dumps({"trajectory_id": i, "side_effect": False}).encode()),
        ("a.json", lambda i: json.dumps([{"trajectory_id": i, "success": True}]).encode()),
        ("a.json", lambda i: json.dumps({i: True}, indent=1).encode()),
    ],
)
def test_a_label_of_a_test_trajectory_is_found_and_one_of_dev_is_not(guard, suite, name, write):
    assert len(guard(name, write(first(suite, "test")))) == 1
    assert guard(name, write(first(suite, "dev"))) == []


def test_a_label_in_parquet_is_found(guard, suite, tmp_path):
    def written(**columns) -> bytes:
        parquet.write_table(pyarrow.table(columns), tmp_path / "made.parquet")
        return (tmp_path / "made.parquet").read_bytes()

    test = first(suite, "test")
    assert len(guard("a.parquet", written(trajectory_id=[test], success=[True], goal=["x"]))) == 1
    nulls = pyarrow.array([None], pyarrow.bool_())
    assert guard("a.parquet", written(trajectory_id=[test], success=nulls)) == []


def test_an_answer_to_a_question_of_the_suites_own_is_a_label(suite, tmp_path):
    asked = dataclasses.replace(suite, targets=OWN_QUESTIONS)
    test = first(suite, "test")
    table = tmp_path / "notes.csv"
    table.write_text(f"trajectory_id,Tone\n{test},rude\n")
    made = tmp_path / "made.parquet"
    parquet.write_table(pyarrow.table({"trajectory_id": [test], "tone": ["rude"]}), made)
    for path in (table, made):
        assert len(label_problems({path.name: path}, [asked], None)) == 1
        assert label_problems({path.name: path}, [suite], None) == []
    table.write_text(f"trajectory_id,tone\n{test},\n")
    assert label_problems({"notes.csv": table}, [asked], None) == []


def test_the_configured_file_of_labels_is_found_whatever_it_is_called(guard, tmp_path):
    labels = tmp_path / "mine.bin"
    labels.write_bytes(b"anything at all")
    (problem,) = guard("harmless.py", b"anything at all", labels)
    assert "is the file with the labels" in problem


def test_test_trajectories_without_answers_are_no_labels(guard, suite):
    ids = "".join(f"{t.trajectory_id},test\n" for t in suite.split("test"))
    assert guard("trajectories.csv", f"trajectory_id,split\n{ids}".encode()) == []
    template = "".join(f"{t.trajectory_id},\n" for t in suite.split("test"))
    assert guard("template.csv", f"trajectory_id,success\n{template}".encode()) == []


def test_what_is_deployed_holds_no_label_and_the_recordings_annotations_would_be_found():
    suites = [load_suite(name) for name in ("agent-reward-bench", "sample", "localshop")]
    files = space_files(["agent-reward-bench"])
    assert label_problems(files, suites, None) == []
    annotations = "dataset_script/sample/annotations.csv"
    assert annotations not in files
    assert len(label_problems({annotations: ROOT / annotations}, suites, None)) == 1
