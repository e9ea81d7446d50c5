"""Pickles read without running any of it: a reader of its own for the opcodes that hold data.

Python's unpickler imports what a pickle names and calls it. Overriding its `find_class` does not bound it: it
hashes tuples of tuples used as keys (a few hundred bytes keep it busy for ever, 300,000 levels crash it), and
takes 64 GB for one memo entry with a large number. This reader knows no import and no call: what would make
one is looked up in a list and becomes a `Record` of what the pickle says about the object. Opcodes of
protocols 0 and 1, extension codes, persistent ids and out-of-band buffers are refused. The cost is bounded:
opcodes, values open at a time, memo entries; a key is text or a number, so no hash is slow.
"""

import gzip
import struct
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dataset_script.sources.base import UnusableFileError

PROTOCOLS: Final = (2, 3, 4, 5)
LONGEST_NAME: Final = 300


class RefusedPickle(ValueError):
    """A pickle that asks for something not on the list; the text names it."""


class BrokenPickle(ValueError):
    """Bytes that are no whole pickle; the text says where."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one pickle may hold; a step that shows 50,000 nodes has about 6 million opcodes."""

    unpacked_bytes: int = 300_000_000
    opcodes: int = 15_000_000
    open_values: int = 2_000_000
    memo_entries: int = 8_000_000


def read_pickle(path: Path, also_allowed: Collection[str] = (), limits: Limits | None = None) -> Any:
    """The value in ``<name>.pkl`` or ``<name>.pkl.gz``: Python's plain values and Records of known classes.

    ``also_allowed`` are further classes, each ``module.class``, to keep as Records. Nothing is imported or
    called, whatever the file says. Raises UnusableFileError: "unreadable", "not_a_pickle" (cut off, or
    something else), "refused_pickle" with the name of what was refused.
    """
    limits = limits or Limits()
    data = _unpack(path, limits.unpacked_bytes)
    try:
        return Machine(data, also_allowed, limits).run()
    except RefusedPickle as error:
        raise UnusableFileError("refused_pickle", f"{path.name}: {error}") from error
    except BrokenPickle as error:
        raise UnusableFileError("not_a_pickle", f"{path.name}: {error}") from error


def _unpack(path: Path, most: int) -> bytes:
    """The file's bytes, unpacked when it is compressed, and never more than a byte over ``most`` of them."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnusableFileError("not_a_pickle", f"{path.name}: {error}") from error
    except OSError as error:
        raise UnusableFileError("unreadable", f"{path.name}: {error.strerror or error}") from error
    if len(data) > most:
        raise UnusableFileError("refused_pickle", f"{path.name}: more than {most:,} bytes unpacked")
    return data


def field(value: Any, *names: str) -> Any:
    """What a record or a table holds under a name, and so on inwards; None where there is no such thing."""
    for name in names:
        if isinstance(value, Record):
            value = value.fields.get(name, value.items.get(name))
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


_LOOPS = ("agentlab.experiments.loop", "browsergym.experiments.loop")
_AGENTS = "agentlab.agents"

RECORD_CLASSES: Final = frozenset(
    {
        *(
            f"{loop}.{name}"
            for loop in _LOOPS
            for name in ("ExpArgs", "EnvArgs", "StepInfo", "StepTimestamps")
        ),
        f"{_AGENTS}.agent_args.AgentArgs",
        f"{_AGENTS}.generic_agent.generic_agent.GenericAgentArgs",
        f"{_AGENTS}.generic_agent.generic_agent_prompt.GenericPromptFlags",
        f"{_AGENTS}.dynamic_prompting.ActionFlags",
        f"{_AGENTS}.dynamic_prompting.ObsFlags",
        *(f"browsergym.experiments.benchmark.{name}HighLevelActionSetArgs" for name in ("", "base.")),
        "browsergym.experiments.agent.AgentInfo",
        "bgym.HighLevelActionSetArgs",
        *(
            f"agentlab.llm.llm_utils.{name}"
            for name in ("AIMessage", "BaseMessage", "Discussion", "HumanMessage", "SystemMessage")
        ),
        *(
            f"agentlab.llm.chat_api.{vendor}ModelArgs"
            for vendor in (
                "Anthropic",
                "Azure",
                "HuggingFaceURL",
                "OpenAI",
                "OpenRouter",
                "SelfHosted",
                "VLLM",
            )
        ),
    }
)
"""Dataclasses, and subclasses of dict, that experiments are recorded with."""

_NUMPY = ("numpy.core", "numpy._core")
_RECONSTRUCT: Final = frozenset(f"{core}.multiarray._reconstruct" for core in _NUMPY)
_FROM_BUFFER: Final = frozenset(f"{core}.numeric._frombuffer" for core in _NUMPY)
_SCALAR: Final = frozenset(f"{core}.multiarray.scalar" for core in _NUMPY)
_PATHS: Final = frozenset(
    f"{module}.{kind}Path" for module in ("pathlib", "pathlib._local") for kind in ("Posix", "PurePosix")
)
_DATETIME: Final = "datetime.datetime"
_DTYPE: Final = "numpy.dtype"
_NDARRAY: Final = "numpy.ndarray"

VALUE_MAKERS: Final = frozenset(
    {*_RECONSTRUCT, *_FROM_BUFFER, *_SCALAR, *_PATHS, _DATETIME, _DTYPE, _NDARRAY}
)
"""What pickles build numbers, arrays, paths and times with."""

_PLAIN_DTYPES: Final = MappingProxyType(
    {
        **{"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"},
        **{"f2": "e", "f4": "f", "f8": "d"},
    }
)
"""numpy's short names of plain numbers, with the letter that `struct` has for each."""

