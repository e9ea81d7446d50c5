"""Made-up trajectories to show to judges, and judges driven with made-up replies."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image as pictures

from arb.core.suite import load_dev_labels, load_suite
from arb.judges.registry import entries
from arb.judges.run.folder import open_prompts, read_judgments
from arb.judges.types import Answer, Call, Image, Judge, Message, Reply, View, ViewStep
from tests.support.annotations import success_of

GOAL = "Order two blue teapots."

READABLE_BY_EVERY_JUDGE = (
    "State change: a teapot is in the basket\n"
    "Reasoning: it shows the basket\nScore: 4\n"
    "<reasoning>fine</reasoning><success>Successful</success><side>No</side>"
    "<optimal>4. Completely Optimal</optimal><loop>No</loop>\n"
    "Thought: fine\nReward: 5\n"
    "Thoughts: fine\nStatus: success\n"
    "1 | required | outcome | a teapot is in the basket\n1 | required | met | step 1 | fine\n"
)
"""A reply that is a caption, a rating and a yes to every question, whichever judge reads it."""


def judges() -> dict[str, Judge]:
    """Every judge of the registry by its name."""
    return {entry.judge.name: entry.judge for entry in entries()}


def picture(shade: int = 0, size: tuple[int, int] = (8, 6), kind: str = "PNG", mode: str = "RGB") -> bytes:
    """A picture of one shade of grey."""
    held = io.BytesIO()
    pictures.new(mode, size, tuple([shade] * len(mode)) if len(mode) > 1 else shade).save(held, kind)
    return held.getvalue()


def image(shade: int = 0) -> Image:
    return Image(picture(shade), "image/png", 8, 6)


def view(actions: int = 2, *, trees: bool = True, screenshots: bool = True, goal_images: int = 0) -> View:
    """A trajectory of so many actions, and the observation after the last of them."""
    return View(
        goal=GOAL + "\n",
        goal_images=tuple(image(200 + number) for number in range(goal_images)),
        steps=tuple(
            ViewStep(
                number=number,
                url=f"http://shop/page-{number}",
                action=f"click('{number}')" if number <= actions else None,
                reasoning=f"because of {number}" if number <= actions else None,
                error="",
                axtree=f"tree {number} in full" if trees else None,
                axtree_pruned=f"tree {number} pruned" if trees else None,
                screenshot=image(number) if screenshots else None,
            )
            for number in range(1, actions + 2)
        ),
    )


@dataclass(frozen=True)
class Judgment:
    """What a judge answered, and the calls of each stage."""

    answer: Answer
    stages: tuple[tuple[Call, ...], ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for stage in self.stages for call in stage)

    @property
    def last(self) -> Call:
        return self.calls[-1]


def judged(
    judge: Judge, shown: View, reply_to: Callable[[Call], Reply] = lambda call: Reply(READABLE_BY_EVERY_JUDGE)
) -> Judgment:
    """A judge driven to its answer with replies made up for its calls."""
    stages = []
    session = judge.ask(shown)
    try:
        calls = next(session)
        while True:
            stages.append(tuple(calls))
            calls = session.send([reply_to(call) for call in calls])
    except StopIteration as end:
        return Judgment(end.value, tuple(stages))


def assert_prompts_are_there(run_folder: Path) -> None:
    """What was sent in every call of a run can be read, and has the pictures that its line names."""
    with open_prompts(run_folder) as prompts:
        for call in (call for record in read_judgments(run_folder) for call in record["calls"]):
            contents = [content for _, content in prompts.get(call["prompt"])]
            shown = [each for content in contents if isinstance(content, list) for each in content]
            assert contents
            assert [each["sha256"] for each in shown if isinstance(each, dict)] == call["images"]


def scored_run(
    folder: Path, says_yes: Callable[[str], bool] = lambda answer: True, **configuration: object
) -> list[str]:
    """Write a finished run over the sample's dev, with the score 0.8 for every success and 0.4 for the rest.

    ``says_yes`` gives the verdict from the experts' answer. Returns their answers.
    """
    folder.mkdir()
    told = {"suite": "sample", "split": "dev", "judge": "judge", "models": {}, **configuration}
    (folder / "run.json").write_text(json.dumps({"format": 1, "configuration": told}))
    labels = [each for each in load_dev_labels(load_suite("sample")) if each.is_primary]
    answers = [success_of(each) for each in labels]
    lines = [
        {
            "trajectory_id": each.trajectory_id,
            "state": "ok",
            "calls": [],
            "answer": {"success": says_yes(answer), "score": 0.8 if answer == "yes" else 0.4},
        }
        for each, answer in zip(labels, answers, strict=True)
    ]
    (folder / "judgments.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return answers


def by_purpose(**replies: Reply) -> Callable[[Call], Reply]:
    """Replies by a call's purpose; what is not named gets the reply that everybody can read."""
    return lambda call: replies.get(call.purpose.replace(" ", "_"), Reply(READABLE_BY_EVERY_JUDGE))


def parts(messages: tuple[Message, ...]) -> list[str | Image]:
    """Texts and pictures of all messages, in order."""
    found: list[str | Image] = []
    for message in messages:
        found += [message.content] if isinstance(message.content, str) else message.content
    return found


def text(messages: tuple[Message, ...]) -> str:
    return "\n".join(part for part in parts(messages) if isinstance(part, str))


def images(messages: tuple[Message, ...]) -> list[Image]:
    return [part for part in parts(messages) if isinstance(part, Image)]
