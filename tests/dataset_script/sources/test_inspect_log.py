"""Logs of Inspect: those of three versions of inspect_ai (`inspect_logs/README.md`), and some by hand."""

import base64
import json
import pickle
import zipfile
from pathlib import Path

import pytest
from hypothesis import given

from dataset_script.sources import files, inspect_log, json_values, open_source, values
from dataset_script.sources.inspect_log import InspectSource
from dataset_script.sources.problems import SourceError, UnusableFileError
from tests.support.golden import assert_golden_source
from tests.support.json_values import WITH_FOLDER, mutated, read_or_refused
from tests.support.sources import ids, read_one, write_json

LOGS = Path(__file__).parent / "inspect_logs"
VERSIONS = ("0.3.60", "0.3.150", "0.3.285")
PNG = b"\x89PNG\r\n\x1a\n and more"
PICTURE = "data:image/png;base64," + base64.b64encode(PNG).decode()


def assistant(content="", *calls, **more):
    """A turn; each call is a name and its arguments, and has its place as its id."""
    listed = [{"id": str(n), "function": name, "arguments": args} for n, (name, args) in enumerate(calls)]
    return {"role": "assistant", "content": content, "tool_calls": listed or None, **more}


def result(content, call="0", **more):
    return {"role": "tool", "content": content, "tool_call_id": call, **more}


def sample(*messages, name="one", **more):
    asked = {"role": "user", "content": "Do it.", "source": "input"}
    return {"id": name, "epoch": 1, "input": "Do it.", "messages": [asked, *messages], **more}


def log_of(*samples, status="success", plan=None, **spec):
    spec = {"task": "chores", "task_id": "t1", "created": "2026-01-01T00:00:00+00:00", "model": "m/x"} | spec
    return {"version": 2, "status": status, "eval": spec, "plan": plan or {}, "samples": list(samples)}


@pytest.mark.parametrize("version", VERSIONS)
def test_logs_of_each_version_are_read_as_before(version):
    assert_golden_source(f"source_inspect_{version}", InspectSource(LOGS / version))


@pytest.mark.parametrize("version", VERSIONS)
def test_goal_actions_results_and_answer_are_what_inspect_ai_reads(version):
    source = InspectSource(LOGS / version)
    theirs = json.loads((LOGS / version / "conversations.json").read_text(encoding="utf-8"))
    own = {(log, str(each["id"]), each["epoch"]): each for log, samples in theirs.items() for each in samples}
    compared = 0
    for file in source.list_runs().files:
        recording, _ = source.read(file)
        log, _, name = file.name.rpartition("/")[2].partition("#")
        identity, _, epoch = name.rpartition("_epoch_")
        expected = own[log, identity, int(epoch)]
        assert recording.goal.startswith(expected["input"])
        calls = [values.call_text(*call) for turn in expected["turns"] for call in turn["calls"]]
        results = [text for text in expected["results"] if text]
        if expected["error"] or expected["limit"]:
            assert recording.answer is None
        else:
            is_submitted = bool(calls) and calls[-1].startswith("submit(")
            if is_submitted:  # neither an action, nor is its result an observation
                calls, results = calls[:-1], results[:-1]
            answer = expected["completion"] if is_submitted else expected["turns"][-1]["text"]
            assert recording.answer == answer
        assert [line for step in recording.steps for line in (step.action or "").splitlines()] == calls
        seen = "\n".join(step.text or "" for step in recording.steps)
        assert all(text in seen for text in results)
        compared += 1
    assert compared >= 13


@pytest.mark.parametrize("version", VERSIONS)
def test_targets_metadata_grades_and_system_prompts_are_not_read(version):
    assert b"SECRET-GRADE" in b"".join(path.read_bytes() for path in (LOGS / version).rglob("*.json"))
    source = InspectSource(LOGS / version)
    read = repr([source.read(file) for file in source.list_runs().files])
    for secret in ("SECRET-TARGET", "SECRET-METADATA", "SECRET-GRADE", "SECRET-PROMPT"):
        assert secret not in read