MAX_DIMENSIONS: Final = 8
"""A screenshot has three."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name that stands in a pickle, ``module.class``: a text, no class."""

    name: str


@dataclass(slots=True, eq=False)
class Record:
    """What a pickle says of an object: its class's name, its fields, and its items if it is a dict."""

    class_name: str
    fields: dict[str, Any] = dataclass_field(default_factory=dict)
    items: dict[Any, Any] = dataclass_field(default_factory=dict)

    def set_state(self, state: Any) -> None:
        """Take the fields of BUILD: a dict, or a pair of dicts for a class with slots."""
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
        for part in parts:
            if part is None:
                continue
            if not isinstance(part, dict) or not all(isinstance(key, str) for key in part):
                raise RefusedPickle(f"{self.class_name} with a state that is no table of fields")
            self.fields.update(part)


@dataclass(slots=True, eq=False)
class Dtype:
    """numpy's type of numbers; ``order`` is ``<`` or ``>`` once it is built."""

    name: str
    order: str = "<"

    def set_state(self, state: Any) -> None:
        """Take (version, byte order, and five fields that are empty for plain numbers, flags)."""
        usual = (None, None, None, -1, -1, 0)
        if not isinstance(state, tuple) or len(state) != 8 or state[1] not in ("<", ">", "|", "="):
            raise RefusedPickle(f"numpy.dtype {self.name} with an unusual state")
        if state[2:] != usual:
            raise RefusedPickle(f"numpy.dtype {self.name} with parts")
        self.order = ">" if state[1] == ">" else "<"

    @property
    def item_bytes(self) -> int:
        """The size of one number."""
        return int(self.name[1:])


