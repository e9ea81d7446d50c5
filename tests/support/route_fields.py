"""FastAPI with one validator for all fields that are declared alike: tests make hundreds of applications."""

from fastapi._compat.v2 import ModelField
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo


def share_validators() -> None:
    """Building its fields' validators takes half of the time in which an application gets its routes."""
    make, made = ModelField.__post_init__, dict[str, TypeAdapter]()

    def make_or_share(field: ModelField) -> None:
        declared = f"{field.field_info.annotation!r} {FieldInfo.__repr__(field.field_info)} {field.config!r}"
        if any(sign in declared for sign in ("<locals>", " at 0x")):  # two may look alike and differ
            make(field)
            return
        if declared not in made:
            make(field)
            made[declared] = field._type_adapter
        field._type_adapter = made[declared]

    ModelField.__post_init__ = make_or_share
