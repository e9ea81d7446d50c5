"""The experts' labels of single trajectories, for every page that shows or uses them.

`Suite.shows_labels` is the rule: labels of dev may be shown, and those of test if the suite's labels are
public. The labels are those that judges are scored on. A trajectory without such labels keeps the
dev labels of the dataset, which never has labels of test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arb.core.annotation import DECISION, Annotation
from arb.core.ids import ItemKey, reading_key
from arb.core.suites.targets import UNSURE, Target
from arb.core.vocabulary import SPLITS
from dataset_script.sources.published import PublishedDataset
from space.pages.trajectories.index import Labels, TrajectoryEntry, labels_of
from submissions.app import SubmissionsApp
from submissions.labels.versions import LabelStore


@dataclass(frozen=True, slots=True)
class Expert:
    """An expert's annotation, or the maintainers' decision. A decision comes first and is then the label."""

    title: str
    labels: Labels

    def answer(self, question: Target) -> str:
        """Return the answer to a question, as one of the question's values or ``unsure``."""
        return self.labels.get(question.name) or UNSURE


class VisibleLabels:
    """The experts' answers that may be shown for the served suite, read once per label version."""

    def __init__(self, service: SubmissionsApp) -> None:
        self._service = service
        self._known: tuple[LabelStore | None, Mapping[str, tuple[Expert, ...]]] = (None, {})
        self._parts: Mapping[ItemKey, Annotation] = {}

    def by_id(self) -> Mapping[str, tuple[Expert, ...]]:
        """Return the experts' annotations, keyed by trajectory id. The first annotation gives the labels."""
        store = self._service.labels
        if self._known[0] is not store:  # two threads may both read them, which does no harm
            suite, found = self._service.suite, dict[str, list[Annotation]]()
            parts: dict[ItemKey, Annotation] = {}
            for split in filter(suite.shows_labels, SPLITS):
                for annotation in store.annotations_of(split):
                    key = reading_key(annotation.trajectory_id), annotation.of_step, annotation.of_part
                    if key[1:] == (None, None):
                        found.setdefault(annotation.trajectory_id, []).append(annotation)
                    else:
                        parts.setdefault(key, annotation)
            self._parts = parts
            self._known = (store, {name: _experts(rows) for name, rows in found.items()})
        return self._known[1]

    def of_parts(self) -> Mapping[ItemKey, Annotation]:
        """Return the annotation that is the label of each step and other part of a run."""
        self.by_id()
        return self._parts


def _experts(annotations: Sequence[Annotation]) -> tuple[Expert, ...]:
    titles = titles_of([annotation.is_decision for annotation in annotations])
    found = []
    for title, annotation in zip(titles, annotations, strict=True):
        known = {name: None if answer == UNSURE else answer for name, answer in annotation.answers.items()}
        found.append(Expert(title, known))
    return tuple(found)


def titles_of(are_decisions: Sequence[bool]) -> list[str]:
    """Return a title for each annotation: ``Decision``, or ``First``, ``Second``, ``3`` and so on."""
    titles: list[str] = []
    n_answers = 0
    for is_decision in are_decisions:
        n_answers += not is_decision
        number = {1: "First", 2: "Second"}.get(n_answers, str(n_answers))
        titles.append("Decision" if is_decision else number)
    return titles


def experts_in(
    dataset: PublishedDataset, entry: TrajectoryEntry, questions: Sequence[Target]
) -> tuple[Expert, ...]:
    """Return the annotations of a dev trajectory in a dataset, the primary one first; test has none."""
    if entry.split != "dev" or entry.labels is None:
        return ()
    rows = sorted(dataset.rows_of("annotations", entry.trajectory_id), key=lambda row: row["annotation"])
    own = [question.name for question in questions if question.is_own]  # an older dataset may lack them
    titles = titles_of([row.get("annotator") == DECISION for row in rows])
    found = [
        Expert(title, {**labels_of(row), **{name: row.get(name) for name in own}})
        for title, row in zip(titles, rows, strict=True)
    ]
    return tuple(found) or (Expert("First", entry.labels),)
