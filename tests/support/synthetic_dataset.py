"""A built dataset of made-up trajectories of any suite, in seconds: the official suite's ids and lengths.

Rows, row groups and files are written by the builder's own code, so the folder has the shape that `build`
gives. Pages come from a small pool: a picture drawn from the boxes of a page, and the trees that name them.
Goals, actions, replies and verdicts are made up; dev labels are the suite's published ones.
"""

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from arb.core.annotation import Annotation
from arb.core.ids import TrajectoryId
from arb.core.suite import Suite, Trajectory, load_dev_labels, load_suite
from arb.core.trajectory import Recording, RunUsage, Step
from arb.core.vocabulary import SPLITS
from dataset_script.build.parts import table_of
from dataset_script.build.rows import ROWS_OF_A_RUN, Run, annotation_row, judgment_row, task_row
from dataset_script.build.shards import plan_shards, render_manifest, write_rows, write_shard
from dataset_script.by_id import write_index
from dataset_script.sources.base import RecordedJudgment
from dataset_script.sources.published import MANIFEST, Shard
from dataset_script.tasks import load_tasks

JUDGES = (
    ("functional", None, None, None),
    ("aer", "gpt-4o-2024-11-20", False, False),
    ("aerv", "gpt-4o-2024-11-20", True, False),
    ("nnetnav", "meta-llama/Llama-3.3-70B-Instruct", False, True),
    ("claude-3.7-sonnet-noscreen", "claude-3.7-sonnet", False, True),
    ("claude-3.7-sonnet-noaxtree", "claude-3.7-sonnet", True, False),
    ("gpt-4o-noscreen", "gpt-4o-2024-11-20", False, True),
    ("gpt-4o-noaxtree", "gpt-4o-2024-11-20", True, False),
    ("gpt-4o-mini-noscreen", "gpt-4o-mini-2024-07-18", False, True),
    ("gpt-4o-mini-noaxtree", "gpt-4o-mini-2024-07-18", True, False),
    ("qwen-2.5-vl-noscreen", "Qwen2.5-VL-72B-Instruct", False, True),
    ("qwen-2.5-vl-noaxtree", "Qwen2.5-VL-72B-Instruct", True, False),
    ("llama-3.3-70b-noscreen", "Llama-3.3-70B-Instruct", False, True),
)
"""Folder, model, and what it was shown: the judges of the paper's Table 7."""

_WORDS = """
order cart address list report filter status open customer price item review forum thread map route total
incident change request user manager approve assign date sort select submit search result page product store
city street hour color size brand rating image link profile message summary
"""
_ROLES = ("link", "button", "textbox", "StaticText", "cell", "menuitem", "checkbox", "heading")
WIDTH, HEIGHT = 1280, 720


@dataclass(frozen=True)
class Page:
    """A made-up page: its picture, its trees, and the box of each element by its id."""

    picture: bytes
    axtree: str
    axtree_pruned: str
    boxes: dict[str, tuple[float, float, float, float]]


@dataclass(frozen=True)
class Shape:
    """How large everything is. Released screenshots number 21 a trajectory on average (27,299 in 1,302)."""

    pages: int = 40
    tree_characters: int = 6_000
    mean_steps: int = 21
    judges: Sequence[tuple] = JUDGES
    picture_format: str = "WEBP"
    noise: int = 0
    """Pixels of noise on each picture: recorded pages compress less well than drawn ones."""
    without_pages: str = ""
    """The id of a run that was observed in words alone, and ends with an answer."""


def make_dataset(
    out: Path,
    suite: Suite | None = None,
    shape: Shape = Shape(),
    only: Sequence[Trajectory] | None = None,
    seed: int = 0,
) -> Path:
    """Write a dataset of the suite (default: the official one), or of ``only`` these trajectories of it."""
    suite = suite or load_suite()
    trajectories = list(suite.trajectories if only is None else only)
    pages = [_page(random.Random(f"{seed} page {n}"), shape, n) for n in range(shape.pages)]
    said = load_dev_labels(suite)
    labels = {found.trajectory_id: found for found in said if found.is_primary}
    parts = [
        SyntheticPart(t, labels.get(t.trajectory_id), pages, shape, seed)
        for t in sorted(trajectories, key=lambda t: t.trajectory_id)
    ]
    shards: list[Shard] = []
    for configuration in (*ROWS_OF_A_RUN, *(["judgments"] if shape.judges else [])):
        for split in SPLITS:
            chosen = [part for part in parts if part.trajectory.split == split]
            shards += [write_shard(task) for task in plan_shards(out, configuration, split, chosen)]
    shards += _small_tables(out, suite, {t.trajectory_id for t in trajectories}, said)
    write_index(out, ((s.configuration, s.split, s.name) for s in shards))
    (out / MANIFEST).write_text(render_manifest(suite.name, {"kind": "synthetic"}, shards), encoding="utf-8")
    return out


