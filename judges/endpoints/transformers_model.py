"""``--provider transformers``: a Hugging Face model on this machine, text or vision, as an endpoint.

One thread asks the model, one call after another, so that the same call gets the same reply; with
``--extra batch_size=8`` up to eight calls without pictures go through it together, which is faster on a GPU
and may change a word here and there. It is asked through its chat template.
"""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from judges.engine.errors import CallFailed
from judges.types import Image, Message, ModelSettings, OptionsError, Reply, TokenProbability

if TYPE_CHECKING:
    import torch

TOP_TOKENS: Final = 5
"""How many of the likeliest tokens are recorded at each place, beside the one that was chosen."""


class LogprobRecorder:
    """A logits processor that changes nothing. It sees the model's own scores, before any temperature.

    ``rows`` has, for each prompt and each of its new tokens, the log-probabilities of the likeliest tokens
    and of the chosen one; the last place is there after `finish`.
    """

    def __init__(self) -> None:
        self.rows: list[list[dict[int, float]]] = []
        self._last: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Record the place before, and hold this one until its token is known."""
        if self._last is not None:
            self._record(input_ids[:, -1])
        else:
            self.rows = [[] for _ in range(len(scores))]
        self._last = scores.float().log_softmax(dim=-1)
        return scores

    def finish(self, all_ids: torch.Tensor) -> None:
        """Record the last place, now that its token is known."""
        if self._last is not None:
            self._record(all_ids[:, -1])

    def _record(self, chosen: torch.Tensor) -> None:
        last = self._last
        if last is None:
            return
        values, tokens = last.topk(min(TOP_TOKENS, last.shape[-1]), dim=-1)
        of_chosen = last.gather(-1, chosen.unsqueeze(-1)).squeeze(-1).tolist()
        for row, top in enumerate(zip(tokens.tolist(), values.tolist(), strict=True)):
            known = dict(zip(*top, strict=True))
            self.rows[row].append(known | {int(chosen[row]): of_chosen[row]})


def probabilities(
    tokens: Sequence[int], places: Sequence[Mapping[int, float]], decode: Callable[[int], str]
) -> tuple[TokenProbability, ...]:
    """Each token with its rivals, likeliest first; ``decode`` gives a token's text."""
    return tuple(
        TokenProbability(
            decode(token),
            place[token],
            tuple((decode(rival), place[rival]) for rival in place if rival != token),
        )
        for token, place in zip(tokens, places, strict=False)
    )


