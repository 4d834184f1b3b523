"""The fields of what a command prints with ``--json``, as the module of the command states them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Field(NamedTuple):
    """One field, or several that are alike."""

    path: str
    """``call.median``; ``[]`` stands for each element of a list and ``*`` for each name of an object whose names are
    data: ``outputs[].name``, ``stages.*``. What lies below a field of type ``any`` is not stated."""
    type: str
    """``string``, ``integer``, ``number`` (or an integer), ``boolean``, ``null``, ``object``, ``array``, ``any``;
    several are separated by ``or``."""
    meaning: str
    unit: str = ""
    """``s``, ``B``, ``calls/s``; empty for what has none."""
    optional: bool = False
    """Whether it may be absent."""


def below(path: str, fields: Iterable[Field], optional: bool = False) -> tuple[Field, ...]:
    """The same fields in an object at ``path``; ``optional``: which may be absent."""
    return tuple(field._replace(path=f"{path}.{field.path}", optional=optional or field.optional) for field in fields)


def spec_fields(path: str, what: str) -> tuple[Field, ...]:
    """The fields of types of inputs or outputs, as ``console.spec_json`` prints them."""
    return (
        Field(f"{path}[]", "object", what),
        Field(f"{path}[].name", "string", "its name"),
        Field(f"{path}[].dtype", "string", "element type: f32, i64 ..."),
        Field(f"{path}[].shape[]", "integer or string", "a size, or the name of one that is open", optional=True),
        Field(f"{path}[].equals", "string", "of a whole number that is a size, which one", optional=True),
    )
