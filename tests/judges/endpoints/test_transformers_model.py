"""A model on this machine: its replies, its limits, and whole runs with it."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judges.__main__ import app
from judges.endpoints.transformers_model import LocalEndpoint
from judges.engine.errors import CallFailed
from judges.run.folder import read_judgments
from judges.types import Image, Message, ModelSettings, OptionsError, Reply
from tests.support.judges import picture
from tests.support.tiny_models import CONTEXT, TEMPLATE

QUESTION = (Message("system", "Judge."), Message("user", "Was the agent successful?"))


def settings(folder: Path, **more) -> ModelSettings:
    return ModelSettings(str(folder), provider="transformers", **more)


def ask(model: ModelSettings, *calls: tuple[Message, ...], most: int = 8) -> list[Reply]:
    """The replies to calls that are under way at once."""

    async def run():
        endpoint = LocalEndpoint(model)
        try:
            return await asyncio.gather(*(endpoint.attempt(model, call, most) for call in calls))
        finally:
            await endpoint.close()

    return asyncio.run(run())


def image(shade: int) -> Image:
    return Image(picture(shade, (60, 40)), "image/png", 60, 40)


def test_a_reply_has_its_text_its_tokens_and_why_it_ended(tiny_text_model):
    from transformers import AutoTokenizer

    (reply,) = ask(settings(tiny_text_model), QUESTION)
    assert reply.state == "ok"
    assert reply.finish_reason in ("stop", "length")
    assert 0 < reply.output_tokens <= 8
    assert reply.latency_s > 0
    shown = "<|begin|>system: Judge.<|end|>user: Was the agent successful?<|end|>assistant: "
    tokenizer = AutoTokenizer.from_pretrained(tiny_text_model)
    assert reply.input_tokens == len(tokenizer(shown, add_special_tokens=False)["input_ids"])


def test_at_temperature_0_the_same_call_gets_the_same_reply_alone_or_among_others(tiny_text_model):
    others = [(Message("user", f"another question, number {number} of them"),) for number in range(4)]
    (alone,) = ask(settings(tiny_text_model), QUESTION, most=24)
    among = ask(settings(tiny_text_model), *others, QUESTION, *others, most=24)
    assert among[4].text == alone.text
    assert [reply.text for reply in among[:4]] == [reply.text for reply in among[5:]]
    assert len({reply.text for reply in among}) > 1


def test_a_seed_makes_samples_repeatable_and_none_does_not(tiny_text_model):
    def sampled(seed):
        return ask(settings(tiny_text_model, temperature=1.0, seed=seed), QUESTION, most=24)[0].text

    assert sampled(1) == sampled(1) != sampled(2)
    assert sampled(None) != sampled(None)


def test_calls_that_go_through_the_model_together_get_the_replies_that_they_get_alone(tiny_text_model):
    calls = [(Message("user", "a question " * number),) for number in range(1, 7)]
    alone = ask(settings(tiny_text_model), *calls)
    together = ask(settings(tiny_text_model, extra={"batch_size": 4}), *calls)
    assert [reply.text for reply in together] == [reply.text for reply in alone]
    assert [reply.output_tokens for reply in together] == [reply.output_tokens for reply in alone]
    assert [reply.input_tokens for reply in together] == [reply.input_tokens for reply in alone]


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_log_probabilities_are_those_of_the_model_itself(tiny_text_model, temperature, batch_size):
    """Each reply is walked again with the bare model: at each place there is a token of that probability."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    extra = {"batch_size": batch_size}
    model = settings(tiny_text_model, logprobs=True, temperature=temperature, extra=extra)
    calls = [QUESTION, (Message("user", "short"),), (Message("user", "a longer one " * 5),)]
    tokenizer = AutoTokenizer.from_pretrained(tiny_text_model)
    bare = AutoModelForCausalLM.from_pretrained(tiny_text_model)
    for call, reply in zip(calls, ask(model, *calls), strict=True):
        messages = [{"role": each.role, "content": each.content} for each in call]
        walked = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert len(reply.logprobs) in (reply.output_tokens, reply.output_tokens - 1)  # the end is not shown
        for told in reply.logprobs:
            with torch.inference_mode():
                truth = bare(torch.tensor([walked])).logits[0, -1].log_softmax(-1)
            away = (truth - told.logprob).abs().tolist()
            alike = [token for token in range(len(away)) if tokenizer.decode([token]) == told.token]
            chosen = min(alike, key=away.__getitem__)
            assert away[chosen] < 1e-3
            walked = [*walked, chosen]
            likeliest = [float(value) for value in truth.topk(5).values]
            shown = sorted([told.logprob, *(logprob for _, logprob in told.rivals)], reverse=True)[:5]
            assert shown == pytest.approx(likeliest, abs=1e-3)


def test_a_prompt_that_leaves_no_room_for_the_reply_is_too_long(tiny_text_model):
    long = (Message("user", "the page shows a tree " * 60),)
    with pytest.raises(CallFailed) as caught:
        ask(settings(tiny_text_model), long, most=8)
    assert caught.value.kind == "too_long"
    assert f"context is {CONTEXT} tokens" in caught.value.message
    with pytest.raises(CallFailed, match="the reply may have 500"):
        ask(settings(tiny_text_model), QUESTION, most=500)


