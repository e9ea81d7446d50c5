import random

import pyarrow.parquet as pq
import pytest

from arb.core.suite import Trajectory
from dataset_script.build import shards
from dataset_script.build.parts import PartTask, make_part
from dataset_script.build.shards import plan_shards, render_manifest, write_shard
from dataset_script.schema import arrow_schema
from dataset_script.sources.published import Shard
from dataset_script.sources.released import ReleasedSource
from tests.support.released_layout import png
from tests.support.released_layout import step as make_step

SHARDS = [
    Shard("steps", "test", "b" * 64, 20, 3, "data/steps/test-00000-of-00001.parquet"),
    Shard("rewards", "dev", "a" * 64, 10, 1, "data/rewards/dev-00000-of-00001.parquet"),
]


def test_the_order_of_the_work_does_not_change_the_text():
    assert render_manifest("own", {}, SHARDS) == render_manifest("own", {}, SHARDS[::-1])


@pytest.fixture
def parts(source, tmp_path):
    """Parts of as many trajectories as asked for, each with about so much text that hardly compresses."""
    chance = random.Random(0)

    def make(count, characters=0, pictures=0, final=False):
        for number in range(count):
            name = f"shop/a/shop.{number:03d}"
            where = f"screenshots/{name}/screenshot_step_0.png"
            tree = chance.randbytes(characters // 2).hex()
            steps = [make_step(0, axtree=tree, screenshot_path=where), make_step(1)]
            source.put(name, steps=steps[:1] if final else steps)
            if pictures:
                source.picture(name, 0, png(0)[:-12] + chance.randbytes(pictures) + png(0)[-12:])
        released = ReleasedSource(source.path)
        folder = tmp_path / "parts"
        folder.mkdir(exist_ok=True)
        return [
            make_part(PartTask(folder, released, Trajectory(f.trajectory_id, "shop", "a", "t", "test"), (f,)))
            for f in released.list_runs().files
        ]

    return make


def write(tmp_path, configuration, made):
    tasks = plan_shards(tmp_path / "out", configuration, "test", made)
    return [(write_shard(task), tmp_path / "out" / task.name) for task in tasks]


def ids(path):
    return pq.read_table(path, columns=["trajectory_id"])["trajectory_id"].to_pylist()


def test_shards_keep_to_their_size_and_hold_every_row_in_order(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "TEXT_SHARD_BYTES", 100_000)
    made = parts(40, 10_000, final=True)
    written = write(tmp_path, "trajectories", made)
    assert [row for _, path in written for row in ids(path)] == [f"shop/a/shop.{n:03d}" for n in range(40)]
    assert len(written) > 2  # 400 kB of text, about half of it after compression
    assert max(shard.bytes for shard, _ in written) <= 100_000


def test_a_trajectory_larger_than_a_shard_stands_in_one_of_its_own(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "IMAGE_SHARD_BYTES", 10_000)
    monkeypatch.setattr(shards, "LEAST_FILLED", 1)  # no id ends a shard
    made = [*parts(2), *parts(3, 50_000)[2:]]
    small, large = made[0], made[2]
    tasks = list(plan_shards(tmp_path, "steps", "test", [small, small, large, small]))
    assert [len(task.parts) for task in tasks] == [2, 1, 1]
    assert [task.name for task in tasks] == [
        f"data/steps/test-0000{index}-of-00003.parquet" for index in range(3)
    ]


def test_a_shard_of_steps_has_a_bounded_number_of_trajectories(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "MOST_TRAJECTORIES", 3)
    made = parts(7)
    assert [len(task.parts) for task in plan_shards(tmp_path, "steps", "test", made)] == [3, 3, 1]
    assert [len(task.parts) for task in plan_shards(tmp_path, "trajectories", "test", made)] == [7]


class Sized:
    """A part by its id and its size alone; and the shard of an earlier build that it is in."""

    def __init__(self, number: int, size: int, earlier: int | None = None):
        self.earlier = earlier
        self.trajectory_id, self.sizes = f"shop/a/shop.{number:05d}", {"trajectories": size}


def groups(made):
    tasks = plan_shards(None, "trajectories", "test", made)
    return [tuple(part.trajectory_id for part in task.parts) for task in tasks]


def test_an_added_trajectory_changes_the_shard_that_it_falls_into_and_no_other():
    chance = random.Random(0)
    made = [Sized(number, chance.randint(10_000, 50_000)) for number in range(5_000)]
    added = chance.randrange(1, 4_999)
    before, after = groups(made[:added] + made[added + 1 :]), groups(made)
    sizes = {part.trajectory_id: part.sizes["trajectories"] for part in made}
    assert len(before) > 20  # 150 MB in shards of 2 to 8 MB
    assert all(sum(map(sizes.get, ids)) <= shards.TEXT_SHARD_BYTES for ids in after)
    assert all(sum(map(sizes.get, ids)) >= 2_000_000 for ids in after[:-1])
    assert len(set(after) - set(before)) <= 2  # itself, and where it no longer ends at an id the next


def test_with_the_shards_of_an_earlier_build_what_is_new_follows_and_nothing_moves():
    in_order = [(3, 0), (1, 0), (6, 1), *((number, None) for number in (0, 2, 4, 5, 7))]
    made = [Sized(number, 3_000_000, earlier) for number, earlier in in_order]
    ids = [part.trajectory_id for part in made]
    found = groups(made)
    assert found[:2] == [(ids[0], ids[1]), (ids[2],)]  # as they were, though both would fit into one
    assert sum(found[2:], ()) == tuple(ids[3:])


def test_pages_of_text_end_by_content_and_are_indexed_and_a_trajectorys_steps_are_read_whole(parts, tmp_path):
    made = parts(2)
    indexed = {}
    for name in ("trajectories", "steps"):
        ((_, path),) = write(tmp_path, name, made)
        indexed[name] = pq.ParquetFile(path).metadata.row_group(0).column(0).has_offset_index
    assert indexed == {"trajectories": True, "steps": False}


def test_in_steps_each_trajectory_is_a_row_group_named_by_its_statistics(parts, tmp_path):
    ((shard, path),) = write(tmp_path, "steps", parts(3, 1_000, pictures=5_000))
    groups = pq.ParquetFile(path).metadata
    assert (shard.rows, groups.num_row_groups) == (6, 3)  # two steps each
    found = [groups.row_group(n).column(0).statistics for n in range(3)]
    assert [(s.min, s.max) for s in found] == [(f"shop/a/shop.{n:03d}",) * 2 for n in range(3)]


def test_a_text_shard_is_one_row_group_so_that_a_stream_left_early_ends_cleanly(parts, tmp_path):
    ((shard, path),) = write(tmp_path, "trajectories", parts(9))
    assert (shard.rows, pq.ParquetFile(path).metadata.num_row_groups) == (9, 1)


def test_with_a_final_screenshot_neighbours_share_row_groups_of_bounded_size(parts, tmp_path, monkeypatch):
    made = parts(9, pictures=5_000, final=True)
    one = made[0].table("trajectories_with_screenshot").nbytes
    monkeypatch.setattr(shards, "ROW_GROUP_BYTES", 2 * one)
    ((_, path),) = write(tmp_path, "trajectories_with_screenshot", made)
    groups = pq.ParquetFile(path).metadata
    sizes = [groups.row_group(n).num_rows for n in range(groups.num_row_groups)]
    assert sum(sizes) == 9
    assert len(sizes) > 1
    assert max(sizes) <= 3


def test_files_are_zstd_and_carry_the_features(parts, tmp_path):
    ((_, path),) = write(tmp_path, "trajectories", parts(1))
    file = pq.ParquetFile(path)
    row_group = file.metadata.row_group(0)
    assert {row_group.column(n).compression for n in range(row_group.num_columns)} == {"ZSTD"}
    assert file.schema_arrow == arrow_schema("trajectories")
    assert file.schema_arrow.metadata == arrow_schema("trajectories").metadata


def test_the_same_parts_make_the_same_bytes(parts, tmp_path):
    made = parts(3, 500)
    first = {
        shard.name: shard.sha256
        for name in ("trajectories", "steps")
        for shard, _ in write(tmp_path, name, made)
    }
    again = {
        shard.name: shard.sha256
        for name in ("trajectories", "steps")
        for shard, _ in write(tmp_path / "again", name, made)
    }
    assert first == again
