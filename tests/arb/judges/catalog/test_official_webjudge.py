"""With ``--prompts official`` WebJudge sends what its authors' functions send, message for message.

Their words are not in this repository. Where `ONLINE_MIND2WEB` names a checkout, their own functions make the
messages to compare with; else what they made is known by digests, with other texts in place of theirs.
"""

import ast
import asyncio
import base64
import hashlib
import io
import json
import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image as pictures
from typer.testing import CliRunner

from arb.core.suite import load_suite
from arb.judges.__main__ import app
from arb.judges.catalog.official import (
    SOURCES,
    OfficialPromptsError,
    OfficialWebJudge,
    read_templates,
    with_official_prompts,
)
from arb.judges.endpoints.openai_compatible import message_to_json
from arb.judges.images import prepare_image
from arb.judges.prompting import prompts_hash
from arb.judges.registry import find_judge
from arb.judges.types import Call, Reply, View
from tests.support.judges import GOAL, images, judged, picture, view
from tests.support.llm_server.server import LLMServer

FIRST = load_suite("sample").split("dev")[0].trajectory_id
CHECKOUT = os.environ.get("ONLINE_MIND2WEB")

TEXTS = (
    "50",
    "List what counts.",
    "Task: {task}",
    "Rate it.",
    "{task}, {key_points}",
    "Judge it.",
    "{task}|{key_points}|{last_actions}|{thoughts}",
    "{task}|{key_points}|{last_actions}",
)
"""In place of the authors', in the order of ``official.toml``."""

STAND_INS = replace(SOURCES["webjudge"], sha256=prompts_hash(*TEXTS))
(WEBJUDGE,) = STAND_INS.files

RATED = "1. **Reasoning**: it shows\n{}\n\nand more\n\n2. **Score**: {}"
CASES = {
    "some are shown": ("Sure.\n\n**Key Points**:\n\n  1. two {ones}\n 2. blue", ["a", 4], ["b", 2], ["c", 3]),
    "none is shown": ("Key Points: 1. two", ["a", 1], ["b", 2]),
    "ratings that are not in form": ("1. two", "**Score**: 5", "nothing", "Score: none. Score: 5", "Score 5"),
    "more than fifty": ("**Key Points**: 1", *["**Reasoning**:\n\n**Score**: 3"] * 2, *[["x", 5]] * 52),
}
"""Replies: the key points, then a rating of each screenshot, or what it says and its score."""

RECORDED = {
    "some are shown": "3ac202989f2c45e5b6b7f14c2f3737e3ecc1459b8f37422cbb2038eb80ff6401",
    "none is shown": "c723714979b0b2920a85a6004b94ae39b0f241e3a7fa04f88aa4b6e0fb6ac64b",
    "ratings that are not in form": "5ea3d937d10054361fc965f1d74dda17906249f7ff0b76ca1f57c8002e3d93e1",
    "more than fifty": "02700d658cfaa81a120c6e58eed9bbb605cdf3f1ef75b2b721151099c3f58bf2",
}
"""SHA-256 over the messages that the authors' functions made with TEXTS, pictures named by their steps."""


def checkout_with(texts: tuple[str, ...], folder: Path) -> Path:
    """A checkout whose file has these texts where the authors' have theirs."""
    most, system, asked, *others = texts
    file = folder / WEBJUDGE
    file.parent.mkdir(parents=True)
    file.write_text(
        f"""import no_such_package
MAX_IMAGE ={most}

async def identify_key_points(task, model):
    system_msg = {system!r}
    prompt = {asked!r}

async def judge_image(task, path):
    system_msg = {others[0]!r}
    text = "another"
    prompt = {others[1]!r}

async def WebJudge_Online_Mind2Web_eval(task):
    system_msg = {others[2]!r}
    prompt = {others[3]!r}
    if task:
        prompt = {others[4]!r}
"""
    )
    return folder


def replies(case: str) -> tuple[str, list[str]]:
    points, *ratings = CASES[case]
    return points, [each if isinstance(each, str) else RATED.format(*each) for each in ratings]


def shown_view(case: str) -> View:
    """A run with a screenshot for each rating, a shade each, as WebJudge wants them."""
    run = view(actions=len(CASES[case]) - 2)
    images = OfficialWebJudge.images
    steps = (replace(each, screenshot=prepare_image(picture(each.number * 4), images)) for each in run.steps)
    return replace(run, steps=tuple(steps))


