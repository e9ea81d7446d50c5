"""Read a JSON file of the release with types: a cleaned trajectory, or a published judge's verdict and reply.

Fields that are not declared here are skipped, since a file may have 184 MB, nearly all of it raw trees, boxes
and prompts. The boxes of a page are not decoded until one of them is needed.

Python's `json` writes NaN, Infinity and lone surrogates. The strict reader refuses such a file, so
`repair_json` reads it with Python's `json`, which takes more memory and time.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from arb.core.replies import Verdict, read_reply
from arb.core.trajectory import RunUsage
from dataset_script.sources.base import RecordedJudgment
from dataset_script.sources.files import json_problems, read_bytes
from dataset_script.sources.problems import UnusableFileError
from dataset_script.sources.values import add_up, finite, mapping, objects, valid_text


def repair_json(data: bytes) -> str:
    """Return the JSON document with null for NaN and infinities, and U+FFFD for lone surrogates."""
    document = json.loads(data.decode(), parse_constant=lambda _word: None)
    return valid_text(json.dumps(document, ensure_ascii=False)) or ""


Typed = TypeVar("Typed")
_NO_BOXES: Final = msgspec.Raw(b"null")


class CleanedStep(msgspec.Struct):
    """An observation and the action chosen from it. Fields that were not recorded are None."""

    num: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    url: str | None = None
    action: str | None = None
    reasoning: str | None = None
    last_action_error: str | None = None
    focused_element: str | None = None
    axtree: str | None = None
    axtree_pruned: str | None = None
    screenshot_path: str | None = None
    bounding_boxes: msgspec.Raw = _NO_BOXES
    extra_element_properties: msgspec.Raw = _NO_BOXES

    def sides_of(self, bid: str) -> list[float | None] | None:
        """Return an element's box as recorded, or None if it is missing. Raises UnusableFileError."""
        for boxes in (self.bounding_boxes, self.extra_element_properties):
            try:
                elements = msgspec.json.decode(boxes, type=dict[str, msgspec.Raw] | None)
                if elements is None:
                    continue
                element = elements.get(bid)
                return msgspec.json.decode(element, type=_Element).bbox if element is not None else None
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise UnusableFileError("bad_box", str(error)) from error
        return None


class _Element(msgspec.Struct):
    bbox: list[float | None] | None = None


def reward_in(summary: Mapping[str, Any]) -> float | None:
    """Return the reward of the benchmark's rules, or None. Raises UnusableFileError if it is not a number."""
    reward = summary.get("cum_reward")
    if reward is not None and finite(reward) is None:
        raise UnusableFileError("not_a_trajectory", "summary_info.cum_reward is not a number")
    return finite(reward)


def state_in(summary: Mapping[str, Any]) -> str | None:
    """Return how the run ended, or None if that is not recorded.

    It ended with an error, at the step limit, or because the agent stopped.
    """
    if error := valid_text(summary.get("err_msg")):
        return f"error: {' '.join(error.split())}"[:200]
    if summary.get("truncated") is True:
        return "truncated"
    return "completed" if summary.get("terminated") is True else None


def usage_in(summary: Mapping[str, Any]) -> RunUsage | None:
    """Return what a run used in all steps. The seconds include the agent's and the browser's time."""
    return RunUsage.of(
        input_tokens=add_up([summary.get("stats.cum_input_tokens")]),
        output_tokens=add_up([summary.get("stats.cum_output_tokens")]),
        cost_usd=add_up([summary.get("stats.cum_cost")]),
        seconds=add_up(summary.get(f"stats.cum_{part}_elapsed") for part in ("agent", "step")),
    )


class CleanedFile(msgspec.Struct):
    """The fields of a cleaned file that the dataset needs."""

    benchmark: str | None = None
    agent: str | None = None
    model: str | None = None
    valid: bool | None = None
    goal: str | None = None
    summary_info: dict[str, Any] | None = None
    steps: list[CleanedStep] | None = None

    def __post_init__(self) -> None:
        reward_in(self.summary_info or {})  # raises if it is not a number


def read_typed(path: Path, kind: type[Typed], wrong: str) -> tuple[Typed, bool]:
    """Return the content of a JSON file as ``kind``, and whether it was strict JSON.

    Raises UnusableFileError: "unreadable", "not_json", or ``wrong`` if it is of another form.
    """
    with json_problems():
        data = read_bytes(path)
        try:
            return _decode(data, kind)
        except msgspec.ValidationError as error:
            raise UnusableFileError(wrong, str(error)) from error
        except UnicodeDecodeError as error:
            raise UnusableFileError("not_json", "not UTF-8") from error


def _decode(data: bytes, kind: type[Typed]) -> tuple[Typed, bool]:
    try:
        return msgspec.json.decode(data, type=kind), True
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if not data[-64:].rstrip().endswith(b"}"):  # cut off: nothing to repair
            raise
    return msgspec.json.decode(repair_json(data), type=kind), False


RULE_BASED: Final = "functional"
"""The folder of the rule-based judge. Its verdicts follow from the rewards, so it has no replies."""

SUCCESS_ABOVE: Final = 0.5
"""A reward above this is a success (paper, section 4)."""

ERROR_ENDING: Final = "_error"
"""The ending of the name of a failed judgment, ``<task_id>_error.json``."""


class _TrajectoryInfo(msgspec.Struct):
    summary_info: dict[str, Any] | None = None


class _JudgmentFile(msgspec.Struct):
    judge_model_name: str | None = None
    judge_args: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    trajectory_info: _TrajectoryInfo | None = None


def read_judgment(path: Path) -> RecordedJudgment:
    """Read ``…/<judge>/<task_id>.json``. A failed judgment has the state ``error``.

    The rule-based verdict is computed from the reward, which is not returned. Raises UnusableFileError:
    "unreadable", "not_json" or "not_a_judgment".
    """
    content, _ = read_typed(path, _JudgmentFile, "not_a_judgment")
    judge, verdict, reply = path.parent.name, Verdict("error"), None
    if path.stem.endswith(ERROR_ENDING):
        pass
    elif content.response is not None:
        choice = next(iter(objects(content.response.get("choices"))), {})
        message = mapping(choice.get("message"))
        text, refusal, finish = map(
            valid_text, (message.get("content"), message.get("refusal"), choice.get("finish_reason"))
        )
        verdict, reply = read_reply(judge, text, finish, refusal), text or refusal
    elif judge != RULE_BASED:
        raise UnusableFileError("not_a_judgment", "it has no response")
    else:
        summary = content.trajectory_info and content.trajectory_info.summary_info
        reward = finite(mapping(summary).get("cum_reward"))
        if reward is None:
            raise UnusableFileError("not_a_judgment", "it has neither a response nor a reward")
        verdict = Verdict("ok", reward > SUCCESS_ABOVE)
    arguments = content.judge_args or {}
    return RecordedJudgment(
        **asdict(verdict),
        judge=judge,
        model=None if judge == RULE_BASED else content.judge_model_name,
        has_screenshot=arguments.get("use_screenshot"),
        has_axtree=arguments.get("use_axtree"),
        reply=reply,
    )
