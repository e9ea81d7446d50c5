"""The types that judges and the engine share.

The method `ask` of a judge is a generator: it receives a `View`, yields lists of calls to make concurrently,
gets their replies in the same order, and returns an `Answer`. Since it uses no network, clock or file, the
same judge works with any endpoint, with batches, on a cluster, and with dummy replies when a run is planned.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Generator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from arb.core.replies import Form

if TYPE_CHECKING:
    from typing_extensions import TypeIs

JUDGE_ROLE = "judge"
"""The role of the model that gives the verdict. A judge may have further roles, such as ``captioner``."""

DEFAULT_OUTPUT_TOKENS = 1024
"""The default limit on the output tokens of a reply, as in the paper (section 4)."""

ImageFormat = Literal["png", "jpeg", "webp"]
Detail = Literal["auto", "low", "high"]


class OptionsError(ValueError):
    """Raised if options cannot be used. The message lists every problem and says what to do."""


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How to send pictures. If ``max_side`` (in pixels) or ``format`` is None, pictures keep their own.

    With a ``quality``, every picture is encoded again, even if it already has the right format.
    """

    max_side: int | None = None
    format: ImageFormat | None = None
    detail: Detail = "auto"
    quality: int | None = None


@dataclass(frozen=True)
class Image:
    """A picture as it is sent: PNG, JPEG or WebP bytes in the final size."""

    content: bytes
    media_type: str
    width: int
    height: int
    detail: Detail = "auto"

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, by which cache keys and stored messages refer to the picture."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def data_url(self) -> str:
        return f"data:{self.media_type};base64,{base64.b64encode(self.content).decode()}"


Content = str | tuple[str | Image, ...]
"""A single text, or a tuple of texts and pictures in the order in which they are sent."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call. ``parameters`` is a JSON schema for the object with its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)

    @property
    def declaration(self) -> dict[str, Any]:
        """The tool in the form in which it is sent."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call to a tool. ``arguments`` is the text that the model wrote. It may be invalid JSON.

    ``extra`` has the fields that some providers want back with the call, such as Gemini's signature.
    """

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] | None = field(default=None, hash=False)

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a call: its role and its content.

    An assistant's message may have ``tool_calls``. The result of a tool call, which can only be text, is a
    later message with the role ``tool`` and the call's ``tool_call_id``.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: Content
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    @property
    def parts(self) -> tuple[str | Image, ...]:
        """The content as a tuple of texts and pictures, followed by the tool calls as texts."""
        content = (self.content,) if isinstance(self.content, str) else self.content
        return (*content, *map(str, self.tool_calls)) if self.tool_calls else content


@dataclass(frozen=True, slots=True)
class ViewStep:
    """One step of a run as a judge sees it: an observation, and the action that the agent took after it.

    Steps are numbered from 1. The last step may have neither action nor reasoning. ``text`` is an observation
    that is not a web page, such as the result of a tool. A tree or screenshot is None if the judge does not
    want it or it was not recorded.
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
    """All that a judge sees of a trajectory. It has no reward, label, agent name or trajectory id.

    ``answer`` is the agent's final message, or None if the last action already contains it.
    """

    goal: str
    goal_images: tuple[Image, ...]
    steps: tuple[ViewStep, ...]
    answer: str | None = None


Amount = Literal["none", "last", "all"]
AMOUNTS = get_args(Amount)


@dataclass(frozen=True, slots=True)
class Wants:
    """The large parts of a trajectory that a judge needs, for all steps, for the last step or for none."""

    axtrees: Amount = "none"
    screenshots: Amount = "none"
    goal_images: bool = False


def covers(amount: str, is_last: bool) -> bool:
    """Return whether an ``amount`` from `Wants` (``none``, ``last`` or ``all``) includes this step."""
    return amount == "all" or (amount == "last" and is_last)


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model. If the prompt is too long, the prompt ``shorter`` is sent instead.

    The model may call ``tools`` instead of answering. ``role`` is the role of the model that answers.
    ``sample`` is the number of this sample, or 0 for a call that is not sampled. ``together`` has the numbers
    of all samples that the judge asks for in this stage. If the endpoint accepts the parameter ``n``, these
    samples share one request, so that the input is paid only once.
    """

    purpose: str
    messages: tuple[Message, ...]
    shorter: tuple[Message, ...] | None = None
    role: str = JUDGE_ROLE
    max_output_tokens: int | None = None
    sample: int = 0
    together: tuple[int, ...] = ()
    tools: tuple[Tool, ...] = ()


class TokenProbability(NamedTuple):
    """A token of a reply and its alternatives (``rivals``), each with a log-probability."""

    token: str
    logprob: float
    rivals: tuple[tuple[str, float], ...] = ()


class Quota(NamedTuple):
    """How many requests or tokens an endpoint still allows, and in how many seconds the limit is reset."""

    remaining: float
    limit: float | None = None
    reset_s: float | None = None


class RateLimits(NamedTuple):
    """The quotas in the headers of an HTTP response. A quota that the headers omit is None."""

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

    ``state`` is ``ok`` if a reply arrived, even without a verdict. Otherwise it is ``refused``, ``too_long``
    or ``error``, and ``error`` has the reason. Tokens (see `Usage`), cost and latency are None if unknown.
    ``cost_usd`` is what was paid when the reply was made, even for a reply from the cache. ``model`` is the
    model that answered, as named by the endpoint. ``dropped`` has the parameters that were not sent.

    ``tool_calls`` are the tools that the model calls, in which case there may be no text.

    ``rate_limits``, and ``others`` (the replies for further samples of the same request), are not stored.
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
    tool_calls: tuple[ToolCall, ...] = ()
    rate_limits: RateLimits | None = field(default=None, compare=False, repr=False)
    others: tuple[Reply, ...] = field(default=(), compare=False, repr=False)

    @property
    def usage(self) -> Usage:
        return Usage(*(getattr(self, name) for name in Usage._fields))


StepAnswers = Mapping[int, Mapping[str, str | bool | int]]
"""Answers about single steps, by the step's number (`ViewStep.number`) and the name of the target."""


