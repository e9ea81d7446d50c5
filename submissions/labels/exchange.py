"""Export of trajectories to Label Studio and Argilla, and import of the answers given there.

Exports are blind: an item has an opaque token, the goal, the agent's steps and the pictures, but neither the
agent's name nor any label, verdict or reward. Label Studio reads tasks (labelstud.io/guide/task_format) and a
labelling configuration (labelstud.io/tags), and returns tasks with annotations. Argilla reads and writes the
folder of ``Dataset.to_disk`` (docs.argilla.io). Tested with label-studio-sdk 2.0.5 and argilla 2.8.0.

Imported files are untrusted. All problems in a file are reported together, and messages never quote an
answer.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from arb.core.annotation import Annotation
from arb.core.files import new_folder
from arb.core.suites.targets import Target
from dataset_script.build.blind import same_host
from dataset_script.sources.published import PublishedDataset
from leaderboard.labels.annotations import COMMENT_LENGTH, AnnotationsInvalid
from submissions.labels.annotation_state import LONGEST_SECONDS
from submissions.moderation.actions import is_utf8

MOST_BYTES: Final = 200_000_000
"""The size limit of an imported file, which also contains the exported items."""
LONGEST_OBSERVATION: Final = 20_000
"""The maximum number of characters in each text of a step. The middle of a longer text is left out."""
IMAGES: Final = "images"
LOCAL_FILES: Final = "/data/local-files/?d="
"""The path at which Label Studio serves files under its LOCAL_FILES_DOCUMENT_ROOT."""
TEMPLATES: Final = Path(__file__).parent / "templates"
_LONGEST_NAME: Final = 200
_STEP_COLUMNS: Final = ("num", "url", "reasoning", "action", "last_action_error", "text", "screenshot")
_STEP_LINES: Final = (
    ("url", ""), ("text", "Observed: "), ("last_action_error", "Error: "), ("reasoning", "Reasoning: "),
    ("action", "Action: "),
)  # fmt: skip
_KINDS: Final = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpg"), (b"RIFF", "webp"), (b"GIF8", "gif"))


def item_token(key: bytes, trajectory_id: str) -> str:
    """Return the opaque id of a trajectory in exports. The same key and trajectory give the same token."""
    return hmac.new(key, f"export\0{trajectory_id}".encode(), hashlib.sha256).hexdigest()[:32]


@dataclass(frozen=True)
class Item:
    """A trajectory to annotate: its goal, its steps as plain text, and its pictures with file names."""

    token: str
    goal: str
    steps: str
    pictures: tuple[tuple[str, bytes], ...] = field(repr=False)


def read_items(dataset: PublishedDataset, ids: Iterable[str], key: bytes) -> Iterator[Item]:
    """Yield trajectories of the dataset, sorted by token so that their order does not reveal agents."""
    tokens = {item_token(key, trajectory_id): trajectory_id for trajectory_id in ids}
    for token, trajectory_id in sorted(tokens.items()):
        (row,) = dataset.rows_of("trajectories", trajectory_id, ("goal", "answer"))
        of_goal = dataset.rows_of("trajectories_with_screenshot", trajectory_id, ("goal_images",))
        images = [image["bytes"] for found in of_goal for image in found["goal_images"] or ()]
        pictures = [(f"goal-{place}", content) for place, content in enumerate(images, start=1)]
        texts = []
        for step in dataset.rows_of("steps", trajectory_id, _STEP_COLUMNS):
            texts.append(_step_text(step))
            if step["screenshot"]:
                pictures.append((f"step-{step['num'] + 1:03}", step["screenshot"]["bytes"]))
        if row.get("answer"):
            texts.append(f"The agent's answer: {row['answer']}")
        named = tuple((f"{name}.{_kind(content)}", content) for name, content in pictures)
        yield Item(token, same_host(row["goal"] or ""), same_host("\n\n".join(texts)), named)


def _step_text(step: Mapping[str, Any]) -> str:
    lines = [f"Step {step['num'] + 1}"]
    for column, heading in _STEP_LINES:
        text = step.get(column) or ""
        if len(text) > LONGEST_OBSERVATION:
            half = LONGEST_OBSERVATION // 2
            text = f"{text[:half]} … {text[-half:]}"
        if text:
            lines.append(heading + text)
    return "\n".join(lines)


def _kind(content: bytes) -> str:
    return next((kind for start, kind in _KINDS if content.startswith(start)), "img")


# -- Export


def write_label_studio(
    out: Path, items: Iterable[Item], questions: Sequence[Target], guidelines: str, image_root: str | None
) -> int:
    """Write ``tasks.json``, ``config.xml``, ``guidelines.md`` and pictures into a new folder.

    ``image_root`` is the address that serves the pictures; by default, Label Studio serves them as local
    files. Returns the number of items. Raises OSError.
    """
    root = image_root or f"{LOCAL_FILES}{quote(out.name)}/{IMAGES}"
    tasks = []
    with _absent_folder(out) as folder:
        for item in items:
            addresses = _write_pictures(folder, item, root)
            data = {"item": item.token, "goal": item.goal, "steps": item.steps, "screenshots": addresses}
            tasks.append({"data": data})
        _write_json(folder / "tasks.json", tasks)
        has_pictures = any(task["data"]["screenshots"] for task in tasks)
        (folder / "config.xml").write_text(labelling_config(questions, has_pictures), encoding="utf-8")
        (folder / "guidelines.md").write_text(_guide(questions, guidelines), encoding="utf-8")
    return len(tasks)


def labelling_config(questions: Sequence[Target], has_pictures: bool = True) -> str:
    """Return the labelling configuration of Label Studio for the questions of a suite.

    Annotators see a choice's title; exports contain its value, as the ``alias``. Text from trajectories is
    escaped.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    # Label Studio would read a text that begins with $ as the name of a variable.
    environment.filters["literal"] = lambda text: f" {text}" if text.startswith("$") else text
    template = environment.get_template("label_studio.xml.j2")
    return template.render(questions=questions, has_pictures=has_pictures)


