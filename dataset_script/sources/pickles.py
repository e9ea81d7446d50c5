"""Pickles read without running any of it: a reader of its own for the opcodes that hold data.

Python's unpickler imports what a pickle names and calls it. Overriding its `find_class` does not bound it: it
hashes tuples of tuples used as keys (a few hundred bytes keep it busy for ever, 300,000 levels crash it), and
takes 64 GB for one memo entry with a large number. This reader knows no import and no call: what would make
one is looked up in a list and becomes a `PickledObject` of what the pickle says about the object. Opcodes of
protocols 0 and 1, extension codes, persistent ids and out-of-band buffers are refused. The cost is bounded:
opcodes, values open at a time, memo entries; a key is text or a number, so no hash is slow.
"""

import gzip
import struct
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dataset_script.sources.base import UnusableFileError
from dataset_script.sources.pickle_values import (
    RECORD_CLASSES,
    VALUE_MAKERS,
    Dtype,
    Named,
    PickledObject,
    PlainArray,
    RefusedPickle,
    kind_of,
    make,
    plain_key,
)

PROTOCOLS: Final = (2, 3, 4, 5)
LONGEST_NAME: Final = 300


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
    """The value in ``<name>.pkl`` or ``<name>.pkl.gz``: Python's plain values and PickledObjects.

    ``also_allowed`` are further classes, each ``module.class``, to keep so. Nothing is imported or called,
    whatever the file says. Raises UnusableFileError: "unreadable", "not_a_pickle" (cut off, or
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


class Machine:
    """One run over one pickle's bytes; `run` gives the value, or raises RefusedPickle or BrokenPickle."""

    def __init__(self, data: bytes, also_allowed: Collection[str] = (), limits: Limits | None = None):
        self._data = data
        self._allowed = RECORD_CLASSES | VALUE_MAKERS | frozenset(also_allowed)
        self._limits = limits or Limits()

    def run(self) -> Any:
        """The pickled value, made of Python's plain values, PickledObjects and PlainArrays.

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
                        if not isinstance(stack[-1], PickledObject | Dtype | PlainArray):
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

    def _named(self, module: Any, name: Any) -> Named:
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
    if isinstance(target, PickledObject):
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


def _new(named: Any, arguments: Any) -> PickledObject:
    if not isinstance(named, Named) or named.name in VALUE_MAKERS:
        raise RefusedPickle(f"an object of {kind_of(named)}")
    if arguments != ():
        raise RefusedPickle(f"{named.name} made with arguments")
    return PickledObject(named.name)


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
