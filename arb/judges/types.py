"""The types that judges and the engine share.

A judge is a generator. It receives a `View` and yields the calls to make at once. It is sent their replies in
the same order, and it returns its `Answer`. It uses no network, clock or file, so the same judge runs over an
endpoint, a batch, a local model, a cluster, and over dummy replies when a run is planned.
`arb.judges.contract` checks every call and answer of a judge.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Generator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from arb.core.replies import Form

if TYPE_CHECKING:
    from typing_extensions import TypeIs

JUDGE_ROLE = "judge"
"""The role whose model gives the verdict; a judge may name others, such as ``captioner``."""

DEFAULT_OUTPUT_TOKENS = 1024
"""The output limit of the paper's judges (section 4)."""

ImageFormat = Literal["png", "jpeg", "webp"]
Detail = Literal["auto", "low", "high"]


class OptionsError(ValueError):
    """Raised for options that cannot be used; the message lists every problem and what to do."""


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How pictures are sent. None keeps the recorded size or format.

    With a ``quality``, pictures that already have the ``format`` are encoded again too.
    """

    max_side: int | None = None
    format: ImageFormat | None = None
    detail: Detail = "auto"
    quality: int | None = None


@dataclass(frozen=True)
class Image:
    """A picture as it is sent: PNG, JPEG or WebP bytes, already resized if the options ask for that."""

    content: bytes
    media_type: str
    width: int
    height: int
    detail: Detail = "auto"

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, which names the picture in cache keys and in stored messages."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def data_url(self) -> str:
        return f"data:{self.media_type};base64,{base64.b64encode(self.content).decode()}"


Content = str | tuple[str | Image, ...]
"""A text, or texts and pictures in their order."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a call."""

    role: Literal["system", "user", "assistant"]
    content: Content

    @property
    def parts(self) -> tuple[str | Image, ...]:
        """The content as a tuple of texts and pictures, even if it is a single text."""
        return (self.content,) if isinstance(self.content, str) else self.content


@dataclass(frozen=True, slots=True)
class ViewStep:
    """One step of a run as a judge sees it: the observation, and the action that the agent took.

    Steps are numbered from 1. The last one may have neither action nor reasoning. ``text`` is an observation
    without a web page, such as the result of a tool. Trees and screenshots are None if the judge does not
    want them or if none was recorded.
    """

    number: int
    url: str | None
    action: str | None
    reasoning: str | None
    error: str | None
    axtree: str | None = None
    axtree_pruned: str | None = None
    screenshot: Image | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a judge sees of a trajectory.

    It contains neither reward nor label, neither the agent's name nor the trajectory id. ``answer`` is the
    agent's final message, unless the last step sends it as an action.
    """

    goal: str
    goal_images: tuple[Image, ...]
    steps: tuple[ViewStep, ...]
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Wants:
    """The heavy parts of a trajectory that a judge needs: of no step, of the last step, or of all steps."""

    axtrees: Literal["none", "last", "all"] = "none"
    screenshots: Literal["none", "last", "all"] = "none"
    goal_images: bool = False


def covers(amount: str, is_last: bool) -> bool:
    """Return whether ``none``, ``last`` or ``all`` (of `Wants`) covers a step."""
    return amount == "all" or (amount == "last" and is_last)


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model. If the prompt is too long, ``shorter`` is sent once instead.

    ``role`` names the model that answers. ``sample`` distinguishes several answers to one question; a call
    that is not sampled, such as a caption, keeps 0 and is shared through the cache. ``together`` lists the
    numbers of all samples that the judge asks for at once. If the endpoint accepts ``n``, they become one
    request whose input is paid once.
    """

    purpose: str
    messages: tuple[Message, ...]
    shorter: tuple[Message, ...] | None = None
    role: str = JUDGE_ROLE
    max_output_tokens: int | None = None
    sample: int = 0
    together: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenProbability:
    """A token of a reply with its log-probability, and the alternatives to it with theirs."""

    token: str
    logprob: float
    rivals: tuple[tuple[str, float], ...] = ()


class Quota(NamedTuple):
    """The number of requests or tokens left at an endpoint; it is back at ``limit`` after ``reset_s``."""

    remaining: float
    limit: float | None = None
    reset_s: float | None = None


class RateLimits(NamedTuple):
    """The endpoint's limits in the headers of an answer; a limit that they omit is None."""

    requests: Quota | None = None
    tokens: Quota | None = None


