"""Pickles are read without importing or calling anything they name."""

import datetime
import pathlib
import pickle

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset_script.sources.pickle_values import PickledObject, PlainArray, field
from dataset_script.sources.pickles import Machine
from tests.conftest import examples

HEADER = b"\x80\x04"
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.frozensets(st.text() | st.integers(-(2**62), 2**62)),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(-(2**62), 2**62), inner)
    ),
    max_leaves=15,
)


@given(PLAIN, st.sampled_from([2, 3, 4, 5]))
@settings(max_examples=examples(150), deadline=None)
def test_plain_values_are_read_as_python_reads_them(value, protocol):
    if protocol < 4:
        value = _without_frozensets(value)  # they are calls before protocol 4
    if protocol < 3:
        value = _without_bytes(value)  # likewise before protocol 3
    assert Machine(pickle.dumps(value, protocol)).run() == value


def _without_frozensets(value):
    return _mapped(value, lambda leaf: sorted(map(str, leaf)) if isinstance(leaf, frozenset) else leaf)


def _without_bytes(value):
    return _mapped(value, lambda leaf: leaf.hex() if isinstance(leaf, bytes) else leaf)


def _mapped(value, change):
    if isinstance(value, list | tuple):
        return type(value)(_mapped(inner, change) for inner in value)
    if isinstance(value, dict):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    return change(value)


def test_a_shared_and_a_circular_list_stay_what_they_are():
    shared = ["x"]
    circle: list = [shared, shared]
    circle.append(circle)
    read = Machine(pickle.dumps(circle)).run()
    assert read[0] is read[1]
    assert read[2] is read


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_an_object_of_a_known_class_becomes_a_record_of_its_fields(recorded_class, protocol):
    step_info = recorded_class("browsergym.experiments.loop", "StepInfo")()
    step_info.action, step_info.obs = "click('7')", {"url": "http://shop/"}
    read = Machine(pickle.dumps(step_info, protocol)).run()
    assert isinstance(read, PickledObject)
    assert read.class_name == "browsergym.experiments.loop.StepInfo"
    assert field(read, "action") == "click('7')"
    assert field(read, "obs", "url") == "http://shop/"
    assert field(read, "obs", "absent", "further") is None


def test_a_message_that_is_a_dict_keeps_its_items(recorded_class):
    message = recorded_class("agentlab.llm.llm_utils", "HumanMessage", (dict,))(role="user", content="Hello")
    read = Machine(pickle.dumps(message)).run()
    assert (field(read, "role"), field(read, "content")) == ("user", "Hello")


def test_a_class_with_slots_keeps_its_fields(recorded_class):
    args = recorded_class("browsergym.experiments.loop", "EnvArgs", __slots__=("task_name",))()
    args.task_name = "shop.1"
    assert field(Machine(pickle.dumps(args)).run(), "task_name") == "shop.1"


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("kind", ["bool", "uint8", "int16", "int64", "float32", "float64", ">f8"])
def test_an_array_of_plain_numbers_keeps_its_shape_and_bytes(kind, protocol):
    array = numpy.arange(6).reshape(2, 3).astype(kind)
    read = Machine(pickle.dumps(array, protocol)).run()
    assert isinstance(read, PlainArray)
    dtype = numpy.dtype(read.dtype.order + read.dtype.name)
    assert (numpy.frombuffer(read.data, dtype).reshape(read.shape) == array).all()


def test_the_old_name_of_numpys_core_is_read_too():
    data = pickle.dumps(numpy.zeros(2, "u1"), 4).replace(
        b"\x16numpy._core.multiarray", b"\x15numpy.core.multiarray"
    )
    data = HEADER + data[11:]  # without the frame, whose length has changed
    assert Machine(data).run().data == b"\0\0"


@pytest.mark.parametrize("number", [numpy.float64(0.5), numpy.int32(-7), numpy.bool_(True), numpy.uint8(200)])
def test_a_numpy_number_becomes_a_number(number):
    assert Machine(pickle.dumps(number)).run() == number.item()


def test_times_and_paths_are_kept_as_records_and_never_made():
    read = Machine(pickle.dumps([datetime.datetime(2026, 11, 20), pathlib.PurePosixPath("/a/b")])).run()
    module = pathlib.PurePosixPath.__module__  # pathlib._local in Python 3.13
    assert [value.class_name for value in read] == ["datetime.datetime", f"{module}.PurePosixPath"]
