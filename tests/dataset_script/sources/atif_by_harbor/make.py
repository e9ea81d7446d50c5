"""Makes the trajectories beside this file with Harbor's own classes, and has Scout read them as well.

    pip install harbor==0.24.0 inspect_scout==0.6.1        # Python 3.12 or newer
    PYTHONPATH=<repository> python make.py <folder for what agents left>
    pip install --no-deps harbor==0.1.2; python make.py --old        # files/old-*.json: ATIF-v1.0 and v1.2

The sessions that agents write are by hand, short; Harbor's converters of Claude Code, Codex, OpenHands,
mini-swe-agent and SWE-agent and the recorder of computer-1 turn them into trajectories, as after a trial.
Those of terminus-2 (in parts, with a subagent) and the one with embedded subagents are made of Harbor's
models, in the shape that its `terminus_2.py` writes. Harbor's validator passes all of them. inspect_scout's
reader is a second opinion: goal, calls, results and answer are the same where it reads what we read (it knows
no embedded subagents, and no runs in parts).
"""

import asyncio
import json
import shutil
import struct
import sys
import zlib
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

HERE = Path(__file__).parent
JOB = HERE / "jobs" / "2026-11-02__10-00-00"
MODEL = "openai/gpt-5.4"
NUMBER = iter(range(1, 1000))
NOT_ALIKE = ("long-task", "count-words", "describe")
"""Runs in parts or with subagents."""


def png(color: int) -> bytes:
    """A picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(bytes([0, color]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def time(minute: int) -> str:
    return f"2026-11-02T10:{minute:02}:00.000Z"


def write_trial(name, task, agent, model=MODEL, minute=0, exception=None, kwargs=None, steps=()):
    """A trial's folder with the result.json of Harbor's model, rewards and all."""
    from harbor.models.trial.result import (
        AgentInfo,
        ExceptionInfo,
        ModelInfo,
        StepResult,
        TimingInfo,
        TrialResult,
    )
    from harbor.models.verifier.result import VerifierResult

    trial = JOB / name
    (trial / "agent").mkdir(parents=True)
    (trial / "agent" / ".gitkeep").touch()  # git knows no empty folder
    provider, _, model_name = model.partition("/")
    at = datetime(2026, 11, 2, 10, minute, tzinfo=UTC)

    def failed(kind):
        return kind and ExceptionInfo(
            exception_type=kind, exception_message="reward 0.125", exception_traceback="", occurred_at=at
        )

    result = TrialResult(
        id=UUID(int=next(NUMBER)),
        task_name=task,
        trial_name=name,
        trial_uri=f"file:///jobs/{name}",
        task_id={"path": f"tasks/{task}"},
        source="small-bench",
        task_checksum="0" * 64,
        config={
            "task": {"path": f"tasks/{task}"},
            "trial_name": name,
            "agent": {"name": agent, "model_name": model, "kwargs": kwargs or {}},
        },
        agent_info=AgentInfo(
            name=agent, version="1.0", model_info=ModelInfo(name=model_name, provider=provider)
        ),
        verifier_result=VerifierResult(rewards={"reward": 0.125}),
        exception_info=failed(exception),
        started_at=at,
        finished_at=at,
        agent_execution=TimingInfo(started_at=at, finished_at=at),
        step_results=[StepResult(step_name=step, exception_info=failed(kind)) for step, kind in steps]
        or None,
    )
    (trial / "result.json").write_text(result.model_dump_json(indent=1) + "\n")
    (trial / "verifier").mkdir()
    (trial / "verifier" / "reward.txt").write_text("0.125\n")
    return trial


def write(trajectory, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(trajectory.to_json_dict(), indent=1, ensure_ascii=False) + "\n")


def write_lines(events, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


def claude_code(work):
    """A run that hands a part to a subagent, whose steps Harbor puts among the agent's."""
    from harbor.agents.installed.claude_code import ClaudeCode

    model = "claude-opus-4-6"

    def event(kind, minute, content, number, side=None):
        message = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {
                "id": f"msg_{number}",
                "model": model,
                "usage": {"input_tokens": 9, "output_tokens": 2},
            }
        more = {"isSidechain": side is not None, "uuid": f"u{number}", "sessionId": "s1", "version": "2.1.0"}
        more |= {"agentId": side} if side else {}
        return {"type": kind, "timestamp": time(minute), "message": message, **more}

    def call(number, name, **arguments):
        return {"type": "tool_use", "id": f"call_{number}", "name": name, "input": arguments}

    def result(number, text):
        return [{"type": "tool_result", "tool_use_id": f"call_{number}", "content": text}]

    def said(text):
        return {"type": "text", "text": text}

    events = [
        event("user", 0, "Count the words of notes.txt.", 1),
        event(
            "assistant",
            1,
            [
                {"type": "thinking", "thinking": "Delegate it."},
                {"type": "text", "text": "I ask a helper."},
                call(1, "Task", prompt="Count."),
            ],
            2,
        ),
        event("user", 2, "Count.", 3, "a7"),
        event("assistant", 3, [call(2, "Bash", command="wc -w notes.txt")], 4, "a7"),
        event("user", 4, result(2, "12 notes.txt"), 5, "a7"),
        event("assistant", 5, [said("It has 12 words.")], 6, "a7"),
        event("user", 6, result(1, "It has 12 words."), 7),
        event("assistant", 7, [said("notes.txt has 12 words.")], 8),
    ]
    session = work / "claude" / "s1"
    write_lines(events, session / "s1.jsonl")
    trial = write_trial("count-words__AAAAAAA", "count-words", "claude-code", f"anthropic/{model}", minute=1)
    agent = ClaudeCode(logs_dir=trial / "agent", model_name=f"anthropic/{model}")
    write(agent._convert_events_to_trajectory(session), trial / "agent" / "trajectory.json")


