"""Trajectories in ATIF: made by Harbor's own classes (`atif_by_harbor/README.md`), and some by hand."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given

from dataset_script.sources import open_source
from dataset_script.sources.atif import AtifSource
from dataset_script.sources.problems import SourceError, UnusableFileError
from tests.support.golden import assert_golden_source
from tests.support.json_values import WITH_FOLDER, mutated, read_or_refused
from tests.support.sources import ids, read_one, write_json

BY_HARBOR = Path(__file__).parent / "atif_by_harbor"
JOB = BY_HARBOR / "jobs" / "2026-11-02__10-00-00"
DESCRIBED = BY_HARBOR / "files" / "describe-page.json"


def trajectory(*steps, version="ATIF-v1.8", **more):
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {"schema_version": version, "agent": {"name": "coder", "version": "1"}, "steps": numbered, **more}


def user(message, **more):
    return {"source": "user", "message": message, **more}


def system(message):
    return {"source": "system", "message": message}


def agent(message="", *calls, results=(), **more):
    """A turn; each call is a name and its arguments, and has its place as its id."""
    listed = [
        {"tool_call_id": str(place), "function_name": name, "arguments": arguments}
        for place, (name, arguments) in enumerate(calls)
    ]
    observation = {"observation": {"results": list(results)}} if results else {}
    return {"source": "agent", "message": message, "tool_calls": listed or None, **observation, **more}


def result(content, call=None, **more):
    return {"source_call_id": call, "content": content, **more}


def write_trial(folder, result, content=None):
    write_json(folder, {"trial_name": folder.name, **result}, "result.json")
    (folder / "agent").mkdir()
    if content is not None:
        write_json(folder / "agent", content, "trajectory.json")


def read_steps(tmp_path, *steps):
    recording, notes = read_one(write_json(tmp_path, trajectory(*steps)))
    assert notes == []
    return recording


def turns(recording):
    return [(step.action, step.reasoning, step.text) for step in recording.steps]


@pytest.mark.parametrize("name", ["jobs", "files"])
def test_the_runs_that_harbor_made_are_as_recorded(name):
    assert_golden_source(f"source_atif_{name}", AtifSource(BY_HARBOR / name))


@pytest.mark.parametrize(
    ("place", "first"),
    [
        (BY_HARBOR / "jobs", "small-bench/codex-openai_gpt-5.4/add-line~2"),
        (JOB / "add-line__BBBBBB1", "small-bench/codex-openai_gpt-5.4/add-line"),
        (JOB / "add-line__BBBBBB1" / "agent", "atif/codex-openai_gpt-5.4/add-line__BBBBBB1"),
        (
            JOB / "long-task__IIIIIII" / "agent" / "trajectory.json",
            "atif/terminus-2-openai_gpt-5.4/long-task__IIIIIII",
        ),
        (DESCRIBED, "atif/director-local_tiny/describe-page"),
    ],
)
def test_a_jobs_folder_a_trial_and_a_single_file_are_recognised(place, first):
    source = open_source(place)
    assert isinstance(source, AtifSource)
    assert ids(source)[0] == first
    assert all(source.identity(file) for file in source.list_runs().files)


def test_repeats_are_numbered_by_seed_then_time_and_those_that_left_nothing_come_last(tmp_path):
    runs = {"a": (7, "10:00"), "b": (3, "12:00"), "c": (3, "11:00"), "d": (1, "09:00")}
    for name, (seed, time) in runs.items():
        names = {"task_name": "t", "started_at": f"2026-01-01T{time}:00Z", "agent_info": {"name": "x"}}
        config = {"agent": {"kwargs": {"seed": seed}}}
        write_trial(
            tmp_path / name, {**names, "config": config}, None if name == "d" else trajectory(agent("Hi."))
        )
    assert ids(AtifSource(tmp_path)) == ["harbor/x/t~3", "harbor/x/t~2", "harbor/x/t", "harbor/x/t~4"]


@pytest.mark.parametrize("source_trial", [{"path": "/elsewhere/first/"}, {"trial_id": "id-1"}])
def test_a_trial_that_only_checked_another_again_is_no_further_run(tmp_path, source_trial):
    write_trial(tmp_path / "first", {"id": "id-1", "task_name": "t"}, trajectory(agent("Hi.")))
    again = {"id": "id-2", "task_name": "t", "config": {"source_trial": source_trial}}
    write_trial(tmp_path / "second", again, trajectory(agent("Hi.")))
    listing = AtifSource(tmp_path).list_runs()
    assert [file.name for file in listing.files] == ["first/agent/trajectory.json"]
    assert [(note.code, note.detail) for note in listing.notes] == [
        ("regraded", "second/agent/trajectory.json")
    ]
    assert ids(AtifSource(tmp_path / "second")) == ["harbor/unknown/t"]  # where the other is not there


def test_rewards_and_what_the_verifier_wrote_are_not_read():
    source = AtifSource(BY_HARBOR / "jobs")
    files = [file for file in source.list_runs().files if file.path.is_file()]
    assert "0.125" in (JOB / "which-day__CCCCCCC" / "result.json").read_text()  # reward and exception's text
    read = [source.read(file) for file in files]
    assert "0.125" not in repr(read)
    assert {recording.cum_reward for recording, _ in read} == {None}


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        ({"finished_at": "2026-01-01T00:00:00Z"}, "completed"),
        (
            {"exception_info": {"exception_type": "AgentTimeoutError"}, "finished_at": "x"},
            "exception: AgentTimeoutError",
        ),
        ({"exception_info": {"exception_type": "VerifierTimeoutError"}, "finished_at": "x"}, "completed"),
        ({}, None),
        ({"exception_info": 3, "finished_at": []}, None),
    ],
)
def test_the_state_is_how_the_agent_ended_and_never_what_the_verifier_met(tmp_path, ended, state):
    write_trial(tmp_path / "trial", ended, trajectory(agent("Hi.")))
    assert read_one(tmp_path)[0].state == state


def test_a_turn_has_what_was_seen_before_it_and_thoughts_are_not_repeated(tmp_path):
    two = [result("two", "1"), result("one", "0")]
    recording = read_steps(
        tmp_path,
        system("Be brief."),
        user("Fix it."),
        agent("Look first.", reasoning_content="Look first."),
        agent("", ("ls", {"all": True}), results=[result("a.py", "0")]),
        agent("Both.", ("cat", {"f": "a"}), ("cat", {"f": "b"}), results=two),
        agent("Which port?"),
        user("80."),
        agent("raw text", results=[result("ok")]),
        agent("I wait."),
        {"source": "system", "message": "", "observation": {"results": [result("done")]}},
        agent("More to come."),
        agent("", ("ls", {})),
        system("Time is up."),
        agent("Fixed.", reasoning_content="It works."),
    )  # fmt: skip
    assert recording.goal == "Fix it."
    assert turns(recording) == [
        ("ls(all=true)", "Look first.", None),
        ('cat(f="a")\ncat(f="b")', "Both.", "a.py"),
        (None, "Which port?", "[cat] one\n[cat] two"),
        ("raw text", None, "User: 80."),
        (None, "I wait.", "ok"),
        ("ls()", "More to come.", "done"),
        (None, "It works.", "System: Time is up."),
    ]
    assert recording.answer == "Fixed."


@pytest.mark.parametrize(
    ("last", "answer", "end"),
    [
        (agent("Bye.", ("finish", {"message": "42", "ok": "true"})), "42", [(None, "Bye.", "seen")]),
        (agent("Bye.", ("mark_task_complete", {}), results=[result("$")]), "Bye.", [(None, None, "seen\n$")]),
        (agent("", ("done", {"only": "one"})), "one", [(None, None, "seen")]),
        (agent("Bye.", ("ls", {}), ("submit", {})), None, [("ls()", "Bye.", "seen"), (None, None, None)]),
        (agent("Bye.", (["finish"], [1])), None, [("unknown([1])", "Bye.", "seen"), (None, None, None)]),
        (agent("Bye.", ("ls", {})), None, [("ls()", "Bye.", "seen"), (None, None, None)]),
    ],
)
def test_a_last_call_that_hands_in_is_the_answer_and_no_action(tmp_path, last, answer, end):
    recording = read_steps(tmp_path, agent("", ("finish", {}), results=[result("seen")]), last)
    assert recording.answer == answer
    assert turns(recording) == [("finish()", None, None), *end]


def test_a_subagent_that_is_called_by_many_or_by_itself_is_read_once(tmp_path):
    calls = [{"trajectory_id": "loop"}] * 3
    loop = trajectory(
        agent("", ("go", {}), results=[result("x", subagent_trajectory_ref=calls)]), trajectory_id="loop"
    )
    once = agent("", ("go", {}), results=[result(None, subagent_trajectory_ref=calls)])
    content = trajectory(once, subagent_trajectories=[loop])
    assert [step.action for step in read_one(write_json(tmp_path, content))[0].steps] == [
        "go()",
        "go()",
        None,
    ]
    write_json(tmp_path, trajectory(agent("One."), continued_trajectory_ref="b.json"), "a.json")
    write_json(tmp_path, trajectory(agent("Two."), continued_trajectory_ref="a.json"), "b.json")
    recording, notes = AtifSource(tmp_path / "a.json").read(
        AtifSource(tmp_path / "a.json").list_runs().files[0]
    )
    assert (recording.answer, recording.steps[-1].reasoning, notes) == ("Two.", "One.", [])


def test_files_that_others_go_on_in_or_refer_to_are_no_runs_of_their_own():
    place = JOB / "long-task__IIIIIII" / "agent"  # outside of a trial the names of its files say nothing
    assert [file.name for file in AtifSource(place).list_runs().files] == ["trajectory.json"]


def test_the_goal_of_a_part_whose_beginning_is_missing_is_in_its_copied_steps(tmp_path):
    copied = user("Compile.", is_copied_context=True)
    assert read_steps(tmp_path, copied, agent("Done.")).goal == "Compile."


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../secret.png", "../secret.png is outside the source"),
        ("/etc/hostname", "/etc/hostname is outside the source"),
        ("away.png", "away.png is a link that leaves the source"),
        ("https://example.org/a.png", "https://example.org/a.png is an address, not a file of the source"),
        ("a.png", "a.png is missing"),
        (7, " is missing"),
    ],
)
def test_files_that_lie_outside_are_refused_by_name(tmp_path, name, reason):
    (tmp_path / "secret.png").write_bytes(b"\x89PNG secret")
    runs = tmp_path / "runs"
    image = {"type": "image", "source": {"path": name}}
    reference = [{"trajectory_path": name}]
    seen = result([image, {"type": "text", "text": "seen"}], subagent_trajectory_ref=reference)
    write_json(
        runs,
        trajectory(user([image]), agent("", ("look", {}), results=[seen]), continued_trajectory_ref=name),
    )
    (runs / "away.png").symlink_to(tmp_path / "secret.png")
    recording, notes = read_one(runs / "run.json")
    assert [step.screenshot for step in recording.steps] == [None, None]
    assert recording.goal_images == ()
    about_files = reason if name != 7 else "a subagent's trajectory is neither embedded nor a file"
    assert [(note.code, note.detail) for note in notes] == [
        ("missing_screenshot", f"2: {reason}; {reason}"),
        ("missing_reference", f"2: {about_files}; {about_files}"),
    ]


def test_a_pipe_is_not_waited_for(tmp_path):
    write_json(tmp_path, trajectory(agent("Hi.")))
    write_trial(tmp_path / "trial", {"finished_at": "x"})
    for name in ("pipe.json", "trial/agent/trajectory.json"):
        os.mkfifo(tmp_path / name)
    source = AtifSource(tmp_path)
    read, piped = source.list_runs().files
    assert (read.name, source.read(read)[0].answer) == ("run.json", "Hi.")
    with pytest.raises(UnusableFileError, match=r"the trial left no trajectory\.json \(completed\)"):
        source.read(piped)


def test_links_out_of_the_source_are_named_and_not_read(tmp_path):
    write_json(tmp_path / "away", trajectory(agent("Secret.")), "secret.json")
    write_json(tmp_path / "runs", trajectory(agent("Hi.")))
    (tmp_path / "runs" / "link.json").symlink_to(tmp_path / "away" / "secret.json")
    write_trial(tmp_path / "runs" / "trial", {}, trajectory(agent("Hi.")))
    (tmp_path / "runs" / "trial" / "agent" / "trajectory.json").unlink()
    (tmp_path / "runs" / "trial" / "agent" / "trajectory.json").symlink_to(tmp_path / "away" / "secret.json")
    listing = AtifSource(tmp_path / "runs").list_runs()
    assert [file.name for file in listing.files] == ["run.json"]
    assert listing.links_out == ("link.json", "trial/agent/trajectory.json")


@pytest.mark.parametrize(
    ("content", "code", "detail"),
    [
        (trajectory(agent("Hi."), version="ATIF-v2.0"), "not_a_trajectory", "ATIF-v2.0: only ATIF-v1.0 to "),
        (trajectory(user("Do it.")), "no_steps", "^$"),
        (trajectory(agent("Hi.", is_copied_context=True)), "no_steps", "^$"),
        ({**trajectory(), "steps": "none"}, "no_steps", "^steps is not a list$"),
        ('{"schema_version": "ATIF-v1.8", "steps": [', "not_json", "Expecting value"),
    ],
)
def test_a_file_that_gives_no_run_is_refused_by_code(tmp_path, content, code, detail):
    path = tmp_path / "run.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(UnusableFileError, match=detail) as refused:
        read_one(path)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "result", [b"{", b'{"trial_name": ["x"], "task_name": 3, "config": [], "agent_info": 1}']
)
def test_a_result_that_is_broken_or_odd_leaves_the_folders_name(tmp_path, result):
    write_trial(tmp_path / "some-task__abc", {}, trajectory(agent("Hi.")))
    (tmp_path / "some-task__abc" / "result.json").write_bytes(
        b'{"trial_name": ' if result == b"{" else result
    )
    source = AtifSource(tmp_path)
    (file,) = source.list_runs().files
    assert file.trajectory_id == "harbor/unknown/some-task"
    if result == b"{":
        with pytest.raises(UnusableFileError, match=r"result\.json: Expecting value"):
            source.read(file)
    else:
        assert source.read(file)[0].answer == "Hi."


@pytest.mark.parametrize(
    "content",
    [
        {"schema_version": "1.4", "agent": {"name": "x"}, "steps": []},
        {"version": 2, "samples": [{"text": '"schema_version": "ATIF-v1.8"'}]},
        [trajectory(agent("Hi."))],
        {"task_id": "t", "action_history": []},
    ],
)
def test_another_format_is_not_taken_for_it(tmp_path, content):
    write_json(tmp_path, content, "result.json")
    assert not AtifSource.recognises(tmp_path)
    with pytest.raises(SourceError, match="no ATIF trajectory; name Harbor's jobs folder, or a file"):
        AtifSource(tmp_path).list_runs()


def test_the_agent_is_found_behind_the_steps_and_behind_many_tools(tmp_path):
    late = {**trajectory(agent("Hi.")), "agent": None}
    del late["agent"]
    write_json(tmp_path, {**late, "agent": {"name": "late"}}, "late.json")
    tools = [{"name": "tool", "description": "x" * 300_000}]
    write_json(
        tmp_path,
        trajectory(agent("Hi.")) | {"agent": {"tool_definitions": tools, "name": "many"}},
        "many.json",
    )
    assert ids(AtifSource(tmp_path)) == ["atif/late/late", "atif/many/many"]


def test_an_identity_changes_with_any_file_that_the_run_is_read_from(tmp_path):
    image = {"type": "image", "source": {"path": "images/caf\u00e9.png"}}
    part = trajectory(agent("", ("look", {}), results=[result([image])]))
    write_trial(
        tmp_path / "trial", {}, trajectory(agent("One."), continued_trajectory_ref="trajectory.cont-1.json")
    )
    run = tmp_path / "trial" / "agent"
    write_json(run, part, "trajectory.cont-1.json")
    (run / "images").mkdir()
    (run / "images" / "caf\u00e9.png").write_bytes(b"picture")
    source = AtifSource(tmp_path)
    (file,) = source.list_runs().files
    before = source.identity(file)
    for path in (run.parent / "result.json", *run.glob("*.json"), run / "images" / "caf\u00e9.png"):
        state = path.stat()
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
        assert source.identity(file) != before
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert source.identity(file) == before


TRIAL = json.loads((JOB / "count-words__AAAAAAA" / "result.json").read_text())
CLAUDE = json.loads((JOB / "count-words__AAAAAAA" / "agent" / "trajectory.json").read_text())
TERMINUS = [
    (path.name, json.loads(path.read_text()))
    for path in sorted((JOB / "long-task__IIIIIII" / "agent").glob("*"))
]


@WITH_FOLDER
@given(trial=mutated([TRIAL, CLAUDE, TERMINUS, json.loads(DESCRIBED.read_text())]))
def test_values_of_any_type_give_a_run_or_a_refusal(tmp_path, trial):
    for path in tmp_path.rglob("*.json"):
        path.unlink()
    contents = [each for each in trial if isinstance(each, dict | list)] if isinstance(trial, list) else []
    for number, content in enumerate(contents):
        write_json(
            tmp_path / "trial",
            content,
            ("result.json", "agent/trajectory.json")[number] if number < 2 else f"{number}.json",
        )
        for name, part in (
            (each for each in content if isinstance(each, list) and len(each) == 2) if number == 2 else ()
        ):
            write_json(tmp_path / "files", part, name if name in dict(TERMINUS) else "other.json")
    for recording in read_or_refused(AtifSource(tmp_path)):
        assert recording.steps[-1].action is None


def test_steps_out_of_order_are_put_in_order_and_repeats_are_left_out(tmp_path):
    first, second, third = trajectory(user("Do it."), agent("", ("a", {})), agent("", ("b", {})))["steps"]
    content = trajectory() | {"steps": [first, third, second, second]}
    recording, notes = read_one(write_json(tmp_path, content))
    assert [step.action for step in recording.steps] == ["a()", "b()", None]
    assert [(note.code, note.detail) for note in notes] == [
        ("repeated_steps", "2"),
        ("reordered", "[1, 3, 2, 2]"),
    ]


def test_usage_is_that_of_the_trial_then_of_the_final_metrics_then_the_sum_of_the_steps(tmp_path):
    turns = [
        agent("Hi.", metrics={"prompt_tokens": 3, "completion_tokens": 1, "cost_usd": 0.25}, timestamp=time)
        for time in ("2026-01-01T10:00:00Z", "2026-01-01T10:00:07Z")
    ]
    usage = read_one(write_json(tmp_path / "a", trajectory(*turns)))[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.seconds) == (6, 2, 0.5, 7.0)
    final = {"total_prompt_tokens": 60, "total_completion_tokens": 20}
    whole = trajectory(*turns, final_metrics=final)
    usage = read_one(write_json(tmp_path / "b", whole))[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (60, 20, 0.5)
    times = {"started_at": "2026-01-01T10:00:00Z", "finished_at": "2026-01-01T10:01:00Z"}
    result = {"agent_result": {"n_input_tokens": 100}, "agent_execution": times}
    write_trial(tmp_path / "c" / "t__1", result, whole)
    usage = read_one(tmp_path / "c")[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.seconds) == (100, 20, 60.0)
