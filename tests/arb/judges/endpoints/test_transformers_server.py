"""A model of this machine behind `transformers serve`: its limits, its end, and whole runs with it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.endpoints.providers import Access
from arb.judges.endpoints.transformers_server import TransformersEndpoint, TransformersServer, without_system
from arb.judges.engine.errors import CallFailed
from arb.judges.run.folder import read_judgments
from arb.judges.run.runner import open_endpoints
from arb.judges.types import Image, Message, ModelSettings, OptionsError
from tests.conftest import _absent
from tests.support.judges import picture
from tests.support.llm_server import LLMServer, Scripted
from tests.support.tiny_models import CONTEXT

QUESTION = (Message("system", "Judge."), Message("user", "Was the agent successful?"))
SMALL = {"device": "cpu", "cb_num_blocks": 64, "cb_max_batch_tokens": 1024}
"""A cache for 64 x 256 tokens: else a tenth of the machine's memory is taken."""


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    yield
    os.environ.pop("OMP_NUM_THREADS") if before is None else os.environ.update(OMP_NUM_THREADS=before)


@pytest.fixture(scope="module", autouse=True)
def _offline():
    os.environ["HF_HUB_OFFLINE"] = "1"
    yield
    del os.environ["HF_HUB_OFFLINE"]


@pytest.fixture(scope="session")
def _accelerate(_torch):
    try:
        import accelerate  # noqa: F401
    except ImportError:
        _absent("accelerate is not installed (the extra `local`); tests of local models are left out")


def settings(folder: Path, **more) -> ModelSettings:
    return ModelSettings(str(folder), **{"provider": "transformers", "extra": SMALL} | more)


@pytest.fixture(scope="module")
def server(_accelerate, tiny_text_model):
    """`transformers serve` with the tiny text model, for all tests of this module."""
    started = TransformersServer(settings(tiny_text_model), print)
    asyncio.run(started.wait_until_ready())
    yield started
    asyncio.run(started.stop())
    assert started.process.returncode is not None


@pytest.fixture(scope="module")
def vision_server(_accelerate, tiny_vision_model, tmp_path_factory):
    """The folder of the tiny vision model, with room for a judge's prompt, and the server of it."""
    model = grown(tiny_vision_model, tmp_path_factory.mktemp("vision"))
    started = TransformersServer(settings(model), print)
    asyncio.run(started.wait_until_ready())
    yield model, started
    asyncio.run(started.stop())


def ask(access: Access, model: ModelSettings, *calls: tuple[Message, ...], most: int = 8) -> list:
    """The replies to calls that are under way at once."""

    async def run():
        endpoint = await TransformersEndpoint.start(model, print, access, 60.0)
        try:
            return await asyncio.gather(*(endpoint.attempt(model, call, most) for call in calls))
        finally:
            await endpoint.close()

    return asyncio.run(run())


def image(shade: int) -> Image:
    return Image(picture(shade, (60, 40)), "image/png", 60, 40)


def test_a_reply_has_its_text_its_tokens_and_why_it_ended(server, tiny_text_model):
    from transformers import AutoTokenizer

    (reply,) = ask(server.access, settings(tiny_text_model), QUESTION)
    assert reply.state == "ok"
    assert reply.finish_reason in ("stop", "length")
    assert 0 < reply.output_tokens <= 8
    assert reply.latency_s > 0
    shown = "<|begin|>system: Judge.<|end|>user: Was the agent successful?<|end|>assistant: "
    tokenizer = AutoTokenizer.from_pretrained(tiny_text_model)
    assert reply.input_tokens == len(tokenizer(shown, add_special_tokens=False)["input_ids"])


def test_at_temperature_0_the_same_call_gets_the_same_reply_alone_or_among_others(server, tiny_text_model):
    others = [(Message("user", f"another question, number {number} of them"),) for number in range(4)]
    model = settings(tiny_text_model)
    (alone,) = ask(server.access, model, QUESTION, most=24)
    among = ask(server.access, model, *others, QUESTION, *others, most=24)
    assert among[4].text == alone.text
    assert [reply.text for reply in among[:4]] == [reply.text for reply in among[5:]]
    assert len({reply.text for reply in among}) > 1