def test_a_retried_evaluation_gives_each_sample_once_from_its_later_log():
    listing = InspectSource(LOGS / "0.3.285" / "retried").list_runs()
    assert [file.trajectory_id.rpartition("/")[2] for file in listing.files] == ["first", "second", "third"]
    assert len({file.path for file in listing.files}) == 1
    assert [note.code for note in listing.notes] == ["unfinished_log", "earlier_attempt"]
    first, second = sorted((LOGS / "0.3.285" / "retried").iterdir())
    assert listing.files[0].path == second
    assert (
        listing.notes[1].detail == f"{first.name}: 3 of 3 samples"
    )  # the third was cancelled before it began


def test_a_later_log_that_stopped_early_leaves_the_rest_to_the_earlier(tmp_path):
    write_json(tmp_path, log_of(sample(assistant("a"), name="a"), sample(assistant("b"), name="b")), "1.json")
    later = log_of(sample(assistant("A"), name="a"), created="2026-01-02T00:00:00+00:00", status="cancelled")
    write_json(tmp_path, later, "2.json")
    source = InspectSource(tmp_path)
    answers = {file.name: source.read(file)[0].answer for file in source.list_runs().files}
    assert answers == {"1.json#b_epoch_1": "b", "2.json#a_epoch_1": "A"}


def test_epochs_and_further_evaluations_are_repeats_by_seed_then_time(tmp_path):
    twice = [sample(assistant("x"), epoch=2), sample(assistant("x"), epoch=1)]
    write_json(tmp_path, log_of(*twice, task_id="late", created="2026-02-01"), "a.json")
    write_json(tmp_path, log_of(twice[1], task_id="early", created="2026-01-01"), "b.json")
    seeded = {"model_generate_config": {"seed": 7}}
    write_json(tmp_path, log_of(twice[1], task_id="seeded", created="2025-01-01", **seeded), "c.json")
    # no seed is 0; of those the evaluation of January is first, then the epochs of February, then seed 7
    assert ids(InspectSource(tmp_path)) == [f"chores/m_x/one{n}" for n in ("~3", "~2", "", "~4")]


def test_several_models_and_chosen_solvers_over_one_task_are_several_agents(tmp_path):
    for number, more in enumerate(({}, {"model": "m/y"}, {"solver": "pkg/react"})):
        write_json(tmp_path, log_of(sample(assistant("x")), task_id=str(number), **more), f"{number}.json")
    assert ids(InspectSource(tmp_path)) == [f"chores/{name}/one" for name in ("m_x", "m_y", "m_x_pkg_react")]


def test_two_calls_of_a_turn_are_one_action_and_their_results_one_observation(tmp_path):
    turn = assistant("Both.", ("look", {"at": "é"}), ("go", {"by": [1, None]}))
    told = [result("a town"), result("", call="1", error={"type": "timeout", "message": "too slow"})]
    recording, notes = read_one(write_json(tmp_path, log_of(sample(turn, *told, assistant("Done.")))))
    first, last = recording.steps
    assert first.action == 'look(at="é")\ngo(by=[1, null])'
    assert (first.reasoning, first.text) == ("Both.", None)
    assert (last.text, last.last_action_error, last.action) == ("a town\n\ntoo slow", "too slow", None)
    assert (recording.answer, recording.state, notes) == ("Done.", "completed", [])


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        ({}, "submit"),
        ({"steps": [{"params": {"params": {"submit": "hand_in"}}}]}, "hand_in"),  # basic_agent's
        ({"steps": [{"params": {"submit": {"name": "finish"}}}]}, "finish"),  # react()'s
    ],
)
def test_the_argument_of_the_last_submit_is_the_answer_and_an_earlier_one_an_action(tmp_path, plan, name):
    turns = [
        assistant("", (name, {"answer": "41"})),
        result("41"),
        {"role": "user", "content": "That was incorrect."},  # the scorer's judgement: not for judges
        assistant("Sure.", ("look", {}), (name, {"answer": "42"})),
        result("a town"),
        result("42", call="1"),
    ]
    recording, _ = read_one(write_json(tmp_path, log_of(sample(*turns), plan=plan)))
    assert [step.action for step in recording.steps] == [f'{name}(answer="41")', "look()", None]
    assert [step.text for step in recording.steps] == [None, "41", "a town"]
    assert recording.answer == "42"