def test_pictures_are_seen(tiny_vision_model):
    def shown(shade):
        return (Message("user", ("What is this?", image(shade), "Say it.")),)

    dark, light, again = ask(settings(tiny_vision_model, logprobs=True), shown(0), shown(250), shown(0))
    assert dark.state == light.state == "ok"
    assert dark.text == again.text
    assert [each.logprob for each in dark.logprobs] == [each.logprob for each in again.logprobs]
    assert [each.logprob for each in dark.logprobs] != [each.logprob for each in light.logprobs]
    (without,) = ask(settings(tiny_vision_model), (Message("user", ("What is this?", "Say it.")),))
    assert dark.input_tokens == without.input_tokens + 4  # 28 x 28 pixels in patches of 14


def test_a_text_model_that_is_shown_a_picture_says_so(tiny_text_model):
    with pytest.raises(CallFailed, match="accepts text only"):
        ask(settings(tiny_text_model), (Message("user", ("What is this?", image(0))),))


def test_a_template_without_system_messages_gets_the_text_in_front_of_the_question(tiny_text_model, tmp_path):
    picky = shutil.copytree(tiny_text_model, tmp_path / "picky")
    refusal = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    (picky / "chat_template.jinja").write_text(refusal + TEMPLATE)
    asked = (Message("user", ("Judge.", "Was the agent successful?")),)
    assert ask(settings(picky), QUESTION)[0].text == ask(settings(tiny_text_model), asked)[0].text


def test_a_stopped_model_lets_go_of_the_call_that_is_under_way(tiny_text_model):
    async def run():
        model = settings(tiny_text_model)
        endpoint = LocalEndpoint(model)
        under_way = asyncio.ensure_future(endpoint.attempt(model, QUESTION, 480))
        await asyncio.sleep(0.2)
        under_way.cancel()
        await endpoint.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "no/such-model-anywhere"}, "cannot be loaded"),
        ({"extra": {"batch_size": 0}}, "batch_size=0"),
        ({"extra": {"batch_size": "many"}}, "batch_size=many"),
    ],
)
def test_a_model_that_cannot_be_had_is_named(tiny_text_model, given, said, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    model = ModelSettings(**({"model": str(tiny_text_model), "provider": "transformers"} | given))
    with pytest.raises(OptionsError, match=said):
        LocalEndpoint(model)


def test_a_model_without_a_chat_template_cannot_be_asked(tiny_text_model, tmp_path):
    bare = shutil.copytree(tiny_text_model, tmp_path / "bare")
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(OptionsError, match="has no chat template"):
        LocalEndpoint(settings(bare))


def run(folder: Path, judge: str, model: Path, *more):
    given = [
        "run",
        judge,
        "--suite",
        "sample",
        "--split",
        "dev",
        "--limit",
        "2",
        "--provider",
        "transformers",
    ]
    given += ["--model", str(model), "--out", str(folder / "run"), "--cache", str(folder / "cache")]
    return CliRunner().invoke(app, [*given, "--max-output-tokens", "8", *more])


def grown(model: Path, folder: Path) -> Path:
    """The model with a context that a judge's prompt fits in."""
    larger = shutil.copytree(model, folder / "larger")
    for name in ("config.json", "tokenizer_config.json"):
        text = (larger / name).read_text()
        (larger / name).write_text(text.replace(f": {CONTEXT}", ": 16384"))
    return larger


@pytest.mark.parametrize(
    ("judge", "kind"), [("simplified-axtree", "tiny_text_model"), ("simplified-both", "tiny_vision_model")]
)
def test_a_judge_runs_on_a_model_of_this_machine(judge, kind, tmp_path, request):
    model = grown(request.getfixturevalue(kind), tmp_path)
    result = run(tmp_path, judge, model)
    assert result.exit_code == 0, result.output
    records = list(read_judgments(tmp_path / "run"))
    assert len(records) == 2
    for record in records:
        assert record["state"] in ("unparsed", "truncated")  # it knows nothing, but it answers
        assert record["input_tokens"] > 500
        assert 0 < record["output_tokens"] <= 8
    rows = [json.loads(line) for line in (tmp_path / "run/predictions.jsonl").read_text().splitlines()]
    assert all(row["success"] is None for row in rows)


def test_prompts_that_a_model_has_no_room_for_end_as_too_long(tiny_text_model, tmp_path):
    result = run(tmp_path, "simplified-axtree", tiny_text_model)
    assert result.exit_code == 0, result.output
    assert {record["state"] for record in read_judgments(tmp_path / "run")} == {"too_long"}


def test_a_plan_counts_with_the_models_own_tokenizer(tiny_text_model, tmp_path):
    model = grown(tiny_text_model, tmp_path)
    given = ["plan", "simplified-axtree", "--suite", "sample", "--split", "dev", "--limit", "2", "--json"]
    given += ["--provider", "transformers", "--model", str(model), "--cache", str(tmp_path / "cache")]
    planned = json.loads(CliRunner().invoke(app, given).stdout)["roles"][0]
    run(tmp_path, "simplified-axtree", model)
    counted = sum(record["input_tokens"] for record in read_judgments(tmp_path / "run"))
    assert planned["input_tokens"]["expected"] == pytest.approx(counted, rel=0.1)
    assert planned["usd"] is None
