"""With ``--prompts official`` OSReward's and browser-use's judges send what their authors' functions make.

Their words are not in this repository. Where ``OSREWARD`` or ``BROWSER_USE`` names a checkout, the authors'
own functions make the messages to compare with.
"""

import importlib
import json
import os
import re
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from arb.judges.catalog.official import (
    SOURCES,
    OfficialPromptsError,
    fill,
    final_result,
    read_templates,
    with_official_prompts,
)
from arb.judges.endpoints.openai_compatible import message_to_json
from arb.judges.prompting import prompts_hash
from arb.judges.registry import find_judge
from arb.judges.types import View, ViewStep
from tests.support.judges import judged, view

CHECKOUTS = {"OSReward (OS-Shepherd-9B)": "OSREWARD", "browser-use": "BROWSER_USE"}
PROMPTS = {"OSReward (OS-Shepherd-9B)": "osreward", "browser-use": "browser-use"}
NAMES = pytest.mark.parametrize("name", CHECKOUTS)


def checkout_of(name: str) -> Path:
    if not (place := os.environ.get(CHECKOUTS[name])):
        pytest.skip(f"{CHECKOUTS[name]} names no checkout")
    return Path(place)


def runs() -> dict[str, View]:
    """Runs with more screenshots than are shown, with a gap among them, without any, and with odd texts."""
    long = view(actions=13)
    steps = list(long.steps)
    steps[11] = replace(steps[11], screenshot=None, reasoning=None, error="no such {element}")
    odd = replace(steps[13], action=None, reasoning=None)
    gap = replace(long, steps=(*steps[:13], odd), goal="Buy {two} \\n or 'None'")
    return {
        "long": long,
        "gap": gap,
        "no pictures": view(actions=2, screenshots=False),
        "no steps": View("", (), ()),
        "long texts": replace(view(actions=1), goal="x" * 50_000, answer="y" * 50_000),
    }


def with_stand_ins(name: str, folder: Path):
    """The judge with other texts in place of its authors', from a checkout that a test wrote."""
    source = SOURCES[PROMPTS[name]]
    found: list[str] = []
    for file, places in source.files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not file.endswith(".py"):
            path.write_text(" the rules \n")
            found.append("the rules")
            continue
        numbers = {where.split("[")[0]: int(where.split("[")[1][:-1]) for where in places.values()}
        lines = []
        for function, most in numbers.items():
            made = [f"{function} {number} {{name}}" for number in range(most + 1)]
            lines += [f"def {function}():", *(f"    f{text!r}" for text in made)]
        path.write_text("\n".join(lines) + "\n")
        found += [f"{where[:-1].replace('[', ' ')} {{name}}" for where in places.values()]
    return source, found


@NAMES
def test_texts_are_read_from_their_places_and_must_have_the_known_hash(name, tmp_path):
    source, texts = with_stand_ins(name, tmp_path)
    with pytest.raises(OfficialPromptsError, match="has prompts that this version does not know"):
        read_templates(source, checkout=tmp_path)
    known = replace(source, sha256=prompts_hash(*texts))
    assert list(read_templates(known, checkout=tmp_path).values()) == texts
    with pytest.raises(OfficialPromptsError, match="name a checkout of https"):
        read_templates(known)
    next(tmp_path.rglob("*.py")).write_text("def broken(")
    with pytest.raises(OfficialPromptsError, match="cannot be read"):
        read_templates(known, checkout=tmp_path)


def test_an_expression_is_filled_once_and_an_empty_value_becomes_its_alternative():
    template = "{len(items)} {trace['task']} {i + 1} {task or 'none'} {other} {\n}"
    assert fill(template, items=3, task="{i + 1}", i=7) == "3 {i + 1} 7 {i + 1} {other} {\n}"
    assert fill("{task or 'none'}", task="") == "none"


def test_the_final_result_is_the_answer_or_the_last_message_to_the_user():
    told = ViewStep(1, None, 'send_msg_to_user("Blue.")', None, None)
    clicked = ViewStep(1, None, "click('1')", None, None)
    assert final_result(View("", (), (told,), answer="Red.")) == "Red."
    assert final_result(View("", (), (told,))) == 'send_msg_to_user("Blue.")'
    assert final_result(View("", (), (told, clicked))) == ""


def ours(name: str, shown: View, templates) -> list[dict]:
    judge = with_official_prompts(find_judge(name), templates, "a checkout")
    return [message_to_json(message) for message in judged(judge, shown).last.messages]