def test_thoughts_and_tools_of_the_provider_are_read_from_the_parts_of_a_turn(tmp_path):
    content = [
        {"type": "reasoning", "reasoning": "Hm."},
        {"type": "tool_use", "name": "web_search", "arguments": '{"query": "x"}', "result": "3 pages"},
        {"type": "reasoning", "reasoning": "SECRET", "redacted": True, "summary": "In short."},
        {"type": "text", "text": "Page 3."},
    ]
    recording, _ = read_one(write_json(tmp_path, log_of(sample(assistant(content)))))
    first, last = recording.steps
    assert (first.action, first.reasoning) == ('web_search(query="x")', "Hm.")
    assert (last.text, last.reasoning, recording.answer) == ("3 pages", "In short.", "Page 3.")


def test_pictures_come_from_attachments_and_addresses_are_not_followed(tmp_path):
    def image(address):
        return {"type": "image", "image": address}

    seen = [image("attachment://ab"), {"type": "text", "text": "here"}, image("https://example.org/x.png")]
    asked = [{"role": "user", "content": [{"type": "text", "text": "attachment://cd"}, image(PICTURE)]}]
    turns = (
        assistant("", ("look", {})),
        result(seen),
        assistant("", ("look", {})),
        result([image("/etc/x")]),
    )
    more = {"input": asked, "attachments": {"ab": PICTURE, "cd": "A long question."}}
    recording, notes = read_one(write_json(tmp_path, log_of(sample(*turns, **more))))
    assert (recording.goal, recording.goal_images) == ("A long question.", (PNG,))
    assert [step.screenshot for step in recording.steps] == [None, PNG]  # the end shows nothing that is there
    assert [(note.code, note.detail.partition(":")[0]) for note in notes] == [
        ("missing_screenshot", "step 1"),
        ("missing_screenshot", "step 2"),
    ]


def test_of_several_pictures_the_last_is_kept_and_that_is_noted(tmp_path):
    other = "data:image/png;base64," + base64.b64encode(b"other").decode()
    seen = [{"type": "image", "image": address} for address in (other, PICTURE)]
    path = write_json(tmp_path, log_of(sample(assistant("", ("look", {})), result(seen))))
    recording, notes = read_one(path)
    assert recording.steps[1].screenshot == PNG
    assert [(note.code, note.detail) for note in notes] == [("more_pictures", "step 1: 2")]


def test_a_huge_picture_is_not_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(values, "MOST_IMAGE_BYTES", 10)
    path = write_json(
        tmp_path,
        log_of(sample(assistant("", ("look", {})), result([{"type": "image", "image": PICTURE}, "x"]))),
    )
    recording, notes = read_one(path)
    assert len(recording.steps) == 1
    assert notes[0].code == "missing_screenshot"


def test_an_input_that_is_a_talk_is_the_goal_and_its_assistant_no_turn(tmp_path):
    asked = [("system", "Be kind."), ("user", "Hi"), ("assistant", "Hello"), ("user", "Bye")]
    asked = [{"role": role, "content": text, "source": "input"} for role, text in asked]
    each = {"id": 1, "epoch": 1, "input": asked, "messages": [*asked, assistant("Ciao")]}
    recording, _ = read_one(write_json(tmp_path, log_of(each)))
    assert recording.goal == "system: Be kind.\n\nuser: Hi\n\nassistant: Hello\n\nuser: Bye"
    assert (len(recording.steps), recording.answer) == (1, "Ciao")


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"limit": {"type": "token", "limit": 9}}, "limit: token"),
        ({"error": {"message": "TimeoutError()"}, "limit": {"type": "token"}}, "error: TimeoutError()"),
        ({"output": {"choices": [{"stop_reason": "max_tokens"}]}}, "max_tokens"),
        ({"output": {"choices": [{"stop_reason": "stop"}]}}, "completed"),
    ],
)
def test_the_state_is_how_it_ended(tmp_path, more, state):
    assert read_one(write_json(tmp_path, log_of(sample(assistant("x"), **more))))[0].state == state


def test_an_output_without_messages_is_the_answer(tmp_path):
    output = {"choices": [{"message": {"role": "assistant", "content": "42"}}]}
    recording, _ = read_one(write_json(tmp_path, log_of(sample(output=output))))
    assert (recording.answer, len(recording.steps)) == ("42", 1)


@pytest.mark.parametrize(
    ("each", "code"),
    [
        (sample(), "no_steps"),
        (sample(error={"message": "cancelled"}), "crashed"),
        (sample(assistant("x"), invalidation={"author": "me"}), "invalid"),
    ],
)
def test_a_sample_without_a_turn_or_marked_invalid_is_refused(tmp_path, each, code):
    with pytest.raises(UnusableFileError) as refused:
        read_one(write_json(tmp_path, log_of(each)))
    assert refused.value.code == code


