"""Read pickles without running anything: `pickletools` finds the opcodes, and only data is read.

Python's unpickler imports and calls what a pickle names. Overriding its `find_class` is not enough: the
unpickler hashes tuples of tuples used as keys (a few hundred bytes keep it busy forever, 300,000 levels crash
it), and takes 64 GB for one memo entry with a large number. Running it in a child process with limits on
memory and time fails 34 of our 118 tests with hostile pickles, since it accepts opcodes that must be refused
and does not count opcodes.

This reader cannot import or call anything. An object of any class becomes a `PickledObject`. A class or
function that is named for another purpose, such as a call, is refused unless it is on a list. Opcodes of
protocols 0 and 1, extension codes, persistent ids and out-of-band buffers are refused. The numbers of
opcodes, open values and memo entries are limited. Keys must be strings or numbers, so no hash is slow.
"""

import encodings.raw_unicode_escape  # noqa: F401 - `pickletools` would import it when it meets a text
import gzip
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from pickletools import genops
from typing import Any, Final

from dataset_script.sources.pickle_values import (
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
from dataset_script.sources.problems import UnusableFileError

PROTOCOLS: Final = (2, 3, 4, 5)
Stack = list[Any]


class BrokenPickle(ValueError):
    """Raised for bytes that are not a complete pickle; the message says where."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one pickle. A step that shows 50,000 nodes has about 6 million opcodes."""

    unpacked_bytes: int = 300_000_000
    opcodes: int = 15_000_000
    open_values: int = 2_000_000
    memo_entries: int = 8_000_000


def read_pickle(path: Path, also_allowed: Collection[str] = (), limits: Limits = Limits()) -> Any:
    """Return the value in ``<name>.pkl`` or ``<name>.pkl.gz``, made of plain values and PickledObjects.

    Nothing is imported or called. ``also_allowed`` are classes, each as ``module.class``, that a pickle may
    name for any purpose. Raises UnusableFileError: "unreadable", "not_a_pickle" (such as a file that was cut
    off), or "refused_pickle" with the name of what was refused.
    """
    data = _unpack(path, limits.unpacked_bytes)
    try:
        return Machine(data, also_allowed, limits).run()
    except RefusedPickle as error:
        raise UnusableFileError("refused_pickle", f"{path.name}: {error}") from error
    except BrokenPickle as error:
        raise UnusableFileError("not_a_pickle", f"{path.name}: {error}") from error


def _unpack(path: Path, most: int) -> bytes:
    """Return the file's bytes, unpacked. Raises UnusableFileError if there are more than ``most``."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnusableFileError("not_a_pickle", f"{path.name}: {error}") from error
    except OSError as error:
        raise UnusableFileError("unreadable", f"{path.name}: {error.strerror or error}") from error
    if len(data) > most:
        raise UnusableFileError(
            "refused_pickle", f"{path.name}: it has more than {most:,} bytes after unpacking"
        )
    return data


class Machine:
    """An interpreter of one pickle. `run` returns the value, or raises RefusedPickle or BrokenPickle."""

    def __init__(self, data: bytes, also_allowed: Collection[str] = (), limits: Limits = Limits()):
        self._data = data
        self._allowed = VALUE_MAKERS | frozenset(also_allowed)
        self._limits = limits
        self._stack: Stack = []
        self._outer: list[Stack] = []  # the stacks below each open mark
        self._below = 0  # how many values they hold; a mark counts as one
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Return the value, made of Python's plain values, PickledObjects and PlainArrays."""
        if self._data[:1] != b"\x80":
            raise BrokenPickle("does not begin like a pickle of protocol 2 or later")
        after = 0
        try:
            for count, ((opcode, argument, _), (_, _, place)) in enumerate(pairwise(genops(self._data))):
                if count % _OPCODES_BETWEEN_CHECKS == 0:
                    self._check_cost(count)
                after = place or 0  # bytes always have places
                self._take(opcode.name, argument, after)
            return self._stack.pop()  # the last opcode, STOP
        except RefusedPickle:
            raise
        except (IndexError, KeyError, ValueError) as error:
            raise BrokenPickle(f"broken at or after byte {after}") from error

    def _check_cost(self, opcodes: int) -> None:
        limits = self._limits
        if opcodes > limits.opcodes:
            raise RefusedPickle(f"it has more than {limits.opcodes:,} opcodes")
        if self._below + len(self._stack) > limits.open_values:
            raise RefusedPickle(f"it has more than {limits.open_values:,} unfinished values at a time")
        if len(self._memo) > limits.memo_entries:
            raise RefusedPickle(f"it has more than {limits.memo_entries:,} memo entries")

    def _take(self, opcode: str, argument: Any, after: int) -> None:
        """Execute an opcode; ``after`` is the place of the next one. Frequent opcodes are tested first."""
        stack, memo = self._stack, self._memo
        if opcode in _VALUES:
            stack.append(argument)
        elif opcode in _GETS:
            stack.append(memo[argument])
        elif opcode == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif opcode == "MARK":
            self._outer.append(stack)
            self._below += len(stack) + 1
            self._stack = []
        elif opcode in _AFTER_MARK:
            self._stack = self._outer.pop()
            self._below -= len(self._stack) + 1
            _AFTER_MARK[opcode](self._stack, stack)
        elif opcode in _CONSTANTS:
            stack.append(_CONSTANTS[opcode])
        elif opcode in _ON_STACK:
            _ON_STACK[opcode](stack)
        elif opcode in _PUTS:
            memo[argument] = stack[-1]
        else:
            self._take_seldom(opcode, argument, after)

    def _take_seldom(self, opcode: str, argument: Any, after: int) -> None:
        """Execute an opcode of a frame, the protocol or a name. Raises RefusedPickle for other opcodes."""
        if opcode == "FRAME":
            if argument > len(self._data) - after:
                raise IndexError
        elif opcode == "PROTO":
            if argument not in PROTOCOLS:
                raise RefusedPickle(f"it has protocol {argument}")
        elif opcode == "STACK_GLOBAL":
            name, module = self._stack.pop(), self._stack.pop()
            self._stack.append(self._named(module, name, after))
        elif opcode == "GLOBAL":
            module, name = argument.split(" ", 1)
            self._stack.append(self._named(module, name, after))
        else:
            raise RefusedPickle(f"it has the opcode {opcode}")

    def _named(self, module: Any, name: Any, after: int) -> Named:
        """Return the name if it is allowed or used only to make an object. Otherwise raise RefusedPickle."""
        if not isinstance(module, str) or not isinstance(name, str):
            raise RefusedPickle("it names a class by something other than a string")
        full = f"{module}.{name}"
        if full not in self._allowed and not self._makes_object(after):
            raise RefusedPickle(full[:200])
        return Named(full)

    def _makes_object(self, at: int) -> bool:
        """Return whether the next opcodes make an object without arguments, ignoring frames and the memo."""
        while self._data[at] in _BEFORE_OBJECT:
            at += _BEFORE_OBJECT[self._data[at]]
        return self._data[at : at + 2] == b")\x81"  # EMPTY_TUPLE, NEWOBJ


def _set_items(stack: Stack, pairs: list[Any]) -> None:
    target = stack[-1]
    if isinstance(target, PickledObject):
        target = target.items
    if not isinstance(target, dict) or len(pairs) % 2:
        raise RefusedPickle(f"it adds keys and values to a {kind_of(target)}")
    keys = pairs[::2]
    if not {str}.issuperset(map(type, keys)):
        keys = list(map(plain_key, keys))
    target.update(zip(keys, pairs[1::2], strict=True))


def _append_items(stack: Stack, values: list[Any]) -> None:
    if not isinstance(stack[-1], list):
        raise RefusedPickle(f"it appends to a {kind_of(stack[-1])}")
    stack[-1].extend(values)


def _add_items(stack: Stack, values: list[Any]) -> None:
    if not isinstance(stack[-1], set):
        raise RefusedPickle(f"it adds set items to a {kind_of(stack[-1])}")
    stack[-1].update(map(plain_key, values))


def _last(stack: Stack, count: int) -> list[Any]:
    """Remove the last ``count`` values from the stack and return them. Raises IndexError if it has fewer."""
    if len(stack) < count:
        raise IndexError
    values = stack[-count:]
    del stack[-count:]
    return values


def _reduce(stack: Stack) -> None:
    named, arguments = _last(stack, 2)
    if not isinstance(named, Named) or not isinstance(arguments, tuple):
        raise RefusedPickle(f"it calls a {kind_of(named)}")
    if named.name not in VALUE_MAKERS:
        raise RefusedPickle(f"it calls {named.name}")
    stack.append(make(named.name, arguments))


def _new_object(stack: Stack) -> None:
    named, arguments = _last(stack, 2)
    if not isinstance(named, Named) or named.name in VALUE_MAKERS:
        raise RefusedPickle(f"it makes an object of a {kind_of(named)}")
    if arguments != ():
        raise RefusedPickle(f"it makes {named.name} with arguments")
    stack.append(PickledObject(named.name))


def _build(stack: Stack) -> None:
    state = stack.pop()
    if not isinstance(stack[-1], PickledObject | Dtype | PlainArray):
        raise RefusedPickle(f"it sets the state of a {kind_of(stack[-1])}")
    stack[-1].set_state(state)


_OPCODES_BETWEEN_CHECKS: Final = 256
_BEFORE_OBJECT: Final = {0x94: 1, 0x71: 2, 0x72: 5, 0x95: 9}
"""The opcodes MEMOIZE, BINPUT, LONG_BINPUT and FRAME, with their lengths in bytes."""
_GETS: Final = frozenset({"BINGET", "LONG_BINGET"})
_PUTS: Final = frozenset({"BINPUT", "LONG_BINPUT"})
_CONSTANTS: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_VALUES: Final = frozenset(
    {"BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
    | {"BINBYTES", "BINBYTES8", "SHORT_BINBYTES", "BYTEARRAY8"}
)
"""Opcodes whose argument is a value."""
_AFTER_MARK: Final[dict[str, Callable[[Stack, list[Any]], None]]] = {
    "SETITEMS": _set_items,
    "APPENDS": _append_items,
    "TUPLE": lambda stack, values: stack.append(tuple(values)),
    "ADDITEMS": _add_items,
    "FROZENSET": lambda stack, values: stack.append(frozenset(map(plain_key, values))),
}
"""Opcodes that use the values since the last mark. The functions take the stack below it and the values."""
_ON_STACK: Final[dict[str, Callable[[Stack], Any]]] = {
    "EMPTY_DICT": lambda stack: stack.append({}),
    "EMPTY_LIST": lambda stack: stack.append([]),
    "EMPTY_SET": lambda stack: stack.append(set()),
    "TUPLE1": lambda stack: stack.append(tuple(_last(stack, 1))),
    "TUPLE2": lambda stack: stack.append(tuple(_last(stack, 2))),
    "TUPLE3": lambda stack: stack.append(tuple(_last(stack, 3))),
    "SETITEM": lambda stack: _set_items(stack, _last(stack, 2)),
    "APPEND": lambda stack: _append_items(stack, _last(stack, 1)),
    "POP": lambda stack: stack.pop(),
    "REDUCE": _reduce,
    "NEWOBJ": _new_object,
    "BUILD": _build,
}
"""Opcodes that use only the stack."""
