"""Field descriptions of ``--json`` output, declared by the module of each command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Field(NamedTuple):
    """Description of one JSON field, or of several similar ones."""

    path: str
    """``call.median``; ``[]`` marks each element of a list, ``*`` each name of an object whose names are data:
    ``outputs[].name``, ``stages.*``. Fields below one of type ``any`` are not described."""
    type: str
    """``string``, ``integer``, ``number`` (or an integer), ``boolean``, ``null``, ``object``, ``array``, ``any``;
    alternatives are separated by ``or``."""
    meaning: str
    unit: str = ""
    """``s``, ``B``, ``calls/s``; empty for a quantity without a unit."""
    optional: bool = False
    """Whether the field may be absent."""


def below(path: str, fields: Iterable[Field], optional: bool = False) -> tuple[Field, ...]:
    """Return the fields moved into an object at ``path``; ``optional`` marks all of them as optional."""
    return tuple(field._replace(path=f"{path}.{field.path}", optional=optional or field.optional) for field in fields)


def spec_fields(path: str, meaning: str) -> tuple[Field, ...]:
    """Return the fields of a list of inputs or outputs, as ``console.spec_json`` prints them."""
    return (
        Field(f"{path}[]", "object", meaning),
        Field(f"{path}[].name", "string", "its name"),
        Field(f"{path}[].dtype", "string", "element type: f32, i64 ..."),
        Field(f"{path}[].shape[]", "integer or string", "a size, or the expression of a symbolic size", optional=True),
        Field(f"{path}[].equals", "string", "for an integer input that is a size: the size", optional=True),
    )
