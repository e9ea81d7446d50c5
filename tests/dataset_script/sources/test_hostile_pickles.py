"""Pickles that would run code, cost too much or are damaged: refused by name, and nothing of them runs."""

import collections
import contextlib
import contextvars
import functools
import gzip
import os
import pathlib
import pickle
import struct
import sys
import types
import zlib

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataset_script.sources.pickle_values import PickledObject, RefusedPickle
from dataset_script.sources.pickles import BrokenPickle, Limits, Machine, read_pickle
from dataset_script.sources.problems import UnusableFileError
from tests.conftest import examples

HEADER = b"\x80\x04"


class Calls:
    """Pickles as a call of ``function``."""

    def __init__(self, function, *arguments, state=None):
        self.call = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.call


HOSTILE = {
    "system": lambda trap: Calls(os.system, f"touch {trap}"),
    "eval": lambda trap: Calls(eval, f"open({trap!r}, 'w')"),
    "exec": lambda trap: Calls(exec, f"open({trap!r}, 'w')"),
    "open": lambda trap: Calls(open, trap, "w"),
    "getattr": lambda trap: Calls(getattr, Calls(__import__, "os"), "system"),
    "partial": lambda trap: Calls(functools.partial, os.system, f"touch {trap}"),
    "getattr|Path.touch": lambda trap: Calls(pathlib.Path.touch, pathlib.PurePosixPath(trap)),
    "loads": lambda trap: Calls(pickle.loads, f"cos\nsystem\n(S'touch {trap}'\ntR.".encode()),
    "OrderedDict": lambda trap: Calls(collections.OrderedDict),
    "SimpleNamespace": lambda trap: Calls(types.SimpleNamespace),
    "posix.system|nt.system": lambda trap: [{"deep": (Calls(os.system, f"touch {trap}"),)}, os.system],
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("refused", HOSTILE)
def test_what_would_run_code_is_refused_by_name_and_not_run(refused, protocol, tmp_path, caught_events):
    trap, path = tmp_path / "trap", tmp_path / "step_0.pkl"
    path.write_bytes(pickle.dumps(HOSTILE[refused](str(trap)), protocol))

    def run():
        with pytest.raises(UnusableFileError, match=refused) as error:
            read_pickle(path)
        assert error.value.code == "refused_pickle"

    caught_events(run)
    assert not trap.exists()


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize(
    ("array", "refused"),
    [
        (numpy.array([Calls(os.system, "true")], dtype=object), "'O8'"),
        (numpy.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), "'V12'"),
        (numpy.array(["2026-11-20"], dtype="datetime64[D]"), "'M8'"),
        (numpy.array(["text"]), "'U4'"),
    ],
)
def test_an_array_of_anything_but_plain_numbers_is_refused(array, refused, protocol):
    with pytest.raises(RefusedPickle, match=refused):
        Machine(pickle.dumps(array, protocol)).run()


@pytest.mark.parametrize(
    ("opcodes", "refused"),
    [
        (b"(ios\nsystem\n.", "INST"),
        (b"(cposix\nsystem\no.", "posix.system"),
        (b"(cbrowsergym.experiments.loop\nStepInfo\no.", "OBJ"),
        (b"Pid\n.", "PERSID"),
        (b"X\x01\0\0\0iQ.", "BINPERSID"),
        (b"\x82\x01.", "EXT1"),
        (b"\x83\x01\0.", "EXT2"),
        (b"\x84\x01\0\0\0.", "EXT4"),
        (b"\x97.", "NEXT_BUFFER"),
        (b")\x98.", "READONLY_BUFFER"),
        (b"I1\n.", "INT"),
        (b"S'a'\n.", "STRING"),
        (b"cbrowsergym.experiments.loop\nStepInfo\n)R.", "it calls browsergym.experiments.loop.StepInfo"),
        (b"cbrowsergym.experiments.loop\nStepInfo\nN\x85\x81.", "with arguments"),
        (b"cbrowsergym.experiments.loop\nStepInfo\n)}\x92.", "NEWOBJ_EX"),
        (b"cnumpy\nndarray\n)\x81.", "an object of a numpy.ndarray"),
        (b"cnumpy\ndtype\n)R.", "unusual arguments"),
        (b"X\x01\0\0\0a)R.", "it calls a str"),
        (b"cbrowsergym.experiments.loop\nStepInfo\n}X\x01\0\0\0aNsb.", "the state of a browsergym"),
        (b"cbrowsergym.experiments.loop\nStepInfo\n)\x81K\x01b.", "not a dict of fields"),
        (b"cbrowsergym.experiments.loop\nStepInfo\n)\x81}K\x01Nsb.", "not a dict of fields"),
        (b"]}b.", "the state of a list"),
        (b"]K\x01K\x02s.", "keys and values to a list"),
        (b"}K\x01a.", "appends to a dict"),
        (b"}(K\x01u.", "keys and values"),
        (b"})K\x01s.", "a key"),
        (b"cos\npath\n.", "os.path"),
        (b"X\x02\0\0\0osX\x06\0\0\0system\x93.", "os.system"),
        (b"K\x01X\x06\0\0\0system\x93.", "other than a string"),
    ],
)
def test_opcodes_that_could_run_code_are_refused(opcodes, refused):
    with pytest.raises(RefusedPickle, match=refused):
        Machine(HEADER + opcodes, ("browsergym.experiments.loop.StepInfo",)).run()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_function_that_an_object_names_is_refused_as_a_value_and_as_a_call(protocol, recorded_class):
    class_ = recorded_class("somebody.agents", "Args")
    for value in (os.system, Calls(os.system, "true"), [Calls(os.system, "true"), class_()]):
        agent = class_()
        agent.__dict__["hook"] = value
        with pytest.raises(RefusedPickle, match="system"):
            Machine(pickle.dumps(agent, protocol)).run()


