"""A private suite with binary targets of its own, and a public one with grades and steps: labels and files.

Nothing in them is named like a target of AgentRewardBench.
"""

import json

RUNS = tuple(f"chat/agent-{agent}/{number:02}" for agent in "ab" for number in range(30))
PRIVATE = """
[rules]
files_a_year = 4
fewest_positives = 1
round_days = 1
[[targets]]
name = "solved"
values = ["solved", "failed"]
positive = ["solved"]
[[targets]]
name = "polite"
answers = [{ value = "yes" }, { value = "no" }]
"""
PUBLIC = """
labels = "public"
[rules]
files_a_day = 100
files_a_year = 100
[[targets]]
name = "quality"
type = "ordinal"
values = ["1", "2", "3"]
main = "weighted_kappa"
metrics = ["weighted_kappa", "mae"]
[[targets]]
name = "act"
level = "step"
values = ["right", "wrong"]
positive = ["right"]
errors = ["wrong"]
main = "first_error_accuracy"
"""
STEPS = ("1", "2")


def folder_of(tmp_path, toml, items=""):
    suite = tmp_path / "small"
    suite.mkdir(parents=True)
    (suite / "suite.toml").write_text(toml)
    (suite / "trajectories.csv").write_text(
        "trajectory_id,split\n" + "".join(f"{run},test\n" for run in RUNS)
    )
    if items:
        (suite / "items.csv").write_text(items)
    return suite


def is_solved(number: int) -> bool:
    return number % 2 == 0


def private_labels(swapped: int = 0) -> str:
    lines = ["trajectory_id,annotator,solved,polite"]
    for number, run in enumerate(RUNS):
        solved = is_solved(number) != (number < swapped)
        lines.append(f"{run},Eva,{'solved' if solved else 'failed'},{'yes' if number % 3 else 'no'}")
    return "\n".join(lines) + "\n"


def private_file(false_alarms: int = 0) -> bytes:
    """A file that is right, except that it calls the first failures solved."""
    rows = []
    for number, run in enumerate(RUNS):
        yes = is_solved(number)
        if not yes and false_alarms:
            yes, false_alarms = True, false_alarms - 1
        rows.append({"trajectory_id": run, "solved": "solved" if yes else "failed", "polite": number % 3 > 0})
    return "\n".join(map(json.dumps, rows)).encode()


def public_labels(quality_of_first: int = 1) -> str:
    lines = ["trajectory_id,step,annotator,quality,act"]
    for person in ("Eva", "Tom"):
        for number, run in enumerate(RUNS):
            grade = quality_of_first if number == 0 and person == "Eva" else number % 3 + 1
            lines.append(f"{run},,{person},{grade},")
            lines += [f"{run},{step},{person},,{act_of(number, step)}" for step in STEPS]
    return "\n".join(lines) + "\n"


def act_of(number: int, step: str) -> str:
    return "wrong" if step == "2" and number % 2 else "right"


def public_file(wrong: int = 0, blind: int = 0) -> bytes:
    """A file with the next grade for the first ``wrong`` runs, and no wrong step in the first ``blind``."""
    rows = []
    for number, run in enumerate(RUNS):
        rows.append({"trajectory_id": run, "quality": str((number + (number < wrong)) % 3 + 1)})
        for step in STEPS:
            act = "right" if number < blind else act_of(number, step)
            rows.append({"trajectory_id": run, "step": step, "act": act})
    return "\n".join(map(json.dumps, rows)).encode()