def write_argilla(
    out: Path, name: str, items: Iterable[Item], questions: Sequence[Target], guidelines: str, root: str
) -> int:
    """Write the pictures and a folder for `argilla.Dataset.from_disk`, and return the number of items.

    A Markdown field shows the pictures from ``root``, the address that serves them. Raises OSError.
    """
    records = []
    with _absent_folder(out) as folder:
        for item in items:
            addresses = _write_pictures(folder, item, root)
            pictures = "\n\n".join(
                f"![{Path(file).stem}]({at})" for (file, _), at in zip(item.pictures, addresses, strict=True)
            )
            texts = {"goal": item.goal, "steps": item.steps, "screenshots": pictures}
            fields = {f"trajectory_{name}": text or "–" for name, text in texts.items()}
            records.append({"id": item.token, "fields": fields, "metadata": {}, "suggestions": {},
                            "responses": {}, "vectors": {}, "status": "pending"})  # fmt: skip
        settings = _argilla_settings(questions, _guide(questions, guidelines))
        (folder / ".argilla").mkdir()
        _write_json(folder / ".argilla" / "settings.json", settings)
        dataset = {"name": name, "guidelines": settings["guidelines"], "allow_extra_metadata": False}
        _write_json(folder / ".argilla" / "dataset.json", dataset)
        _write_json(folder / "records.json", records)
    return len(records)


def _argilla_settings(questions: Sequence[Target], guidelines: str) -> dict[str, Any]:
    """Return the settings of an Argilla dataset. Its fields and questions must have different names."""
    settings = json.loads((TEMPLATES / "argilla_settings.json").read_text(encoding="utf-8"))
    asked = [
        {"name": question.name, "title": question.title, "description": question.text, "required": True,
         "settings": {"type": "label_selection",
                      "options": [{"value": a.value, "text": a.title} for a in question.choices]}}
        for question in questions
    ]  # fmt: skip
    return {**settings, "guidelines": guidelines, "questions": [*asked, *settings["questions"]]}


