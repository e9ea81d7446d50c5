import json
import os

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataset_script.sources.problems import UnusableFileError
from dataset_script.sources.released import ReleasedSource
from dataset_script.sources.released_files import (
    CleanedFile,
    CleanedStep,
    read_judgment,
    read_typed,
    repair_json,
)
from tests.support.released_layout import cleaned, judged
from tests.support.released_layout import step as make_step


def read_cleaned(path):
    return read_typed(path, CleanedFile, "not_a_trajectory")


@pytest.mark.parametrize(
    ("loose", "strict"),
    [
        (b'{"a":NaN}', b'{"a":null}'),
        (b"[NaN, -Infinity,Infinity]", b"[null, null,null]"),
        (b'{"a":"NaN","b":"x \\" Infinity"}', b'{"a":"NaN","b":"x \\" Infinity"}'),
        (b'{"NaN":-1,"b":[-2,NaN]}', b'{"NaN":-1,"b":[-2,null]}'),
        (b'"\\ud83c"', b'"\\ufffd"'),
        (b'"\\ud83c\\udf75"', b'"\\ud83c\\udf75"'),
        (b'"\\udf75\\uD83C"', b'"\\ufffd\\ufffd"'),
        (b'"\\\\ud83c"', b'"\\\\ud83c"'),  # a backslash and five letters: no escape of a character
        (b'"\\\\\\ud83c"', b'"\\\\\\ufffd"'),
        (b'"\\ud83c\\n\\udf75"', b'"\\ufffd\\n\\ufffd"'),
    ],
)
def test_only_the_offending_tokens_are_replaced(loose, strict):
    assert json.loads(repair_json(loose)) == json.loads(strict)


DEV_1 = "shop/GenericAgent-a/shop.1"
REPLY = "<reasoning>Fine.</reasoning><success>Successful</success><loop>No</loop>"


def test_a_judgment_is_the_reply_and_the_verdict_in_it(source):
    read = read_judgment(source.judge(DEV_1, "gpt-4o-noaxtree", REPLY))
    assert (read.judge, read.model, read.reply) == ("gpt-4o-noaxtree", "judge-model", REPLY)
    assert (read.has_screenshot, read.has_axtree) == (True, False)
    assert (read.state, read.success, read.repetition, read.side_effect) == ("ok", True, False, None)


def test_neither_prompt_nor_image_nor_reward_is_in_it(source):
    read = read_judgment(source.judge(DEV_1, "gpt-4o-noaxtree", REPLY))
    assert "CANARY" not in repr(read)
    assert "reward" not in repr(read).lower()


@pytest.mark.parametrize(("reward", "success"), [(1.0, True), (0.51, True), (0.5, False), (0.0, False)])
def test_the_rule_based_verdict_is_a_reward_above_one_half_and_carries_none(source, reward, success):
    content = judged("functional", "", reward) | {"response": None, "judge_model_name": "judge"}
    for name in ("judge_args", "completion_args", "chat_messages"):
        del content[name]
    read = read_judgment(source.judge(DEV_1, "functional", content))
    assert (read.state, read.success, read.reply, read.model) == ("ok", success, None, None)
    assert (read.has_screenshot, read.has_axtree) == (None, None)


def test_a_reply_without_choices_is_an_error(source):
    assert read_judgment(source.judge(DEV_1, "aer", {"response": {"choices": []}})).state == "error"
    assert read_judgment(source.judge(DEV_1, "aer", {"response": {"choices": [{}]}})).state == "error"


@pytest.mark.parametrize(
    ("judge", "content", "code"),
    [
        ("aer", b"{", "not_json"),
        ("aer", {"response": 7}, "not_a_judgment"),
        ("aer", {"judge": "aer"}, "not_a_judgment"),
        ("functional", {"trajectory_info": {}}, "not_a_judgment"),
    ],
)
def test_a_file_without_a_judgment_has_its_code(source, judge, content, code):
    with pytest.raises(UnusableFileError) as error:
        read_judgment(source.judge(DEV_1, judge, content))
    assert error.value.code == code


def test_judgments_are_listed_with_the_id_of_their_trajectory_errors_too(source):
    source.put(DEV_1)
    source.judge(DEV_1, "aer", REPLY)
    source.judge(DEV_1, "nnetnav", {"error": "x"}, ending="_error")
    (source.path / "judgments" / "summary.csv").write_text("")
    listed = ReleasedSource(source.path).list_judgments()
    assert [(file.path.parent.name, file.trajectory_id) for file in listed.files] == [
        ("aer", DEV_1),
        ("nnetnav", DEV_1),
    ]
    assert listed.others == ("judgments/summary.csv",)


def code_of(path) -> str:
    with pytest.raises(UnusableFileError) as error:
        read_cleaned(path)
    return error.value.code


def test_only_what_is_published_is_held():
    held = set(CleanedFile.__struct_fields__) | set(CleanedStep.__struct_fields__)
    assert not held & {"chat_messages", "experiment", "package_version", "axtree_obj", "model_args", "flags"}