def test_an_object_of_a_function_is_a_record_and_cannot_be_called():
    # what runs nothing in Python either: os.system has no __new__ that takes no argument
    made = Machine(HEADER + b"cos\nsystem\n\x94)\x81.").run()
    assert (made.class_name, made.fields) == ("os.system", {})
    with pytest.raises(RefusedPickle, match=r"it calls os\.system"):
        Machine(HEADER + b"cos\nsystem\n\x94)\x81h\0X\x04\0\0\0true\x85R.").run()


def test_attributes_named_like_pythons_own_are_only_fields():
    named = b"cbrowsergym.experiments.loop\nStepInfo\n)\x81}"
    fields = b"".join(
        b"X" + struct.pack("<I", len(n)) + n + b"N" for n in (b"__class__", b"__setstate__", b"set_state")
    )
    read = Machine(HEADER + named + b"(" + fields + b"ub.").run()
    assert type(read) is PickledObject
    assert sorted(read.fields) == ["__class__", "__setstate__", "set_state"]


@pytest.mark.parametrize(
    ("data", "limits"),
    [
        (HEADER + b"N0" * 600 + b"N.", Limits(opcodes=1000)),
        (HEADER + b"N" * 1200 + b".", Limits(open_values=1000)),
        (HEADER + b"(" * 1200 + b".", Limits(open_values=1000)),
        (HEADER + b"N" + b"\x94" * 1200 + b".", Limits(memo_entries=1000)),
    ],
)
def test_a_pickle_that_would_cost_too_much_is_refused(data, limits):
    with pytest.raises(RefusedPickle, match="more than 1,000"):
        Machine(data, limits=limits).run()


def test_a_memo_entry_with_a_huge_number_takes_no_room():
    assert Machine(HEADER + b"Nr\xff\xff\xff\xff0j\xff\xff\xff\xff.").run() is None


@pytest.mark.parametrize(
    "opcode",
    [b"B\xff\xff\xff\xff", b"\x8e" + b"\xff" * 8, b"\x96" + b"\xff" * 7 + b"\x7f", b"\x95" + b"\xff" * 8],
)
def test_a_length_beyond_the_end_takes_no_room(opcode):
    with pytest.raises(BrokenPickle, match="broken at or after byte"):
        Machine(HEADER + opcode + b"abc.").run()


def test_values_300_000_deep_end_without_a_crash():
    deep_tuple = HEADER + b")" + b"\x85" * 300_000
    assert isinstance(Machine(deep_tuple + b".").run(), tuple)
    with pytest.raises(RefusedPickle, match="a key"):
        Machine(HEADER + b"}" + deep_tuple[2:] + b"Ns.").run()


def test_an_array_larger_than_its_bytes_is_refused():
    data = pickle.dumps(numpy.zeros((3, 5), "u1"), 4).replace(b"K\x03K\x05\x86", b"K\xffK\xff\x86")
    with pytest.raises(RefusedPickle, match=r"shape \(255, 255\) has 15 bytes"):
        Machine(data).run()


