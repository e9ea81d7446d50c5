"""``--provider transformers``: a Hugging Face model of this machine, behind `transformers serve`.

The server is started for the run, on a free port that only this machine reaches, with continuous batching,
and ends with the run, however that ends. It is asked as any endpoint is, but for what it would do without a
word: leave out pictures that a model of text cannot see, go on past the end of the model's context, sample
nothing whatever the temperature, and answer a prompt that the model's template refuses with a bare 500. With
``--base-url`` a running one is asked instead, in the same way.

Several GPUs for one model, log-probabilities, structured output and batches of calls to models that see are
`vllm serve`'s (``--provider vllm``). Up to transformers 5.23 continuous batching takes token ids alone
(huggingface/transformers#43386): a model that sees is asked one call after another, also without pictures.
A server takes nine tenths of the GPU's memory; two models share it by ``--extra cb_max_memory_percent=0.4``.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from arb.core.files import install_command
from arb.judges.endpoints.openai_compatible import TIMEOUT_S, OpenAIEndpoint
from arb.judges.endpoints.providers import Access
from arb.judges.engine.errors import CallFailed
from arb.judges.engine.tokens import TokenCounters
from arb.judges.types import Image, Message, ModelSettings, OptionsError, Reply

SERVER_OPTIONS: Final = (
    *("device", "dtype", "attn_implementation", "quantization"),
    *("cb_num_blocks", "cb_max_batch_tokens", "cb_max_memory_percent"),
)
"""What ``--extra`` may say to the server; all else is an option of the generation (``top_p`` and others)."""

POLL_S: Final = 0.2
SAY_EVERY_S: Final = 10.0
END_WITHIN_S: Final = 5.0
MAX_LOG_BYTES: Final = 1_500

_SERVE: Final = """
import ctypes, os, signal, sys
_, parent, *options = sys.argv
if sys.platform == "linux":  # PR_SET_PDEATHSIG: end with the run, even where that is killed
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    if os.getppid() != int(parent):  # it has ended already
        sys.exit()
import torch
from transformers.cli.transformers import app
if not torch.cuda.is_available() and not any(option.startswith("--cb-") for option in options):
    options += ["--cb-max-memory-percent", "0.1"]  # it is the machine's memory, of which 60 % would be taken
app(["serve", *options], prog_name="transformers")
"""


class TransformersServer:
    """`transformers serve` with one model, in a process of its own. ``say`` shows lines to the user."""

    def __init__(self, model: ModelSettings, say: Callable[[str], None]):
        _check_installed()
        self._name, self._say = model.model, say
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self.access = Access(f"http://127.0.0.1:{self._port}/v1", None, "max_tokens")
        options = ["--continuous-batching", "--host", "127.0.0.1", "--port", str(self._port)]
        for name in SERVER_OPTIONS:
            if name in model.extra:
                options += [f"--{name.replace('_', '-')}", str(model.extra[name])]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(os.getpid()), model.model, *options, "--log-level", "error"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the run, which ends the server when its calls have ended
        )

    async def wait_until_ready(self) -> None:
        """Return when the model is loaded, however long its download takes. Raises OptionsError."""
        begun = said = time.monotonic()
        self._say(f"starting transformers serve with {self._name}")
        while not await self._answers():
            if self.process.poll() is not None:
                raise OptionsError(
                    f"--provider transformers: {self._name} cannot be served; the last words of "
                    f"`transformers serve`:\n{self.log()}"
                )
            if (now := time.monotonic()) - said >= SAY_EVERY_S:
                said = now
                last = self.log().rpartition("\n")[2].rpartition("\r")[2].strip()
                self._say(f"{self._name} is being loaded ({now - begun:.0f} s) {last}")
            await asyncio.sleep(POLL_S)

    def log(self) -> str:
        """The end of what the server wrote; read without moving the place at which it writes on."""
        start = max(0, os.fstat(self._log.fileno()).st_size - MAX_LOG_BYTES)
        return os.pread(self._log.fileno(), MAX_LOG_BYTES, start).decode(errors="replace").strip()

    async def stop(self) -> None:
        """End the server; may be called again."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                await asyncio.to_thread(self.process.wait, END_WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self._log.close()

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        try:
            writer.write(b"GET /health HTTP/1.0\r\n\r\n")
            return b" 200 " in await reader.readline()
        except OSError:
            return False
        finally:
            writer.close()


