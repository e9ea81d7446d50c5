"""croissant.json: accepted by MLCommons' own reader, and every table of a build read through it."""

import json
from collections import Counter
from pathlib import Path

import mlcroissant
import pytest

from arb.core.suite import load_suite
from arb.core.suites.profile import SuiteProfile
from dataset_script.build.build import BuildOptions, build
from dataset_script.build.croissant import render_croissant
from dataset_script.card import CardFacts
from dataset_script.schema import CONFIGURATIONS, columns_of
from tests.support.annotations import OWN_QUESTIONS
from tests.support.released_layout import SourceFolder, cleaned


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Two dev and two test trajectories of the official suite: pictures, judgments, labels on dev."""
    folder, suite = tmp_path_factory.mktemp("official"), load_suite()
    few = [run.trajectory_id for split in ("dev", "test") for run in suite.split(split)[:2]]
    source = SourceFolder(folder / "trajectories")
    for trajectory_id in few:
        *steps, last = cleaned()["steps"]
        source.put(trajectory_id, steps=[*steps, last | {"screenshot_path": "screenshots/x.png"}])
        source.picture(trajectory_id, 2)
        source.judge(trajectory_id, "aer", "Status: success")
    missing = tuple(t.trajectory_id for t in suite.trajectories if t.trajectory_id not in few)
    out = folder / "agent-reward-bench"
    build(folder / "trajectories", out, suite, BuildOptions(workers=1, allow_missing=missing))
    return out


@pytest.fixture(scope="module")
def dataset(built) -> mlcroissant.Dataset:
    return mlcroissant.Dataset(built / "croissant.json")


def test_the_format_is_right_and_nothing_that_is_recommended_is_missing(dataset):
    issues = dataset.metadata.ctx.issues
    assert not issues.errors and not issues.warnings
    assert dataset.metadata.version.startswith("1.0.0+")
    assert dataset.metadata.date_published.date().isoformat() == "2025-04-11"  # arXiv:2504.08942, version 1


def test_the_version_changes_with_the_content():
    def version(fingerprint: str) -> str:
        facts = CardFacts("ours", {"dev": {}, "test": {}}, ROWS, fingerprints={"trajectories": fingerprint})
        return json.loads(render_croissant(facts))["version"]

    assert version("aa") == version("aa") != version("bb")


def test_every_row_is_read_through_it_with_its_split(dataset, built):
    shards = json.loads((built / "manifest.json").read_bytes())["files"].values()
    assert {each["configuration"] for each in shards} == CONFIGURATIONS.keys()
    for name in CONFIGURATIONS:
        expected = Counter()
        for shard in shards:
            if shard["configuration"] == name:
                expected[shard["split"].encode()] += shard["rows"]
        assert Counter(row[f"{name}/split"] for row in dataset.records(name)) == expected, name


def test_values_are_those_of_the_dataset(built):
    dataset = mlcroissant.Dataset(built / "croissant.json")  # one gives the rows of a table once
    rows = list(dataset.records("trajectories_with_screenshot"))
    table = "trajectories_with_screenshot"
    for row in rows:
        steps = row[f"{table}/steps"]
        assert [step[f"{table}/steps/num"] for step in steps] == [0, 1, 2]
        actions = [step[f"{table}/steps/action"] for step in steps]
        assert actions == [b"click('7')", b"send_msg_to_user('Done.')", None]
        assert row[f"{table}/final_screenshot"].size == (1, 1)
        is_dev = row[f"{table}/split"] == b"dev"
        assert (row[f"{table}/optimality"] is not None) == is_dev  # labels are null on test
    assert len(rows) == 4


def test_every_column_is_there_with_what_it_means(dataset):
    for record_set in dataset.metadata.record_sets[1:]:  # the first is that of the splits
        said = {field.name: field.description for field in record_set.fields}
        assert said | {c.name: c.sentence for c in columns_of(record_set.id)} == said


def test_what_the_data_are_for_and_not_for_is_said(dataset, built):
    document = json.loads((built / "croissant.json").read_bytes())
    responsible = {name for name in document if name.startswith("rai:")}
    assert {"rai:dataAnnotationProtocol", "rai:dataLimitations", "rai:dataBiases"} <= responsible
    assert "2504.08942" in dataset.metadata.cite_as
    assert dataset.metadata.license == ["https://huggingface.co/datasets/McGill-NLP/agent-reward-bench"]


ROWS = {"trajectories": {"test": 3}, "annotations": {"dev": 2}}


def test_a_suite_of_ones_own_has_its_name_questions_and_columns_and_no_other_licence():
    profile = SuiteProfile("Our Bench", "Four agents.", "", (("code", "https://example.org/code"),))
    facts = CardFacts("ours", {"dev": {}, "test": {}}, ROWS, profile=profile, questions=OWN_QUESTIONS)
    said = json.loads(render_croissant(facts))
    assert (said["name"], said["description"], said["url"]) == (
        "Our Bench", "Four agents.", "https://example.org/code",
    )  # fmt: skip
    assert "license" not in said and "citeAs" not in said and "McGill" not in str(said)
    assert all(question.text in said["rai:dataAnnotationProtocol"] for question in OWN_QUESTIONS)
    *_, annotations = said["recordSet"]
    own = {question.name for question in OWN_QUESTIONS if question.is_own}
    assert own and own <= {field["name"] for field in annotations["field"]}
    mlcroissant.Dataset(said)


def test_only_what_the_build_has_is_named_and_a_blind_one_says_so():
    said = json.loads(render_croissant(CardFacts("ours", {"dev": {}, "test": {}}, ROWS, is_blind=True)))
    assert [each["@id"] for each in said["recordSet"]] == ["splits", "trajectories", "annotations"]
    assert said["recordSet"][0]["data"] == [{"splits/name": "test"}, {"splits/name": "dev"}]
    assert said["name"] == "Ours, blind" and "hide which agent" in said["rai:dataPreprocessingProtocol"]