def test_an_archive_that_unpacks_without_end_is_refused_early(tmp_path):
    path = tmp_path / "step_0.pkl.gz"
    packer = zlib.compressobj(wbits=31)
    path.write_bytes(b"".join(packer.compress(bytes(2**20)) for _ in range(64)) + packer.flush())
    with pytest.raises(UnusableFileError, match="more than 1,000,000 bytes") as error:
        read_pickle(path, limits=Limits(unpacked_bytes=1_000_000))
    assert error.value.code == "refused_pickle"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80",
        b"no pickle",
        b"\x80\x04",
        b"\x80\x04]",
        b"\x80\x04X\x09\0\0\0abc",
        b"\x80\x04X\x01\0\0\0\xff.",
        b"\x80\x04\xff.",
        b"\x80\x04X\x01\0\0\0ax)R.",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_no_whole_pickle_says_so(tmp_path, content, packed):
    path = tmp_path / ("a.pkl.gz" if packed else "a.pkl")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(UnusableFileError, match=path.name) as error:
        read_pickle(path)
    assert error.value.code == "not_a_pickle"


def test_a_cut_archive_and_a_missing_file_say_so(tmp_path):
    path = tmp_path / "a.pkl.gz"
    path.write_bytes(gzip.compress(pickle.dumps(["x" * 1000]))[:-10])
    with pytest.raises(UnusableFileError) as cut:
        read_pickle(path)
    with pytest.raises(UnusableFileError) as absent:
        read_pickle(tmp_path / "b.pkl")
    assert (cut.value.code, absent.value.code) == ("not_a_pickle", "unreadable")


# -- fuzzed -------------------------------------------------------------------------------------------------

FORBIDDEN_EVENTS = (
    "import",
    "exec",
    "compile",
    "os.",
    "subprocess.",
    "pickle.",
    "open",
    "socket.",
    "ctypes.",
    "shutil.",
)
_watching = contextvars.ContextVar("_watching", default=False)
_caught: list[str] = []


def _hook(event, _arguments):
    if _watching.get() and event.startswith(FORBIDDEN_EVENTS):
        _caught.append(event)


@pytest.fixture(scope="module")
def caught_events():
    """Runs something; fails when it imports, compiles, opens, starts or unpickles (only `open` of a file)."""
    sys.addaudithook(_hook)  # cannot be taken off; it looks only while a run is on

    def watched(run, allowed=("open",)):
        _caught.clear()
        token = _watching.set(True)
        try:
            return run()
        finally:
            _watching.reset(token)
            assert [event for event in _caught if event not in allowed] == []

    return watched


PIECES = st.sampled_from(
    [
        *(bytes([opcode]) for opcode in range(256)),
        *(b"cos\nsystem\n", b"cbuiltins\neval\n", b"cbuiltins\n__import__\n", b"cfunctools\npartial\n"),
        *(b"cbrowsergym.experiments.loop\nStepInfo\n)\x81", b"cnumpy\ndtype\n", b"cnumpy\nndarray\n"),
        *(b"cnumpy._core.multiarray\n_reconstruct\n", b"cnumpy._core.multiarray\nscalar\n"),
        *(b"X\x02\0\0\0osX\x06\0\0\0system\x93", b"X\x04\0\0\0id>x\x85R", b"X\x02\0\0\0u1\x89\x88\x87R"),
        *(
            b"K\0\x85C\x01b\x87Rb",
            b"(K\x01K\0\x85",
            b"}X\x01\0\0\0aNsb",
            b"\x85R",
            b")R",
            b")\x81",
            b"h\0",
            b"\x94",
        ),
    ]
)


@given(st.lists(PIECES, max_size=40), st.binary(max_size=8))
@example([b"cos\nsystem\n", b"X\x04\0\0\0id>x\x85R"], b".")
@settings(max_examples=examples(600), deadline=None)
def test_no_sequence_of_opcodes_runs_anything(caught_events, pieces, tail):
    data = HEADER + b"".join(pieces) + tail

    def run():
        with contextlib.suppress(RefusedPickle, BrokenPickle):
            Machine(data, limits=Limits(opcodes=500)).run()

    caught_events(run, allowed=())


def test_the_watch_itself_catches_what_python_would_run(caught_events):
    with pytest.raises(AssertionError):
        caught_events(lambda: pickle.loads(HEADER + b"cos.path\njoin\n."))


GENUINE = pickle.dumps(
    {"obs": {"a": [1, 2.5, "x", None, True]}, "array": numpy.arange(4, dtype="u1"), "b": b"bytes"}
)


@given(st.integers(0, len(GENUINE) - 1), st.integers(0, 255), st.integers(0, len(GENUINE)))
@settings(max_examples=examples(600), deadline=None)
def test_a_damaged_pickle_gives_a_value_or_one_of_two_errors(place, byte, length):
    damaged = bytearray(GENUINE)
    damaged[place] = byte
    try:
        Machine(bytes(damaged[:length])).run()
    except (RefusedPickle, BrokenPickle) as error:
        assert str(error)