def codex(work):
    """Two attempts at one task: the later one has the smaller seed."""
    from harbor.agents.installed.codex import Codex

    def item(minute, **payload):
        return {"timestamp": time(minute), "type": "response_item", "payload": payload}

    def text(minute, role, text):
        kind = "output_text" if role == "assistant" else "input_text"
        return item(minute, type="message", role=role, content=[{"type": kind, "text": text}])

    for number, (name, seed) in enumerate({"add-line__BBBBBB1": 5, "add-line__BBBBBB2": 3}.items()):
        arguments = json.dumps({"cmd": f"echo {number} >> list.txt"})
        usage = {"last_token_usage": {"input_tokens": 9, "output_tokens": 2}}  # it ends a call of the model
        events = [
            {"timestamp": time(0), "type": "session_meta", "payload": {"id": "c1", "cli_version": "0.99.0"}},
            text(0, "user", "<environment_context>cwd /app</environment_context>"),
            text(0, "user", "Add a line to list.txt."),
            text(1, "assistant", "I add it."),
            item(2, type="function_call", name="exec_command", arguments=arguments, call_id="call_1"),
            {"timestamp": time(2), "type": "event_msg", "payload": {"type": "token_count", "info": usage}},
            item(3, type="function_call_output", call_id="call_1", output="Exit code: 0"),
            text(4, "assistant", f"Added line {number}."),
        ]
        session = work / f"codex{number}"
        write_lines(events, session / "rollout-2026-11-02T10-00-00-c1.jsonl")
        trial = write_trial(name, "add-line", "codex", minute=2 + number, kwargs={"seed": seed})
        agent = Codex(logs_dir=trial / "agent", model_name=MODEL)
        write(agent._convert_events_to_trajectory(session), trial / "agent" / "trajectory.json")


