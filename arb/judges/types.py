"""The types that judges and the engine share.

A judge's `ask` is a generator: it receives a `View`, yields lists of calls to make concurrently, gets their
replies in the same order, and returns an `Answer`. Since it uses no network, clock or file, the same judge
works with an endpoint, a batch, a local model or a cluster, and with dummy replies when a run is planned.
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
"""The role whose model gives the verdict. A judge may have further roles, such as ``captioner``."""

DEFAULT_OUTPUT_TOKENS = 1024
"""The output limit of the paper's judges (section 4)."""

ImageFormat = Literal["png", "jpeg", "webp"]
Detail = Literal["auto", "low", "high"]


class OptionsError(ValueError):
    """Raised for options that cannot be used; the message lists every problem and what to do."""


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How pictures are sent. ``max_side`` is in pixels; None keeps the recorded size or format.

    With a ``quality``, even pictures that already have the right format are encoded again.
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
"""A single text, or texts and pictures in the order in which they are sent."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a call: its role and its content."""

    role: Literal["system", "user", "assistant"]
    content: Content

    @property
    def parts(self) -> tuple[str | Image, ...]:
        """The content as a tuple of texts and pictures, even if it is a single text."""
        return (self.content,) if isinstance(self.content, str) else self.content


@dataclass(frozen=True, slots=True)
class ViewStep:
    """One step of a run as a judge sees it: the observation, and the action that the agent took.

    Steps are numbered from 1. The last step may have neither action nor reasoning. ``text`` is an observation
    without a web page, such as the result of a tool. A tree or screenshot is None if the judge does not want
    it or if it was not recorded.
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

    It contains no reward, label, agent name or trajectory id. ``answer`` is the agent's final message, unless
    the last step sends that message as an action.
    """

    goal: str
    goal_images: tuple[Image, ...]
    steps: tuple[ViewStep, ...]
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Wants:
    """The large parts of a trajectory that a judge needs: of no step, of the last step, or of all steps."""

    axtrees: Literal["none", "last", "all"] = "none"
    screenshots: Literal["none", "last", "all"] = "none"
    goal_images: bool = False


def covers(amount: str, is_last: bool) -> bool:
    """Return whether a value of `Wants` (``none``, ``last`` or ``all``) includes a step."""
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
    """A token of a reply and its alternatives (``rivals``), each with its log-probability."""

    token: str
    logprob: float
    rivals: tuple[tuple[str, float], ...] = ()


class Quota(NamedTuple):
    """The requests or tokens that an endpoint still allows, and the seconds until all are allowed again."""

    remaining: float
    limit: float | None = None
    reset_s: float | None = None


class RateLimits(NamedTuple):
    """The quotas in the headers of an endpoint's answer, or None for a quota that the headers omit."""

    requests: Quota | None = None
    tokens: Quota | None = None


class Usage(NamedTuple):
    """The billed tokens of a reply. A count is None if the endpoint does not report it.

    ``input_tokens`` include ``cached_input_tokens`` (read from the provider's cache, at a lower price) and
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
    free. ``model`` is the model name in the endpoint's answer. ``dropped`` lists the parameters that were
    left out of the request. Only the engine uses ``rate_limits`` and ``others`` (the replies for the further
    samples of one request); they are not stored.
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
    """A judge's answer to one trajectory. ``success`` is set if and only if the state is ``ok``."""

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
"""A generator that yields lists of calls, receives their replies in the same order, and returns an answer."""


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
        """The calls per trajectory: a number, or an expression in n, the number of steps or screenshots."""

    @property
    def source(self) -> str: ...


class Judge(_Listed, Protocol):
    """The interface of a judge, which is small, picklable and stateless: one instance judges a whole run."""

    @property
    def wants(self) -> Wants:
        """The large parts of a trajectory that the judge needs."""

    @property
    def models(self) -> Mapping[str, str]:
        """The default model of each role; empty if the judge calls no model."""

    @property
    def prompts_hash(self) -> str:
        """The SHA-256 of the prompt templates, which each run records."""

    def ask(self, view: View) -> JudgeSession:
        """Judge one trajectory. A failed call or an unusable reply becomes the state of the answer."""


class RewardJudge(_Listed, Protocol):
    """A judge that calls no model: it gets the environment's reward instead of a view of the run.

    A reward judge of your own needs only ``name`` and ``judge_reward``.
    """

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """Return the answer for a reward, with the state ``error`` if no reward was recorded."""


AnyJudge = Judge | RewardJudge


def is_reward_judge(judge: AnyJudge) -> TypeIs[RewardJudge]:
    """Return whether a judge follows the environment's reward instead of having a method `ask`."""
    return not hasattr(judge, "ask")


def models_of(judge: AnyJudge) -> Mapping[str, str]:
    """Return a judge's default models by role; empty for a reward judge."""
    return {} if is_reward_judge(judge) else judge.models


def wants_of(judge: AnyJudge) -> Wants:
    """Return the large parts of a trajectory that a judge needs; a reward judge needs none."""
    return Wants() if is_reward_judge(judge) else judge.wants


@dataclass(frozen=True, kw_only=True)
class JudgeTraits:
    """Facts about a judge that the engine uses, in addition to the interface `Judge`.

    Attributes:
        method: The judge's method, independent of the model; None outside the catalogue.
        is_official: Whether it sends the prompts of its authors.
        is_structured: Whether its replies are JSON of a fixed form.
        is_inverted: Whether it asks about success last instead of first.
        form: The form of its replies, which ``judges reparse`` needs to parse stored replies again.
        images: How it sends images; None to send them as recorded.
        output_tokens: The output limits of roles that do not use the run's limit.
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
    """A judge that describes its traits. A judge of your own need not derive from this class."""

    def describe(self) -> JudgeTraits:
        return JudgeTraits()


def traits_of(judge: object) -> JudgeTraits:
    """Return the traits that a judge describes, or the defaults for a judge that describes none."""
    return judge.describe() if isinstance(judge, DescribedJudge) else JudgeTraits()


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The model of a role and the parameters of its requests.

    ``provider`` is a key of `providers.PROVIDERS`. ``base_url`` and ``key_variable`` override the provider's
    values. ``extra`` is added to the request unchanged and is part of the cache key. ``prompt_cache`` names
    the part of a prompt that the provider should keep in its prompt cache. It does not change replies, so it
    is not part of the cache key. ``header`` may contain secrets, so its values are never written or shown.
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
        """The provider, address and model name, which together determine prices, quotas and parameters."""
        return self.provider, self.base_url, self.model


@dataclass(frozen=True, slots=True)
class Request:
    """The content of one attempt at a call. Parameters named in ``unsupported_params`` are not sent."""

    model: ModelSettings
    messages: tuple[Message, ...]
    max_output_tokens: int
    unsupported_params: Set[str] = frozenset()
