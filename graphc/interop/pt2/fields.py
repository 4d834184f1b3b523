"""Typed access to untrusted JSON: each field is read by the type that belongs there."""

from __future__ import annotations

import json
import math
from typing import Any

from graphc.base.errors import ArtifactError, UnsupportedError

_SHOWN = 60
_SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""Numbers that JSON lacks, as torch writes them."""


class Field:
    """Value of the file and its path, which errors name."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str):
        self.value = value
        self.path = path

    def wrong(self, expected: str) -> ArtifactError:
        """Return the error that says which type belongs here."""
        return ArtifactError(f"{self.path} is {_shown(self.value)}, expected {expected}")

    def unsupported(self, what: str, remedy: str | None = None) -> UnsupportedError:
        """Return the error that says which feature of this field graphc lacks."""
        return UnsupportedError(what, where=self.path, remedy=remedy)

    @property
    def is_none(self) -> bool:
        """Check whether it is null."""
        return self.value is None

    def text(self) -> str:
        """Return the string."""
        if type(self.value) is not str:
            raise self.wrong("a string")
        return self.value

    def flag(self) -> bool:
        """Return the boolean."""
        if type(self.value) is not bool:
            raise self.wrong("true or false")
        return self.value

    def integer(self, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
        """Return the integer in ``low..high``."""
        if type(self.value) is not int or not low <= self.value <= high:
            raise self.wrong(f"an integer from {low} to {high}")
        return self.value

    def real(self) -> float:
        """Return the number as a float."""
        number = _SPECIAL.get(self.value) if type(self.value) is str else self.value
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise self.wrong("a number")
        if isinstance(number, int) and abs(number) >= 1 << 63:
            raise self.wrong("a number")
        return float(number)

    def items(self) -> list[Field]:
        """Return the elements of a list."""
        if type(self.value) is not list:
            raise self.wrong("a list")
        return [Field(element, f"{self.path}[{i}]") for i, element in enumerate(self.value)]

    def entries(self) -> dict[str, Field]:
        """Return the members of an object, by name."""
        if type(self.value) is not dict:
            raise self.wrong("an object")
        return {name: Field(member, f"{self.path}.{name[:_SHOWN]}") for name, member in self.value.items()}

    def record(self, needed: str, others: str = "") -> dict[str, Field]:
        """Return the members of an object with the ``needed`` names, and possibly the ``others``.

        Absent ``others`` are null. Raises UnsupportedError for an unknown name with a value: it may change the meaning
        of the rest.
        """
        members = self.entries()
        required = needed.split()
        for name in required:
            if name not in members:
                raise ArtifactError(f"{self.path} lacks {name!r}")
        for name in others.split():
            members.setdefault(name, Field(None, f"{self.path}.{name}"))
        more = [n for n, member in members.items() if n not in required and n not in others.split() and member._says()]
        if more:
            raise self.unsupported(f"the field {more[0]!r} is newer than this version of graphc")
        return members

    def _says(self) -> bool:
        return self.value is not None and self.value not in ([], {}, "", False)

    def union(self) -> tuple[str, Field]:
        """Return the kind of a tagged union, and its content."""
        members = self.entries()
        if len(members) != 1:
            raise self.wrong("an object with one name")
        return next(iter(members.items()))

    def other(self, kind: str, kinds: str) -> ArtifactError:
        """Return the error for an unknown kind of a union."""
        return ArtifactError(f"{self.path}: {kind[:_SHOWN]!r} is not one of {kinds}")


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return f"{type(value).__name__} {str(value)[:_SHOWN]!r}" if isinstance(value, (str, int, float)) else "null"


def parse(data: bytes, path: str) -> Field:
    """Parse the JSON text in ``data``. Errors name it by ``path``.

    Raises ArtifactError for invalid JSON, numbers out of range, duplicate names in an object, and nesting too deep for
    Python's stack.
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_number, parse_float=_float, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is not valid JSON: {error}"[:300]) from None
    return Field(value, path)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:_SHOWN]} is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        earlier: set[str] = set()
        duplicate = next(name for name, _ in pairs if name in earlier or earlier.add(name))
        raise ValueError(f"an object has a duplicate name {duplicate[:_SHOWN]!r}")
    return result