def openhands(work):
    """A run that ends with `finish`; the trial failed while it was checked, which says nothing of the run."""
    from harbor.agents.installed.openhands import OpenHands

    def called(name, number, **arguments):
        function = {"name": name, "arguments": json.dumps(arguments)}
        response = {"choices": [{"message": {"tool_calls": [{"function": function}]}}]}
        return {"function_name": name, "tool_call_id": f"call_{number}", "model_response": response}

    run = {"tool_call_metadata": called("execute_bash", 1, command="date")}
    end = {"tool_call_metadata": called("finish", 2, message="It is Monday.", task_completed="true")}
    events = [
        {"source": "agent", "action": "system", "message": "You are a helpful agent.", "args": {}},
        {"source": "user", "action": "message", "message": "Which day is it?"},
        {"source": "environment", "observation": "recall", "message": "Added workspace context"},
        {"source": "agent", "action": "run", "message": "I run date.", **run},
        {"source": "agent", "observation": "run", "cause": 3, "content": "Mon Nov 2", "message": "", **run},
        {"source": "agent", "action": "finish", "message": "", **end},
    ]
    folder = work / "openhands" / "session" / "events"
    folder.mkdir(parents=True)
    for number, event in enumerate(events):
        content = {"id": number, "timestamp": f"2026-11-02T10:{number:02}:00.000000", **event}
        (folder / f"{number}.json").write_text(json.dumps(content))
    trial = write_trial(
        "which-day__CCCCCCC", "which-day", "openhands", exception="RewardFileNotFoundError", minute=4
    )
    agent = OpenHands(logs_dir=trial / "agent", model_name=MODEL)
    write(agent._convert_events_to_trajectory(folder), trial / "agent" / "trajectory.json")


def mini_swe_agent(_work):
    """A run that ended with an exception of its own; of the message the reasoning is a copy."""
    from harbor.agents.installed.mini_swe_agent import convert_mini_swe_agent_to_atif

    call = {"id": "call_a", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "system", "content": "You solve tasks with bash."},
        {"role": "user", "content": "Fix the build."},
        {"role": "assistant", "content": "THOUGHT: look first.", "tool_calls": [call]},
        {"role": "tool", "content": "Makefile\nmain.c", "tool_call_id": "call_a"},
    ]
    content = {
        "info": {"mini_version": "2.1.0", "config": {"model": {"model_name": MODEL}}},
        "messages": messages,
    }
    trial = write_trial(
        "fix-build__DDDDDDD", "fix-build", "mini-swe-agent", exception="AgentTimeoutError", minute=5
    )
    write(convert_mini_swe_agent_to_atif(content, "m1"), trial / "agent" / "trajectory.json")


def swe_agent(_work):
    """A run without the user's message: its goal is not in the trajectory."""
    from harbor.agents.installed.swe_agent import convert_swe_agent_to_atif

    def acted(thought, action, seen):
        response = f"{thought}\n```\n{action}\n```"
        return {"thought": thought, "action": action, "response": response, "observation": seen}

    query = [{"role": "system", "content": "You are a programmer."}]
    content = {
        "info": {"model_name": MODEL, "swe_agent_version": "1.1.0"},
        "environment": "main",
        "trajectory": [
            {**acted("Read it.", "cat main.py", "print(1)"), "query": query},
            acted("Done.", "submit", "diff --git a/main.py"),
        ],
    }
    trial = write_trial("fix-print__EEEEEEE", "org/fix-print", "swe-agent", minute=6)
    write(convert_swe_agent_to_atif(content, "w1"), trial / "agent" / "trajectory.json")


