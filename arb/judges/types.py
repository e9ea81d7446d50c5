"""The types that judges and the engine share: what a judge sees, the calls it asks for, what it answers.

A judge is a generator. It is shown a `View`, yields the calls it wants made at once, is sent their replies in
the same order, and returns its `Answer`. It touches no network, clock or file, so that one judge runs over an
endpoint, a batch, a local model, a cluster, and over dummy replies when a run is planned.
`arb.judges.contract` checks what it yields and returns.
"""

import base64
import hashlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing_extensions import TypeIs

JUDGE_ROLE = "judge"
"""The role whose model gives the verdict; a judge may name others, such as ``captioner``."""

DEFAULT_OUTPUT_TOKENS = 1024
"""As in the paper, section 4."""


class OptionsError(ValueError):
    """Options that cannot be used together, or at all; the message lists every problem and what to do."""


@dataclass(frozen=True)
class Image:
    """A picture as it is sent: PNG, JPEG or WebP bytes, already resized where that was asked for."""

    content: bytes
    media_type: str
    width: int
    height: int
    detail: Literal["auto", "low", "high"] = "auto"

    @cached_property
    def sha256(self) -> str:
        """The picture's name in keys and in stored messages."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def data_url(self) -> str:
        return f"data:{self.media_type};base64,{base64.b64encode(self.content).decode()}"


Content = str | tuple["str | Image", ...]
"""Text, or texts and pictures in their order."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a call."""

    role: Literal["system", "user", "assistant"]
    content: Content

    @property
    def parts(self) -> tuple["str | Image", ...]:
        """The content as texts and pictures, also where it is one text."""
        return (self.content,) if isinstance(self.content, str) else self.content


@dataclass(frozen=True, slots=True)
class ViewStep:
    """What the agent saw and did at a step. Numbers start at 1; the last step has no action and no reasoning.

    ``text`` is an observation that is no web page, such as the result of a tool. Trees and screenshots are
    None if the judge does not want them, or if none was recorded.
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
    """All that a judge is shown of a trajectory: no reward, no label, no agent's name, no trajectory id.

    ``answer`` is the agent's final message, unless that is an action of the last step.
    """

    goal: str
    goal_images: tuple[Image, ...]
    steps: tuple[ViewStep, ...]
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Wants:
    """Which heavy parts of a trajectory a judge needs: of no step, of the last one, or of all."""

    axtrees: Literal["none", "last", "all"] = "none"
    screenshots: Literal["none", "last", "all"] = "none"
    goal_images: bool = False


def covers(amount: str, is_last: bool) -> bool:
    """Return whether ``none``, ``last`` or ``all`` (of `Wants`) covers a step."""
    return amount == "all" or (amount == "last" and is_last)


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model. If the prompt is too long, ``shorter`` is sent once instead.

    ``role`` names the model of the run that answers. ``sample`` tells several answers to one question apart;
    a call that is not sampled, such as a caption, keeps 0 and is shared through the cache. ``together`` are
    the numbers of all samples that the judge asks for at once: they are one request, with its input paid
    once, if the endpoint takes ``n``.
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
    """A token of a reply with its log-probability and those of its rivals."""

    token: str
    logprob: float
    rivals: tuple[tuple[str, float], ...] = ()


class Quota(NamedTuple):
    """The requests or tokens that an endpoint says are left; it has ``limit`` again after ``reset_s``."""

    remaining: float
    limit: float | None = None
    reset_s: float | None = None


class RateLimits(NamedTuple):
    """The endpoint's limits by the headers of an answer; None for what they leave out."""

    requests: Quota | None = None
    tokens: Quota | None = None


class Usage(NamedTuple):
    """Tokens as they are billed; None if the endpoint does not tell them.

    ``input_tokens`` include ``cached_input_tokens`` (read from the provider's cache, and cheaper) and
    ``cache_write_tokens`` (written into it). ``output_tokens`` include hidden ``reasoning_tokens``.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a call. ``state`` is ``ok`` if there is a reply, whatever it says.

    Otherwise it is ``refused``, ``too_long`` or ``error`` (`vocabulary.STATES`), and ``error`` says why.
    Tokens (see `Usage`), cost and latency are None if unknown. ``cost_usd`` is what was paid when the reply
    was made; from the cache it costs nothing again. ``model`` is the endpoint's name for what answered.
    ``dropped`` are parameters that the request was sent without. ``rate_limits`` and ``others``, the further
    answers to a request for several, are for the engine and not stored.
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
    others: tuple["Reply", ...] = field(default=(), compare=False, repr=False)

    @property
    def usage(self) -> Usage:
        return Usage(*(getattr(self, name) for name in Usage._fields))


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer to one trajectory. Only the state ``ok`` carries a success that is true or false."""

    state: str
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: int | None = None
    score: float | None = None
    reasoning: str | None = None

    def __post_init__(self) -> None:
        if (self.state == "ok") != (self.success is not None):
            raise ValueError(f"the state {self.state!r} does not go with success {self.success!r}")


JudgeSession = Generator[Sequence[Call], Sequence[Reply], Answer]
"""Yields calls to be made at once, is sent their replies in order, returns the answer."""


class Judge(Protocol):
    """A judge. Small, picklable, without state: one instance serves every trajectory of a run."""

    @property
    def name(self) -> str:
        """The name in tables, as the paper spells it where it has one."""

    @property
    def inputs(self) -> str:
        """What it sees, in a few words."""

    @property
    def calls(self) -> str:
        """How many calls a trajectory takes: ``1``, ``2``, or in words with n for its steps."""

    @property
    def source(self) -> str: ...

    @property
    def wants(self) -> Wants:
        """The heavy parts of a trajectory that it needs."""

    @property
    def models(self) -> Mapping[str, str]:
        """The default model of each role; empty for a judge that calls no model."""

    @property
    def prompts_hash(self) -> str:
        """SHA-256 over the prompt templates, so that a run says which ones it used."""

    def ask(self, view: View) -> JudgeSession:
        """Judge one trajectory. Raises nothing for what a model answered, or failed to answer."""


class RewardJudge(Protocol):
    """A judge that calls no model: it gets the environment's reward instead of a view of the run."""

    @property
    def name(self) -> str: ...

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """The answer that a reward stands for; the state ``error`` where none was recorded."""


AnyJudge = Judge | RewardJudge


def is_reward_judge(judge: AnyJudge) -> "TypeIs[RewardJudge]":
    """Return whether a judge follows the environment's reward; every other judge has `ask`."""
    return not hasattr(judge, "ask")


def models_of(judge: AnyJudge) -> Mapping[str, str]:
    """Return the default model of each of a judge's roles; a reward judge has none."""
    return {} if is_reward_judge(judge) else judge.models


def wants_of(judge: AnyJudge) -> Wants:
    """Return the heavy parts of a trajectory that a judge needs; a reward judge needs none."""
    return Wants() if is_reward_judge(judge) else judge.wants


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a role's model is asked. ``extra`` goes into the request as it is and belongs to its identity.

    ``provider`` is a name of `providers.PROVIDERS`; ``base_url`` and ``key_variable`` override its own.
    ``prompt_cache`` is the part of a prompt that the provider is asked to keep; it changes no reply, so it
    is not part of the identity. The values of ``header`` may be secrets, so they are never written or shown.
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
        """Provider, address and name: what has a price, quotas and unsupported parameters of its own."""
        return self.provider, self.base_url, self.model


def failed(replies: Sequence[Reply]) -> Answer | None:
    """Return the answer of a judge whose call failed, in the state of the first failed reply, or None."""
    return next((Answer(reply.state) for reply in replies if reply.state != "ok"), None)