class StepQuestion(NamedTuple):
    """The name of a target about steps, and the answers that a judge may give to it, in lower case."""

    target: str
    values: tuple[str, ...]


class Evidence(NamedTuple):
    """Something that a verdict rests on: a criterion, whether it is met, and the step that shows it."""

    step: int | None = None
    criterion: str | None = None
    met: bool | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer for one trajectory. It has a verdict or step answers only if its state is ``ok``.

    ``success`` may be None if there are ``steps``. Steps in ``evidence`` and ``steps`` are numbered as in the
    `View`.
    """

    state: str
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: int | None = None
    score: float | None = None
    reasoning: str | None = None
    steps: StepAnswers | None = field(default=None, hash=False)
    evidence: tuple[Evidence, ...] = ()

    def __post_init__(self) -> None:
        if (self.state == "ok") != (self.success is not None or bool(self.steps)):
            raise ValueError(f"the state {self.state!r} does not match success {self.success!r}")


JudgeSession = Generator[Sequence[Call], Sequence[Reply], Answer]
"""A generator that yields lists of calls, receives their replies in the same order, and returns an answer."""


class _Listed(Protocol):
    """The attributes of a judge that ``judges list`` prints."""

    @property
    def name(self) -> str:
        """The name in tables. A judge of the paper has the name that the paper uses."""

    @property
    def inputs(self) -> str:
        """A few words that say which parts of a trajectory the judge sees."""

    @property
    def calls(self) -> str:
        """The calls per trajectory: a number, or an expression in n, the number of steps or screenshots."""

    @property
    def source(self) -> str: ...


class Judge(_Listed, Protocol):
    """The interface of a judge. An instance is stateless, can be pickled, and judges all trajectories."""

    @property
    def wants(self) -> Wants:
        """The large parts of a trajectory that the judge needs."""

    @property
    def models(self) -> Mapping[str, str]:
        """The default model of each role. Empty if the judge calls no model."""

    @property
    def prompts_hash(self) -> str:
        """The SHA-256 of the prompt templates, which each run records."""

    def ask(self, view: View) -> JudgeSession:
        """Judge one trajectory. If a call fails or a reply is unusable, the answer's state says so."""


class RewardJudge(_Listed, Protocol):
    """A judge that gets the recorded reward instead of a view of the run, and calls no model.

    A reward judge of your own needs only ``name`` and ``judge_reward``.
    """

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """Return the answer for a reward. For None, the answer's state should be ``error``."""


AnyJudge = Judge | RewardJudge


def is_reward_judge(judge: AnyJudge) -> TypeIs[RewardJudge]:
    """Return whether a judge is a `RewardJudge`, which has no method `ask`."""
    return not hasattr(judge, "ask")


def models_of(judge: AnyJudge) -> Mapping[str, str]:
    """Return the default models of a judge by role, or {} for a reward judge."""
    return {} if is_reward_judge(judge) else judge.models


def wants_of(judge: AnyJudge) -> Wants:
    """Return what a judge needs of a trajectory, or empty `Wants` for a reward judge."""
    return Wants() if is_reward_judge(judge) else judge.wants


@dataclass(frozen=True, kw_only=True)
class JudgeTraits:
    """Optional facts about a judge, in addition to the interface `Judge`.

    Attributes:
        method: The name of the method without the model; None if the judge is not in the catalogue.
        is_official: Whether the prompts are those of the judge's authors.
        is_inverted: Whether the prompt asks about success last instead of first.
        form: The form of replies, which ``judges reparse`` needs to parse stored replies again.
        steps: The question about steps, if replies answer it in the form that `parsing.parse_steps` reads.
        images: How to send pictures, or None to send them as recorded.
        output_tokens: The output limits by role, for roles that do not use the run's limit.
        response_formats: If the judge's replies are JSON, the ``response_format`` of requests, by role.
        takes_text_for_screenshots: Whether text observations can replace screenshots.
    """

    method: str | None = None
    is_official: bool = False
    is_inverted: bool = False
    form: Form | None = None
    steps: StepQuestion | None = None
    images: ImageOptions | None = None
    output_tokens: Mapping[str, int] = field(default_factory=dict)
    response_formats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    takes_text_for_screenshots: bool = False


class DescribedJudge:
    """The base class of judges that describe their traits. Other judges get the default traits."""

    def describe(self) -> JudgeTraits:
        return JudgeTraits()


def traits_of(judge: object) -> JudgeTraits:
    """Return the traits of a judge, or the defaults if it does not derive from `DescribedJudge`."""
    return judge.describe() if isinstance(judge, DescribedJudge) else JudgeTraits()


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The model of a role and the parameters of its requests.

    ``provider`` is a key of `providers.PROVIDERS`. ``base_url`` and ``key_variable`` override the provider's
    values. ``extra`` is added to the body of each request. ``prompt_cache`` is the part of a prompt that the
    provider should cache; since it does not change replies, it is not part of the key in our own cache.
    ``header`` may contain secrets, so its values are never written or printed.
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
        """The provider, address and model name. Prices, quotas and accepted parameters depend on them."""
        return self.provider, self.base_url, self.model


@dataclass(frozen=True, slots=True)
class Request:
    """The content of one request. Parameters named in ``unsupported_params`` are not sent."""

    model: ModelSettings
    messages: tuple[Message, ...]
    max_output_tokens: int
    unsupported_params: Set[str] = frozenset()
    tools: tuple[Tool, ...] = ()
