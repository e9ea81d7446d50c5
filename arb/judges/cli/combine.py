"""The command ``judges combine``, which searches for the best combination of judges on dev."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from arb.core.cli import JsonOption, RunSuiteOption, flags, next_step, print_json, read_settings, stop
from arb.core.lazy import lazy_imports
from arb.core.suites.targets import verdict_target
from arb.judges.cli.options import described, suite_of_run
from arb.judges.cli.text import print_template
from arb.judges.types import OptionsError, is_reward_judge

with lazy_imports():
    import numpy as np

    from arb.judges import registry
    from arb.judges.ensembles import certificate
    from arb.judges.ensembles import combination as frozen
    from arb.judges.run import folder as run_folder
    from leaderboard import report as scoring
    from leaderboard.judge_precision import scores as precision
    from leaderboard.labels import labels as label_files
    from leaderboard.labels import source as label_source
    from leaderboard.validation import combination as searching
    from leaderboard.validation import tables


@dataclass(frozen=True)
class _DevRun:
    """A run on dev: the judge, and for each trajectory its score and its verdict (1, 0, or -1 for none)."""

    part: frozen.CombinedPart
    suite: str
    needs_reward: bool
    scores: Mapping[str, float | None]
    verdicts: Mapping[str, int]


@described
def combine(
    runs: list[str],
    out: Path,
    split: Literal["dev", "test"] = "dev",
    suite: RunSuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the pair, majority of three or cascade of judges with the highest F1 on dev.

    Each folder has a run of one judge on dev. Write JUDGE=FOLDER for a judge of your own, such as
    my_judge.py:MyJudge=runs/mine. Cross-validation over tasks shows how much F1 the search itself adds. Run
    the combination with `judges run FILE`; it asks the next judge only if that can change the verdict.
    """
    if split == "test":
        stop("--split test: a combination that is chosen on test cannot be ranked; use --split dev")
    if out.suffix != ".json":
        stop(f"--out {out}: use a file name that ends in .json")
    found = read_runs(runs)
    runs_suite = suite_of_run(found[0].suite, suite)
    try:
        labels = label_files.load_labels(runs_suite, "dev", read_settings())
        table, n_left_out = table_of(found, labels)
    except (label_source.LabelsUnavailable, label_files.LabelsInvalid) as problem:
        stop(f"choosing a combination needs labels: {problem}", code=1)
    except ValueError as problem:
        stop(str(problem))
    (chosen, figures), with_reward = choose(found, table)
    assert chosen.rule != "one"  # every candidate has two judges or more
    combination = frozen.FrozenCombination(
        rule=chosen.rule,
        judges=tuple(found[place].part for place in chosen.judges),
        uncertain=chosen.uncertain,
        suite=runs_suite.name,
        chosen_on="dev",
        label_version=labels.version,
        runs=len(table.ids),
        candidates=figures.candidates,
        f1=figures.f1,
        held_out_f1=figures.held_out_f1,
    )
    frozen.write_combination(out, combination)
    if as_json:
        found_facts = {"title": figures.title, "optimism": figures.price, "left_out": n_left_out}
        reward = with_reward and asdict(with_reward)
        print_json({**asdict(combination), **found_facts, "best_with_reward": reward})
        return
    singles = [(each.part.judge, _f1_alone(place, table)) for place, each in enumerate(found)]
    top = max(f1 or 0.0 for each, (_, f1) in zip(found, singles, strict=True) if not each.needs_reward)
    found_on: dict[str, Any] = {"n": len(table.ids), "n_left_out": n_left_out, "singles": singles, "top": top}
    print_template("combine.txt.j2", **found_on, best=figures, with_reward=with_reward, out=out)
    test = flags(suite=suite or runs_suite.name, split="test", out=f"runs/{out.stem}")
    next_step("run it on test", "judges", "run", out, *test)


def read_runs(typed: Sequence[str]) -> list[_DevRun]:
    """Return the runs in folders, all on the same suite. Raises OptionsError with the problems of all."""
    found, problems = [], []
    if not frozen.FEWEST <= len(typed) <= frozen.MOST:
        problems.append(f"name {frozen.FEWEST} to {frozen.MOST} runs, not {len(typed)}")
    for text in typed[: frozen.MOST]:
        try:
            found.append(_read_run(text))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            is_clear = isinstance(problem, ValueError)
            problems.append(str(problem) if is_clear else f"{text}: its files are incomplete; run it again")
    parts = [each.part for each in found]
    if twice := sorted({each.judge for each in parts if parts.count(each) > 1}):
        problems.append(f"{', '.join(twice)}: named twice with the same models; name each judge once")
    names = sorted({each.suite for each in found})
    if len(names) > 1:
        problems.append(f"the runs are on the suites {', '.join(names)}; name runs on one suite")
    if found and all(each.needs_reward for each in found):
        problems.append("all of these judges need the environment's reward; add one that does not")
    if problems:
        raise OptionsError("\n".join(problems))
    return found