@dataclass(slots=True, eq=False)
class PlainArray:
    """An array of plain numbers as numpy writes it: its bytes are kept, no number is made of them."""

    shape: tuple[int, ...] = (0,)
    dtype: Dtype | None = None
    data: bytes = b""
    is_fortran: bool = False

    def set_state(self, state: Any) -> None:
        """Take (version, shape, dtype, Fortran order, bytes); raises RefusedPickle unless the sizes agree."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise RefusedPickle("numpy.ndarray with an unusual state")
        self.fill(*state[1:])

    def fill(self, shape: Any, dtype: Any, is_fortran: Any, data: Any) -> None:
        """Take the content, checked."""
        if not isinstance(dtype, Dtype) or not isinstance(data, bytes | bytearray):
            raise RefusedPickle("numpy.ndarray of something else than plain numbers")
        if not isinstance(shape, tuple) or len(shape) > MAX_DIMENSIONS:
            raise RefusedPickle("numpy.ndarray with an unusual shape")
        if not all(type(size) is int and 0 <= size < 2**32 for size in shape):
            raise RefusedPickle("numpy.ndarray with an unusual shape")
        if prod(shape) * dtype.item_bytes != len(data):
            raise RefusedPickle(f"numpy.ndarray of shape {shape} with {len(data)} bytes")
        self.shape, self.dtype, self.data, self.is_fortran = shape, dtype, bytes(data), bool(is_fortran)


def make(name: str, arguments: tuple[Any, ...]) -> Any:
    """What REDUCE gives: the value that numpy, pathlib or datetime would make; raises RefusedPickle."""
    if name in _PATHS and all(isinstance(part, str) for part in arguments):
        return Record(name, {"parts": arguments})
    if name == _DATETIME and len(arguments) == 1 and isinstance(arguments[0], bytes):
        return Record(name, {"packed": arguments[0]})
    if name == _DTYPE and len(arguments) == 3 and arguments[1:] == (False, True):
        return _dtype(arguments[0])
    if name in _RECONSTRUCT and arguments == (Named(_NDARRAY), (0,), b"b"):
        return PlainArray()
    if name in _FROM_BUFFER and len(arguments) == 4:
        data, dtype, shape, order = arguments
        array = PlainArray()
        array.fill(shape, dtype, order == "F", data)
        return array
    if name in _SCALAR and len(arguments) == 2:
        return _scalar(*arguments)
    raise RefusedPickle(f"{name} called with unusual arguments")


def _dtype(name: Any) -> Dtype:
    if not isinstance(name, str) or name not in _PLAIN_DTYPES:
        raise RefusedPickle(
            f"numpy.dtype {name[:20]!r}" if isinstance(name, str) else "numpy.dtype of no name"
        )
    return Dtype(name)


def _scalar(dtype: Any, data: Any) -> int | float | bool:
    if not isinstance(dtype, Dtype) or not isinstance(data, bytes) or len(data) != dtype.item_bytes:
        raise RefusedPickle("a numpy scalar that is no plain number")
    return struct.unpack(dtype.order + _PLAIN_DTYPES[dtype.name], data)[0]


def kind_of(value: Any) -> str:
    """What to call a value in a message: a name that stands in the pickle, or the value's type."""
    return value.name if isinstance(value, Named) else type(value).__name__


def plain_key(key: Any) -> Any:
    """A key whose hash is cheap; raises RefusedPickle for any other, such as a tuple of tuples."""
    if key is None or isinstance(key, str | bytes | float) or (isinstance(key, int) and abs(key) < 2**63):
        return key
    raise RefusedPickle(f"a key or set item of type {kind_of(key)}")


