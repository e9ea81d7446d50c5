import json
import stat

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from arb.core.ids import TrajectoryId
from dataset_script.__main__ import app
from dataset_script.build.blind import BlindError, Blinding, read_key, restore_ids, same_host
from dataset_script.build.build import BuildOptions, build
from tests.support.released_layout import step as make_step

DEV_1, DEV_2 = "shop/GenericAgent-a/shop.1", "shop/GenericAgent-b/shop.resized.1"
KEY = b"k" * 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://wa-forum-xl-1.example:9999/f", "http://wa-forum-xl.example:9999/f"),
        ("url='https://wa-forum-xl-2/'", "url='https://wa-forum-xl/'"),
        ("wa-shop-xl-1 and wa-shop-xl-2", "wa-shop-xl and wa-shop-xl"),
        ("wa-shop-xl-12", "wa-shop-xl-12"),
        ("wa-shop-xl-3", "wa-shop-xl-3"),
        ("size xl-1", "size xl-1"),
    ],
)
def test_the_copy_of_a_host_is_taken_off_its_name(text, expected):
    assert same_host(text) == expected


def test_an_id_is_opaque_stable_and_the_same_for_every_spelling():
    blinding = Blinding(KEY)
    blind = blinding.trajectory_id(DEV_2)
    assert blind == blinding.trajectory_id("shop/GenericAgent-b/shop.1")
    place = TrajectoryId.parse(blind)
    assert (place.folder, place.task_id) == ("shop", "shop.1")  # one spelling for all agents
    assert place.agent.startswith("run-") and "GenericAgent" not in blind
    assert blinding.trajectory_id(DEV_1) != blind != Blinding(b"x" * 32).trajectory_id(DEV_2)


def test_the_second_level_of_workarena_is_still_read_from_the_id():
    blind = Blinding(KEY).trajectory_id("workarena/GenericAgent-a/workarena.servicenow.sort-l2")
    assert TrajectoryId.parse(blind).benchmark == "workarena++"


def test_a_key_is_made_once_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "blind-key"
    with pytest.raises(BlindError, match="contains no key"):
        read_key(path)
    key = read_key(path, create=True)
    assert read_key(path, create=True) == read_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key.hex() not in repr(Blinding(key))
    path.write_text("abcd")
    with pytest.raises(BlindError, match="a key has 32 bytes, but this one has 2"):
        read_key(path)


@pytest.fixture
def built(full_source, out, suite):
    """A blind build of runs that name the copy of the host in every text."""
    for trajectory_id in (DEV_1, DEV_2, "shop/GenericAgent-a/shop.2"):
        host = "http://wa-shop-xl-1/"
        steps = [
            make_step(
                0, url=host, action=f"goto('{host}')", reasoning=host, axtree=host, last_action_error=host
            ),
            make_step(1, url=host, axtree=host, axtree_pruned=host),
        ]
        full_source.put(trajectory_id, steps=steps, goal=f"Go to {host}", model="gpt-secret")
        full_source.judge(trajectory_id, "aer", f"It went to {host}.\nStatus: success")
    build(full_source.path, out, suite, BuildOptions(workers=1, blinding=Blinding(KEY)))
    return out


def test_nothing_in_a_blind_dataset_names_an_agent_a_model_or_the_copy_of_a_host(built):
    for path in built.rglob("*.parquet"):
        text = json.dumps(pq.read_table(path).to_pylist(), default=str)
        for name in ("GenericAgent", "gpt-secret", "-xl-1", "resized"):
            assert name not in text, path
        if path.parent.name in ("trajectories", "steps", "judgments"):
            assert "wa-shop-xl/" in text  # so the search would find the other form
    assert "GenericAgent" not in (built / "README.md").read_text() + (built / "manifest.json").read_text()


def test_all_configurations_of_a_blind_dataset_speak_of_the_same_ids_in_their_order(built, table):
    ids = [row["trajectory_id"] for row in table(built, "test")]
    assert ids == sorted(ids)  # and not in the order of the real ids, which would tell
    for name in ("rewards", "trajectories_with_screenshot"):
        assert [row["trajectory_id"] for row in table(built, "test", name)] == ids
    assert {row["trajectory_id"] for row in table(built, "test", "steps")} == set(ids)
    assert {row["trajectory_id"] for row in table(built, "dev", "annotations")} == {
        Blinding(KEY).trajectory_id(name) for name in (DEV_1, DEV_2)
    }
    assert {(row["agent"], row["model"]) for row in table(built, "test")} == {(None, None)}


def test_a_blind_dataset_loads(built, load):
    assert load(built)["dev"].num_rows == 2


def test_verdicts_on_blind_ids_are_mapped_back(suite):
    blinding = Blinding(KEY)
    ids = [blinding.trajectory_id(name) for name in (DEV_1, DEV_2)]
    lines = [json.dumps({"trajectory_id": name, "success": True, "reasoning": "a/b/c"}) for name in ids]
    lines[1] = lines[1].replace("/", "\\/")  # as some writers escape it
    back = [json.loads(line) for line in restore_ids("\n".join(lines), suite, blinding).splitlines()]
    assert [row["trajectory_id"] for row in back] == [DEV_1, DEV_2]
    assert [row["reasoning"] for row in back] == ["a/b/c"] * 2
    table = f"trajectory_id,success\n{ids[0]},true\n"
    assert restore_ids(table, suite, blinding) == f"trajectory_id,success\n{DEV_1},true\n"


def test_ids_of_another_key_and_files_without_blind_ids_are_refused(suite):
    other = Blinding(b"x" * 32).trajectory_id(DEV_1)
    with pytest.raises(BlindError, match=f"1 ids do not belong to own-suite.*{other}"):
        restore_ids(json.dumps({"trajectory_id": other}), suite, Blinding(KEY))
    with pytest.raises(BlindError, match="contains no blind ids"):
        restore_ids(json.dumps({"trajectory_id": DEV_1}), suite, Blinding(KEY))


def test_the_commands_build_blind_and_map_back(full_source, suite_folder, tmp_path, table):
    out, key = tmp_path / "blind", tmp_path / "blind.blind-key"
    options = ["--source", str(full_source.path), "--suite", str(suite_folder), "--workers", "1"]
    result = CliRunner().invoke(app, ["build", *options, "--out", str(out), "--blind"])
    assert result.exit_code == 0 and str(key) in result.stdout
    first = [row["trajectory_id"] for row in table(out, "dev")]
    assert CliRunner().invoke(app, ["build", *options, "--out", str(out), "--blind"]).exit_code == 0
    assert [row["trajectory_id"] for row in table(out, "dev")] == first  # the key was kept
    (tmp_path / "verdicts.jsonl").write_text("\n".join(json.dumps({"trajectory_id": name}) for name in first))
    arguments = [str(tmp_path / "verdicts.jsonl"), "--key", str(key), "--suite", str(suite_folder)]
    result = CliRunner().invoke(app, ["unblind", *arguments, "--out", str(tmp_path / "back.jsonl")])
    assert result.exit_code == 0
    back = [json.loads(line)["trajectory_id"] for line in (tmp_path / "back.jsonl").read_text().splitlines()]
    assert sorted(back) == [DEV_1, DEV_2]