def computer_1(_work):
    """A run in a browser, with a screenshot for every step."""
    from harbor.agents.computer_1.computer_1 import Computer1Recorder
    from harbor.agents.computer_1.runtime import ComputerAction
    from harbor.llms.base import LLMResponse
    from harbor.models.trajectories import Metrics

    trial = write_trial("open-page__FFFFFFF", "open-page", "computer-1", minute=7)
    recorder = Computer1Recorder(trial / "agent", "x1", "computer-1", "1.0", MODEL)
    recorder.record_initial_prompt("Open the page and read its title.")
    reply = LLMResponse(content="", reasoning_content="The title is at the top.")
    for number, (action, is_end) in enumerate(
        [
            (ComputerAction(type="click", x=10, y=20), False),
            (ComputerAction(type="done", result="The title is Shop."), True),
        ]
    ):
        name = f"screenshot_{number}.png"
        (trial / "agent" / name).write_bytes(png(100 * number))
        recorder.record_agent_step(
            number,
            reply,
            "It loads.",
            "Click.",
            action,
            is_end,
            f"page {number}",
            [f"/logs/agent/{name}"],
            Metrics(),
        )
    from harbor.models.trajectories import Agent, Trajectory

    steps = [
        step.model_copy(update={"timestamp": time(number)}) for number, step in enumerate(recorder.steps)
    ]
    agent = Agent(name="computer-1", version="1.0", model_name=MODEL)
    write(Trajectory(session_id="x1", agent=agent, steps=steps), trial / "agent" / "trajectory.json")


def failed_at_start(_work):
    write_trial(
        "fix-build__GGGGGGG",
        "fix-build",
        "mini-swe-agent",
        exception="EnvironmentStartTimeoutError",
        minute=0,
    )


def in_steps(_work):
    """A trial of two steps, of which the second ended with an exception."""
    from harbor.models.trajectories import Agent, Step, Trajectory

    trial = write_trial(
        "two-parts__HHHHHHH", "two-parts", "openhands", minute=8,
        steps=[("first", None), ("second", "ContextWindowExceededError")],
    )  # fmt: skip
    (trial / "agent").rmdir()
    for step in ("first", "second"):
        messages = [
            Step(step_id=1, source="user", message=f"Do the {step} part."),
            Step(step_id=2, source="agent", message=f"The {step} part is done."),
        ]
        trajectory = Trajectory(agent=Agent(name="openhands", version="1", model_name=MODEL), steps=messages)
        write(trajectory, trial / "steps" / step / "agent" / "trajectory.json")


def terminus_2(_work):
    """A run in two files, summarized between them by a subagent with a file of its own."""
    from harbor.models.trajectories import (
        Agent,
        Observation,
        ObservationResult,
        Step,
        SubagentTrajectoryRef,
        ToolCall,
        Trajectory,
    )

    agent = Agent(name="terminus-2", version="2.0.0", model_name=MODEL)

    def acted(number, keys, seen, done=False, message="Plan: go on."):
        def call(name, **arguments):
            return ToolCall(tool_call_id=f"call_{number}_{name}", function_name=name, arguments=arguments)

        calls = [call("bash_command", keystrokes=keys, duration=0.1)] if keys else []
        calls += [call("mark_task_complete")] if done else []
        source = calls[0].tool_call_id if keys else None
        results = [ObservationResult(source_call_id=source, content=seen)]
        return Step(
            step_id=number, source="agent", model_name=MODEL, message=message, tool_calls=calls,
            observation=Observation(results=results),
        )  # fmt: skip

    def said(number, source, message, copied=None):
        return Step(step_id=number, source=source, message=message, is_copied_context=copied)

    folder = write_trial("long-task__IIIIIII", "long-task", "terminus-2", minute=9) / "agent"
    goal = said(1, "user", "Compile the kernel.")
    reference = SubagentTrajectoryRef(
        session_id="t1-summary", trajectory_path="trajectory.summarization-1-summary.json"
    )
    first = [goal, acted(2, "make\n", "CC main.o")]
    handoff = Step(
        step_id=3,
        source="system",
        message="Performed context summarization and handoff to continue task.",
        observation=Observation(results=[ObservationResult(subagent_trajectory_ref=[reference])]),
        extra={"context_management": {"type": "compaction", "boundary": "replace"}},
    )
    write(
        Trajectory(
            session_id="t1",
            agent=agent,
            steps=[*first, handoff],
            continued_trajectory_ref="trajectory.cont-1.json",
        ),
        folder / "trajectory.json",
    )
    copied = [step.model_copy(update={"is_copied_context": True}) for step in first]
    write(
        Trajectory(
            session_id="t1-summary",
            agent=agent.model_copy(update={"name": "terminus-2-summarization-summary"}),
            steps=[
                *copied,
                said(3, "user", "Summarize."),
                said(4, "agent", "make runs; main.o is compiled."),
            ],
        ),
        folder / "trajectory.summarization-1-summary.json",
    )
    write(
        Trajectory(
            session_id="t1-cont-1",
            agent=agent,
            steps=[
                said(1, "user", "Compile the kernel.", True),
                said(2, "user", "Here is a summary: make runs.", True),
                acted(3, "ls\n", "vmlinux"),
                acted(4, None, "Are you sure?", done=True, message="Analysis: there is a kernel."),
                acted(5, None, "$", done=True, message="Analysis: the kernel is compiled."),
            ],
        ),
        folder / "trajectory.cont-1.json",
    )


