"""A script with which build and verify are compared: ``python -m bench.support.plain_pandas SOURCE OUT``.

It is what one would write in an afternoon: read JSON into lists, write Parquet with pandas (pyarrow, zstd),
then read it again, decode every picture and check every id. It uses one process and keeps all data in memory.
"""

import io
import json
import sys
from pathlib import Path

import pandas
from PIL import Image

from bench.support.plain_json import KEPT, KEPT_OF_A_STEP


def build(source: Path, out: Path) -> None:
    runs, steps = [], []
    for path in sorted(source.glob("cleaned/*/*/*/*.json")):
        run = json.loads(path.read_bytes())
        name = f"{path.parts[-4]}/{path.parts[-3]}/{path.stem}"
        runs.append({"trajectory_id": name, **{key: run.get(key) for key in KEPT}})
        for step in run["steps"]:
            picture = source / "screenshots" / name / f"screenshot_step_{step['num']}.png"
            data = picture.read_bytes() if picture.is_file() else None
            steps.append(
                {"trajectory_id": name, "picture": data, **{key: step.get(key) for key in KEPT_OF_A_STEP}}
            )
    out.mkdir()
    pandas.DataFrame(runs).to_parquet(out / "trajectories.parquet", compression="zstd")
    pandas.DataFrame(steps).to_parquet(out / "steps.parquet", compression="zstd")


def verify(out: Path) -> None:
    runs, steps = (pandas.read_parquet(out / f"{name}.parquet") for name in ("trajectories", "steps"))
    assert runs.trajectory_id.is_unique and set(steps.trajectory_id) == set(runs.trajectory_id)
    for data in steps.picture.dropna():
        Image.open(io.BytesIO(data)).load()


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    build(Path(sys.argv[1]), folder)
    verify(folder)
