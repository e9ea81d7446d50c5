"""Check everything that a judge yields and returns, so that the engine can rely on it.

The engine opens every session with `open_session`. If the judge raises an error or yields or returns anything
invalid, the trajectory ends with a JudgeError that names the file and line of the judge's code.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Collection, Generator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

from arb.core.vocabulary import STATES
from arb.judges.types import (
    Answer,
    AnyJudge,
    Call,
    Evidence,
    Image,
    Judge,
    JudgeSession,
    Message,
    RewardJudge,
    Tool,
    ToolCall,
    View,
)
from arb.judges.wrappers import JudgeWrapper

MAX_STAGES: Final = 100
"""The maximum number of times that a judge may yield calls for one trajectory, to stop endless loops."""

GRADES: Final = range(1, 5)
"""The allowed values of `Answer.optimality`."""

_MESSAGE_ROLES: Final = ("system", "user", "assistant", "tool")
MAX_EVIDENCE: Final = 100
"""The maximum number of entries in `Answer.evidence`."""

_MAX_QUOTED_CHARS: Final = 60


class JudgeError(ValueError):
    """Raised if a judge fails or returns anything invalid. The message names the file and the line."""


def open_session(judge: Judge, view: View) -> JudgeSession:
    """Return a judge's session, which raises JudgeError if the judge fails or returns anything invalid."""
    # A wrapper needs no check, since it opens the sessions of its parts with this function.
    return judge.ask(view) if isinstance(judge, JudgeWrapper) else _checked_session(judge, view)


def ask_reward_judge(judge: RewardJudge, cum_reward: float | None) -> Answer:
    """Return a reward judge's answer. Raises JudgeError if the judge fails or the answer is not valid."""
    try:
        answer = judge.judge_reward(cum_reward)
    except JudgeError:
        raise
    except (Exception, SystemExit) as fault:  # a library may call sys.exit
        raise JudgeError(describe_fault(judge, fault)) from fault
    if (problem := _problem_of_answer(answer)) is not None:
        raise JudgeError(f"{_definition_of(judge.judge_reward)}: `judge_reward` {problem}")
    return answer


def _checked_session(judge: Judge, view: View) -> JudgeSession:
    frame: FrameType | None = None
    try:
        session = judge.ask(view)
        if (problem := _problem_of_session(session)) is not None:
            raise JudgeError(f"{_definition_of(judge.ask)}: {problem}")
        # The frame keeps its line number after the judge has returned.
        frame = getattr(session, "gi_frame", None)
        stages = 0
        try:
            calls = next(session)
            while True:
                problem = _problem_of_calls(calls, judge.models)
                if problem is None and stages == MAX_STAGES:
                    problem = f"has yielded calls {MAX_STAGES} times without an answer: return an Answer"
                if problem is not None:
                    raise JudgeError(f"{_place(judge, frame)}: `ask` {problem}")
                replies = yield calls
                stages += 1
                calls = session.send(replies)
        finally:
            session.close()
    except StopIteration as end:
        if (problem := _problem_of_answer(end.value)) is not None:
            raise JudgeError(f"{_place(judge, frame)}: `ask` {problem}") from None
        return end.value
    except JudgeError:
        raise
    except (Exception, SystemExit) as fault:  # a library may call sys.exit
        raise JudgeError(describe_fault(judge, fault)) from fault


def _problem_of_session(session: Any) -> str | None:
    if isinstance(session, Generator):
        return None
    if inspect.iscoroutine(session) or inspect.isasyncgen(session):
        if inspect.iscoroutine(session):
            session.close()  # otherwise Python warns that it was never awaited
        return "`ask` is declared `async def`: write `def ask` and yield the calls instead of awaiting them"
    return (
        f"`ask` returns {_described(session)} without having yielded anything: yield lists of calls, or "
        "`yield from ()` if it asks nothing"
    )


def _problem_of_calls(calls: Any, roles: Collection[str]) -> str | None:
    if not isinstance(calls, list | tuple):
        return f"yields {_described(calls)} instead of a list of calls: write `yield [Call(…)]`"
    for call in calls:
        if not isinstance(call, Call):
            return f"yields a list that contains {_described(call)}: it may contain only calls"
        if (problem := _problem_of_call(call, roles)) is not None:
            return f"yields a Call whose {problem}"
    return None


def _problem_of_call(call: Call, roles: Collection[str]) -> str | None:
    limit = call.max_output_tokens
    if not isinstance(call.role, str) or call.role not in roles:
        return f"role is {_described(call.role)}: `models` has {', '.join(roles) or 'no role'}"
    if not isinstance(call.purpose, str):
        return f"purpose is {_described(call.purpose)}: use a string"
    if type(call.sample) is not int or call.sample < 0:
        return f"sample is {_described(call.sample)}: use a whole number from 0"
    if limit is not None and (type(limit) is not int or limit < 1):
        return f"max_output_tokens is {_described(limit)}: use a whole number from 1, or None"
    if not isinstance(call.tools, tuple) or not all(isinstance(tool, Tool) for tool in call.tools):
        return f"tools is {_described(call.tools)}: use a tuple of Tool"
    for name, messages in (("messages", call.messages), ("shorter", call.shorter)):
        if messages is not None or name == "messages":
            if not isinstance(messages, tuple):
                return f"{name} is {_described(messages)}: use a tuple, such as (Message(…),)"
            if not messages:
                advice = "leave it out (None), or send" if name == "shorter" else "send"
                return f"{name} is an empty tuple: {advice} at least one message, such as (Message(…),)"
            for message in messages:
                if not _is_message(message):
                    return (
                        f"{name} contains {_described(message)}: use Message(role, content), with the role "
                        "system, user, assistant or tool and a string or a tuple of strings and images"
                    )
    return None


