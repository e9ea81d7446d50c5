"""What the engine may know of a judge besides how it asks, declared by the judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arb.core.replies import Form
from arb.judges.prompting import ImageOptions


@dataclass(frozen=True, kw_only=True)
class JudgeTraits:
    """What the engine may know of a judge besides how it asks.

    Attributes:
        method: How the judge works, whatever model it asks; None for a judge that is not in the catalogue.
        is_official: Whether it sends the prompts of its authors.
        is_structured: Whether its replies are JSON of a fixed form.
        is_inverted: Whether it asks about success last.
        form: The form of its replies, so that stored ones can be read again.
        images: How it sends images; None to send them as recorded.
        output_tokens: The longest reply by role, for roles that need another limit than the run's.
        response_formats: The ``response_format`` of its requests by role.
        takes_text_for_screenshots: Whether text observations do for screenshots.
    """

    method: str | None = None
    is_official: bool = False
    is_structured: bool = False
    is_inverted: bool = False
    form: Form | None = None
    images: ImageOptions | None = None
    output_tokens: Mapping[str, int] = field(default_factory=dict)
    response_formats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    takes_text_for_screenshots: bool = False


class DescribedJudge:
    """A judge that tells its traits. Deriving from this class is optional for a judge of your own."""

    def describe(self) -> JudgeTraits:
        return JudgeTraits()


def traits_of(judge: object) -> JudgeTraits:
    """Return what a judge tells of itself; a judge of your own that tells nothing has the defaults."""
    return judge.describe() if isinstance(judge, DescribedJudge) else JudgeTraits()