def _guide(questions: Sequence[Target], guidelines: str) -> str:
    guides = [f"## {question.title}\n\n{question.text}\n\n{question.guide}" for question in questions]
    return "\n\n".join([guidelines, *guides]).strip() + "\n"


def _absent_folder(out: Path) -> AbstractContextManager[Path]:
    """Call `new_folder`, but raise FileExistsError even if the path is an empty folder."""
    if out.exists():
        raise FileExistsError(f"{out} already exists; choose another folder")
    return new_folder(out)


def _write_pictures(folder: Path, item: Item, root: str) -> list[str]:
    for name, content in item.pictures:
        path = folder / IMAGES / item.token / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [f"{root.rstrip('/')}/{item.token}/{name}" for name, _ in item.pictures]


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


# -- Import


class AnswersReader:
    """A reader of the finished annotations in one imported file.

    ``ids`` maps item tokens to trajectory ids. ``left_out`` collects one line per annotation that was
    skipped, discarded or not finished.
    """

    def __init__(self, questions: Sequence[Target], ids: Mapping[str, str]) -> None:
        self._questions, self._ids = {question.name: question for question in questions}, ids
        self.left_out: list[str] = []
        self._found: dict[tuple[str, str], Annotation] = {}
        self._problems: list[str] = []

    def label_studio(self, content: bytes) -> list[Annotation]:
        """Read the annotations in a JSON export. Raises AnnotationsInvalid with every problem."""
        for number, task in enumerate(_objects(content, "tasks"), start=1):
            place, data = f"task {number}", task.get("data")
            if "annotations" not in task:
                self._problems.append(f"{place}: no annotations; export as JSON, not as JSON-MIN")
                continue
            trajectory_id = self._trajectory(data.get("item") if isinstance(data, dict) else None, place)
            for annotation in self._dicts(task["annotations"], f"{place}, annotations"):
                person = self._person(annotation.get("completed_by"), place)
                if person is None or trajectory_id is None:
                    continue
                where = f"{place}, {person}"
                if annotation.get("was_cancelled"):
                    self.left_out.append(f"{where}: skipped")
                    continue
                results = self._dicts(annotation.get("result"), f"{where}, result")
                answers = [(each.get("from_name"), _first(each.get("value"))) for each in results]
                at = _time(annotation.get("updated_at") or annotation.get("created_at"))
                self._add(where, trajectory_id, person, answers, at, annotation.get("lead_time"))
        return self._finish()

    def argilla(self, content: bytes) -> list[Annotation]:
        """Read the annotations in ``records.json``. Raises AnnotationsInvalid with every problem."""
        for number, record in enumerate(_objects(content, "records"), start=1):
            place, responses = f"record {number}", record.get("responses") or {}
            trajectory_id = self._trajectory(record.get("id"), place)
            if not isinstance(responses, dict):
                self._problems.append(f"{place}, responses: not a JSON object; export the file again")
                continue
            by_person: dict[str, list[tuple[Any, Any]]] = {}
            for question, answers in responses.items():
                for response in self._dicts(answers, f"{place}, {question[:40]}"):
                    person = self._person(response.get("user_id"), place)
                    if person is None:
                        continue
                    if response.get("status", "submitted") == "submitted":
                        by_person.setdefault(person, []).append((question, response.get("value")))
                    elif f"{place}, {person}: not submitted" not in self.left_out:
                        self.left_out.append(f"{place}, {person}: not submitted")
            for person, answers in by_person.items():
                if trajectory_id is not None:
                    self._add(f"{place}, {person}", trajectory_id, person, answers)
        return self._finish()

    def _trajectory(self, token: Any, place: str) -> str | None:
        found = self._ids.get(token) if isinstance(token, str) else None
        if found is None:
            self._problems.append(
                f"{place}: item {str(token)[:40]!r} is not in this suite; import with the suite and the "
                "ARB_SECRET of the export"
            )
        return found

    def _person(self, value: Any, place: str) -> str | None:
        """Return the annotator's e-mail address or id; if there is none, note a problem and return None."""
        if isinstance(value, dict):
            value = value.get("email") or value.get("id")
        name = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if name and len(name) <= _LONGEST_NAME and name.isprintable():
            return name
        self._problems.append(f"{place}: the annotator's name is missing or invalid; use one line of text")
        return None

    def _dicts(self, value: Any, place: str) -> list[dict[str, Any]]:
        if isinstance(value, list) and all(isinstance(each, dict) for each in value):
            return value
        self._problems.append(f"{place}: not a list of JSON objects; export the file again")
        return []

    def _add(
        self, where: str, trajectory_id: str, person: str, answered: Sequence[tuple[Any, Any]],
        at: datetime | None = None, seconds: Any = None,
    ) -> None:  # fmt: skip
        """Add one person's answers, given as pairs of a question (or ``comment``) and a value."""
        known, problems = self._questions, []
        answers: dict[str, str] = {}
        comment = ""
        for name, value in answered:
            if name == "comment" and isinstance(value, str):
                comment = value
            elif name not in known:
                problems.append(f": {str(name)[:40]!r} is not a question; use one of {', '.join(known)}")
            elif name in answers:
                problems.append(f", {name}: answered twice; keep one answer")
            elif (answer := _answer(known[name], value)) is None:
                words = ", ".join(choice.title for choice in known[name].choices)
                problems.append(f", {name}: not a valid answer; use one of {words}")
            else:
                answers[name] = answer
        missing = [question.title for name, question in known.items() if name not in answers]
        if not problems and missing:
            self.left_out.append(f"{where}: not answered: {', '.join(missing)}")
        elif not problems and (trajectory_id, person) in self._found:
            problems.append(": answered this item twice; keep one annotation")
        if len(comment) > COMMENT_LENGTH or not is_utf8(comment):
            problems.append(f", comment: use valid Unicode, up to {COMMENT_LENGTH:,} characters")
        self._problems += [f"{where}{problem}" for problem in problems]
        if not (problems or missing):
            is_number = isinstance(seconds, int | float) and 0 <= seconds <= LONGEST_SECONDS
            self._found[trajectory_id, person] = Annotation(
                trajectory_id, person, answers, comment.strip(), at=at,
                seconds=float(seconds) if is_number else None,
            )  # fmt: skip

    def _finish(self) -> list[Annotation]:
        if self._problems:
            raise AnnotationsInvalid(self._problems)
        return list(self._found.values())


def read_export(path: Path) -> bytes:
    """Read a file to import. Raises OSError, or AnnotationsInvalid if the file is too large."""
    if path.stat().st_size > MOST_BYTES:
        raise AnnotationsInvalid([f"the file is larger than {MOST_BYTES / 1e6:g} MB; export it in parts"])
    return path.read_bytes()


def _objects(content: bytes, what: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as problem:
        reason = f"the file is not JSON in UTF-8 ({type(problem).__name__}); export it again"
        raise AnnotationsInvalid([reason]) from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise AnnotationsInvalid([f"the file is not a list of {what}; export it again"])
    return found


def _first(value: Any) -> Any:
    """Return the text or the only choice in a Label Studio result, or None if there is neither."""
    if not isinstance(value, dict):
        return None
    choices, text = value.get("choices"), value.get("text")
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        return "\n".join(text)
    return choices[0] if isinstance(choices, list) and len(choices) == 1 else text


def _answer(question: Target, value: Any) -> str | None:
    """Return the answer whose value or title is ``value``, or None if there is none."""
    word = value.strip().lower() if isinstance(value, str) else None
    return next((a.value for a in question.choices if word in (a.value, a.title.lower())), None)


def _time(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)
