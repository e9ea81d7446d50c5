"""FastAPI with one validator for all fields that are declared alike: tests make hundreds of applications."""

from collections.abc import Hashable

from fastapi._compat.v2 import ModelField
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo


def share_validators() -> None:
    """Building its fields' validators takes a third of the time in which an application gets its routes.

    Types are compared as such, since two that are made at run time may have the same name.
    """
    make, made = ModelField.__post_init__, dict[Hashable, TypeAdapter]()

    def make_or_share(field: ModelField) -> None:
        annotation, settings = field.field_info.annotation, FieldInfo.__repr__(field.field_info)
        declared = annotation, settings, repr(field.config)
        try:
            known = made.get(declared)
        except TypeError:  # the type cannot be compared
            make(field)
            return
        if known is None or " at 0x" in settings:  # with functions, two may look alike and differ
            make(field)
            made[declared] = field._type_adapter
        else:
            field._type_adapter = known

    ModelField.__post_init__ = make_or_share
