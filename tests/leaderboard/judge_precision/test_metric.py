"""The metric as the evaluate library sees it: the module itself, and the folder loaded by a fresh process."""

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from leaderboard.judge_precision.scores import judge_scores

REPOSITORY = Path(__file__).parents[3]
FOLDER = REPOSITORY / "leaderboard" / "judge_precision"

VERDICTS = [1, 1, 0, -1, 1, 0]
LABELS = [1, 0, 0, 1, -1, 1]
OPTIONS = {
    "benchmarks": ["wa", "wa", "ab", "ab", "wa", "ab"],
    "agents": ["x", "y", "x", "y", "x", "y"],
    "clusters": ["1", "1", "2", "2", "3", "3"],
    "policy": "published",
    "n_resamples": 50,
    "seed": 4,
}


@pytest.fixture
def metric(tmp_path):
    # Imported here, and without transformers, which it does not require: else evaluate imports it, and torch
    # with it, in every process of the tests.
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "transformers", None)
        from leaderboard.judge_precision.judge_precision import JudgePrecision

    return JudgePrecision(cache_dir=str(tmp_path))


def test_compute_gives_what_the_scorer_gives(metric):
    assert metric.compute(predictions=VERDICTS, references=LABELS) == judge_scores(VERDICTS, LABELS)
    with_options = metric.compute(predictions=VERDICTS, references=LABELS, **OPTIONS)
    assert with_options == judge_scores(VERDICTS, LABELS, **OPTIONS)


def test_rows_added_in_parts_give_the_same_as_whole_columns(metric):
    metric.add_batch(predictions=VERDICTS[:3], references=LABELS[:3])
    metric.add_batch(predictions=np.array(VERDICTS[3:5]), references=np.array(LABELS[3:5]))
    metric.add(prediction=VERDICTS[5], reference=LABELS[5])
    assert metric.compute(**OPTIONS) == judge_scores(VERDICTS, LABELS, **OPTIONS)


def test_columns_passed_after_added_rows_are_scored_with_them(metric):
    metric.add_batch(predictions=VERDICTS[:2], references=LABELS[:2])
    assert metric.compute(predictions=VERDICTS[2:], references=LABELS[2:]) == judge_scores(VERDICTS, LABELS)
    # and what was added is gone afterwards
    assert metric.compute(predictions=[1], references=[1])["n"] == 1


def test_columns_of_pandas_and_arrow_and_generators_are_scored_and_added(metric):
    verdicts, labels = [True, None, False, True], [True, True, False, False]
    expected = judge_scores([1, -1, 0, 1], [1, 1, 0, 0])
    columns = (
        lambda values: pd.Series(values, dtype="boolean"),
        lambda values: pa.array(values),
        lambda values: (value for value in values),
    )
    for column in columns:
        assert metric.compute(predictions=column(verdicts), references=column(labels)) == expected
        metric.add_batch(predictions=column(verdicts), references=column(labels))
        assert metric.compute() == expected


def test_an_unknown_option_is_refused_by_the_method_that_was_called(metric):
    with pytest.raises(TypeError, match=r"^compute: 'polcy' is not an option; did you mean policy\?$"):
        metric.compute(predictions=VERDICTS, references=LABELS, polcy="strict")
    with pytest.raises(
        TypeError, match="'average' is not an option; use benchmarks, agents, clusters, policy"
    ):
        metric.compute(predictions=VERDICTS, references=LABELS, average="macro")


def test_columns_without_their_names_and_a_dict_of_them_are_refused_with_what_to_do(metric):
    for unnamed in ((VERDICTS, LABELS), ({"predictions": VERDICTS, "references": LABELS},)):
        with pytest.raises(TypeError, match=r"compute: name the columns, as in compute\(predictions="):
            metric.compute(*unnamed)
    with pytest.raises(ValueError, match=r"predictions: expected a column .* got dict"):
        metric.compute(predictions={"a/b/c": 1}, references={"a/b/c": 1})


def test_one_column_without_the_other_is_refused(metric):
    with pytest.raises(ValueError, match="predictions and references: give both"):
        metric.compute(predictions=VERDICTS)
    with pytest.raises(ValueError, match="predictions and references: give both"):
        metric.compute(references=LABELS)