def ours(judge: OfficialWebJudge, case: str) -> list[list[dict]]:
    points, ratings = replies(case)
    run = shown_view(case)
    by_picture = {step.screenshot.sha256: said for step, said in zip(run.steps, ratings, strict=True)}

    def reply(call: Call) -> Reply:
        if call.purpose == "rating":
            return Reply(by_picture[images(call.messages)[0].sha256])
        return Reply(points if call.purpose == "key points" else "Status: success")

    return [[message_to_json(each) for each in call.messages] for call in judged(judge, run, reply).calls]


def theirs(checkout: Path, case: str, folder: Path, texts: tuple[str, ...] | None = None) -> list[list[dict]]:
    """The messages that the authors' functions make, with ``texts`` in place of their own if given."""
    points, ratings = replies(case)
    module = ast.parse((checkout / WEBJUDGE).read_bytes())
    if texts is not None:
        constants = [
            each
            for each in ast.walk(module)
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
            if ast.unparse(each.targets[0]) in ("MAX_IMAGE", "system_msg", "prompt")
        ]
        for each, value in zip(sorted(constants, key=lambda each: each.lineno), texts, strict=True):
            each.value = ast.Constant(int(value) if value.isdigit() else value)
    utils = ast.parse((checkout / "src" / "utils.py").read_bytes())
    utils.body = [each for each in utils.body if getattr(each, "name", "") == "encode_image"]
    helpers = ModuleType("utils")
    helpers.__dict__.update(io=io, base64=base64)
    exec(compile(utils, "utils.py", "exec"), helpers.__dict__)
    sent: list[list[dict]] = []
    paths = []
    for number in range(1, len(ratings) + 1):
        paths.append(folder / f"{number}.png")
        paths[-1].write_bytes(picture(number * 4))
    in_order = {
        helpers.encode_image(pictures.open(path)): (place, said)
        for place, (path, said) in enumerate(zip(paths, ratings, strict=True))
    }
    rated: dict[int, list[dict]] = {}

    class Model:
        def generate(self, messages, **_):
            content = messages[1]["content"]
            if len(content) == 1:
                sent.append(messages)
                return [points]
            place, said = in_order[content[1]["image_url"]["url"].partition("base64,")[2]]
            rated[place] = messages
            return [said]

    before = sys.modules.get("utils")
    sys.modules["utils"] = helpers
    try:
        space: dict = {}
        exec(compile(ast.fix_missing_locations(module), WEBJUDGE, "exec"), space)
    finally:
        sys.modules.pop("utils")
        if before is not None:
            sys.modules["utils"] = before
    run = shown_view(case)
    actions = [step.action for step in run.steps if step.action is not None]
    verdict, *_ = asyncio.run(space["WebJudge_Online_Mind2Web_eval"](GOAL, actions, paths, Model(), 3))
    return [*sent, *(rated[place] for place in sorted(rated)), verdict]


def digest(messages: list[list[dict]], case: str) -> str:
    """SHA-256 of the messages, with the number of its step in place of a picture's bytes."""
    written = json.dumps(messages)
    for step in shown_view(case).steps:
        encoded = base64.b64encode(step.screenshot.content).decode()
        written = written.replace(f'base64,{encoded}"', f'base64,{step.number}"')
    assert len(written) < 500 * len(messages) + 8_000  # no picture is left in it
    return hashlib.sha256(written.encode()).hexdigest()


@pytest.fixture
def judge(tmp_path) -> OfficialWebJudge:
    checkout = checkout_with(TEXTS, tmp_path / "checkout")
    templates = read_templates(STAND_INS, checkout=checkout)
    return with_official_prompts(find_judge("webjudge"), templates, "a checkout")


@pytest.mark.parametrize("case", CASES)
def test_messages_are_those_that_the_authors_functions_make(judge, case, tmp_path):
    if CHECKOUT is None:
        assert digest(ours(judge, case), case) == RECORDED[case]
        return
    recorded = theirs(Path(CHECKOUT), case, tmp_path, TEXTS)
    assert ours(judge, case) == recorded
    assert digest(recorded, case) == RECORDED[case]
    official = find_judge("webjudge", prompts="official", checkout=Path(CHECKOUT))
    assert ours(official, case) == theirs(Path(CHECKOUT), case, tmp_path)


