"""`load_dataset` and single reads from a Hub on this machine: values, bytes served and time."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import HfFileSystem
from PIL import Image

from dataset_script.by_id import IndexEntry, TrajectoryReader, row_groups_of
from dataset_script.repository import BLOCK
from dataset_script.schema import CONFIGURATIONS, arrow_schema
from tests.support.hub_server.server import HubServer, running_hub

REPOSITORY = Path(__file__).parents[2]
REPO = "the-lab/agent-reward-bench"
SHARD = 16_000_000

LOAD = """
import json, os, sys
from datasets import load_dataset
for configuration in sys.argv[3].split(","):
    asked = {"name": configuration} if configuration else {}
    loaded = load_dataset(sys.argv[1], streaming=sys.argv[2] == "streaming", **asked)
    for split, rows in loaded.items():
        of_image = lambda image: [image.size, image.getpixel((0, 0))]
        print(json.dumps([configuration, split, list(rows)], default=of_image))
sys.stdout.flush()
os._exit(0)  # on a busy machine a thread of pyarrow 26 may still run, and abort the process: 2 of 36 did
"""
FIRST_ROW = """
import json, os, sys, time
from datasets import load_dataset
started = time.perf_counter()
row = next(iter(load_dataset(sys.argv[1], split="dev", streaming=True)))
seconds = time.perf_counter() - started
print(json.dumps([seconds, row["trajectory_id"], row["n_steps"]]), flush=True)
os._exit(0)  # on a busy machine a thread of pyarrow 26 may still run, and abort the process
"""


IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def picture(number: int) -> bytes:
    """A PNG that is told from others by its size and its colour."""
    file = io.BytesIO()
    Image.new("RGB", (number + 1, 2), (number, 0, 0)).save(file, "PNG")
    return file.getvalue()


def as_loaded(cell):
    """A cell of Parquet as LOAD prints it: an image by its size and colour."""
    if isinstance(cell, dict) and set(cell) == {"bytes", "path"}:
        image = Image.open(io.BytesIO(cell["bytes"]))
        return [list(image.size), list(image.getpixel((0, 0)))]
    if isinstance(cell, dict):
        return {name: as_loaded(inside) for name, inside in cell.items()}
    return [as_loaded(inside) for inside in cell] if isinstance(cell, list) else cell


def value(kind: pa.DataType, number: int):
    """Some value of an Arrow type."""
    if kind == IMAGE:
        return {"bytes": picture(number), "path": None}
    if pa.types.is_struct(kind):
        return {kind.field(i).name: value(kind.field(i).type, number) for i in range(kind.num_fields)}
    if pa.types.is_list(kind):
        return [value(kind.value_type, number + i) for i in range(2)]
    if pa.types.is_string(kind):
        return f"text {number}"
    return number % 2 == 1 if pa.types.is_boolean(kind) else number % 2


def table(configuration: str, split: str, rows: int) -> pa.Table:
    schema = arrow_schema(configuration)
    columns = {field.name: [value(field.type, number) for number in range(rows)] for field in schema}
    if "trajectory_id" in columns:
        columns["trajectory_id"] = [f"web/{split}/web.{number}" for number in range(rows)]
    if split == "test":  # no labels
        columns |= {name: [None] * rows for name in ("success", "optimality") if name in columns}
    return pa.table(columns, schema=schema)


def card(folder: Path) -> str:
    """The card's YAML block for whatever lies in data/, the default configuration marked."""
    configs = []
    for name in CONFIGURATIONS:
        splits = [split for split in ("dev", "test") if list(folder.glob(f"data/{name}/{split}-*"))]
        if splits:
            files = [{"split": split, "path": f"data/{name}/{split}-*.parquet"} for split in splits]
            configs.append({"config_name": name, "data_files": files, "default": name == "trajectories"})
    return f"---\n{yaml.safe_dump({'configs': configs})}---\n# A dataset\n"


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A small published folder with every configuration."""
    folder = tmp_path_factory.mktemp("published")
    for name, configuration in CONFIGURATIONS.items():
        for split, rows in (("dev", 3), ("test", 2)):
            if split in configuration.splits:
                path = folder / f"data/{name}/{split}-00000-of-00001.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(table(name, split, rows), path, compression="zstd")
    (folder / "README.md").write_text(card(folder))
    return folder


@pytest.fixture
def python(tmp_path):
    """Run a script as a user does, with the Hub's address in HF_ENDPOINT and an empty cache."""

    def run(hub: HubServer, script: str, *arguments: str) -> str:
        environment = {
            **os.environ, "HF_ENDPOINT": hub.url, "NO_PROXY": "127.0.0.1", "HF_HUB_DISABLE_XET": "1",
            "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_TOKEN": "hf_maintainer",
        }  # fmt: skip
        environment.pop("HF_HUB_OFFLINE", None)
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    return run