def test_wrong_values_and_unequal_lengths_are_refused_with_their_rows(metric):
    with pytest.raises(ValueError, match=r"predictions: .* row 1 is 5"):
        metric.compute(predictions=[1, 5], references=[1, 0])
    with pytest.raises(ValueError, match="references has 2"):
        metric.compute(predictions=[1, 0, 1], references=[1, 0])


def test_a_million_predictions_are_not_encoded_one_by_one(metric, monkeypatch):
    import evaluate

    monkeypatch.setattr(
        evaluate.Metric, "add_batch", lambda *_, **__: pytest.fail("took evaluate's slow way")
    )
    generator = np.random.default_rng(0)
    verdicts, labels = generator.integers(-1, 2, 1_000_000), generator.integers(0, 2, 1_000_000)
    assert metric.compute(predictions=verdicts, references=labels)["n"] == 1_000_000


def test_the_example_in_the_docstring_is_right(metric, monkeypatch):
    import evaluate

    monkeypatch.setattr(evaluate, "load", lambda _: metric)
    example = doctest.DocTestParser().get_doctest(
        metric._info.__globals__["_KWARGS_DESCRIPTION"], {"evaluate": evaluate}, "compute", None, 0
    )
    assert len(example.examples) == 3
    assert doctest.DocTestRunner().run(example).failed == 0


ONLY_WHAT_IT_REQUIRES = """
import sys
sys.modules["transformers"] = None
import evaluate
del sys.modules["transformers"]
"""
"""Where transformers is installed, evaluate imports it; the metric's requirements do not have it."""


def _in_a_fresh_process(code: str, cwd: Path, home: Path) -> subprocess.CompletedProcess:
    """Run ``code`` where nothing was loaded before; the caches are in ``home``."""
    outside = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "PYTHONPATH"))}
    environment = {**outside, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
    return subprocess.run(
        [sys.executable, "-I", "-c", ONLY_WHAT_IT_REQUIRES + code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


LOAD_AND_SCORE = """
import evaluate, json, pathlib, sys
metric = evaluate.load({path!r})
verdicts, labels, options = json.loads({arguments!r})
compute = metric.compute(predictions=verdicts, references=labels, **options)
metric.add_batch(predictions=verdicts, references=labels)
assert metric.compute(**options) == compute
copied = pathlib.Path(sys.modules[type(metric).__module__].__file__).parent
print(json.dumps([compute, str(copied), sorted(p.name for p in copied.glob("*.py"))]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("from_root", [True, False], ids=["from the repository", "from elsewhere"])
def test_evaluate_loads_the_folder_and_copies_all_it_needs(tmp_path, from_root):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    elsewhere.mkdir()
    path, cwd = ("leaderboard/judge_precision", REPOSITORY) if from_root else (str(FOLDER), elsewhere)
    code = LOAD_AND_SCORE.format(path=path, arguments=json.dumps([VERDICTS, LABELS, OPTIONS]))
    done = _in_a_fresh_process(code, cwd, home)
    assert done.returncode == 0, done.stderr
    result, copied, files = json.loads(done.stdout.splitlines()[-1])
    assert result == judge_scores(VERDICTS, LABELS, **OPTIONS)
    # it ran from the copy, not from this checkout
    assert Path(copied).is_relative_to(home)
    assert {"confusion.py", "intervals.py", "judge_precision.py", "scores.py"} <= set(files)


@pytest.mark.slow
def test_the_example_of_the_readme_runs_as_it_stands(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    *setup, last = blocks[0].strip().splitlines()
    expression, _, promised = last.partition("  # ")
    done = _in_a_fresh_process("\n".join([*setup, f"print({expression})"]), REPOSITORY, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == promised == "0.5"


def test_the_readme_and_the_requirements_are_what_a_community_metric_needs():
    card = (FOLDER / "README.md").read_text(encoding="utf-8").split("---")[1]
    assert "sdk: gradio" in card
    assert "app_file: app.py" in card
    needed = {line.split(">=")[0] for line in (FOLDER / "requirements.txt").read_text().splitlines()}
    assert needed == {"datasets", "evaluate", "gradio", "numpy"}
