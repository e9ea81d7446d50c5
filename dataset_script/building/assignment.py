"""Which files of a source belong to which trajectory of the suite. Pure but for the shipped suites' lists."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from dataset_script.building.report import finding
from dataset_script.prediction_file.findings import Finding
from dataset_script.sources.base import SourceFile, SourceListing
from dataset_script.suite import Suite, SuiteError, Trajectory, load_suite, shipped_suites


@dataclass(frozen=True, slots=True)
class Assignment:
    """The files of each trajectory, the one in the released spelling first; and what belongs to none."""

    files: Mapping[Trajectory, list[SourceFile]]
    left_out: list[Finding]
    notes: list[Finding]


def assign(suite: Suite, listing: SourceListing) -> Assignment:
    """Give every file of the listing to the trajectory that its id names, in any spelling."""
    left_out: list[Finding] = []
    notes: list[Finding] = []
    for name in listing.others:
        if name.endswith(".json"):
            left_out.append(finding("misplaced", name))
        else:
            notes.append(finding("not_json_file", name))
    files: dict[Trajectory, list[SourceFile]] = defaultdict(list)
    for file in listing.files:
        trajectory = suite.find(file.trajectory_id)
        if trajectory is None:
            left_out.append(finding("not_in_suite", file.name))
        else:
            files[trajectory].append(file)
    for trajectory, group in files.items():
        group.sort(key=lambda file: (file.trajectory_id != trajectory.trajectory_id, file.name))
    return Assignment(files, left_out, notes)


def choose_suite(trajectory_ids: list[str]) -> Suite:
    """The shipped suite that holds some of these ids; raises SuiteError when none does, or more than one."""
    holding = []
    for name in shipped_suites():
        suite = load_suite(name)
        if any(suite.find(spelled) for spelled in trajectory_ids):
            holding.append(suite)
    if len(holding) == 1:
        return holding[0]
    if holding:
        names = ", ".join(suite.name for suite in holding)
        raise SuiteError(f"the source holds trajectories of several suites ({names}); choose by --suite")
    raise SuiteError(
        f"no shipped suite ({', '.join(shipped_suites())}) has any of the {len(trajectory_ids)} trajectories "
        f"found, such as {', '.join(trajectory_ids[:3])}; give --suite FOLDER, a folder with "
        "trajectories.csv (columns trajectory_id, split; split is dev or test)"
    )