class TransformersEndpoint:
    """Makes single attempts, as `OpenAIEndpoint` does, at a `transformers serve`: at the one that ``access``
    reaches, else at ``server``, which it ends. For one event loop.
    """

    def __init__(
        self,
        model: ModelSettings,
        server: TransformersServer | None,
        access: Access | None = None,
        timeout_s: float = TIMEOUT_S,
    ):
        self._server = server
        self._endpoint = OpenAIEndpoint(access or server.access, timeout_s)
        self._joins_system = False
        config = _read_json(model.model, "config.json")
        self.sees = "vision_config" in config
        self._is_text_only = bool(config) and not self.sees
        self._context: int | None = _find(config, "max_position_embeddings")
        self._ends = {
            name: value
            for name in ("eos_token_id", "pad_token_id")
            if (value := _find({**config, **_read_json(model.model, "generation_config.json")}, name))
            is not None
        }
        self._counter = TokenCounters().of(model)

    @classmethod
    async def start(
        cls,
        model: ModelSettings,
        say: Callable[[str], None],
        access: Access | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> TransformersEndpoint:
        """The endpoint of a model, once a call gets through; without ``access`` at a server that is started.

        Raises OptionsError where no call does.
        """
        server = TransformersServer(model, say) if access is None else None
        async with AsyncExitStack() as on_failure:
            if server is not None:
                on_failure.push_async_callback(server.stop)
                await server.wait_until_ready()
            endpoint = cls(model, server, access, timeout_s)
            if endpoint.sees:
                say(
                    f"{model.model} sees pictures: transformers serve answers its calls one after another; "
                    "`vllm serve` (--provider vllm) batches them"
                )
            on_failure.push_async_callback(endpoint.close)
            await endpoint._try_template(model)
            on_failure.pop_all()
        return endpoint

    async def attempt(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        *,
        unsupported_params: Set[str] = frozenset(),
    ) -> Reply:
        """One request without ``unsupported_params``. Raises CallFailed, and nothing else."""
        if self._is_text_only and any(isinstance(part, Image) for each in messages for part in each.parts):
            raise CallFailed("final", f"{model.model} accepts text only, but the call has an image")
        if self._counter.is_exact:
            texts = [part for each in messages for part in each.parts if isinstance(part, str)]
            self._check_context(sum(map(self._counter.count, texts)), max_output_tokens)
        if self._joins_system:
            messages = without_system(messages)
        reply = await self._endpoint.attempt(
            self._with_generation(model), messages, max_output_tokens, unsupported_params=unsupported_params
        )
        self._check_context(reply.input_tokens or 0, max_output_tokens)
        return reply

    async def close(self) -> None:
        await self._endpoint.close()
        if self._server is not None:
            await self._server.stop()

    def _with_generation(self, model: ModelSettings) -> ModelSettings:
        """The settings with the server's ``generation_config``: nothing of the model's own but where it ends,
        the generation options of ``--extra``, and sampling where there is a temperature, which the server
        would not do by itself.
        """
        options = {name: value for name, value in model.extra.items() if name not in SERVER_OPTIONS}
        sampling: dict[str, Any] = {"do_sample": bool(model.temperature)}
        if model.temperature:
            sampling["temperature"] = model.temperature
        return replace(model, extra={"generation_config": json.dumps(self._ends | sampling | options)})

    def _check_context(self, input_tokens: int, max_output_tokens: int) -> None:
        if self._context is not None and input_tokens + max_output_tokens > self._context:
            raise CallFailed(
                "too_long",
                f"the prompt has {input_tokens} tokens and the reply may have {max_output_tokens}; the "
                f"model's context is {self._context} tokens",
            )

    async def _try_template(self, model: ModelSettings) -> None:
        """Ask once, and see whether the model's chat template takes a system message."""
        question = (Message("system", "Answer."), Message("user", "Yes?"))
        for self._joins_system in (False, True):
            try:
                await self._endpoint.attempt(
                    self._with_generation(model),
                    without_system(question) if self._joins_system else question,
                    1,
                )
                return
            except CallFailed as failure:
                problem = failure
        raise OptionsError(
            f"--provider transformers: {model.model} cannot be asked ({problem.message}); has it a chat "
            "template, as instruction-tuned versions have?"
            + (f" The last words of `transformers serve`:\n{self._server.log()}" if self._server else "")
        )


def without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with what the system says put in front of what the user says first."""
    if messages[0].role != "system" or len(messages) < 2:
        return tuple(messages)
    system, first, *others = messages
    if isinstance(system.content, str) and isinstance(first.content, str):
        return (replace(first, content=f"{system.content}\n{first.content}"), *others)
    return (replace(first, content=(*system.parts, *first.parts)), *others)


def _find(config: Mapping[str, Any], name: str) -> Any:
    """A value of a configuration, or of the part of it that is about text."""
    inner = config.get("text_config", {}).get(name)
    return config.get(name) if inner is None else inner


def _read_json(name: str, file: str) -> Mapping[str, Any]:
    """A file of the model, which the server has fetched; empty where there is none (GGUF has none)."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    repository, _, revision = name.partition("@")
    try:
        path = Path(name) / file
        if not Path(name).is_dir():
            path = Path(hf_hub_download(repository, file, revision=revision or None))
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, HfHubHTTPError, HFValidationError):
        return {}


def _check_installed() -> None:
    from importlib.util import find_spec

    if absent := [name for name in ("torch", "accelerate") if find_spec(name) is None]:
        raise OptionsError(
            f"--provider transformers needs {' and '.join(absent)}, not installed here: "
            f"{install_command('local')}"
        )