def embedded(_work):
    """Subagents in the trajectory: two of one session, a nested one; pictures, sound, a conversation."""
    from harbor.models.trajectories import Trajectory

    def called(number, name, results, message="", **arguments):
        call = {"tool_call_id": f"c{number}", "function_name": name, "arguments": arguments}
        step = {**spoken(number, "agent", message), "tool_calls": [call]}
        return {**step, "observation": {"results": results}}

    def spoken(number, source, message):
        return {"step_id": number, "source": source, "message": message}

    def picture(name):
        return {"type": "image", "source": {"media_type": "image/png", "path": name}}

    def sub(name, steps, **more):
        names = {"session_id": "one", "trajectory_id": name, "agent": {"name": name, "version": "1"}}
        return {"schema_version": "ATIF-v1.8", **names, "steps": steps, **more}

    def delegated(name):
        return {"subagent_trajectory_ref": [{"trajectory_id": name, "session_id": "one"}]}

    reader = sub(
        "reader",
        [
            spoken(1, "user", "Read the page."),
            called(2, "read", [{"source_call_id": "c2", "content": "A shop."}], url="/"),
            called(
                3,
                "ask_checker",
                [{"source_call_id": "c3", "subagent_trajectory_ref": [{"trajectory_id": "checker"}]}],
            ),
            spoken(4, "agent", "It is a shop."),
        ],
        subagent_trajectories=[sub("checker", [spoken(1, "user", "Check."), spoken(2, "agent", "Checked.")])],
    )
    painter = sub("painter", [spoken(1, "user", "Paint."), called(2, "paint", [], color="red")])
    goal = [{"type": "text", "text": "Describe the page in this picture."}, picture("images/goal.png")]
    heard = {"type": "audio", "source": {"media_type": "audio/wav", "path": "https://example.org/a.wav"}}
    page = [
        {"type": "text", "text": "loaded"},
        picture("images/page.png"),
        picture("images/page-2.png"),
        heard,
    ]
    results = [
        {"source_call_id": "d2", **delegated("painter")},
        {"source_call_id": "c4", "content": "It is a shop.", **delegated("reader")},
    ]
    two = called(4, "delegate", results, to="reader")
    second = {"tool_call_id": "d2", "function_name": "delegate", "arguments": {"to": "painter"}}
    two["tool_calls"].append(second)
    tools = [{"type": "function", "function": {"name": "delegate"}}]
    content = {
        "schema_version": "ATIF-v1.8",
        "session_id": "one",
        "agent": {"name": "director", "version": "3", "model_name": "local/tiny", "tool_definitions": tools},
        "steps": [
            spoken(1, "system", "You direct others."),
            spoken(2, "user", goal),
            called(
                3, "open", [{"source_call_id": "c3", "content": page}], "I open it.", url="https://a.example/"
            ),
            two,
            spoken(5, "agent", "In which language?"),
            spoken(6, "user", "In English."),
            spoken(7, "agent", "It is a shop, painted red."),
        ],
        "subagent_trajectories": [painter, reader],
    }
    write(Trajectory.model_validate(content), HERE / "files" / "describe-page.json")
    (HERE / "files" / "images").mkdir()
    for number, name in enumerate(("goal.png", "page.png", "page-2.png")):
        (HERE / "files" / "images" / name).write_bytes(png(50 * number))