def test_names_and_texts_beyond_ascii_and_half_characters_are_read(tmp_path):
    path = write_json(tmp_path, log_of(sample(assistant("Grüße 🙂"), name="Zürich 京"), task="Städte"))
    recording, _ = read_one(path)
    assert (recording.trajectory_id, recording.answer) == ("Städte/m_x/Zürich_京", "Grüße 🙂")
    path.write_text(json.dumps(log_of(sample(assistant("a\ud800b"), name="\udc00"))))
    recording, _ = read_one(path)
    assert recording.answer == "a\ufffdb"
    recording.trajectory_id.encode()


def test_each_log_alone_gives_what_the_folder_gives():
    folder = LOGS / "0.3.285" / "towns"
    alone = [ids(open_source(path)) for path in sorted(folder.iterdir())]
    assert [each for group in alone for each in group] == ids(open_source(folder))


def test_a_listing_reads_no_sample_of_a_zip_file(monkeypatch):
    read = []

    def counted(path, place):
        read.append(path)
        return json_values.read_json_at(path, place)

    monkeypatch.setattr(inspect_log, "read_json_at", counted)
    source = InspectSource(LOGS / "0.3.285" / "trouble")
    assert len(source.list_runs().files) == 3
    assert len(read) == 1  # header.json


def test_a_sample_counts_as_much_as_it_has_bytes_and_not_as_its_log(tmp_path):
    small, large = sample(assistant("x"), name="small"), sample(assistant("x" * 5000), name="large")
    sizes = [
        file.size for file in InspectSource(write_json(tmp_path, log_of(small, large))).list_runs().files
    ]
    assert sizes == [len(json.dumps(each, ensure_ascii=False)) for each in (small, large)]


def test_source_and_samples_can_be_sent_to_a_process():
    source = InspectSource(LOGS / "0.3.285" / "trouble")
    again, files = pickle.loads(pickle.dumps((source, source.list_runs().files)))
    assert again.read(files[0]) == source.read(files[0])


def hostile_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        for name, content in members.items():
            log.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return path


def header():
    return {name: value for name, value in log_of().items() if name != "samples"}


def refused(folder):
    """What cannot be read in a source, as code and detail by the name of the file."""
    source, found = InspectSource(folder), {}
    for file in source.list_runs().files:
        try:
            source.read(file)
        except UnusableFileError as error:
            found[file.name] = (error.code, error.detail)
    return found


def test_zip_files_that_climb_lie_about_sizes_or_are_damaged_are_refused_by_name(tmp_path, monkeypatch):
    good = sample(assistant("x"))
    hostile_zip(tmp_path / "climbs.eval", {"header.json": header(), "samples/../../x_epoch_1.json": good})
    hostile_zip(tmp_path / "other.eval", {"readme.txt": "no log"})
    (tmp_path / "text.eval").write_text("no zip file")
    bomb = hostile_zip(
        tmp_path / "bomb.eval", {"header.json": header(), "samples/b_epoch_1.json": " " * 5_000_000 + "1"}
    )
    lies = hostile_zip(tmp_path / "lies.eval", {"header.json": header(), "samples/l_epoch_1.json": good})
    content = bytearray(lies.read_bytes())
    size_at = content.rindex(b"PK\x01\x02") + 24  # uncompressed size of the last member, in the directory
    content[size_at : size_at + 4] = (7).to_bytes(4, "little")
    lies.write_bytes(content)
    whole = (LOGS / "0.3.285" / "towns").glob("*.eval").__next__().read_bytes()
    (tmp_path / "cut.eval").write_bytes(whole[:-400])
    monkeypatch.setattr(files, "MOST_JSON_BYTES", 1_000_000)
    found = refused(tmp_path)
    assert {name: code for name, (code, _) in found.items()} == {
        "climbs.eval": "unreadable",
        "other.eval": "not_a_trajectory",
        "text.eval": "unreadable",
        "bomb.eval#b_epoch_1": "not_json",
        "lies.eval#l_epoch_1": "not_json",
        "cut.eval": "unreadable",
    }
    assert "leads out" in found["climbs.eval"][1]
    assert "is larger than" in found["bomb.eval#b_epoch_1"][1]
    assert "damaged" in found["lies.eval#l_epoch_1"][1]
    assert bomb.stat().st_size < 100_000


