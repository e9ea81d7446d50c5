"""A Hugging Face model on this machine, text or vision, asked through its chat template."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from judges.base import Image, Message, ModelSettings, OptionsError, Reply
from judges.engine.errors import CallFailed
from judges.engine.local_logprobs import LogprobRecorder, probabilities
from judges.engine.local_messages import template_message, without_system

if TYPE_CHECKING:
    import torch

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
        has_images = any(isinstance(part, Image) for each in messages for part in each.content)
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
        given = {name: value for name, value in self._settings.extra.items() if name not in LOADING}
        sampling = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
        padding = self._tokenizer.pad_token_id
        return GenerationConfig(
            max_new_tokens=max_output_tokens,
            eos_token_id=sorted(self._ends) or None,
            pad_token_id=padding if padding is not None else min(self._ends, default=0),
            **(sampling | given),
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
        shown = tokens[:-1] if end is not None else tokens
        return Reply(
            text=self._tokenizer.decode(shown, skip_special_tokens=True),
            finish_reason="stop" if end is not None else "length",
            input_tokens=prompt.tokens,
            output_tokens=len(tokens),
            latency_s=latency_s,
            model=self._settings.model,
            logprobs=None if places is None else probabilities(shown, places, self._decode),
        )

    def _decode(self, token: int) -> str:
        return self._tokenizer.decode([token])


class _StopWhen:
    """A stopping criterion that the caller sets."""

    def __init__(self, is_set: Callable[[], bool]):
        self._is_set = is_set

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return input_ids.new_full((len(input_ids),), self._is_set(), dtype=bool)