def _small_tables(out: Path, suite: Suite, ids: set[str], said: Sequence[Annotation]) -> list[Shard]:
    asked = suite.targets
    annotations = tuple(annotation_row(found, asked) for found in said if found.trajectory_id in ids)
    shards = [write_rows(out, "annotations", "dev", annotations, None, asked)] if annotations else []
    tasks = load_tasks(suite)
    for split in SPLITS:
        if rows := tuple(task_row(task) for task in tasks if task.split == split):
            shards.append(write_rows(out, "tasks", split, rows))
    return shards


class SyntheticPart:
    """What a part of a build is to the writer of shards: sizes, and tables that are made when asked for."""

    earlier = None

    def __init__(self, trajectory: Trajectory, labels: Annotation | None, pages, shape: Shape, seed: int):
        self.trajectory, self._labels, self._pages, self._shape = trajectory, labels, pages, shape
        self._seed = f"{seed} {trajectory.trajectory_id}"

    @property
    def folder(self) -> str:
        """Parts are told apart by their folders."""
        return self.trajectory.trajectory_id

    @property
    def trajectory_id(self) -> str:
        return self.trajectory.trajectory_id

    @cached_property
    def _visited(self) -> list[Page]:
        drawn = random.Random(f"{self._seed} steps")
        longest = 51 if self.trajectory.task.endswith("-l2") else 31
        n = min(max(2, round(drawn.gammavariate(2.2, self._shape.mean_steps / 2.0))), longest)
        return drawn.choices(self._pages, k=n)

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes by configuration, about, as packed parts have them."""
        trees = sum(len(page.axtree) + len(page.axtree_pruned) for page in self._visited)
        pictures = sum(len(page.picture) for page in self._visited)
        return {
            "trajectories": 2_000 + 500 * len(self._visited),
            "trajectories_with_screenshot": 60_000,
            "steps": trees // 8 + pictures,
            "rewards": 60,
            "usage": 60,
            "judgments": 700 * len(self._shape.judges),
        }

    def table(self, configuration: str) -> pa.Table:
        """The rows of a configuration, by the builder's own code."""
        if configuration == "judgments":
            rows = [judgment_row(self.trajectory, judgment) for judgment in self._judgments()]
        else:
            run = Run(self.trajectory, self._recording(), self._labels)
            rows = list(ROWS_OF_A_RUN[configuration](run))
        return table_of(configuration, rows, None)

    def _recording(self) -> Recording:
        drawn = random.Random(f"{self._seed} run")
        place = TrajectoryId.parse(self.trajectory.trajectory_id)
        picture_goal = place.folder == "visualwebarena" and drawn.random() < 0.3
        last = len(self._visited) - 1
        recording = Recording(
            trajectory_id=self.trajectory.trajectory_id,
            model=place.agent.removeprefix("GenericAgent-"),
            goal=goal_of(self.trajectory),
            goal_images=(self._pages[0].picture,) if picture_goal else (),
            cum_reward=float(drawn.random() < 0.25),
            state="completed",
            usage=RunUsage(seconds=float(len(self._visited))),
            steps=tuple(_step(n, page, n == last, drawn) for n, page in enumerate(self._visited)),
        )
        if self.trajectory.trajectory_id != self._shape.without_pages:
            return recording
        steps = (_in_words(step, drawn) for step in recording.steps)
        return replace(recording, steps=tuple(steps), answer=f"It is <b>{text_of(drawn, 3)}</b>.")

    def _judgments(self):
        drawn = random.Random(f"{self._seed} judges")
        leaning = drawn.random()
        for judge, model, has_screenshot, has_axtree in self._shape.judges:
            answered = drawn.random() > 0.02
            success = (drawn.random() < leaning) if answered else None
            words = "Successful" if success else "Unsuccessful"
            is_rule = judge == "functional"
            reply = (
                None
                if is_rule
                else f"<reasoning>{text_of(drawn, 140)}.</reasoning><success>{words}</success>"
            )
            yield RecordedJudgment(
                "ok" if answered else "unparsed",
                success,
                None if is_rule or not answered else drawn.random() < 0.1,
                None if is_rule or not answered else drawn.random() < 0.5,
                None if is_rule or not answered else drawn.randint(1, 4),
                judge=judge,
                model=model,
                has_screenshot=has_screenshot,
                has_axtree=has_axtree,
                reply=reply,
            )


