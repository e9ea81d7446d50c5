"""The base class of judges that have one model and one file of prompts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from arb.core.replies import Form
from arb.judges import prompting
from arb.judges.types import JUDGE_ROLE, Call, DescribedJudge, JudgeTraits, Message, View


@dataclass(frozen=True)
class OneModelJudge(DescribedJudge):
    """A judge that asks one ``model``, with the prompts in the file ``prompts``.

    If the name of the method depends on the judge's fields, a subclass sets it in `describe`. With
    ``takes_texts``, text observations can replace screenshots that were not recorded.
    """

    form: ClassVar[Form]
    prompts: ClassVar[str]
    method: ClassVar[str] = ""
    takes_texts: ClassVar[bool] = True

    name: str
    model: str

    @property
    def models(self) -> Mapping[str, str]:
        return {JUDGE_ROLE: self.model}

    @property
    def prompts_hash(self) -> str:
        return prompting.hash_of_file(self.prompts)

    def describe(self) -> JudgeTraits:
        return JudgeTraits(method=self.method, form=self.form, takes_text_for_screenshots=self.takes_texts)


def verdict_call(view: View, messages: Callable[[View], tuple[Message, ...]]) -> Call:
    """Return the call that asks for a verdict. If its texts can be cut, it has a ``shorter`` prompt."""
    short = prompting.with_bounded_texts(view, prompting.SHORTER)
    return Call("verdict", messages(view), messages(short) if short != view else None)
