"""Who annotates what: dealt out evenly over benchmarks and annotators, some of it twice. Pure, seeded.

What is assigned to somebody who is still invited, or who has finished it, stays theirs.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from core.ids import TrajectoryId
from submissions.labels.annotation_state import FIRST, SECOND

Assignment = tuple[str, str, int]
"""A trajectory, an annotator, and the place: 1 for the first annotation, 2 for the second."""


def new_assignments(
    trajectories: Iterable[str],
    people: Sequence[str],
    current: Mapping[str, Mapping[int, str]],
    finished: Collection[tuple[str, str]],
    share: float,
    seed: int,
) -> list[Assignment]:
    """The assignments that are missing, in the order in which people shall meet them.

    First annotations go round within each benchmark, to whoever has fewest of them open. Of all trajectories
    ``share`` (0 to 1, rounded half up, spread over the benchmarks) get a second one, by another person.
    ``current`` maps a trajectory to the annotator at each place, ``finished`` has (trajectory, annotator).
    """
    if not people:
        return []
    dealer = _Dealer(people, finished, seed)
    kept = {
        trajectory_id: {
            p: who for p, who in places.items() if who in people or (trajectory_id, who) in finished
        }
        for trajectory_id, places in current.items()
    }
    for trajectory_id, places in kept.items():
        for place, who in places.items():
            dealer.count(trajectory_id, who, place)
    every = sorted({*kept, *trajectories}, key=dealer.draw)
    found = []
    for _, ids in _by_benchmark(every):
        for trajectory_id in ids:
            places = kept.setdefault(trajectory_id, {})
            if FIRST not in places:
                who = dealer.first(trajectory_id, places.values())
                if who is not None:
                    places[FIRST] = who
                    found.append((trajectory_id, who, FIRST))
    found += _seconds(kept, every, share, dealer)
    return sorted(found, key=lambda each: dealer.draw(f"{each[2]} {each[0]}"))


def chosen(trajectories: Iterable[str], most: int, seed: int) -> list[str]:
    """At most ``most`` trajectories, as evenly over the benchmarks as their numbers allow."""
    ids = sorted(trajectories, key=lambda trajectory_id: _draw(seed, trajectory_id))
    quotas = _quotas({name: len(found) for name, found in _by_benchmark(ids)}, min(most, len(ids)))
    return [trajectory_id for name, found in _by_benchmark(ids) for trajectory_id in found[: quotas[name]]]


def _seconds(
    kept: Mapping[str, dict[int, str]], every: Sequence[str], share: float, dealer: "_Dealer"
) -> list[Assignment]:
    found: list[Assignment] = []
    groups = _by_benchmark(every)
    quotas = _quotas({name: len(ids) for name, ids in groups}, math.floor(share * len(every) + 0.5))
    for name, ids in groups:
        open_ids = [trajectory_id for trajectory_id in ids if SECOND not in kept[trajectory_id]]
        missing = quotas[name] - (len(ids) - len(open_ids))
        for _ in range(missing):
            # The trajectory whose second annotator has least to do; people stay even this way.
            offers = [
                (dealer.load(who, trajectory_id), place, trajectory_id, who)
                for place, trajectory_id in enumerate(open_ids)
                if (who := dealer.second(trajectory_id, kept[trajectory_id].values())) is not None
            ]
            if not offers:
                break
            *_, trajectory_id, who = min(offers)
            open_ids.remove(trajectory_id)
            kept[trajectory_id][SECOND] = who
            dealer.count(trajectory_id, who, SECOND)
            found.append((trajectory_id, who, SECOND))
    return found


class _Dealer:
    """Counts what people have before them, and names whose turn it is."""

    def __init__(self, people: Sequence[str], finished: Collection[tuple[str, str]], seed: int) -> None:
        self._seed, self._finished = seed, frozenset(finished)
        self._people = sorted(set(people), key=self.draw)
        self._open: Counter[str] = Counter()
        self._open_in: Counter[tuple[str, str, int]] = Counter()

    def draw(self, text: str) -> str:
        """A key that puts things in an order of chance, the same one for the same seed."""
        return _draw(self._seed, text)

    def count(self, trajectory_id: str, who: str, place: int) -> None:
        if (trajectory_id, who) not in self._finished:
            self._open[who] += 1
            self._open_in[who, _benchmark(trajectory_id), place] += 1

    def load(self, who: str, trajectory_id: str) -> tuple[int, int]:
        return self._open[who], self._open_in[who, _benchmark(trajectory_id), SECOND]

    def first(self, trajectory_id: str, others: Collection[str]) -> str | None:
        benchmark = _benchmark(trajectory_id)
        free = [who for who in self._people if self._is_free(who, trajectory_id, others)]
        who = min(free, key=lambda w: (self._open_in[w, benchmark, FIRST], self._open[w]), default=None)
        if who is not None:
            self.count(trajectory_id, who, FIRST)
        return who

    def second(self, trajectory_id: str, others: Collection[str]) -> str | None:
        free = [who for who in self._people if self._is_free(who, trajectory_id, others)]
        return min(free, key=lambda who: self.load(who, trajectory_id), default=None)

    def _is_free(self, who: str, trajectory_id: str, others: Collection[str]) -> bool:
        return who not in others and (trajectory_id, who) not in self._finished


def _by_benchmark(ids: Iterable[str]) -> list[tuple[str, list[str]]]:
    groups = defaultdict(list)
    for trajectory_id in ids:
        groups[_benchmark(trajectory_id)].append(trajectory_id)
    return sorted(groups.items())


def _quotas(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """``total`` split in proportion to the sizes; what is left over goes to the largest remainders."""
    whole = sum(sizes.values())
    if not whole:
        return dict.fromkeys(sizes, 0)
    quotas = {name: total * size // whole for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(total * sizes[name] % whole), name))
    for name in by_remainder[: total - sum(quotas.values())]:
        quotas[name] += 1
    return quotas


def _benchmark(trajectory_id: str) -> str:
    return TrajectoryId.parse(trajectory_id).benchmark


def _draw(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()
