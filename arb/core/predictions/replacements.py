"""Find the one replacement that turns wrong trajectory ids into valid ones, such as another prefix."""

import difflib
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from arb.core.console import counted
from arb.core.predictions.findings import quoted

_SAMPLES: Final = 5
_MOST_IDS: Final = 5_000
_LONGEST: Final = 300
_SEPARATOR: Final = re.compile(r"[/.]")


@dataclass(frozen=True)
class Replacement:
    """A string to replace at one position in every id, and the number of ids that this corrects."""

    place: Literal["prefix", "suffix", "agent"]
    old: str
    new: str
    n_ids: int = 0

    def apply(self, spelled: str) -> str | None:
        """Return the id with the replacement, or None if the id does not contain ``old`` there."""
        if self.place == "prefix":
            return self.new + spelled[len(self.old) :] if spelled.startswith(self.old) else None
        if self.place == "suffix":
            stem = spelled[: len(spelled) - len(self.old)]
            return stem + self.new if spelled.endswith(self.old) else None
        old, new = f"/{self.old}/", f"/{self.new}/"
        return spelled.replace(old, new, 1) if old in spelled else None

    def sentence(self) -> str:
        """Return a sentence with advice, such as "586 ids have the prefix 'x/'; remove it."."""
        have, lack = ("has", "lacks") if self.n_ids == 1 else ("have", "lack")
        if not self.old:
            return f"{counted(self.n_ids, 'id')} {lack} the {self.place} {quoted(self.new)}; add it."
        do = f"replace it by {quoted(self.new)}" if self.new else "remove it"
        return f"{counted(self.n_ids, 'id')} {have} the {self.place} {quoted(self.old)}; {do}."


def find_replacement(spelled: Sequence[str], ids: Sequence[str]) -> Replacement | None:
    """Return the replacement that corrects the largest number of wrong ids.

    Returns None if no replacement corrects at least two wrong ids and at least half of them.
    """
    wrong = sorted({text for text in spelled if len(text) <= _LONGEST})
    if not 2 <= len(wrong) <= _MOST_IDS:
        return None
    neighbours = _Neighbours(ids)
    samples = wrong[:: max(1, len(wrong) // _SAMPLES)]
    candidates = {each for text in samples for each in _candidates(text, neighbours)}
    counts = {each: sum(each.apply(text) in neighbours.ids for text in wrong) for each in candidates}
    best = max(counts, key=lambda each: (counts[each], each.old), default=None)
    if best is None or counts[best] < max(2, len(wrong) / 2):
        return None
    return replace(best, n_ids=counts[best])


class _Neighbours:
    """The valid ids, in two orders, to find those with the longest prefix or suffix in common with an id."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = frozenset(ids)
        self.agents = sorted({text.split("/")[1] for text in ids})
        self._forwards, self._backwards = sorted(ids), sorted(text[::-1] for text in ids)

    def of(self, spelled: str) -> list[str]:
        """Return the valid ids next to an id in alphabetical order, and in that of the reversed ids."""
        start, end = bisect(self._forwards, spelled), bisect(self._backwards, spelled[::-1])
        backwards = self._backwards[max(0, end - 1) : end + 1]
        return self._forwards[max(0, start - 1) : start + 1] + [text[::-1] for text in backwards]


def _candidates(spelled: str, neighbours: _Neighbours) -> Iterator[Replacement]:
    """Yield the replacements that may correct an id.

    No replacement changes both the agent and another part of the id, since this could give another run's id.
    """
    for valid in neighbours.of(spelled):
        end = _common_parts(spelled[::-1], valid[::-1])
        if end and valid[: len(valid) - end].rstrip("/").count("/") == 0:
            yield Replacement("prefix", spelled[: len(spelled) - end], valid[: len(valid) - end])
        if spelled.startswith(valid):
            yield Replacement("suffix", spelled[len(valid) :], "")
    agent = spelled.split("/")[1] if spelled.count("/") > 1 else ""
    if agent and agent not in neighbours.agents:
        holding = [each for each in neighbours.agents if agent.lower() in each.lower()]
        close = holding if len(holding) == 1 else difflib.get_close_matches(agent, neighbours.agents, n=1)
        yield from (Replacement("agent", agent, each) for each in close)


def _common_parts(one: str, other: str) -> int:
    """Return the length of the common prefix of two strings up to a separator, so that no word is cut."""
    pairs = zip(one, other, strict=False)
    n_common = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    if n_common in (len(one), len(other)):
        return n_common
    ends = [found.end() for found in _SEPARATOR.finditer(one[:n_common])]
    return ends[-1] if ends else 0
