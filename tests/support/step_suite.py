"""A suite that asks about steps, made of runs of the sample: its folder, and labels of runs and steps."""

from pathlib import Path

from arb.core.suite import load_suite
from dataset_script import sample

SOURCE = Path(sample.__file__).parent / "data"
"""The recorded runs."""
CAREFUL, HASTY = (f"sample-forum/ScriptedAgent-{name}/sample-forum.4" for name in ("careful", "hasty"))
STUBBORN = "sample-forum/ScriptedAgent-stubborn/sample-forum.1"
OTHER = "sample-forum/ScriptedAgent-careful/sample-forum.2"
SPLITS = {CAREFUL: "dev", HASTY: "dev", STUBBORN: "test", OTHER: "test"}
STEPS = {CAREFUL: (1, 2, 3), HASTY: (1, 2, 4), STUBBORN: (1, 2, 3), OTHER: (1, 2)}
"""The steps that have labels. The runs have more."""
LABELS = {CAREFUL: "1 1 1", HASTY: "1 0 -1", STUBBORN: "1 -1 -1", OTHER: "1 0"}
FINALS = {CAREFUL: "1", HASTY: "-1", STUBBORN: "0", OTHER: "1"}

TOML = """title = "Steps of the sample"
labels = "public"
"""
FINAL = """
[[targets]]
name = "final"
title = "Final outcome"
values = ["1", "0", "-1"]
positive = ["1"]
"""
STEP = """
[[targets]]
name = "move"
title = "Move"
text = "Does the step help?"
level = "step"
answers = [
    { value = "1", title = "Helps", key = "1" },
    { value = "0", title = "Makes no difference", key = "2" },
    { value = "-1", title = "Harms", key = "3" },
]
errors = ["-1"]
metrics = ["accuracy", "first_error_accuracy"]
"""


def write_step_suite(folder: Path, targets: str = FINAL + STEP) -> Path:
    """Write the suite into a folder, with published labels of dev and test."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.toml").write_text(TOML + targets)
    rows = "".join(f"{run},{split}\n" for run, split in SPLITS.items())
    (folder / "trajectories.csv").write_text(f"trajectory_id,split\n{rows}")
    items = "".join(f"{run},{step}\n" for run, steps in STEPS.items() for step in steps)
    (folder / "items.csv").write_text(f"trajectory_id,step\n{items}")
    has_final = "final" in targets
    for split, name in (("dev", "dev_labels.csv"), ("test", "test_labels.csv")):
        lines = ["trajectory_id,step,annotation,annotator,move" + (",final" if has_final else "")]
        for run in (run for run, place in SPLITS.items() if place == split):
            if has_final:
                lines.append(f"{run},,1,annotator-1,,{FINALS[run]}")
            for step, label in zip(STEPS[run], LABELS[run].split(), strict=True):
                lines.append(f"{run},{step},1,annotator-1,{label}" + ("," if has_final else ""))
        (folder / name).write_text("\n".join(lines) + "\n")
    load_suite(folder)
    return folder


PART = """
[[targets]]
name = "met"
title = "Requirement"
text = "Is it met?"
level = "part"
answers = [{ value = "yes", title = "Yes" }, { value = "no", title = "No" }]
"""
PARTS = {STUBBORN: ("R1", "R2"), OTHER: ("R1",)}


def write_part_suite(folder: Path) -> Path:
    """Write a suite that asks about the final outcome and about named parts of two runs, without labels."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.toml").write_text(TOML + FINAL + PART)
    rows = "".join(f"{run},{split}\n" for run, split in SPLITS.items())
    (folder / "trajectories.csv").write_text(f"trajectory_id,split\n{rows}")
    items = "".join(f"{run},{part}\n" for run, parts in PARTS.items() for part in parts)
    (folder / "items.csv").write_text(f"trajectory_id,part\n{items}")
    return folder