class Machine:
    """One run over one pickle's bytes; `run` gives the value, or raises RefusedPickle or BrokenPickle."""

    def __init__(self, data: bytes, also_allowed: Collection[str] = (), limits: Limits | None = None):
        self._data = data
        self._allowed = RECORD_CLASSES | VALUE_MAKERS | frozenset(also_allowed)
        self._limits = limits or Limits()

    def run(self) -> Any:
        """The pickled value, made of Python's plain values, Records and PlainArrays.

        One loop with local variables, the frequent opcodes first: a step has hundreds of thousands of them.
        """
        data, size, limits = self._data, len(self._data), self._limits
        if data[:1] != b"\x80":
            raise BrokenPickle("does not begin like a pickle of protocol 2 or later")
        stack: list[Any] = []
        outer: list[list[Any]] = []  # the stacks below each open mark
        below = 0  # how many values those hold, a mark counted as one
        memo: dict[int, Any] = {}
        at, left = 0, limits.opcodes
        try:
            while left > 0:
                if below + len(stack) > limits.open_values:
                    raise RefusedPickle(f"more than {limits.open_values:,} values open at a time")
                if len(memo) > limits.memo_entries:
                    raise RefusedPickle(f"more than {limits.memo_entries:,} memo entries")
                for _ in range(min(left, _OPCODES_BETWEEN_CHECKS)):
                    opcode = data[at]
                    at += 1
                    if opcode == 0x68:  # BINGET
                        stack.append(memo[data[at]])
                        at += 1
                    elif opcode == 0x94:  # MEMOIZE
                        memo[len(memo)] = stack[-1]
                    elif opcode == 0x8C:  # SHORT_BINUNICODE
                        end = at + 1 + data[at]
                        if end > size:
                            raise IndexError
                        stack.append(str(data[at + 1 : end], "utf-8", "surrogatepass"))
                        at = end
                    elif opcode == 0x6A:  # LONG_BINGET
                        stack.append(memo[int.from_bytes(data[at : at + 4], "little")])
                        at += 4
                    elif opcode == 0x28:  # MARK
                        outer.append(stack)
                        below += len(stack) + 1
                        stack = []
                    elif opcode == 0x7D:  # EMPTY_DICT
                        stack.append({})
                    elif opcode in _AFTER_MARK:
                        values, stack = stack, outer.pop()
                        below -= len(stack) + 1
                        if opcode == 0x75:  # SETITEMS
                            _put(stack[-1], values)
                        elif opcode == 0x65:  # APPENDS
                            _extend(stack[-1], values)
                        elif opcode == 0x74:  # TUPLE
                            stack.append(tuple(values))
                        elif opcode == 0x90:  # ADDITEMS
                            _add(stack[-1], values)
                        else:  # FROZENSET
                            stack.append(frozenset(map(plain_key, values)))
                    elif opcode in _CONSTANTS:
                        stack.append(_CONSTANTS[opcode])
                    elif opcode == 0x5D:  # EMPTY_LIST
                        stack.append([])
                    elif opcode == 0x8F:  # EMPTY_SET
                        stack.append(set())
                    elif opcode in _NUMBERS:
                        form = _NUMBERS[opcode]
                        stack.append(form.unpack_from(data, at)[0])
                        at += form.size
                    elif opcode in _SIZED:
                        width, make_value = _SIZED[opcode]
                        start = at + width
                        end = start + int.from_bytes(data[at:start], "little")
                        if end > size:
                            raise IndexError
                        stack.append(make_value(data[start:end]))
                        at = end
                    elif opcode == 0x61:  # APPEND
                        value = stack.pop()
                        _extend(stack[-1], [value])
                    elif opcode == 0x73:  # SETITEM
                        value, key = stack.pop(), stack.pop()
                        _put(stack[-1], [key, value])
                    elif opcode in _TUPLE_SIZES:
                        values = [stack.pop() for _ in range(_TUPLE_SIZES[opcode])]
                        stack.append(tuple(reversed(values)))
                    elif opcode == 0x71:  # BINPUT
                        memo[data[at]] = stack[-1]
                        at += 1
                    elif opcode == 0x72:  # LONG_BINPUT
                        memo[int.from_bytes(data[at : at + 4], "little")] = stack[-1]
                        at += 4
                    elif opcode == 0x30:  # POP
                        stack.pop()
                    elif opcode == 0x2E:  # STOP
                        return stack.pop()
                    elif opcode == 0x95:  # FRAME
                        if int.from_bytes(data[at : at + 8], "little") > size - at - 8:
                            raise IndexError
                        at += 8
                    elif opcode == 0x80:  # PROTO
                        if data[at] not in PROTOCOLS:
                            raise RefusedPickle(f"protocol {data[at]}")
                        at += 1
                    elif opcode == 0x93:  # STACK_GLOBAL
                        name, module = stack.pop(), stack.pop()
                        stack.append(self._named(module, name))
                    elif opcode == 0x63:  # GLOBAL
                        module, name, at = self._two_lines(at)
                        stack.append(self._named(module, name))
                    elif opcode == 0x52:  # REDUCE
                        arguments, named = stack.pop(), stack.pop()
                        stack.append(_reduced(named, arguments))
                    elif opcode == 0x81:  # NEWOBJ
                        arguments, named = stack.pop(), stack.pop()
                        stack.append(_new(named, arguments))
                    elif opcode == 0x62:  # BUILD
                        state = stack.pop()
                        if not isinstance(stack[-1], Record | Dtype | PlainArray):
                            raise RefusedPickle(f"a state for {kind_of(stack[-1])}")
                        stack[-1].set_state(state)
                    else:
                        raise RefusedPickle(f"opcode {_opcode_name(opcode)}")
                left -= _OPCODES_BETWEEN_CHECKS
        except (IndexError, KeyError, struct.error) as error:
            raise BrokenPickle(f"broken at byte {at}") from error
        except UnicodeDecodeError as error:
            raise BrokenPickle(f"text that is not UTF-8 before byte {at}") from error
        raise RefusedPickle(f"more than {limits.opcodes:,} opcodes")

    def _named(self, module: Any, name: Any) -> "Named":
        """A name that the list holds: it is looked up, never imported and never called."""
        if not isinstance(module, str) or not isinstance(name, str):
            raise RefusedPickle("a class whose name is no text")
        full = f"{module}.{name}"
        if full not in self._allowed:
            raise RefusedPickle(full[:200])
        return Named(full)

    def _two_lines(self, at: int) -> tuple[str, str, int]:
        """Module and name, each up to its line's end, and the place after them."""
        lines = []
        for _ in range(2):
            end = self._data.find(b"\n", at, at + LONGEST_NAME)
            if end < 0:
                raise IndexError
            lines.append(self._data[at:end].decode())
            at = end + 1
        return lines[0], lines[1], at