def template_message(message: Message, *, is_vision: bool) -> dict[str, Any]:
    """A message: in parts for a vision model, as one text, a line break between its parts, for the others."""
    if not is_vision:
        texts = [part for part in message.parts if isinstance(part, str)]
        return {"role": message.role, "content": "\n".join(texts)}
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def without_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with what the system says put in front of what the user says first."""
    system, first, *others = messages
    return [Message(first.role, (*system.parts, *first.parts)), *others]


def _part(part: str | Image) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    from PIL import Image as pictures

    with pictures.open(io.BytesIO(part.content)) as picture:
        return {"type": "image", "image": picture.convert("RGB")}


LOADING: Final = ("device", "dtype", "batch_size")
"""What ``--extra`` may say of loading and batches; all else goes to the generation (``top_p`` and others)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A call made ready: the inputs of the model, and how many tokens they are."""

    inputs: Mapping[str, Any]
    tokens: int
    has_images: bool
    max_output_tokens: int
    logprobs: bool


class LocalModel:
    """A model with its tokenizer or processor. Its methods are for one thread at a time.

    A GPU is used where there is one. Raises OptionsError when a package is missing, and when there is no such
    model or it has no chat template.
    """

    def __init__(self, settings: ModelSettings):
        try:
            import torch
            import transformers
        except ImportError as problem:
            raise OptionsError(
                f"--provider transformers needs {problem.name}, which is not installed: install the extra "
                "`local` (pip install 'torch>=2.13,<3')"
            ) from problem
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        self._torch = torch
        self._settings = settings
        self._stop = threading.Event()
        try:
            self._load(transformers)
        except (OSError, ValueError, ImportError, KeyError) as problem:
            raise OptionsError(
                f"--provider transformers: {settings.model} cannot be loaded: {str(problem).strip()[:600]}"
            ) from problem
        if not self._reader.chat_template:
            raise OptionsError(
                f"--provider transformers: {settings.model} has no chat template, so it cannot be asked; "
                "take the model's instruction-tuned version"
            )

    def prepare(self, messages: Sequence[Message], max_output_tokens: int, *, logprobs: bool) -> Prompt:
        """A call as the model takes it. Raises CallFailed: too_long, or final where it takes no pictures."""
        has_images = any(isinstance(part, Image) for each in messages for part in each.parts)
        if has_images and not self._is_vision:
            raise CallFailed("final", f"{self._settings.model} accepts text only, but the call has an image")
        inputs = self._templated(messages)
        tokens = inputs["input_ids"].shape[1]
        if tokens + max_output_tokens > self._context:
            raise CallFailed(
                "too_long",
                f"the prompt has {tokens} tokens and the reply may have {max_output_tokens}; the model's "
                f"context is {self._context} tokens",
            )
        return Prompt(inputs, tokens, has_images, max_output_tokens, logprobs)

    def generate(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """The replies to prompts that may go together: of one length of reply, several only without pictures.

        The latency of each is that of all. Raises CallFailed.
        """
        torch = self._torch
        begun = time.perf_counter()
        inputs = {name: self._placed(value) for name, value in self._padded(prompts).items()}
        width = inputs["input_ids"].shape[1]
        recorder = LogprobRecorder() if prompts[0].logprobs else None
        try:
            with torch.inference_mode():
                self._seed()
                made = self._model.generate(
                    **inputs,
                    generation_config=self._generation(prompts[0].max_output_tokens),
                    logits_processor=[recorder] if recorder else None,
                    stopping_criteria=[_StopWhen(self._stop.is_set)],
                )
        except torch.cuda.OutOfMemoryError as problem:
            torch.cuda.empty_cache()
            raise CallFailed("final", f"the GPU's memory is too small for the call: {problem}") from problem
        if self._stop.is_set():
            raise CallFailed("final", "stopped while in progress")
        if recorder:
            recorder.finish(made)
        made = made[:, width:].tolist()
        latency_s = time.perf_counter() - begun
        return [
            self._reply(prompt, tokens, recorder.rows[row] if recorder else None, latency_s)
            for row, (prompt, tokens) in enumerate(zip(prompts, made, strict=True))
        ]

    def stop(self) -> None:
        """End a generation that is under way, from another thread."""
        self._stop.set()

    def _load(self, transformers: Any) -> None:
        settings, extra = self._settings, self._settings.extra
        config = transformers.AutoConfig.from_pretrained(settings.model)
        self._is_vision = getattr(config, "vision_config", None) is not None
        reader = transformers.AutoProcessor if self._is_vision else transformers.AutoTokenizer
        kind = (
            transformers.AutoModelForImageTextToText if self._is_vision else transformers.AutoModelForCausalLM
        )
        self._reader = reader.from_pretrained(settings.model)
        self._tokenizer = getattr(self._reader, "tokenizer", self._reader)
        self._tokenizer.padding_side = "left"
        has_gpu = self._torch.cuda.is_available()
        self._device = extra.get("device", "cuda" if has_gpu else "cpu")
        model = kind.from_pretrained(settings.model, dtype=extra.get("dtype", "auto"))
        self._model = model.to(self._device).eval()
        text = config.get_text_config()
        known = (getattr(text, "max_position_embeddings", None), self._tokenizer.model_max_length)
        self._context = min(length for length in known if length)
        ends = model.generation_config.eos_token_id
        ends = ends if ends is not None else self._tokenizer.eos_token_id
        self._ends = {ends} if isinstance(ends, int) else set(ends or ())

    def _templated(self, messages: Sequence[Message]) -> Mapping[str, Any]:
        """The prompt in the model's template; without a system message where the template knows none."""
        import jinja2

        try:
            return self._tokenized(messages)
        except jinja2.TemplateError as problem:
            if messages[0].role != "system" or len(messages) < 2:
                raise CallFailed(
                    "final", f"the model's chat template refuses the call: {problem}"
                ) from problem
        try:
            return self._tokenized(without_system(messages))
        except jinja2.TemplateError as problem:
            raise CallFailed("final", f"the model's chat template refuses the call: {problem}") from problem

    def _tokenized(self, messages: Sequence[Message]) -> Mapping[str, Any]:
        return self._reader.apply_chat_template(
            [template_message(each, is_vision=self._is_vision) for each in messages],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )

    def _padded(self, prompts: Sequence[Prompt]) -> Mapping[str, Any]:
        if len(prompts) == 1:
            return prompts[0].inputs
        rows = [{"input_ids": each.inputs["input_ids"][0].tolist()} for each in prompts]
        return self._tokenizer.pad(rows, padding=True, return_tensors="pt")

    def _placed(self, value: Any) -> Any:
        """A tensor on the model's device, pictures in its number format."""
        if not self._torch.is_tensor(value):
            return value
        placed = value.to(self._device)
        return placed.to(self._model.dtype) if placed.is_floating_point() else placed

    def _generation(self, max_output_tokens: int) -> Any:
        """How to generate: as the settings say, with nothing of the model's own but where it ends."""
        from transformers import GenerationConfig

        temperature = self._settings.temperature
        chosen = {name: value for name, value in self._settings.extra.items() if name not in LOADING}
        sampling = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
        padding = self._tokenizer.pad_token_id
        return GenerationConfig(
            max_new_tokens=max_output_tokens,
            eos_token_id=sorted(self._ends) or None,
            pad_token_id=padding if padding is not None else min(self._ends, default=0),
            **(sampling | chosen),
        )

    def _seed(self) -> None:
        """Draw the same for the same seed; without one, something else each time."""
        if self._settings.seed is not None:
            self._torch.manual_seed(self._settings.seed)
        else:
            self._torch.seed()

    def _reply(
        self, prompt: Prompt, tokens: list[int], places: list[dict[int, float]] | None, latency_s: float
    ) -> Reply:
        end = next((place + 1 for place, token in enumerate(tokens) if token in self._ends), None)
        tokens = tokens[:end]
        visible = tokens[:-1] if end is not None else tokens
        return Reply(
            text=self._tokenizer.decode(visible, skip_special_tokens=True),
            finish_reason="stop" if end is not None else "length",
            input_tokens=prompt.tokens,
            output_tokens=len(tokens),
            latency_s=latency_s,
            model=self._settings.model,
            logprobs=None if places is None else probabilities(visible, places, self._decode),
        )

    def _decode(self, token: int) -> str:
        return self._tokenizer.decode([token])