@pytest.mark.parametrize("case", runs())
def test_osreward_sends_the_messages_of_its_authors(case, tmp_path):
    name = "OSReward (OS-Shepherd-9B)"
    checkout = checkout_of(name)
    source = (checkout / "eval_pipeline/run_judge.py").read_text()
    module = types.ModuleType("osreward")
    for gone in ("anthropic", "openai", "tqdm"):  # clients that the messages do not need
        source = re.sub(rf"^from {gone} import .*$", "", source, flags=re.MULTILINE)
    module.__file__ = str(checkout / "eval_pipeline/run_judge.py")
    exec(compile(source, "run_judge.py", "exec"), module.__dict__)
    shown = runs()[case]
    trajectory = []
    for place, step in enumerate(shown.steps):
        told = {"step_index": place, "action": step.action, "thought": step.reasoning}
        if step.screenshot is not None:
            (tmp_path / f"{place}.png").write_bytes(step.screenshot.content)
            told["screenshot_path"] = f"{place}.png"
        trajectory.append(told)
    trace = {"trace_id": "1", "platform": "Web", "instruction": shown.goal.strip(), "trajectory": trajectory}
    trace["source_json_path"] = str(tmp_path / "trace.json")
    system = (checkout / "eval_pipeline/prompts/binary_v1.txt").read_text().strip()
    theirs, _ = module.build_messages(
        trace, system, 0, 5, history_mode="full", show_action_mark=True, include_thought=True
    )
    assert ours(name, shown, read_templates(SOURCES["osreward"], checkout=checkout)) == theirs


@pytest.mark.parametrize("case", runs())
def test_browser_use_sends_the_messages_of_its_authors(case, tmp_path, monkeypatch):
    checkout = checkout_of("browser-use")
    for package in ("browser_use", "browser_use.llm", "browser_use.agent"):
        made = types.ModuleType(package)
        made.__path__ = [str(checkout / package.replace(".", "/"))]
        monkeypatch.setitem(sys.modules, package, made)
    for module in ("browser_use.llm.messages", "browser_use.agent.judge"):
        monkeypatch.setitem(sys.modules, module, importlib.import_module(module))
    authors = sys.modules["browser_use.agent.judge"]

    class NoDate:
        @staticmethod
        def now(zone):
            return types.SimpleNamespace(strftime=lambda form: "(not recorded)")

    monkeypatch.setattr(authors, "datetime", NoDate)
    shown = runs()[case]
    steps, paths = [], []
    for place, step in enumerate(shown.steps):
        if step.screenshot is not None:
            paths.append(str(tmp_path / f"{place}.png"))
            Path(paths[-1]).write_bytes(step.screenshot.content)
        if step.action is not None:
            after = shown.steps[place + 1] if place + 1 < len(shown.steps) else None
            error = f"Error 1: {after.error}\n" if after is not None and after.error else ""
            steps.append(f"Step {place + 1}:\nActions: {json.dumps([step.action], indent=1)}\n{error}")
    theirs = authors.construct_judge_messages(shown.goal.strip(), final_result(shown), steps, paths)
    made = [
        {
            "role": each.role,
            "content": each.content if isinstance(each.content, str) else _plain(each.content),
        }
        for each in theirs
    ]
    found = ours("browser-use", shown, read_templates(SOURCES["browser-use"], checkout=checkout))
    assert found == made


def _plain(parts) -> list[dict]:
    """The parts of a message as they are sent, without the detail that both leave to the endpoint."""
    return [
        {"type": "text", "text": part.text}
        if part.type == "text"
        else {"type": "image_url", "image_url": {"url": part.image_url.url}}
        for part in parts
    ]


def test_without_a_checkout_the_messages_are_known_for_other_texts_in_place_of_the_authors():
    """The layout was that of the authors' functions when both were compared, in November 2026."""
    run = view(actions=1)
    run = replace(run, steps=(run.steps[0], replace(run.steps[1], error="too late")))
    shown = [
        "{len(items)} shown.",
        "On {trace['platform']}.",
        "Do {trace['instruction']}",
        "Did {history_text}",
    ]
    names = ("system", "empty", "step", "shown", "platform", "task", "steps")
    texts = ("rules", "[none]", "{step_index}) {thought}, {action}", *shown)
    *pictures, text = ours("osreward", run, dict(zip(names, texts, strict=True)))[1]["content"]
    assert len(pictures) == 2
    assert text["text"] == (
        "2 shown.\nOn Web.\nDo Order two blue teapots.\nDid 0) because of 1, click('1')\n\n1) [none], [none]"
    )
    names = ("cut", "system", "user", "step", "actions", "error")
    user = "{task_truncated or 'no'}|{ground_truth_prompt}|{steps_text_truncated}|"
    user += "{final_result_truncated or 'none'}"
    texts = (
        "…",
        "on {current_date}",
        user,
        "Step {i + 1}:\n",
        "Did {action_json}\n",
        "Oh {error}\n",
    )
    system, asked = ours("browser-use", run, dict(zip(names, texts, strict=True)))
    assert system["content"] == "on (not recorded)"
    text, *pictures = asked["content"]
    assert len(pictures) == 2
    assert text["text"] == ("Order two blue teapots.||Step 1:\nDid [\n \"click('1')\"\n]\nOh too late\n|none")


@NAMES
def test_official_prompts_refuse_runs_without_screenshots(name, tmp_path):
    source, texts = with_stand_ins(name, tmp_path)
    templates = read_templates(replace(source, sha256=prompts_hash(*texts)), checkout=tmp_path)
    judge = with_official_prompts(find_judge(name), templates, "a checkout")
    assert (judge.describe().is_official, judge.describe().takes_text_for_screenshots) == (True, False)
