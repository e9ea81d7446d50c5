"""Ask a cheap judge first, and a strong judge only if the cheap judge's verdict is unreliable."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

from arb.judges.contract import open_session
from arb.judges.prompting import prompts_hash
from arb.judges.types import Answer, Judge, JudgeSession, View, Wants, covers
from arb.judges.wrappers import JudgeWrapper, map_calls

UNCERTAIN: Final = (0.2, 0.8)
"""The default range of scores in which the cheap judge counts as unreliable."""

CHEAP, STRONG = "cheap.", "strong."
"""The prefixes of the cheap judge's roles and of the strong judge's roles."""

_AMOUNTS: Final = ("none", "last", "all")


class SequentialJudge(JudgeWrapper):
    """A judge made of judges that are asked one after the other. Subclasses define ``parts`` and ``ask``."""

    @property
    def name(self) -> str:
        return self.name_with({prefix: part.name for prefix, part in self.parts.items()})

    @property
    def inputs(self) -> str:
        return "; then ".join(part.inputs for part in self.parts.values())

    @property
    def source(self) -> str:
        return "; ".join(dict.fromkeys(part.source for part in self.parts.values()))

    @property
    def wants(self) -> Wants:
        return reduce(_union_of_wants, (part.wants for part in self.parts.values()))

    @property
    def models(self) -> Mapping[str, str]:
        """The models of all parts by role. The roles begin with the prefix of the part."""
        pairs = self.parts.items()
        return {prefix + role: model for prefix, part in pairs for role, model in part.models.items()}

    def ask_part(self, prefix: str, view: View) -> JudgeSession:
        """Ask one part, which sees only what it needs of the view, and return its answer."""
        part = self.parts[prefix]
        session = open_session(part, restrict_view(view, part.wants))
        return (yield from map_calls(session, lambda call: replace(call, role=prefix + call.role)))


@dataclass(frozen=True)
class Cascade(SequentialJudge):
    """A cheap judge, and a strong judge that decides if the cheap judge is unreliable.

    The strong judge is asked if the cheap judge has no verdict, if its score is in ``uncertain`` (both ends
    included), or, with ``confirms_success``, if its verdict is success. Then the strong judge's answer
    counts, even if it has no verdict. If it lacks labels other than the verdict, these come from the cheap
    judge.
    """

    cheap: Judge
    strong: Judge
    uncertain: tuple[float, float] = UNCERTAIN
    confirms_success: bool = True

    @property
    def parts(self) -> Mapping[str, Judge]:
        return {CHEAP: self.cheap, STRONG: self.strong}

    def name_with(self, names: Mapping[str, str]) -> str:
        return f"{names[CHEAP]} then {names[STRONG]}"

    @property
    def calls(self) -> str:
        return f"{self.cheap.calls}, and {self.strong.calls} more if the second is asked"

    @property
    def prompts_hash(self) -> str:
        """The SHA-256 of both judges' prompts and of the conditions for asking the strong judge."""
        when = f"{self.uncertain} {self.confirms_success}"
        return prompts_hash(self.cheap.prompts_hash, self.strong.prompts_hash, when)

    def ask(self, view: View) -> JudgeSession:
        """Ask the cheap judge, then the strong judge if needed."""
        first = yield from self.ask_part(CHEAP, view)
        if not self.needs_strong(first):
            return first
        second = yield from self.ask_part(STRONG, view)
        names = ("side_effect", "repetition", "optimality", *(("steps",) if second.state == "ok" else ()))
        missing: dict[str, Any] = {
            name: getattr(first, name) for name in names if getattr(second, name) is None
        }
        return replace(second, **missing)

    def needs_strong(self, answer: Answer) -> bool:
        low, high = self.uncertain
        is_uncertain = answer.score is not None and low <= answer.score <= high
        return answer.success is None or is_uncertain or (self.confirms_success and answer.success)


def parse_band(text: str | None) -> tuple[float, float]:
    """Return the range of scores in a text such as ``0.2,0.8``; `UNCERTAIN` for None. Raises ValueError."""
    if text is None:
        return UNCERTAIN
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 1.0, 0.0
    if not 0 <= low <= high <= 1:
        raise ValueError("write two scores from 0 to 1, such as 0.2,0.8")
    return low, high


def restrict_view(view: View, wants: Wants) -> View:
    """Return the view with only the parts that a judge wants to see."""
    last = len(view.steps) - 1
    return replace(
        view,
        goal_images=view.goal_images if wants.goal_images else (),
        steps=tuple(
            replace(
                step,
                axtree=step.axtree if covers(wants.axtrees, place == last) else None,
                axtree_pruned=step.axtree_pruned if covers(wants.axtrees, place == last) else None,
                screenshot=step.screenshot if covers(wants.screenshots, place == last) else None,
            )
            for place, step in enumerate(view.steps)
        ),
    )


def _union_of_wants(one: Wants, other: Wants) -> Wants:
    return Wants(
        axtrees=max(one.axtrees, other.axtrees, key=_AMOUNTS.index),
        screenshots=max(one.screenshots, other.screenshots, key=_AMOUNTS.index),
        goal_images=one.goal_images or other.goal_images,
    )