def _extend(target: Any, values: list[Any]) -> None:
    if not isinstance(target, list):
        raise RefusedPickle(f"a list's items for {kind_of(target)}")
    target.extend(values)


def _put(target: Any, pairs: list[Any]) -> None:
    if isinstance(target, Record):
        target = target.items
    if not isinstance(target, dict) or len(pairs) % 2:
        raise RefusedPickle(f"a dict's items for {kind_of(target)}")
    keys = pairs[::2]
    if not {str}.issuperset(map(type, keys)):
        keys = map(plain_key, keys)
    target.update(zip(keys, pairs[1::2], strict=True))


def _add(target: Any, values: list[Any]) -> None:
    if not isinstance(target, set):
        raise RefusedPickle(f"a set's items for {kind_of(target)}")
    target.update(map(plain_key, values))


def _reduced(named: Any, arguments: Any) -> Any:
    if not isinstance(named, Named) or not isinstance(arguments, tuple):
        raise RefusedPickle(f"a call of {kind_of(named)}")
    if named.name not in VALUE_MAKERS:
        raise RefusedPickle(f"a call of {named.name}")
    return make(named.name, arguments)


def _new(named: Any, arguments: Any) -> "Record":
    if not isinstance(named, Named) or named.name in VALUE_MAKERS:
        raise RefusedPickle(f"an object of {kind_of(named)}")
    if arguments != ():
        raise RefusedPickle(f"{named.name} made with arguments")
    return Record(named.name)


def _opcode_name(opcode: int) -> str:
    from pickletools import code2op  # a large module; wanted only to say what was refused

    known = code2op.get(chr(opcode))
    return known.name if known else f"0x{opcode:02x}"


def _text(raw: bytes) -> str:
    return str(raw, "utf-8", "surrogatepass")


def _long(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


_OPCODES_BETWEEN_CHECKS: Final = 256
_AFTER_MARK: Final = frozenset(b"uet\x90\x91")
_CONSTANTS: Final = {0x4E: None, 0x88: True, 0x89: False, 0x29: ()}
_TUPLE_SIZES: Final = {0x85: 1, 0x86: 2, 0x87: 3}
_NUMBERS: Final = {
    0x4B: struct.Struct("<B"),
    0x4D: struct.Struct("<H"),
    0x4A: struct.Struct("<i"),
    0x47: struct.Struct(">d"),
}
_SIZED: Final = {
    0x58: (4, _text),  # BINUNICODE
    0x8D: (8, _text),
    0x43: (1, bytes),  # SHORT_BINBYTES
    0x42: (4, bytes),
    0x8E: (8, bytes),
    0x96: (8, bytes),  # BYTEARRAY8
    0x8A: (1, _long),
}
"""Opcodes with a length in front, how many bytes that has, and what becomes of the content."""