def test_a_reply_ends_where_the_model_does(server, tiny_text_model):
    """The server takes the end from the options of the request, so it is sent with them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_text_model)
    bare = AutoModelForCausalLM.from_pretrained(tiny_text_model)
    messages = [{"role": each.role, "content": each.content} for each in QUESTION]
    prompt = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    whole = bare.generate(**prompt, max_new_tokens=8, do_sample=False)[0].tolist()
    first, second, third, *_ = whole[prompt["input_ids"].shape[1] :]
    assert third not in (first, second)
    ends = {**SMALL, "eos_token_id": third}
    (reply,) = ask(server.access, settings(tiny_text_model, extra=ends), QUESTION)
    assert (reply.finish_reason, reply.output_tokens) == ("stop", 3)


def test_a_prompt_that_leaves_no_room_for_the_reply_is_too_long(server, tiny_text_model):
    long = (Message("user", "the page shows a tree " * 60),)
    with pytest.raises(CallFailed) as caught:
        ask(server.access, settings(tiny_text_model), long)
    assert caught.value.kind == "too_long"
    assert f"context is {CONTEXT} tokens" in caught.value.message
    with pytest.raises(CallFailed, match="the reply may have 500"):
        ask(server.access, settings(tiny_text_model), QUESTION, most=500)


def test_a_text_model_that_is_shown_a_picture_says_so(server, tiny_text_model):
    with pytest.raises(CallFailed, match="accepts text only"):
        ask(server.access, settings(tiny_text_model), (Message("user", ("What is this?", image(0))),))


def refuses_system(request) -> Scripted:
    has_system = request.body["messages"][0]["role"] == "system"
    return Scripted("fine", fault="server_error" if has_system else None)


def test_a_template_without_system_messages_gets_the_text_in_front_of_the_question(tiny_text_model):
    model = settings(tiny_text_model, temperature=0.7, extra={**SMALL, "top_p": 0.9})
    with LLMServer(refuses_system) as answering:
        (reply,) = ask(Access(answering.base_url, None, "max_tokens"), model, QUESTION)
        body = answering.chat.bodies[-1]
    assert reply.text == "fine"
    assert body["messages"] == [{"role": "user", "content": "Judge.\nWas the agent successful?"}]
    options = json.loads(body["generation_config"])
    assert options == {
        "do_sample": True, "temperature": 0.7, "top_p": 0.9, "eos_token_id": 1, "pad_token_id": 2
    }  # fmt: skip


def test_the_text_of_the_system_message_keeps_pictures_in_their_place():
    seen = (Message("system", "Judge."), Message("user", ("Look.", image(0))))
    assert without_system(seen) == (Message("user", ("Judge.", "Look.", image(0))),)


def test_a_model_that_answers_nothing_is_named(tiny_text_model):
    with (
        LLMServer(lambda request: Scripted(None, fault="server_error")) as answering,
        pytest.raises(OptionsError, match=r"cannot be asked .*has it a chat template"),
    ):
        ask(Access(answering.base_url, None, "max_tokens"), settings(tiny_text_model))


def test_a_model_that_cannot_be_had_is_named_with_the_servers_last_words(_accelerate):
    model = ModelSettings("no/such-model-anywhere", provider="transformers")
    with pytest.raises(OptionsError, match=r"no/such-model-anywhere cannot be served(.|\n)*offline"):
        asyncio.run(TransformersEndpoint.start(model, print))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_run_that_is_stopped_while_the_model_is_loaded_leaves_no_server(_accelerate, tiny_text_model):
    said: list[str] = []
    before = children()

    async def stopped() -> int:
        model = settings(tiny_text_model)
        starting = asyncio.create_task(TransformersEndpoint.start(model, said.append))
        while not said:
            await asyncio.sleep(0.01)
        (process,) = children() - before
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        return process

    assert not is_alive(asyncio.run(stopped()))
    assert said == [f"starting transformers serve with {tiny_text_model}"]


def children() -> set[int]:
    """The processes of `transformers serve` that this process started."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                is_server = b"transformers.cli" in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and is_server:
                found.add(int(entry.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_run_that_is_killed_takes_its_server_with_it(_accelerate, tiny_text_model):
    script = (
        "import time\n"
        "from arb.judges.endpoints.transformers_server import TransformersServer\n"
        "from arb.judges.types import ModelSettings\n"
        f"server = TransformersServer(ModelSettings({str(tiny_text_model)!r}), print)\n"
        "print(server.process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as run:
        served = int(run.stdout.readline())
        run.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 120
    while is_alive(served) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(served)


def run(folder: Path, judge: str, model: Path, *more):
    given = ["run", judge, "--suite", "sample", "--split", "dev", "--limit", "2"]
    given += ["--provider", "transformers", "--model", str(model), "--cache", str(folder / "cache")]
    given += [text for name, value in SMALL.items() for text in ("--extra", f"{name}={json.dumps(value)}")]
    return CliRunner().invoke(app, [*given, "--out", str(folder / "run"), "--max-output-tokens", "8", *more])


def grown(model: Path, folder: Path) -> Path:
    """The model with a context that a judge's prompt fits in."""
    larger = shutil.copytree(model, folder / "larger")
    for name in ("config.json", "tokenizer_config.json"):
        text = (larger / name).read_text()
        (larger / name).write_text(text.replace(f": {CONTEXT}", ": 16384"))
    return larger


def test_a_judge_runs_on_a_text_model_as_its_plan_counted(_accelerate, tiny_text_model, tmp_path):
    model, before = grown(tiny_text_model, tmp_path), children()
    result = run(tmp_path, "simplified-axtree", model)
    assert result.exit_code == 1, result.output  # it knows nothing, so no reply is a verdict
    assert f"starting transformers serve with {model}" in " ".join(result.output.split())
    records = list(read_judgments(tmp_path / "run"))
    assert len(records) == 2
    for record in records:
        assert record["state"] in ("unparsed", "truncated")  # it knows nothing, but it answers
        assert record["input_tokens"] > 500
        assert 0 < record["output_tokens"] <= 8
    rows = [json.loads(line) for line in (tmp_path / "run/predictions.jsonl").read_text().splitlines()]
    assert all(row["success"] is None for row in rows)
    assert children() == before

    given = ["plan", "simplified-axtree", "--suite", "sample", "--split", "dev", "--limit", "2", "--json"]
    given += ["--provider", "transformers", "--model", str(model), "--cache", str(tmp_path / "other")]
    planned = json.loads(CliRunner().invoke(app, given).stdout)["roles"][0]
    counted = sum(record["input_tokens"] for record in records)
    assert planned["input_tokens"] == pytest.approx(counted, rel=0.1)
    assert planned["usd"] is None


def test_two_roles_with_different_models_at_one_address_are_kept_apart(tiny_text_model, tiny_vision_model):
    """Each model has a context and a template of its own, also where one server would answer for both."""

    async def opened(models):
        async with open_endpoints(models, {}) as endpoints:
            return endpoints["judge"] is endpoints["captioner"]

    with LLMServer(lambda request: "fine") as answering:
        text, vision = (
            settings(folder, base_url=answering.base_url) for folder in (tiny_text_model, tiny_vision_model)
        )
        assert not asyncio.run(opened({"judge": text, "captioner": vision}))
        assert asyncio.run(opened({"judge": text, "captioner": text}))


def test_pictures_are_seen(vision_server):
    folder, server = vision_server

    def shown(shade):
        return (Message("user", ("What is this?", image(shade), "Say it.")),)

    without = (Message("user", ("What is this?", "Say it.")),)
    dark, light, again, plain = ask(
        server.access, settings(folder), shown(0), shown(250), shown(0), without, most=24
    )
    assert dark.text == again.text != light.text
    assert dark.input_tokens == plain.input_tokens + 4  # 28 x 28 pixels in patches of 14


def test_a_judge_runs_with_pictures_and_samples_on_a_server_that_runs_already(vision_server, tmp_path):
    folder, server = vision_server
    more = ("--base-url", server.access.base_url, "--samples", "2", "--limit", "1")
    result = run(tmp_path, "simplified-screenshot", folder, *more)
    assert result.exit_code == 1, result.output  # it knows nothing, so no reply is a verdict
    assert "starting transformers serve" not in result.output
    assert "one after another; `vllm serve` (--provider vllm) batches them" in " ".join(result.output.split())
    (record,) = read_judgments(tmp_path / "run")
    first, second = (each["reply"]["text"] for each in record["calls"])
    assert first != second
    assert server.process.poll() is None