@pytest.mark.slow
@pytest.mark.parametrize("how", ["streaming", "download"])
def test_every_configuration_loads_with_the_values_that_were_published(published, python, how):
    with HubServer() as hub:
        hub.add_folder(REPO, published)
        lines = python(hub, LOAD, REPO, how, ",".join(["", *CONFIGURATIONS])).splitlines()
    loaded = {(name, split): rows for name, split, rows in map(json.loads, lines)}
    for (name, split), rows in loaded.items():
        path = published / f"data/{name or 'trajectories'}/{split}-00000-of-00001.parquet"
        assert rows == as_loaded(pq.read_table(path).to_pylist()), (name, split)
    expected = {(c.name, split) for c in CONFIGURATIONS.values() for split in c.splits}
    assert loaded.keys() == expected | {("", "dev"), ("", "test")}  # "" is the default


def noise(size: int) -> str:
    """Text that no compression makes smaller than its hexadecimal digits allow."""
    return os.urandom(size // 2).hex()


@pytest.mark.slow
def test_the_first_row_of_a_stream_takes_at_most_a_shard(tmp_path, python):
    folder = tmp_path / "published"
    (folder / "data/trajectories").mkdir(parents=True)
    rows = table("trajectories", "dev", 64)
    sizes = []
    for shard in range(3):
        trees = pa.array([noise(440_000) for _ in range(64)])
        index = rows.schema.get_field_index("final_axtree")
        filled = rows.set_column(index, rows.schema.field(index), trees)
        path = folder / f"data/trajectories/dev-{shard:05}-of-00003.parquet"
        pq.write_table(filled, path, compression="zstd")
        sizes.append(path.stat().st_size)
    assert all(0.85 * SHARD < size <= SHARD for size in sizes)  # as large as a shard of text may be
    (folder / "README.md").write_text(card(folder))
    with HubServer() as hub:
        hub.add_folder(REPO, folder)
        seconds, trajectory_id, n_steps = json.loads(python(hub, FIRST_ROW, REPO))
        served = sum(count for path, count in hub.served.items() if path.startswith("data/"))
        print(f"\nfirst row after {seconds:.2f} s, {served:,} bytes of data")
        assert (trajectory_id, n_steps) == ("web/dev/web.0", 0)
        assert served <= SHARD


FIRST_STEP = """
import os, sys
from datasets import Image, load_dataset
steps = load_dataset(sys.argv[1], "steps", split="dev", streaming=True).reshard()
rows = iter(steps.cast_column("screenshot", Image(decode=False)))
print(next(rows)["trajectory_id"], flush=True)
rows.close()  # ends what pyarrow still reads, which could abort a process that ends
os._exit(0)  # on a busy machine a thread of pyarrow 26 may still run, and abort the process
"""


@pytest.mark.slow
@pytest.mark.shared
def test_what_the_commands_build_and_publish_loads_from_the_hub(shared, tmp_path, python):
    out = tmp_path / "built"
    build = ["build", "--source", str(shared / "data/released_layout"), "--out", str(out)]
    subprocess.run([sys.executable, "-m", "dataset_script", *build], cwd=REPOSITORY, check=True)
    run = "import sys; from dataset_script.__main__ import app; app(sys.argv[1:])"
    with HubServer() as hub:
        for said in ("files written, 0 removed", "was there already; no commit"):
            assert said in python(hub, run, "publish", str(out), "--repo", REPO)
        names = [name for name in CONFIGURATIONS if (out / "data" / name).is_dir()]
        lines = python(hub, LOAD, REPO, "streaming", ",".join(names)).splitlines()
    assert len(names) >= 6  # the six recorded runs were not judged by anyone
    shards = sorted((out / "data").rglob("*.parquet"))
    assert len(lines) == len(shards)
    for name, split, rows in map(json.loads, lines):
        (path,) = (out / "data" / name).glob(f"{split}-*.parquet")
        assert [row.get("trajectory_id") for row in rows] == [
            row.get("trajectory_id") for row in pq.read_table(path).to_pylist()
        ]


@pytest.fixture(scope="module")
def large_steps(tmp_path_factory) -> Path:
    """A full-size shard of `steps`: 50 trajectories of 8 steps with half a megabyte of pixels, 200 MB."""
    path = tmp_path_factory.mktemp("large") / "data/steps/dev-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    rows = table("steps", "dev", 8)
    with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for number in range(50):
            pixels = [{"bytes": os.urandom(500_000), "path": None} for _ in range(8)]
            columns = {name: rows[name] for name in rows.column_names}
            columns |= {
                "trajectory_id": pa.array([f"web/dev/web.{number:02}"] * 8),
                "num": pa.array(range(8), pa.int32()),
                "screenshot": pa.array(pixels, rows.schema.field("screenshot").type),
            }
            writer.write_table(pa.table(columns, schema=rows.schema))
    assert path.stat().st_size > 190_000_000
    return path


def reader_of(open_file, name="data/steps/dev-00000-of-00001.parquet", configuration="steps"):
    """A reader of one file, of whose ids nothing is known."""
    reader = TrajectoryReader(open_file)
    reader.entries = (IndexEntry(configuration, "dev", name, None, None),)
    return reader


def test_one_trajectorys_screenshots_out_of_a_large_file_fetch_its_row_group_only(large_steps, monkeypatch):
    name = "data/steps/dev-00000-of-00001.parquet"
    with running_hub(monkeypatch) as hub:
        hub.commit(REPO, {name: large_steps})
        files = HfFileSystem(endpoint=hub.url, token=False, skip_instance_cache=True)
        path = f"datasets/{REPO}/{name}"
        with files.open(path, block_size=BLOCK) as file:
            assert list(row_groups_of("web/dev/web.33", pq.read_metadata(file))) == [33]
        footer = hub.served[name]
        reader = reader_of(lambda _name: files.open(path, block_size=BLOCK))
        found = reader.rows("steps", "web/dev/web.33", ["num", "screenshot"])
        served = hub.served[name]
    assert [row["num"] for row in found] == list(range(8))
    here = pq.ParquetFile(large_steps)
    assert found == here.read_row_group(33, columns=["num", "screenshot"]).to_pylist()
    group = here.metadata.row_group(33).total_byte_size
    print(f"\nfooter {footer:,}, row group {group:,}, served {served:,} of {large_steps.stat().st_size:,}")
    assert footer < 8 * BLOCK
    assert served < 2 * footer + group + 8 * BLOCK  # 2 %: not even its neighbours


def test_a_resharded_stream_of_a_large_file_reads_a_row_group_at_a_time(large_steps, python):
    # Without reshard() it reads 40 to 67 MB ahead, and a process that ends then aborts or hangs.
    folder = large_steps.parents[2]
    (folder / "README.md").write_text(card(folder))
    with HubServer() as hub:
        hub.add_folder(REPO, folder)
        assert python(hub, FIRST_STEP, REPO).strip() == "web/dev/web.00"
        served = hub.served["data/steps/dev-00000-of-00001.parquet"]
    print(f"\nfirst step: served {served:,}")
    assert served < 15_000_000  # row groups of 4 MB; the client's blocks are 5 MB


def test_text_columns_alone_leave_the_pixels_where_they_are(large_steps, monkeypatch):
    name = "data/steps/dev-00000-of-00001.parquet"
    with running_hub(monkeypatch) as hub:
        hub.commit(REPO, {name: large_steps})
        files = HfFileSystem(endpoint=hub.url, token=False, skip_instance_cache=True)
        reader = reader_of(lambda _name: files.open(f"datasets/{REPO}/{name}", block_size=BLOCK))
        found = reader.rows("steps", "web/dev/web.07", ["action"])
        served = hub.served[name]
    assert [list(row) for row in found] == [["action"]] * 8
    assert served < 16 * BLOCK  # one step's pixels alone are as much as 8 blocks


def test_rows_are_found_in_groups_of_several_trajectories_and_of_none(tmp_path):
    rows = pa.table({"trajectory_id": ["a", "a", "b", "c", "c", "c"], "num": [0, 1, 0, 0, 1, 2]})
    path = tmp_path / "mixed.parquet"
    pq.write_table(rows, path, row_group_size=2)  # (a a) (b c) (c c)
    metadata = pq.read_metadata(path)
    assert [row_groups_of(name, metadata) for name in ("a", "b", "c", "d")] == [[0], [1], [1, 2], []]
    reader = reader_of(lambda _name: path.open("rb"))
    assert reader.rows("steps", "c") == [{"trajectory_id": "c", "num": num} for num in (0, 1, 2)]
    assert reader.rows("steps", "c", ["num"]) == [{"num": num} for num in (0, 1, 2)]
    assert reader.rows("steps", "d") == []


def test_a_file_whose_footer_tells_no_ids_is_searched_and_one_without_ids_refused(tmp_path):
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"trajectory_id": ["a", "b"]}), path, write_statistics=False)
    assert len(reader_of(lambda _name: path.open("rb")).rows("steps", "b")) == 1
    pq.write_table(pa.table({"num": [1]}), path)
    with pytest.raises(KeyError, match="trajectory_id"):
        reader_of(lambda _name: path.open("rb")).rows("steps", "b")
