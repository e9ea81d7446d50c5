"""Which files go to the Space: the packages, what they read, and nothing that lies about."""

import shutil

import pytest

from dataset_script.published_files import PublishError
from dataset_script.suite import load_suite
from space.deploy.space_files import BESIDE, PACKAGES, ROOT, is_ours, space_files
from tests.submissions.synthetic import write_suite


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a file in each package."""
    root = tmp_path / "checkout"
    for package in PACKAGES:
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").write_text("")
    for name in BESIDE:
        (root / name).write_text("x")
    return root


def test_packages_and_requirements_go_and_tests_docs_and_benchmarks_stay():
    files = space_files("agent-reward-bench")
    assert {name.split("/")[0] for name in files} == {*PACKAGES, *BESIDE}
    for needed in (
        "space/static/style.css", "space/templates/head.html", "submissions/migrations/script.py.mako",
        "dataset_script/suites/agent-reward-bench/trajectories.csv", "leaderboard/published/figures.csv",
        "dataset_script/sample/data/manifest.json", "judges/prompts/aer.txt",
    ):  # fmt: skip
        assert files[needed] == ROOT / needed
    assert not [name for name in files if "__pycache__" in name or "/." in name]
    assert all(is_ours(name) for name in files)


def test_caches_and_hidden_files_are_passed_over(checkout):
    (checkout / "space" / "__pycache__").mkdir()
    (checkout / "space" / "__pycache__" / "app.cpython-311.pyc").write_bytes(b"x")
    (checkout / "space" / ".env").write_text("HF_TOKEN=hf_x")
    assert len(space_files("sample", checkout)) == len(PACKAGES) + len(BESIDE)


def test_what_nobody_knows_is_refused_by_name_all_at_once(checkout):
    (checkout / "space" / "records.sqlite").write_bytes(b"x")
    (checkout / "judges" / "weights.pkl").write_bytes(b"x")
    (checkout / "space" / "link.csv").symlink_to(checkout / "LICENSE")
    (checkout / "requirements.txt").unlink()
    with pytest.raises(PublishError) as refused:
        space_files("sample", checkout)
    for name in ("space/records.sqlite", "judges/weights.pkl", "space/link.csv", "requirements.txt"):
        assert f"{name}: " in str(refused.value)


def test_a_suite_of_ones_own_goes_where_its_name_finds_it_and_nothing_beside_it(tmp_path, checkout):
    write_suite(tmp_path)
    (tmp_path / "small" / "labels.csv").write_text("not a file of a suite")
    files = space_files(tmp_path / "small", checkout)
    own = {name for name in files if name.startswith("dataset_script/suites/")}
    assert own == {f"dataset_script/suites/small/{name}" for name in ("trajectories.csv", "suite.toml")}


def test_a_suite_with_a_shipped_name_and_other_content_is_refused(tmp_path, checkout):
    folder = tmp_path / "sample"
    shutil.copytree(load_suite("sample").dev_labels_path.parent, folder)
    space_files(folder, checkout)  # the same content is fine
    (folder / "trajectories.csv").write_text("trajectory_id,split\nwebarena/a/b,test\n")
    with pytest.raises(PublishError, match="a shipped suite has this name"):
        space_files(folder, checkout)
