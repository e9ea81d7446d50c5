"""Named scripts. ``judges`` answers the prompts of every family of judges in the form they ask for."""

import hashlib
import json
import re
from collections.abc import Callable

from tests.support.llm_server.chat import Request, Script, Scripted

SUCCESS_SHARE = 0.4


def share(text: str) -> float:
    """A number in [0, 1) that follows from a text: what a scripted verdict is drawn from."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def is_success(request: Request) -> bool:
    """The verdict of the script ``judges`` on a prompt."""
    return share(request.key) < SUCCESS_SHARE


def tags(request: Request) -> str:
    """As the simplified judges are asked to answer (paper, Figures 5 and 6)."""
    success = is_success(request)
    return (
        "<reasoning>The last page was compared with the goal.</reasoning>\n"
        f"<success>{'Successful' if success else 'Unsuccessful'}</success>\n"
        f"<side>{'Yes' if share('side' + request.key) < 0.1 else 'No'}</side>\n"
        f"<optimal>{'4. Completely Optimal' if success else '1. Complete Failure'}</optimal>\n"
        f"<loop>{'Yes' if share('loop' + request.key) < 0.5 else 'No'}</loop>"
    )


def status(request: Request) -> str:
    """As AER and WebJudge ask for their verdict."""
    word = "success" if is_success(request) else "failure"
    return f'Thoughts: The last page was compared with the goal.\nStatus: "{word}"'


def reward(request: Request) -> str:
    """As NNetNav asks for its rating."""
    rating = 4 + (share("5" + request.key) < 0.5) if is_success(request) else 1 + int(3 * share(request.key))
    return f"Thought: The changes were compared with the goal.\nReward: {rating}"


def key_points(_request: Request) -> str:
    """As WebJudge asks what a task needs."""
    return "**Key Points**:\n1. Open the right page\n2. Do what the task says"


def rating(request: Request) -> str:
    """As WebJudge asks how much a screenshot tells, 1 to 5."""
    number = 1 + int(5 * share(request.key))
    return f"Reasoning: The screenshot was read.\nScore: {number}"


def description(_request: Request) -> str:
    """A caption, or a description of what changed."""
    return "State change: a page of a shop with a list of products and a basket is shown."


def judge_line(request: Request) -> str:
    """As OSReward asks for its verdict."""
    return f"Thought: It was compared.\nJudge: {'SUCCESS' if is_success(request) else 'FAIL'}"


def verdict_object(request: Request) -> str:
    """As browser-use asks for its verdict."""
    facts = {"reasoning": "It was compared.", "verdict": is_success(request), "failure_reason": ""}
    return json.dumps(facts | {"impossible_task": False, "reached_captcha": share("c" + request.key) < 0.2})


def criteria(_request: Request) -> str:
    """As the rubric judge asks for criteria."""
    return (
        "1 | required | outcome | The goal is reached.\n2 | optional | process | Nothing needless was done.\n"
        "3 | required | outcome | The user was told."
    )


def rated_criteria(request: Request) -> str:
    """As the rubric judge asks for ratings, of the criteria that the prompt has."""
    rows = re.findall(r"^(\d+) \| (required|optional) \| (?:outcome|process) \|", request.text, re.MULTILINE)
    met = "met" if is_success(request) else "not met"
    return "\n".join(f"{number} | {need} | {met} | step 1 | The page shows it." for number, need in rows)


def with_tools(request: Request) -> str | Scripted:
    """As a judge with tools asks: three looks in two replies, and then the requirements with their steps."""
    looks = (("open_step", {"n": 1}), ("search", {"text": "the"})), (("screenshot", {"n": 1}),)
    if request.looks < len(looks) and "without a tool." not in request.text.splitlines()[-1]:
        return Scripted(None, finish_reason="tool_calls", tools=looks[request.looks])
    met = "met" if is_success(request) else "not met"
    return (
        f"1 | required | {met} | step 1 | the goal: the page shows it\n2 | required | met | step 999 | told"
    )


def steps_and_status(request: Request) -> str:
    """As the step judge asks: the last of the answers for every step of the prompt, and a verdict."""
    *_, value = re.findall(r"^Step N: one of (.*)$", request.text, re.MULTILINE)[0].split(", ")
    numbers = re.findall(r"^Step (\d+)", request.text, re.MULTILINE)
    return "\n".join([*(f"Step {number}: {value}" for number in numbers), status(request)])


FAMILIES: tuple[tuple[str, Callable[[Request], str | Scripted]], ...] = (
    (r"^Step N: one of", steps_and_status),
    (r"^number \| .* outcome or process", criteria),
    (r"^number \| .*, as given", rated_criteria),
    (r"^number \| required \| met or not met", with_tools),
    (r"^Judge: SUCCESS or FAIL$", judge_line),
    (r'"verdict": true or false', verdict_object),
    (r"<success>", tags),
    (r"^\W*reward\W*:", reward),
    (r"^\W*status\W*:", status),
    (r"^\W*state change\W*:", description),
    (r"^\W*score\W*:", rating),
    (r"key points?", key_points),
)
"""The first whose form is asked for answers; else the prompt is taken for one that asks for a caption."""


def judges(request: Request) -> str | Scripted:
    """An answer in the form that the prompt asks for; its verdict follows from the prompt's key."""
    for words, answer in FAMILIES:
        if re.search(words, request.text, re.IGNORECASE | re.MULTILINE):
            return answer(request)
    return description(request)


NAMED: dict[str, Script] = {"judges": judges, "tags": tags}


def script_of(script: str | Script) -> Script:
    """A script by its name, or itself."""
    if not isinstance(script, str):
        return script
    return NAMED[script]