def old():
    """Trajectories by the models of harbor 0.1.2: without calls, and with a message of the system."""
    from harbor.models.trajectories import Agent, Step, Trajectory

    for version in ("ATIF-v1.0", "ATIF-v1.2"):
        agent = Agent(name="terminus-2", version="2.0.0", model_name=MODEL)
        seen = {"results": [{"content": "New Terminal Output:\n$ ls"}]}
        steps = [
            Step(step_id=1, source="user", message="List the files.", timestamp=time(1)),
            Step(step_id=2, source="agent", message='{"commands": ["ls"]}', observation=seen),
            Step(step_id=3, source="system", message="Context was summarized."),
            Step(step_id=4, source="agent", message="There are none.", reasoning_content="It is empty."),
        ]
        trajectory = Trajectory(schema_version=version, session_id="o1", agent=agent, steps=steps)
        write(trajectory, HERE / "files" / f"old-{version[-1]}.json")


def validate():
    from harbor.utils.trajectory_validator import TrajectoryValidator

    for path in sorted([*JOB.rglob("agent/trajectory*.json"), *(HERE / "files").rglob("*.json")]):
        validator = TrajectoryValidator()
        assert validator.validate(path), (path, validator.errors)


def compare():
    """What inspect_scout reads of each run that is neither in parts nor has subagents of its own."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
    from inspect_scout.sources import atif

    from dataset_script.sources.atif import AtifSource
    from dataset_script.sources.base import call_text

    async def messages_of(path):
        return (await anext(aiter(atif(path)))).messages

    compared = 0
    for root in (HERE / "jobs", HERE / "files"):
        source = AtifSource(root)
        for file in source.list_runs().files:
            if not file.path.is_file() or any(
                name in file.name for name in ("long-task", "count-words", "describe")
            ):
                continue
            recording, _ = source.read(file)
            messages = asyncio.run(messages_of(file.path))
            calls = [
                call_text(call.function, call.arguments)
                for message in messages
                if isinstance(message, ChatMessageAssistant)
                for call in message.tool_calls or ()
            ]
            ours = [line for step in recording.steps if step.action for line in step.action.split("\n")]
            ended = [line for line in calls if line not in ours]
            assert all(line.startswith(("finish(", "mark_task_complete(")) for line in ended), (
                file.name,
                ended,
            )
            assert [line for line in calls if line not in ended] == ours, (file.name, calls, ours)
            first_reply = next(n for n, each in enumerate(messages) if isinstance(each, ChatMessageAssistant))
            asked = [each.text for each in messages[:first_reply] if isinstance(each, ChatMessageUser)]
            assert "\n\n".join(asked) == recording.goal, file.name
            seen = "\n".join(step.text or "" for step in recording.steps)
            assert all(each.text in seen for each in messages if isinstance(each, ChatMessageTool)), file.name
            if not ended and isinstance(messages[-1], ChatMessageAssistant):
                assert messages[-1].text == (recording.answer or messages[-1].text), file.name
            compared += 1
    print(f"{compared} runs as inspect_scout reads them")


def main() -> None:
    if sys.argv[1:] == ["--old"]:
        old()
        return
    for name in ("jobs", "files"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    (HERE / "files").mkdir()
    work = Path(sys.argv[1])
    installed = (claude_code, codex, openhands, mini_swe_agent, swe_agent, computer_1)
    for make in (*installed, failed_at_start, in_steps, terminus_2, embedded):
        make(work)
    validate()
    compare()


if __name__ == "__main__":
    main()