def goal_of(trajectory: Trajectory) -> str:
    """The made-up goal: the same for every agent on a task."""
    drawn = random.Random(f"goal {trajectory.benchmark} {trajectory.task}")
    length = {"workarena++": 180, "visualwebarena": 24}.get(trajectory.benchmark, 18)
    return (
        text_of(drawn, max(6, round(drawn.gauss(length, length / 4)))).capitalize() + f" ({trajectory.task})."
    )


def text_of(drawn: random.Random, words: int) -> str:
    """This many words in a row."""
    return " ".join(drawn.choices(_WORDS.split(), k=words))


def _step(num: int, page: Page, is_last: bool, drawn: random.Random) -> Step:
    bid = drawn.choice(list(page.boxes))
    action = drawn.choice((f"click('{bid}')", f"fill('{bid}', '{text_of(drawn, 3)}')", "scroll(0, 400)"))
    return Step(
        num=num,
        url=f"http://shop.example/{drawn.choice(_WORDS.split())}/{num}",
        action=None if is_last else action,
        reasoning=None if is_last else text_of(drawn, drawn.randint(20, 120)),
        last_action_error="TimeoutError: the element did not answer" if drawn.random() < 0.05 and num else "",
        focused_element=bid,
        axtree=page.axtree,
        axtree_pruned=page.axtree_pruned,
        box=None if is_last or bid not in action else page.boxes[bid],
        screenshot=page.picture,
    )


def _in_words(step: Step, drawn: random.Random) -> Step:
    text = "\n".join(text_of(drawn, 9) for _ in range(40)) if step.num else None
    nothing = dict.fromkeys(("url", "axtree", "axtree_pruned", "box", "screenshot", "last_action_error"))
    return replace(step, **nothing, text=text)


def _page(drawn: random.Random, shape: Shape, number: int) -> Page:
    elements = [(str(10 + n), drawn.choice(_ROLES), text_of(drawn, 3)) for n in range(24)]
    boxes = {
        bid: (40.0 + 300 * (n % 4), 60.0 + 100 * (n // 4), 240.0, 56.0)
        for n, (bid, _, _) in enumerate(elements)
    }
    lines = [f"[{bid}] {role} '{name}', clickable, visible" for bid, role, name in elements]
    size = shape.tree_characters * drawn.uniform(0.3, 1.7)
    while sum(map(len, lines)) < size:
        lines.append(f"[{100 + len(lines)}] {drawn.choice(_ROLES)} '{text_of(drawn, 4)}', visible")
    pruned = [line.removesuffix(", visible") for line in lines[: 24 + len(lines) // 2]]
    return Page(
        _picture(drawn, shape, number, elements, boxes),
        "RootWebArea 'Page', focused\n\t" + "\n\t".join(lines),
        "\n".join(pruned),
        boxes,
    )


def _picture(drawn: random.Random, shape: Shape, number: int, elements, boxes) -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, HEIGHT), (250, 250, 248))
    canvas = ImageDraw.Draw(image)
    canvas.rectangle((0, 0, WIDTH, 44), fill=(40 + number * 5 % 160, 70, 110))
    for bid, role, name in elements:
        left, top, width, height = boxes[bid]
        canvas.rectangle((left, top, left + width, top + height), outline=(150, 160, 170), fill="white")
        canvas.text((left + 10, top + 20), f"{role} {name}"[:34], fill=(30, 40, 50))
    for _ in range(shape.noise):
        canvas.point((drawn.randrange(WIDTH), drawn.randrange(HEIGHT)), fill=(drawn.randrange(256), 90, 120))
    packed = io.BytesIO()
    options = {"lossless": True, "method": 1} if shape.picture_format == "WEBP" else {}
    image.save(packed, shape.picture_format, **options)
    return packed.getvalue()
