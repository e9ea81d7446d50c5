"""With ``--prompts official`` a judge says what the released code says, message for message."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from arb.core.settings import Settings
from arb.judges.catalog.nnetnav import NNetNavJudge
from arb.judges.catalog.official import (
    SOURCES,
    OfficialPromptsError,
    read_templates,
    with_official_prompts,
)
from arb.judges.endpoints.openai_compatible import message_to_json
from arb.judges.registry import find_judge
from arb.judges.types import Call, Message, Reply
from arb.judges.views import Views
from dataset_script.build.build import build
from leaderboard.labels import source
from tests.support.judges import images, judged, text, view

PACKAGE = SOURCES["agent-reward-bench"]
IDS = tuple(
    f"localshop/GenericAgent-scripted-{agent}/localshop.{task}"
    for agent in ("careful", "hasty")
    for task in (1, 2, 3)
)
VARIANTS = [
    f"simplified-{kind}{order}"
    for kind in ("axtree", "screenshot", "both", "neither")
    for order in ("", "-inverted")
]


@pytest.fixture(scope="module")
def released(shared, tmp_path_factory):
    """A folder that holds ``trajectories/``, as the released code expects it."""
    folder = tmp_path_factory.mktemp("released")
    shutil.copytree(shared / "data" / "released_layout", folder / "trajectories")
    return folder


@pytest.fixture
def official(official_settings):
    return lambda name, **more: find_judge(name, prompts="official", settings=official_settings, **more)


def trajectory(released, trajectory_id):
    benchmark, agent, task = trajectory_id.split("/")
    (path,) = (released / "trajectories" / "cleaned" / benchmark / agent).glob(f"*/{task}.json")
    return json.loads(path.read_bytes()), path


def as_sent(messages: tuple[Message, ...]) -> list[dict]:
    """Messages as our engine sends them."""
    return [message_to_json(message) for message in messages]


@pytest.mark.shared
@pytest.mark.labels
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("trajectory_id", IDS)
def test_the_simplified_judges_messages_are_the_released_codes(
    released, official, official_package, name, trajectory_id
):
    judge = official(name)
    call = judged(judge, Views(released).view(trajectory_id, judge.wants)).last
    content, _ = trajectory(released, trajectory_id)
    theirs = official_package("judge").create_chat_messages_from_trajectory(
        content,
        released,
        use_screenshot=judge.has_screenshot,
        use_axtree=judge.has_axtree,
        invert_system_prompt=judge.is_inverted,
    )
    assert as_sent(call.messages) == theirs["regular"]
    # without a tree the released code's second prompt is its first; we make none
    assert as_sent(call.shorter or call.messages) == theirs["pruned"]
    assert (call.shorter is not None) is judge.has_axtree


@pytest.mark.shared
@pytest.mark.labels
def test_a_published_dataset_gives_the_same_messages_as_the_runs_it_was_built_from(
    released, official, tmp_path
):
    build(released, tmp_path / "dataset")
    one, other = Views(released), Views(tmp_path / "dataset")
    for name in ("simplified-both", "AER-V", "NNetNav"):
        judge = official(name)
        for trajectory_id in IDS:
            recorded, published = (views.view(trajectory_id, judge.wants) for views in (one, other))
            assert judged(judge, recorded).calls == judged(judge, published).calls


class RecordingClient:
    """Stands in for an OpenAI client: keeps the messages and says the same to all."""

    def __init__(self, said: str):
        self.asked, self._said = [], said
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, *, messages, **settings):
        self.asked.append(messages)
        message = SimpleNamespace(content=self._said)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)], model_dump=lambda: {})


@pytest.mark.shared
@pytest.mark.labels
@pytest.mark.parametrize("trajectory_id", IDS)
def test_aers_messages_are_the_released_codes(released, official, official_package, trajectory_id, tmp_path):
    aer = official_package("judge.existing.aer")
    content, path = trajectory(released, trajectory_id)
    client = RecordingClient("a {caption}\n")
    theirs = aer.create_aer_chat_messages_from_trajectory(
        content, released, path, client, {"screenshot_cache_dir": tmp_path}
    )
    judge = official("AER-C")
    ours = judged(
        judge, Views(released).view(trajectory_id, judge.wants), lambda call: Reply("a {caption}\n")
    )
    assert [as_sent(call.messages) for call in ours.calls] == [*client.asked, theirs["regular"]]

    seen = aer.create_aer_chat_messages_from_trajectory_vis(content, released, client)
    judge = official("AER-V")
    ours = judged(judge, Views(released).view(trajectory_id, judge.wants))
    assert as_sent(ours.last.messages) == seen["regular"]


@pytest.mark.shared
@pytest.mark.labels
@pytest.mark.parametrize("trajectory_id", IDS)
def test_compatible_nnetnavs_messages_are_the_released_codes(
    released, official, official_package, trajectory_id, tmp_path
):
    content, path = trajectory(released, trajectory_id)
    client = RecordingClient("State change: {one}")
    theirs = official_package("judge.existing.nnetnav").create_nnetnav_chat_messages_from_trajectory(
        content, path, client, {"description_cache_dir": tmp_path}, verbose=False
    )
    judge = official("NNetNav", compat=True)
    ours = judged(
        judge, Views(released).view(trajectory_id, judge.wants), lambda call: Reply("State change: {one}")
    )
    assert [as_sent(call.messages) for call in ours.calls] == [*client.asked, theirs["regular"]]
    assert len(client.asked) == len(content["steps"]) - 1


@pytest.mark.labels
def test_official_nnetnav_names_the_action_that_caused_the_change(official):
    call = judged(official("NNetNav"), view(actions=2)).calls[0]
    assert text(call.messages).endswith("The action taken by the web agent: click('1')")


@pytest.mark.labels
def test_a_change_that_could_not_be_described_is_left_out_as_there(official):
    def reply(call: Call) -> Reply:
        return Reply(state="too_long") if "tree 1 in full" in text(call.messages) else Reply("it changed")

    done = judged(official("NNetNav"), view(actions=2), reply)
    assert text(done.last.messages).endswith("Trajectory: it changed")


@pytest.mark.labels
@pytest.mark.parametrize("name", ["simplified-screenshot", "AER-V", "AER-C"])
def test_where_the_released_code_would_fail_without_a_screenshot_the_prompt_says_so(official, name):
    done = judged(official(name), view(screenshots=False))
    assert "No screenshot of the" in text(done.last.messages)
    assert len(done.calls) == 1


@pytest.mark.labels
def test_official_prompts_have_a_hash_of_their_own_and_say_where_they_are_from(official):
    own = find_judge("GPT-4o (A)")
    assert official("GPT-4o (A)").prompts_hash != own.prompts_hash
    assert official("GPT-4o (A)").source == own.source + "; prompts of agent-reward-bench 0.1.2"
    assert official("GPT-4o (A)").models == own.models


@pytest.mark.labels
@pytest.mark.parametrize("name", ["GPT-4o (A)", "AER-V", "AER-C", "NNetNav"])
def test_pictures_of_the_goal_are_left_out_as_there(official, name):
    judge = official(name)
    assert not judge.wants.goal_images
    shown = view(goal_images=1)
    sent = {picture.sha256 for call in judged(judge, shown).calls for picture in images(call.messages)}
    assert shown.goal_images[0].sha256 not in sent


@pytest.mark.labels
@pytest.mark.parametrize("name", ["always-successful", "rule-based"])
def test_a_judge_that_the_package_does_not_have_is_refused(official, name):
    with pytest.raises(OfficialPromptsError, match="has no prompts for"):
        official(name)


def test_without_the_package_and_without_a_network_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "_installed_annotations", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(OfficialPromptsError, match=r"prompts cannot be loaded: .* not in the cache"):
        read_templates(PACKAGE, Settings(cache_dir=tmp_path))


@pytest.fixture
def package_with(tmp_path, monkeypatch):
    """Let a folder with these files be the installed package."""

    def written(files):
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        monkeypatch.setattr("arb.judges.catalog.official._package", lambda settings: tmp_path)

    return written


def test_a_package_without_its_templates_is_refused_with_their_names(package_with):
    package_with(dict.fromkeys(PACKAGE.files, "SYSTEM = 1"))
    with pytest.raises(OfficialPromptsError, match="no template for system, inverted_system, step"):
        read_templates(PACKAGE)


def test_a_package_with_a_broken_file_is_refused_with_its_name(package_with):
    package_with(dict.fromkeys(PACKAGE.files, "def broken("))
    with pytest.raises(OfficialPromptsError, match=r"judge/defaults\.py cannot be read; reinstall"):
        read_templates(PACKAGE)


def test_a_template_is_stripped_only_where_the_package_strips_it(package_with):
    others = ("SYSTEM_PROMPT", "INVERTED_SYSTEM_PROMPT", "ACTION_TEMPLATE", "AXTREE_TEMPLATE", "FINAL_MSG")
    nnetnav = PACKAGE.files["judge/existing/nnetnav.py"].values()
    defaults = 'GOAL_TEMPLATE = " kept "\nSTEP_TEMPLATE = " x "\nSTEP_TEMPLATE = STEP_TEMPLATE.strip()\n'
    defaults += "".join(f"{name} = 'y'\n" for name in others)
    files = {
        "judge/defaults.py": defaults,
        "judge/__init__.py": "def format_content_for_image(u):\n    c = [{'type': 'text', 'text': ' s '}]\n",
        "judge/existing/aer.py": "def format_msg_for_captioning(u):\n    prompt = 'c'\n"
        "sys_prompt = ' a '\nuser_prompt_template = 'b'\nuser_prompt_template_vis = 'b'\n",
        "judge/existing/nnetnav.py": "".join(f"{name.split('.')[0]} = 'z'\n" for name in nnetnav),
    }
    package_with(files)
    found = read_templates(PACKAGE)
    assert [found[name] for name in ("goal", "step", "screenshot", "aer_system")] == [
        " kept ",
        "x",
        " s ",
        "a",
    ]
    judge = with_official_prompts(find_judge("nnetnav"), found, "9.9")
    assert isinstance(judge, NNetNavJudge) and replace(judge, is_compat=True).is_compat


@pytest.mark.labels
def test_the_places_in_the_package_that_the_table_of_deviations_names_hold_what_it_says(official_folder):
    table = (Path(__file__).parents[4] / "docs" / "judges.md").read_text(encoding="utf-8")
    places = re.findall(r"`(judge/[\w/]+\.py):(\d+)` `([^`]+)`", table)
    assert len(places) >= 15
    for file, number, code in places:
        line = (official_folder / file).read_text(encoding="utf-8").splitlines()[int(number) - 1]
        assert code in line, f"{file}:{number} has {line!r}"