class Usage(NamedTuple):
    """Tokens as they are billed, or None if the endpoint does not report them.

    ``input_tokens`` include ``cached_input_tokens`` (read from the provider's cache, and cheaper) and
    ``cache_write_tokens`` (written into it). ``output_tokens`` include hidden ``reasoning_tokens``.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a call.

    ``state`` is ``ok`` if a reply came, even one without a verdict. Otherwise it is ``refused``, ``too_long``
    or ``error`` (`vocabulary.STATES`), and ``error`` gives the reason. Tokens (see `Usage`), cost and latency
    are None if unknown. ``cost_usd`` is the price paid when the reply was made; reading it from the cache is
    free. ``model`` is the model name in the endpoint's answer. ``dropped`` lists the parameters that the
    request was sent without. Only the engine uses ``rate_limits`` and ``others`` (the further answers to a
    request for several); they are not stored.
    """

    text: str | None = None
    state: str = "ok"
    finish_reason: str | None = None
    refusal: str | None = None
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    model: str | None = None
    is_from_cache: bool = False
    used_shorter: bool = False
    logprobs: tuple[TokenProbability, ...] | None = None
    key: str | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    dropped: tuple[str, ...] = ()
    rate_limits: RateLimits | None = field(default=None, compare=False, repr=False)
    others: tuple[Reply, ...] = field(default=(), compare=False, repr=False)

    @property
    def usage(self) -> Usage:
        return Usage(*(getattr(self, name) for name in Usage._fields))


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer to one trajectory. ``success`` is set exactly if the state is ``ok``."""

    state: str
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: int | None = None
    score: float | None = None
    reasoning: str | None = None

    def __post_init__(self) -> None:
        if (self.state == "ok") != (self.success is not None):
            raise ValueError(f"the state {self.state!r} does not match success {self.success!r}")


JudgeSession = Generator[Sequence[Call], Sequence[Reply], Answer]
"""A generator that yields calls to make at once, receives their replies in order, and returns the answer."""


class _Listed(Protocol):
    """The facts about a judge that ``judges list`` prints."""

    @property
    def name(self) -> str:
        """The name in tables, spelled as in the paper if the paper has the judge."""

    @property
    def inputs(self) -> str:
        """The parts of a trajectory that the judge sees, in a few words."""

    @property
    def calls(self) -> str:
        """The number of calls per trajectory: ``1``, ``2``, or an expression in n, its number of steps."""

    @property
    def source(self) -> str: ...


class Judge(_Listed, Protocol):
    """A judge: small, picklable and stateless, since one instance judges every trajectory of a run."""

    @property
    def wants(self) -> Wants:
        """The heavy parts of a trajectory that the judge needs."""

    @property
    def models(self) -> Mapping[str, str]:
        """The default model of each role; empty if the judge calls no model."""

    @property
    def prompts_hash(self) -> str:
        """SHA-256 over the prompt templates; a run records it."""

    def ask(self, view: View) -> JudgeSession:
        """Judge one trajectory. A failed call or an unusable reply raises nothing; it becomes a state."""


class RewardJudge(_Listed, Protocol):
    """A judge that calls no model: it gets the environment's reward instead of a view of the run.

    Of the facts for ``judges list``, your own judge needs only its name.
    """

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """Return the answer for a reward, with the state ``error`` if no reward was recorded."""


AnyJudge = Judge | RewardJudge


def is_reward_judge(judge: AnyJudge) -> TypeIs[RewardJudge]:
    """Return whether a judge follows the environment's reward; every other judge has `ask`."""
    return not hasattr(judge, "ask")


def models_of(judge: AnyJudge) -> Mapping[str, str]:
    """Return the default model of each of a judge's roles; a reward judge has none."""
    return {} if is_reward_judge(judge) else judge.models


def wants_of(judge: AnyJudge) -> Wants:
    """Return the heavy parts of a trajectory that a judge needs; a reward judge needs none."""
    return Wants() if is_reward_judge(judge) else judge.wants


@dataclass(frozen=True, kw_only=True)
class JudgeTraits:
    """Facts about a judge that the engine uses, in addition to the interface `Judge`.

    Attributes:
        method: The judge's method, independent of the model; None outside the catalogue.
        is_official: Whether it sends the prompts of its authors.
        is_structured: Whether its replies are JSON of a fixed form.
        is_inverted: Whether it asks about success last.
        form: The form of its replies, with which stored replies can be parsed again.
        images: How it sends images; None to send them as recorded.
        output_tokens: The output limit by role, for roles that need another limit than the run's.
        response_formats: The ``response_format`` of its requests by role.
        takes_text_for_screenshots: Whether text observations can replace screenshots.
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
    """A judge that describes its traits. Deriving from this class is optional for a judge of your own."""

    def describe(self) -> JudgeTraits:
        return JudgeTraits()


def traits_of(judge: object) -> JudgeTraits:
    """Return the traits that a judge describes, or the defaults for a judge that describes none."""
    return judge.describe() if isinstance(judge, DescribedJudge) else JudgeTraits()


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The model of a role and the parameters of its requests.

    ``provider`` is a name of `providers.PROVIDERS`; ``base_url`` and ``key_variable`` override the provider's
    own. ``extra`` is added to the request unchanged and is part of the cache key. ``prompt_cache`` names the
    part of a prompt that the provider should keep in its prompt cache; it does not change replies, so it is
    not part of the key. The values of ``header`` may be secrets, so they are never written or shown.
    """

    model: str
    provider: str = "openai"
    base_url: str | None = None
    key_variable: str | None = None
    temperature: float | None = 0.0
    seed: int | None = 0
    max_output_tokens: int = DEFAULT_OUTPUT_TOKENS
    logprobs: bool = False
    reasoning_effort: str | None = None
    prompt_cache: Literal["system", "prompt"] | None = None
    header: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str | None, str]:
        """Provider, address and name; each such place has its own price, quotas and parameters."""
        return self.provider, self.base_url, self.model


@dataclass(frozen=True, slots=True)
class Request:
    """The content of one attempt at a call. Parameters in ``unsupported_params`` are not sent."""

    model: ModelSettings
    messages: tuple[Message, ...]
    max_output_tokens: int
    unsupported_params: Set[str] = frozenset()
