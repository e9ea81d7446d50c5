"""One label from the answers of several annotators, by the rule that each target of a suite declares.

A label that a rule decides is added as a row before the answers, which are not changed.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from arb.core.annotation import Annotation, decided_row
from arb.core.suites.targets import UNSURE, AggregateRule, Target
from leaderboard.labels.agreement import first_of_each_person

FEWEST_BY_RULE: Final = 2
"""A rule decides only questions with at least this many answers."""


@dataclass(frozen=True, slots=True, repr=False)
class AggregatedLabels:
    """Annotations, with the labels that rules decided added as rows of decisions.

    ``left_out`` has the labels that no rule decided, each as a row about the item and the target.
    """

    annotations: tuple[Annotation, ...]
    left_out: tuple[tuple[Annotation, Target], ...] = ()

    def names_left_out(self, decided: Collection[tuple[str, str]] = ()) -> tuple[str, ...]:
        """Return the names of the labels in ``left_out``, such as ``shop/agent/shop.1, step 3: helps``.

        Labels of runs that are in ``decided``, as (trajectory id, target), are omitted.
        """
        return tuple(
            f"{row.item_name}: {target.name}"
            for row, target in self.left_out
            if target.level != "run" or (row.trajectory_id, target.name) not in decided
        )


def aggregate(
    annotations: Sequence[Annotation], targets: Iterable[Target], with_open: bool = False
) -> AggregatedLabels:
    """Apply the rules of the targets to the annotations of all items.

    An existing row of decisions takes precedence over a rule. A label that no rule decides becomes Unsure, so
    no judge is scored on it; with ``with_open``, it becomes the first annotator's answer. If all rules are
    "first", nothing changes.
    """
    ruled = [target for target in targets if target.aggregate != "first"]
    by_item: dict[tuple[str, str | None, str | None], list[Annotation]] = {}
    for annotation in annotations if ruled else ():
        by_item.setdefault(annotation.item, []).append(annotation)
    decisions: dict[tuple[str, str | None, str | None], Annotation] = {}
    left_out = []
    for item, rows in by_item.items():
        labels, is_needed = {}, False
        for target in ruled:
            label, is_settled = _label(rows, target, with_open)
            labels[target.name] = label
            # An open label needs a row even if it is the first answer, or the rule would apply again.
            is_needed |= not is_settled or label != rows[0].answers.get(target.name)
            if label == UNSURE and not is_settled:
                left_out.append((rows[0], target))
        if is_needed:
            decisions[item] = decided_row(rows[0], labels)
    rows = []
    for annotation in annotations:
        if (decision := decisions.pop(annotation.item, None)) is not None:
            rows.append(decision)
            if annotation.is_decision:
                continue
        rows.append(annotation)
    return AggregatedLabels(tuple(rows), tuple(left_out))


def _label(rows: Sequence[Annotation], target: Target, with_open: bool) -> tuple[str | None, bool]:
    """Return a target's label from the rows about an item, and whether the target's rule decides it."""
    answers = [row.answers[target.name] for row in first_of_each_person(rows) if target.name in row.answers]
    if not answers:
        return rows[0].answers.get(target.name), True
    decided = rows[0].answers.get(target.name) if rows[0].is_decision else None
    by_rule = answer_by_rule(target.aggregate, target, answers)
    return decided or by_rule or (answers[0] if with_open else UNSURE), by_rule is not None


def answer_by_rule(rule: AggregateRule, target: Target, answers: Sequence[str]) -> str | None:
    """Return the label that a rule derives from people's answers in order, or None if the label stays open.

    If everybody gives the same answer other than Unsure, it is the label under every rule. The majority is
    the answer of more than half of the people, counting Unsure as an answer. The median ignores Unsure, which
    must be fewer than half of the answers. If an even number of answers remains, it is the lower of the two
    middle grades, or the mean of the two middle numbers. Targets without grades or numbers use the majority
    instead.
    """
    if not answers:
        return None
    if rule == "first":
        return answers[0]
    if set(answers) != {UNSURE} and len(set(answers)) == 1:
        return answers[0]
    if rule == "adjudicated" or len(answers) < FEWEST_BY_RULE:
        return None
    answer, votes = Counter(answers).most_common(1)[0]
    has_median = rule == "median" and target.type in ("ordinal", "score")
    if 2 * votes > len(answers) and (answer == UNSURE or not has_median):
        return answer
    definite = [each for each in answers if each != UNSURE]
    if not has_median or 2 * len(definite) <= len(answers):
        return None
    if target.type == "ordinal":
        return sorted(definite, key=target.values.index)[(len(definite) - 1) // 2]
    ordered = sorted(definite, key=float)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else f"{fmean((float(low), float(high))):.15g}"
