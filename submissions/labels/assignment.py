"""Assignment of trajectories to annotators, spread evenly over benchmarks and people.

All functions are pure: the same seed gives the same assignments. Some trajectories go to several people. An
assignment is kept while the annotator is invited, and a finished one is always kept.

Gold items are finished trajectories with known answers. They are mixed into queues to check annotators, who
cannot recognize them. When a maintainer marks a trajectory as gold, its known answers are those of the first
annotation with all decisions applied. Answers on gold items are not second annotations and never become
labels; only maintainers see how well they agree with the known answers.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from arb.core.ids import TrajectoryId
from leaderboard.judge_precision.intervals import CONFIDENCE
from leaderboard.labels.agreement import FEWEST_DOUBLES
from leaderboard.labels.coefficients import difference_of_shares
from submissions.errors import SubmissionError
from submissions.labels.annotation_state import (
    FIRST,
    GOLD,
    SECOND,
    AnnotationState,
    discussion_items,
    open_questions,
)

Assignment = tuple[str, str, int]
"""A trajectory id, an annotator's opaque id, and the place: FIRST, SECOND or GOLD."""


def new_assignments(
    trajectories: Iterable[str], annotators: Sequence[str], current: Mapping[str, Mapping[int, str]],
    finished: Collection[tuple[str, str]], shares: Sequence[float], seed: int,
) -> list[Assignment]:  # fmt: skip
    """Return the missing assignments. The assignments of each annotator are in random order.

    Each trajectory goes to the annotator with the fewest open trajectories of the same benchmark. ``shares``
    (0 to 1) are the shares of each benchmark's trajectories that also go to a second, third … annotator. The
    numbers of trajectories are rounded half up. ``current`` maps a trajectory to the annotator at each place.
    ``finished`` has pairs of trajectory and annotator.
    """
    dealer = _Dealer(annotators, finished, seed)
    kept: dict[str, dict[int, str]] = {}
    for trajectory_id, places in current.items():
        kept[trajectory_id] = {}
        for place, who in places.items():
            if who in annotators or (trajectory_id, who) in finished:
                kept[trajectory_id][place] = who
                dealer.count(trajectory_id, who, place)
    every = sorted({*kept, *trajectories}, key=dealer.draw)
    found: list[Assignment] = []
    for _, ids in _by_benchmark(every):
        for trajectory_id in ids:
            taken = kept.setdefault(trajectory_id, {})
            first = dealer.choose(trajectory_id, taken.values(), FIRST) if FIRST not in taken else None
            if first is not None:
                dealer.count(trajectory_id, first, FIRST)
                taken[FIRST] = first
                found.append((trajectory_id, first, FIRST))
    for place, share in enumerate(shares, start=SECOND):
        found += _further(kept, every, place, share, dealer)
    return _shuffled(found, seed)


def _shuffled(assignments: Iterable[Assignment], seed: int) -> list[Assignment]:
    """Return the assignments in a random order per annotator, so that no two people get the same queue."""
    return sorted(assignments, key=lambda each: _draw(seed, f"{each[1]} {each[0]}"))


def chosen(trajectories: Iterable[str], most: int, seed: int) -> list[str]:
    """Return at most ``most`` random trajectories, in proportion to the sizes of the benchmarks."""
    ids = sorted(trajectories, key=lambda trajectory_id: _draw(seed, trajectory_id))
    quotas = _quotas({name: len(found) for name, found in _by_benchmark(ids)}, min(most, len(ids)))
    return [trajectory_id for name, found in _by_benchmark(ids) for trajectory_id in found[: quotas[name]]]


def _further(
    kept: Mapping[str, dict[int, str]], every: Sequence[str], place: int, share: float, dealer: "_Dealer"
) -> list[Assignment]:
    """Assign a share of the trajectories to one more annotator, at a place after the first one."""
    found: list[Assignment] = []
    groups = _by_benchmark(every)
    quotas = _quotas({name: len(ids) for name, ids in groups}, math.floor(share * len(every) + 0.5))
    for name, ids in groups:
        open_ids = [trajectory_id for trajectory_id in ids if place not in kept[trajectory_id]]
        missing = quotas[name] - (len(ids) - len(open_ids))
        for _ in range(missing):
            # To spread the work evenly, take the trajectory whose next annotator has the least to do.
            offers = []
            for order, trajectory_id in enumerate(open_ids):
                who = dealer.choose(trajectory_id, kept[trajectory_id].values(), place)
                if who is not None:
                    offers.append((dealer.load(who, trajectory_id, place), order, trajectory_id, who))
            if not offers:
                break
            *_, trajectory_id, who = min(offers)
            open_ids.remove(trajectory_id)
            kept[trajectory_id][place] = who
            dealer.count(trajectory_id, who, place)
            found.append((trajectory_id, who, place))
    return found