def test_the_verdict_is_asked_for_with_key_points_actions_notes_and_then_the_pictures(judge):
    said = ours(judge, "some are shown")[-1]
    asked, *shown = said[1]["content"]
    assert asked["text"] == (
        f"{GOAL}|\n1. two {{ones}}\n2. blue|1. click('1')\n2. click('2')|1. it shows a\n2. it shows c"
    )
    assert said[0] == {"role": "system", "content": "Judge it."}
    run = shown_view("some are shown")
    rated = [run.steps[place].screenshot for place in (0, 2)]  # 4 and 3, of a threshold of 3
    assert [each["image_url"]["url"] for each in shown] == [
        each.data_url.replace("image/jpeg", "image/png") for each in rated
    ]
    assert {each["image_url"]["detail"] for each in shown} == {"high"}


def test_pictures_are_encoded_as_the_authors_do():
    drawn = pictures.effect_noise((60, 40), 80)
    for mode in ("RGB", "RGBA"):
        content, encoded = io.BytesIO(), io.BytesIO()
        drawn.convert(mode).save(content, "PNG")
        pictures.open(content).convert("RGB").save(encoded, "JPEG")
        prepared = prepare_image(content.getvalue(), OfficialWebJudge.images)
        assert (prepared.content, prepared.media_type) == (encoded.getvalue(), "image/jpeg")
        # a JPEG too: their code encodes every file
        twice = prepare_image(prepared.content, OfficialWebJudge.images)
        assert twice.content != prepared.content


def test_pictures_of_the_goal_are_left_out_as_there(judge):
    assert not judge.wants.goal_images and find_judge("webjudge").wants.goal_images
    shown = replace(shown_view("none is shown"), goal_images=view(goal_images=1).goal_images)
    sent = {each.sha256 for call in judged(judge, shown).calls for each in images(call.messages)}
    assert shown.goal_images[0].sha256 not in sent


def test_without_a_checkout_the_message_says_where_to_get_one():
    with pytest.raises(OfficialPromptsError, match=r"checkout of .*/Online-Mind2Web with --prompts-from"):
        find_judge("webjudge", prompts="official")


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(OfficialPromptsError, match=r"its .*webjudge_online_mind2web.py cannot be read"):
        find_judge("webjudge", prompts="official", checkout=tmp_path)


def test_another_text_in_the_checkout_is_refused(tmp_path):
    changed = checkout_with((*TEXTS[:-1], "{task}"), tmp_path)
    with pytest.raises(
        OfficialPromptsError, match=r"prompts that this version does not know \(SHA-256 [0-9a-f]{12}, not"
    ):
        read_templates(STAND_INS, checkout=changed)
    with pytest.raises(OfficialPromptsError, match="--prompts-from"):
        find_judge("webjudge", prompts="official", checkout=changed)


def test_the_hash_of_its_prompts_is_that_of_the_checkouts(judge):
    assert judge.prompts_hash == prompts_hash(*TEXTS) != find_judge("webjudge").prompts_hash
    assert judge.source.endswith("; prompts of a checkout")


def test_the_command_of_the_page_on_deviations_runs_webjudge_with_its_authors_prompts(tmp_path, monkeypatch):
    page = (Path(__file__).parents[4] / "docs" / "judges.md").read_text(encoding="utf-8")
    [command] = re.findall(r"`arb judges (run webjudge .+?)`", page)
    run, show = shlex.split(command), ["show", "runs/webjudge", FIRST]
    checkout_with(TEXTS, tmp_path / "Online-Mind2Web")
    monkeypatch.setitem(SOURCES, "webjudge", STAND_INS)
    monkeypatch.chdir(tmp_path)
    with LLMServer(lambda request: '**Score**: 5\nThoughts: done.\nStatus: "success"') as server:
        sample = ["--suite", "sample", "--limit", "1", "--base-url", server.base_url, "--cache", "cache"]
        ran = CliRunner().invoke(app, [*run, *sample])
    assert ran.exit_code == 0, ran.output
    assert "judge: WebJudge (o4-mini)" in ran.output
    shown = CliRunner().invoke(app, show).stdout
    assert "--- system\nList what counts.\n" in shown and "--- system\nJudge it.\n" in shown