class _StopWhen:
    """A stopping criterion that the caller sets."""

    def __init__(self, is_set: Callable[[], bool]):
        self._is_set = is_set

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return input_ids.new_full((len(input_ids),), self._is_set(), dtype=bool)


class LocalEndpoint:
    """Makes single attempts, as `OpenAIEndpoint` does. For one event loop.

    The model is loaded at once. Raises OptionsError when it cannot be.
    """

    def __init__(self, model: ModelSettings):
        self._most = _batch_size(model)
        self._model = LocalModel(model)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._waiting: deque[tuple[Prompt, asyncio.Future[Reply]]] = deque()
        self._working: asyncio.Task[None] | None = None

    async def attempt(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        *,
        unsupported_params: Set[str] = frozenset(),
    ) -> Reply:
        """The model's reply; ``unsupported_params`` does not apply here. Raises CallFailed."""
        loop = asyncio.get_running_loop()
        prompt = await loop.run_in_executor(
            self._thread,
            lambda: self._model.prepare(messages, max_output_tokens, logprobs=model.logprobs),
        )
        done: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append((prompt, done))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return await done

    async def close(self) -> None:
        """Let go of the model; a call that is under way ends without a reply."""
        self._model.stop()
        if self._working is not None:
            await self._working
        await asyncio.to_thread(self._thread.shutdown)

    async def _work(self) -> None:
        """Ask the model until no call waits; calls that were given up meanwhile are left out."""
        while self._waiting:
            taken = self._next()
            if not taken:
                continue
            prompts = [prompt for prompt, _ in taken]
            try:
                replies = await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._model.generate, prompts
                )
            except Exception as problem:
                for _, done in taken:
                    if not done.done():
                        done.set_exception(_failure(problem))
                continue
            for (_, done), reply in zip(taken, replies, strict=True):
                if not done.done():
                    done.set_result(reply)

    def _next(self) -> list[tuple[Prompt, asyncio.Future[Reply]]]:
        """The calls that go through the model together: the first that waits, and others like it."""
        taken: list[tuple[Prompt, asyncio.Future[Reply]]] = []
        left: deque[tuple[Prompt, asyncio.Future[Reply]]] = deque()
        for prompt, done in self._waiting:
            if done.done():
                continue
            if not taken or (len(taken) < self._most and _can_be_batched(taken[0][0], prompt)):
                taken.append((prompt, done))
            else:
                left.append((prompt, done))
        self._waiting = left
        return taken


def _can_be_batched(first: Prompt, other: Prompt) -> bool:
    return (
        not (first.has_images or other.has_images)
        and first.max_output_tokens == other.max_output_tokens
        and first.logprobs == other.logprobs
    )


def _failure(problem: Exception) -> CallFailed:
    if isinstance(problem, CallFailed):
        return problem
    return CallFailed("final", f"the model failed: {type(problem).__name__}: {problem}")


def _batch_size(model: ModelSettings) -> int:
    size: Any = model.extra.get("batch_size", 1)
    if type(size) is not int or size < 1:
        raise OptionsError(f"--extra batch_size={size}: a number of calls from 1")
    return size
