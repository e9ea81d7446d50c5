"""From annotations to a suite's published dev labels. No label of test comes out of here."""

from collections import Counter
from collections.abc import Iterable

from dataset_script.suite import DevLabels, Suite
from dataset_script.vocabulary import LABELS
from leaderboard.annotations import Annotation, AnnotationsInvalid, with_opaque_annotators

_ANSWERS = {"yes": True, "no": False}
MOST_ANNOTATIONS = 9


def dev_labels_of(suite: Suite, annotations: Iterable[Annotation]) -> tuple[DevLabels, ...]:
    """What the annotations say of the suite's dev trajectories, the first of each as its primary one.

    Annotators have opaque ids, by their first appearance among all annotations; what was Unsure, or not
    answered, is None. Raises AnnotationsInvalid where a trajectory has more annotations than can be kept.
    """
    is_dev = {trajectory.trajectory_id for trajectory in suite.split("dev")}
    numbers: Counter[str] = Counter()
    found = []
    for annotation in with_opaque_annotators(annotations):
        if annotation.trajectory_id not in is_dev:
            continue
        numbers[annotation.trajectory_id] += 1
        optimality = annotation.optimality or ""
        found.append(
            DevLabels(
                annotation.trajectory_id,
                numbers[annotation.trajectory_id],
                *(_ANSWERS.get(annotation.answer(label) or "") for label in LABELS),
                optimality=int(optimality) if optimality.isdigit() else None,
                annotator=annotation.annotator,
            )
        )
    if problems := [
        f"{trajectory_id}: has {number} annotations; dev labels keep {MOST_ANNOTATIONS}"
        for trajectory_id, number in numbers.items()
        if number > MOST_ANNOTATIONS
    ]:
        raise AnnotationsInvalid(problems)
    return tuple(found)


def repeated_rows(files: Iterable[tuple[str, Iterable[Annotation]]]) -> list[str]:
    """Where one person has a row on a trajectory in two files; no message repeats an answer."""
    seen: dict[tuple[str, str], str] = {}
    problems = []
    for name, annotations in files:
        for annotation in annotations:
            who = (annotation.annotator or "").strip()
            first = seen.setdefault((who, annotation.trajectory_id), name)
            if who and first != name:
                problems.append(f"{annotation.trajectory_id}: {who} has a row in {first} and one in {name}")
    return problems