def _read_run(text: str) -> _DevRun:
    name, _, place = ("", "", text) if Path(text).is_dir() else text.rpartition("=")
    folder = Path(place)
    known = run_folder.read_run(folder)["configuration"]
    if known["split"] != "dev":
        raise OptionsError(f"{folder}: is a run on {known['split']}; name a run on dev")
    changed = ("cascade", "threshold", "combination")
    if any(known.get(option) is not None for option in changed) or (known.get("samples") or 1) > 1:
        raise OptionsError(f"{folder}: was run with samples, a threshold or a cascade; name a plain run")
    judge = name or known["judge"]
    try:
        needs_reward = is_reward_judge(registry.find_judge(judge))
    except registry.UnknownJudgeError:
        raise OptionsError(
            f"{folder}: {judge} is not in `judges list`; write the judge's file too, such as "
            f"my_judge.py:MyJudge={folder}"
        ) from None
    records = list(run_folder.read_judgments(folder))
    codes, models = {True: 1, False: 0, None: -1}, known["models"]
    part = frozen.CombinedPart(
        judge,
        known.get("prompts") or "own",
        bool(known.get("compat")),
        any("response_format" in (model.get("extra") or {}) for model in models.values()),
        {role: f"{model['provider']}:{model['model']}" for role, model in models.items()},
        known.get("prompts_hash") or "",
    )
    scores = {name: own for name, (own, _) in certificate.scores_of(records).items()}
    verdicts = {each["trajectory_id"]: codes[each["answer"].get("success")] for each in records}
    return _DevRun(part, known["suite"], needs_reward, scores, verdicts)


def table_of(runs: Sequence[_DevRun], labels: label_files.LabelSet) -> tuple[tables.ValidationTable, int]:
    """Return the verdicts on the trajectories that can be used, and the number of those left out.

    Trajectories that only some judges judged, or whose label is unsure, are left out. Raises OptionsError if
    there are too few tasks, and ValueError if the suite has no `verdict_target`.
    """
    every = [set(run.verdicts) for run in runs]
    there = certificate.labels_of(labels, dict.fromkeys(set.intersection(*every)))
    target = verdict_target(there.targets).name
    truth = there.primary[target]
    kept = truth >= 0
    ids = [each.trajectory_id for each in there.trajectories]
    codes, _ = precision.cluster_codes(scoring.task_names(there), len(ids))
    if len(set(codes[kept])) < searching.FOLDS:
        raise OptionsError(
            f"the runs have {len(set(codes[kept]))} tasks with labels in common, but cross-validation needs "
            f"{searching.FOLDS}; judge more of dev"
        )
    judges = []
    for run in runs:
        verdicts = np.array([run.verdicts[each] for each in ids], dtype=np.int8)[kept]
        scores = np.array([run.scores[each] for each in ids], dtype=np.float64)[kept]
        has_scores = bool((~np.isnan(scores)).any())
        judges.append(tables.JudgeAnswers(_title(run, runs), verdicts, scores if has_scores else None))
    table = tables.ValidationTable(
        ids=tuple(each for each, is_kept in zip(ids, kept, strict=True) if is_kept),
        labels={target: truth[kept]},
        judges=tuple(judges),
        groups=np.unique(codes[kept], return_inverse=True)[1],
        is_grouped=True,
        slices={},
        weights=np.ones(int(kept.sum())),
        unlabelled=0,
    )
    return table, len(set.union(*every)) - len(table.ids)


def _title(run: _DevRun, runs: Sequence[_DevRun]) -> str:
    """Return the judge's name, followed by its models if another run has a judge of the same name."""
    name = run.part.judge
    if sum(each.part.judge == name for each in runs) == 1:
        return name
    return f"{name} ({', '.join(model.partition(':')[2] for model in run.part.models.values())})"


def choose(
    runs: Sequence[_DevRun], table: tables.ValidationTable
) -> tuple[tuple[searching.Combination, searching.BestCombination], searching.BestCombination | None]:
    """Return the best combination without the environment's reward, and the best with it if it is better.

    Raises OptionsError if no judge says yes correctly, so that F1 is undefined or 0.
    """
    every = frozen.candidates(table.judges, searching.Combination)
    plain = [each for each in every if not any(runs[place].needs_reward for place in each.judges)]
    best = searching.search(table, plain) if plain else None
    if best is None or not best[1].f1:
        raise OptionsError("without the environment's reward, F1 is 0 or undefined; add judges")
    overall = searching.search(table, every)
    is_better = overall is not None and overall[1].f1 > best[1].f1
    return best, overall[1] if overall is not None and is_better else None


def _f1_alone(place: int, table: tables.ValidationTable) -> float | None:
    alone = searching.search(table, [searching.Combination("one", (place,))])
    return None if alone is None else alone[1].f1