def test_a_damaged_zstandard_member_is_refused(tmp_path):
    content = bytearray(next((LOGS / "0.3.285" / "trouble").glob("*.eval")).read_bytes())
    name = b"samples/fine_epoch_1.json"
    content[content.index(name) + len(name) + 200] ^= 0xFF
    (tmp_path / "log.eval").write_bytes(content)
    found = refused(tmp_path)
    assert list(found) == ["log.eval#fine_epoch_1"]
    assert found["log.eval#fine_epoch_1"][0] == "not_json"


def test_a_json_log_that_was_cut_off_keeps_its_whole_samples(tmp_path):
    path = write_json(tmp_path, log_of(*(sample(assistant("x"), name=name) for name in "abc")), "log.json")
    path.write_bytes(path.read_bytes()[:-100])
    assert [file.trajectory_id for file in InspectSource(path).list_runs().files] == [
        "chores/m_x/a",
        "chores/m_x/b",
        "unknown/unknown/log",
    ]
    assert list(refused(path)) == ["log.json"]


def test_a_link_that_leaves_the_source_is_named_and_not_followed(tmp_path):
    outside = write_json(tmp_path, log_of(sample(assistant("x"))))
    (tmp_path / "logs").mkdir()
    write_json(tmp_path / "logs", log_of(sample(assistant("x"), name="inside")), "inside.json")
    (tmp_path / "logs" / "log.json").symlink_to(outside)
    listing = InspectSource(tmp_path / "logs").list_runs()
    assert [file.trajectory_id for file in listing.files] == ["chores/m_x/inside"]
    assert listing.links_out == ("log.json",)


def test_a_log_that_changed_after_the_listing_is_refused(tmp_path):
    path = write_json(tmp_path, log_of(sample(assistant("x"))))
    source = InspectSource(path)
    (file,) = source.list_runs().files
    before = source.identity(file)
    path.write_text("{}")
    assert source.identity(file) != before
    with pytest.raises(UnusableFileError):
        source.read(file)


@pytest.mark.parametrize("content", ["[]", '{"version": 2}', '{"result": 1, "eval": {}}', "{"])
def test_other_json_is_no_log(tmp_path, content):
    (tmp_path / "result.json").write_text(content)
    assert not InspectSource.recognises(tmp_path)
    assert not InspectSource.recognises(tmp_path / "result.json")


@pytest.mark.parametrize("where", [".", "spans.json"])
def test_spans_of_opentelemetry_are_refused_with_what_to_export_instead(tmp_path, where):
    (tmp_path / "spans.json").write_text('{"resourceSpans": []}')
    with pytest.raises(SourceError, match=r'marked "Development".* Inspect \(.eval\), as ATIF'):
        open_source(tmp_path / where)


WHOLE = log_of(
    sample(
        assistant(
            [{"type": "text", "text": "t"}, {"type": "reasoning", "reasoning": "r"}], ("look", {"a": 1})
        ),
        result([{"type": "text", "text": "s"}, {"type": "image", "image": "attachment://a"}]),
        result("", error={"type": "x", "message": "y"}),
        assistant(
            [{"type": "tool_use", "name": "n", "arguments": "{}", "result": "r"}], ("submit", {"answer": "z"})
        ),
        result("z"),
        attachments={"a": PICTURE},
        choices=["p", "q"],
        output={"choices": [{"message": {"role": "assistant", "content": "z"}, "stop_reason": "stop"}]},
        limit={"type": "token"},
    ),
    plan={"steps": [{"params": {"submit": {"name": "s"}}}], "config": {"seed": 1}},
)


@WITH_FOLDER
@given(content=mutated(WHOLE))
def test_a_mutated_log_gives_runs_or_is_refused(content, tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(content))
    archive = tmp_path / "log.eval"
    head = {name: value for name, value in content.items() if name != "samples"}
    samples = content.get("samples")
    members = {
        f"samples/{number}_epoch_1.json": each
        for number, each in enumerate(samples if isinstance(samples, list) else [])
    }
    hostile_zip(archive, {"header.json": head, **members})
    for source in (InspectSource(path), InspectSource(archive)):
        read_or_refused(source)
