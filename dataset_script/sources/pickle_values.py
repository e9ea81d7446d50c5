"""Represent the values in a recorded run's pickles without their classes.

Classes are only names here: none is imported or called. An object of any class becomes a record of its
fields, and an array of plain numbers becomes bytes. Calls are refused, except calls of `VALUE_MAKERS` with
their usual arguments.
"""

import struct
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from math import prod
from typing import Any, Final


class RefusedPickle(ValueError):
    """Raised for a pickle that asks for something that is not allowed; the message names it."""


def field(value: Any, *names: str) -> Any:
    """Return the value under a path of names in nested PickledObjects and dicts, or None."""
    for name in names:
        if isinstance(value, PickledObject):
            value = value.fields.get(name, value.items.get(name))
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


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
"""The callables with which pickles build numbers, arrays, paths and times."""

_PLAIN_DTYPES: Final = {
    **{"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"},
    **{"f2": "e", "f4": "f", "f8": "d"},
}
"""numpy's short names of number types, with their format letters in `struct`."""

MAX_DIMENSIONS: Final = 8
"""The maximum number of dimensions of an array. A screenshot has three."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name in a pickle, ``module.class``: a string, not a class."""

    name: str


@dataclass(slots=True, eq=False)
class PickledObject:
    """An object in a pickle: the name of its class, its fields, and its items if it is a dict."""

    class_name: str
    fields: dict[str, Any] = dataclass_field(default_factory=dict)
    items: dict[Any, Any] = dataclass_field(default_factory=dict)

    def set_state(self, state: Any) -> None:
        """Set the fields from the state in a pickle: a dict, or a pair of dicts for a class with slots."""
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
        for part in parts:
            if part is None:
                continue
            if not isinstance(part, dict) or not all(isinstance(key, str) for key in part):
                raise RefusedPickle(f"the state of {self.class_name} is not a dict of fields")
            self.fields.update(part)


@dataclass(slots=True, eq=False)
class Dtype:
    """A number type of numpy; ``order`` is ``<`` or ``>``."""

    name: str
    order: str = "<"

    def set_state(self, state: Any) -> None:
        """Set the byte order from (version, byte order, five fields unused by plain numbers, flags)."""
        usual = (None, None, None, -1, -1, 0)
        if not isinstance(state, tuple) or len(state) != 8 or state[1] not in ("<", ">", "|", "="):
            raise RefusedPickle(f"numpy.dtype {self.name} has an unusual state")
        if state[2:] != usual:
            raise RefusedPickle(f"numpy.dtype {self.name} has fields")
        self.order = ">" if state[1] == ">" else "<"

    @property
    def item_bytes(self) -> int:
        return int(self.name[1:])


@dataclass(slots=True, eq=False)
class PlainArray:
    """An array of plain numbers, with its data as the bytes that numpy wrote."""

    shape: tuple[int, ...] = (0,)
    dtype: Dtype | None = None
    data: bytes = b""
    is_fortran: bool = False

    def set_state(self, state: Any) -> None:
        """Set (version, shape, dtype, Fortran order, bytes). Raises RefusedPickle unless the sizes agree."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise RefusedPickle("a numpy.ndarray has an unusual state")
        self.fill(*state[1:])

    def fill(self, shape: Any, dtype: Any, is_fortran: Any, data: Any) -> None:
        if not isinstance(dtype, Dtype) or not isinstance(data, bytes | bytearray):
            raise RefusedPickle("a numpy.ndarray contains something other than numbers")
        if not isinstance(shape, tuple) or len(shape) > MAX_DIMENSIONS:
            raise RefusedPickle("a numpy.ndarray has an unusual shape")
        if not all(type(size) is int and 0 <= size < 2**32 for size in shape):
            raise RefusedPickle("a numpy.ndarray has an unusual shape")
        if prod(shape) * dtype.item_bytes != len(data):
            raise RefusedPickle(f"a numpy.ndarray of shape {shape} has {len(data)} bytes")
        self.shape, self.dtype, self.data, self.is_fortran = shape, dtype, bytes(data), bool(is_fortran)


def make(name: str, arguments: tuple[Any, ...]) -> Any:
    """Return a stand-in for what one of `VALUE_MAKERS` returns. Raises RefusedPickle for other calls."""
    if name in _PATHS and all(isinstance(part, str) for part in arguments):
        return PickledObject(name, {"parts": arguments})
    if name == _DATETIME and len(arguments) == 1 and isinstance(arguments[0], bytes):
        return PickledObject(name, {"packed": arguments[0]})
    if name == _DTYPE and len(arguments) == 3 and arguments[1:] == (False, True):
        kind = arguments[0]
        if not isinstance(kind, str):
            raise RefusedPickle("a numpy.dtype has no name")
        if kind not in _PLAIN_DTYPES:
            raise RefusedPickle(f"numpy.dtype {kind[:20]!r} is not a type of plain numbers")
        return Dtype(kind)
    if name in _RECONSTRUCT and arguments == (Named(_NDARRAY), (0,), b"b"):
        return PlainArray()
    if name in _FROM_BUFFER and len(arguments) == 4:
        data, dtype, shape, order = arguments
        array = PlainArray()
        array.fill(shape, dtype, order == "F", data)
        return array
    if name in _SCALAR and len(arguments) == 2:
        dtype, data = arguments
        if not isinstance(dtype, Dtype) or not isinstance(data, bytes) or len(data) != dtype.item_bytes:
            raise RefusedPickle("a numpy scalar is not a plain number")
        return struct.unpack(dtype.order + _PLAIN_DTYPES[dtype.name], data)[0]
    raise RefusedPickle(f"it calls {name} with unusual arguments")


def kind_of(value: Any) -> str:
    """Return the name to use for a value in messages: its name in the pickle, or its Python type."""
    return value.name if isinstance(value, Named) else type(value).__name__


def plain_key(key: Any) -> Any:
    """Return the key if its hash is cheap. Raises RefusedPickle for other keys, such as tuples of tuples."""
    if key is None or isinstance(key, str | bytes | float) or (isinstance(key, int) and abs(key) < 2**63):
        return key
    raise RefusedPickle(f"a key or set item has the type {kind_of(key)}")