def test_fields_may_be_null_or_absent(source):
    content = cleaned() | {"model": None, "valid": None, "steps": [{"num": 0}, {"num": 1, "url": None}]}
    del content["goal"]
    read, _ = read_cleaned(source.put("shop/GenericAgent-a/shop.1", content))
    assert (read.model, read.goal, read.steps[1].axtree) == (None, None, None)


@pytest.mark.parametrize("kept", [0, 1, 0.5, 0.999])
def test_a_file_cut_off_anywhere_is_not_json(source, kept):
    whole = json.dumps(cleaned()).encode()
    cut = whole[: kept if isinstance(kept, int) else int(len(whole) * kept)]
    assert code_of(source.put("shop/GenericAgent-a/shop.1", cut)) == "not_json"


@given(st.binary(max_size=60))
@example(b"{}")
def test_any_bytes_give_a_trajectory_or_a_named_reason(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)
    try:
        read_cleaned(path)  # `{}` is a trajectory, one without steps
    except UnusableFileError as error:
        assert error.code in {"not_json", "not_a_trajectory"}


CLEANED_FILE_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_a_field_of_any_type_gives_a_trajectory_or_a_named_reason(tmp_path_factory, data):
    step = {"num": 0} | {
        name: data.draw(CLEANED_FILE_JSON)
        for name in data.draw(
            st.sets(st.sampled_from(("num", "url", "axtree", "bounding_boxes", "screenshot_path")))
        )
    }
    content = {"steps": [step]} | {
        name: data.draw(CLEANED_FILE_JSON)
        for name in data.draw(st.sets(st.sampled_from(("goal", "summary_info", "valid", "steps"))))
    }
    path = tmp_path_factory.getbasetemp() / "any-json.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    try:
        read, _ = read_cleaned(path)
    except UnusableFileError as error:
        assert error.code in {"not_json", "not_a_trajectory"}
        assert "\n" not in str(error)
    else:
        for held in read.steps or ():
            str(held.axtree).encode()  # what is read can be written: no half of a surrogate pair is left


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff\xfe{}", "not_json"),
        (b'{"goal": "\xff", "steps": []}', "not_json"),
        (b'{"goal": "a"} {', "not_json"),
        (b'{"goal": "a", "steps": [{"num": 0}] NaN}', "not_json"),
        (b"[" * 100_000 + b"]" * 100_000 + b"}", "not_a_trajectory"),
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not_json"),
        (b'{"steps": [{"num": 0, "x": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]}", "not_json"),
        (b"[]", "not_a_trajectory"),
        (b"null", "not_a_trajectory"),
        (b'{"steps": [{"num": "0"}]}', "not_a_trajectory"),
        (b'{"steps": [{"num": 2147483648}]}', "not_a_trajectory"),
        (b'{"steps": [{"num": -1}]}', "not_a_trajectory"),
        (b'{"steps": [{"num": 1e400}]}', "not_a_trajectory"),
        (b'{"steps": [{"url": "no number"}]}', "not_a_trajectory"),
        (b'{"steps": {"num": 0}}', "not_a_trajectory"),
        (b'{"summary_info": {"cum_reward": "1"}}', "not_a_trajectory"),
    ],
)
def test_every_defect_has_its_code(source, content, code):
    assert code_of(source.put("shop/GenericAgent-a/shop.1", content)) == code


def test_a_wrong_type_is_named_with_its_place(source):
    content = cleaned() | {"steps": [make_step(0), make_step(1, url=7)]}
    with pytest.raises(
        UnusableFileError, match=r"Expected `str \| null`, got `int` - at `\$.steps\[1\].url`"
    ):
        read_cleaned(source.put("shop/GenericAgent-a/shop.1", content))


def test_a_file_that_is_gone_is_unreadable(source):
    path = source.put("shop/GenericAgent-a/shop.1")
    path.unlink()
    assert code_of(path) == "unreadable"


def test_what_is_no_ordinary_file_is_unreadable_and_not_waited_for(source):
    path = source.put("shop/GenericAgent-a/shop.1")
    path.unlink()
    os.mkfifo(path)
    assert code_of(path) == "unreadable"


def test_a_text_of_millions_of_characters_is_read(source):
    path = source.put("shop/GenericAgent-a/shop.1", steps=[make_step(0, axtree="tree " * 1_000_000)])
    assert len(read_cleaned(path)[0].steps[0].axtree) == 5_000_000


def test_nan_as_python_writes_it_is_read_and_reported(source):
    content = cleaned() | {"summary_info": {"stats.x": float("nan"), "stats.y": float("-inf")}}
    path = source.put("shop/GenericAgent-a/shop.1", content)
    assert b"NaN" in path.read_bytes() and b"-Infinity" in path.read_bytes()
    with pytest.raises(msgspec.DecodeError):  # so the strict reader alone would lose the trajectory
        msgspec.json.decode(path.read_bytes(), type=CleanedFile)
    read, is_strict = read_cleaned(path)
    assert not is_strict
    assert read.goal == "Buy a teapot.\n"