class _Dealer:
    """A dealer that gives each trajectory to the annotator with the fewest open assignments."""

    def __init__(self, annotators: Sequence[str], finished: Collection[tuple[str, str]], seed: int) -> None:
        self._seed, self._finished = seed, frozenset(finished)
        self._annotators = sorted(set(annotators), key=self.draw)
        self._open: Counter[str] = Counter()
        self._open_in: Counter[tuple[str, str, int]] = Counter()

    def draw(self, text: str) -> str:
        """Return a sort key for ``text``; the keys give a random order that depends only on the seed."""
        return _draw(self._seed, text)

    def count(self, trajectory_id: str, who: str, place: int) -> None:
        if (trajectory_id, who) not in self._finished:
            self._open[who] += 1
            self._open_in[who, _benchmark(trajectory_id), place] += 1

    def load(self, who: str, trajectory_id: str, place: int) -> tuple[int, int]:
        """Return an annotator's load as a sort key; at the first place, the benchmark's load comes first."""
        in_all, in_benchmark = self._open[who], self._open_in[who, _benchmark(trajectory_id), place]
        return (in_benchmark, in_all) if place == FIRST else (in_all, in_benchmark)

    def choose(self, trajectory_id: str, others: Collection[str], place: int) -> str | None:
        rest = (who for who in self._annotators if who not in others)
        free = (who for who in rest if (trajectory_id, who) not in self._finished)
        return min(free, key=lambda who: self.load(who, trajectory_id, place), default=None)


def _by_benchmark(ids: Iterable[str]) -> list[tuple[str, list[str]]]:
    groups = defaultdict(list)
    for trajectory_id in ids:
        groups[_benchmark(trajectory_id)].append(trajectory_id)
    return sorted(groups.items())


def _quotas(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Split ``total`` in proportion to the sizes by the largest-remainder method."""
    whole = sum(sizes.values()) or 1
    quotas = {name: total * size // whole for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(total * sizes[name] % whole), name))
    for name in by_remainder[: total - sum(quotas.values())]:
        quotas[name] += 1
    return quotas


def _benchmark(trajectory_id: str) -> str:
    return TrajectoryId.parse(trajectory_id).benchmark


def _draw(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()


def known_answers(state: AnnotationState, trajectory_id: str) -> dict[str, str]:
    """Return the answers on a finished trajectory, keyed by question, with decisions applied.

    Raises SubmissionError if nobody finished the trajectory, or if a question about it is open.
    """
    finished = state.finished(trajectory_id)
    if not finished:
        raise SubmissionError("nobody has finished this trajectory, so its answers are not known")
    if open_questions(state, trajectory_id):
        raise SubmissionError("a question about this trajectory is open; decide it first")
    answers = dict(finished[0][1].answers)
    for question, decision in state.decided(trajectory_id).items():
        if decision.value is not None:
            answers[question] = decision.value
    return answers


def gold_candidates(state: AnnotationState) -> list[str]:
    """Return the ids of trajectories that can become gold items: finished, and without open questions."""
    items = discussion_items(state, None, is_maintainer=True)
    open_ids = {each.item.trajectory_id for each in items if each.open}
    names = {name for name, who in state.saved if state.is_done(name, who) and not state.is_gold(name, who)}
    return sorted(names - open_ids - set(state.gold))


def with_gold(
    state: AnnotationState, assignments: Sequence[Assignment], share: float, seed: int
) -> list[Assignment]:
    """Return new assignments with gold items mixed in, in random order.

    The number of an annotator's additional gold items is ``share`` (0 to 1) of their new assignments, rounded
    half up. It is smaller if there are not enough gold items that are new to the annotator.
    """
    found = list(assignments)
    for who in sorted({each[1] for each in assignments}):
        new = [name for name, annotator, _ in assignments if annotator == who]
        unmet = [
            name
            for name in state.gold
            if not (name in new or state.is_assigned(name, who) or (name, who) in state.saved)
        ]
        unmet.sort(key=lambda name: _draw(seed, f"{who} {name}"))
        found += [(name, who, GOLD) for name in unmet[: int(share * len(new) + 0.5)]]
    return _shuffled(found, seed)


@dataclass
class GoldAgreement:
    """The agreement of one annotator with the known answers of gold items.

    ``done`` is the number of gold items that the annotator finished. ``equal`` maps a question to the number
    of answers that equal the known answer; Unsure equals only Unsure. ``needs_training`` names the questions
    on which the annotator's share of equal answers is credibly below that of all other annotators: both sides
    have at least ``FEWEST_DOUBLES`` items, and the interval of the difference is below 0. All intervals
    together have a confidence of 95 %.
    """

    annotator: str
    account: str
    done: int
    equal: dict[str, int] = field(default_factory=dict)
    needs_training: tuple[str, ...] = ()


def gold_agreement(state: AnnotationState) -> list[GoldAgreement]:
    """Return how well each annotator agrees with gold items, sorted by id. Only maintainers may see this."""
    done = [
        (who, name)
        for who in state.accounts
        for name in state.gold
        if state.is_gold(name, who) and state.is_done(name, who)
    ]
    annotators = np.array([who for who, _ in done])
    ids = [TrajectoryId.parse(name) for _, name in done]
    tasks = np.unique([f"{each.benchmark}/{each.task}" for each in ids], return_inverse=True)[1]
    names = dict.fromkeys(annotators.tolist())
    error = (1 - CONFIDENCE) / max(1, len(names) * len(state.questions))
    found = {who: GoldAgreement(who, state.accounts[who], int((annotators == who).sum())) for who in names}
    for question in (each.name for each in state.questions):
        answers = [(state.saved[name, who].answers, state.gold[name]) for who, name in done]
        equal = np.array([one.get(question) == known.get(question) for one, known in answers], dtype=bool)
        for who, agreement in found.items():
            theirs = annotators == who
            agreement.equal[question] = int(equal[theirs].sum())
            is_enough = min(agreement.done, len(done) - agreement.done) >= FEWEST_DOUBLES
            if is_enough and difference_of_shares(equal, theirs, ~theirs, tasks, error)[1] < 0:
                agreement.needs_training += (question,)
    return list(found.values())