def _is_message(message: Any) -> bool:
    if not isinstance(message, Message) or message.role not in _MESSAGE_ROLES:
        return False
    content = message.content
    if (message.role == "tool") != isinstance(message.tool_call_id, str):
        return False
    if not all(isinstance(call, ToolCall) for call in message.tool_calls):
        return False
    if isinstance(content, tuple):
        return all(isinstance(part, str | Image) for part in content)
    return isinstance(content, str)


def _problem_of_answer(answer: Any) -> str | None:
    if not isinstance(answer, Answer):
        return f"returns {_described(answer)} instead of an Answer: write `return Answer(…)`"
    if answer.state not in STATES:
        return f"returns an Answer with the state {_described(answer.state)}: use one of {', '.join(STATES)}"
    for name in ("success", "side_effect", "repetition"):
        if not isinstance(value := getattr(answer, name), bool | None):
            return f"returns an Answer whose {name} is {_described(value)}: use True, False or None"
    grade, score = answer.optimality, answer.score
    if grade is not None and (type(grade) is not int or grade not in GRADES):
        return f"returns an Answer whose optimality is {_described(grade)}: use a whole number from 1 to 4"
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is not None and not (is_number and 0 <= score <= 1):  # false for NaN
        return f"returns an Answer whose score is {_described(score)}: use a number from 0 to 1"
    if not isinstance(answer.reasoning, str | None):
        return f"returns an Answer whose reasoning is {_described(answer.reasoning)}: use a string"
    problem = None if answer.steps is None else _problem_of_steps(answer.steps)
    return problem or _problem_of_evidence(answer.evidence)


def _problem_of_steps(steps: Any) -> str | None:
    if not isinstance(steps, Mapping):
        return f"returns an Answer whose steps are {_described(steps)}: use a dict by step number"
    for number, answers in steps.items():
        if type(number) is not int or number < 0:
            return f"returns an Answer with the step {_described(number)}: use a whole number from 0"
        if not isinstance(answers, Mapping) or not all(isinstance(name, str) for name in answers):
            return f"returns an Answer whose step {number} is {_described(answers)}: use a dict by target"
        for value in answers.values():
            if not isinstance(value, str | bool | int):
                return f"returns an Answer whose step {number} has {_described(value)}: use an answer's value"
    return None


def _problem_of_evidence(evidence: Any) -> str | None:
    if not isinstance(evidence, tuple) or len(evidence) > MAX_EVIDENCE:
        return f"returns an Answer whose evidence is not a tuple of at most {MAX_EVIDENCE} Evidence"
    for each in evidence:
        if not isinstance(each, Evidence):
            return f"returns an Answer whose evidence contains {_described(each)}: use Evidence(…)"
        for (name, value), kind in zip(each._asdict().items(), (int, str, bool, str), strict=True):
            if value is not None and type(value) is not kind:
                return f"returns Evidence whose {name} is {_described(value)}: use {kind.__name__} or None"
    return None


def _described(value: Any) -> str:
    """Return a number, string, bool or None as text, and any other value as its type, such as ``a dict``."""
    if isinstance(value, bool | int | float | str | None):
        text = repr(value)
        return text if len(text) <= _MAX_QUOTED_CHARS else text[: _MAX_QUOTED_CHARS - 1] + "…"
    kind = type(value).__name__
    if kind in ("bool", "bool_"):  # NumPy's, whose name depends on its version
        return "a numpy.bool (convert it with bool(…))"
    return f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"


def _place(judge: Judge, frame: FrameType | None) -> str:
    if frame is None:
        return _definition_of(judge.ask)
    return f"{Path(frame.f_code.co_filename).name}, in {frame.f_code.co_name}, line {frame.f_lineno}"


def _definition_of(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:  # a callable object
        return type(function).__name__
    return f"{Path(code.co_filename).name}, in {code.co_name}, line {code.co_firstlineno}"


def describe_fault(judge: AnyJudge, fault: BaseException) -> str:
    """Return a message with the exception and the place in the judge's own file that caused it."""
    frames = traceback.extract_tb(fault.__traceback__)
    own = getattr(sys.modules.get(type(judge).__module__), "__file__", None)
    place = next((each for each in reversed(frames) if each.filename == own), frames[-1])
    where = f"{Path(place.filename).name}, in {place.name}, line {place.lineno}"
    return f"{where}: {type(fault).__name__}: {fault}"
