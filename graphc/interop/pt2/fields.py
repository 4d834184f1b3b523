"""JSON from a file that nobody vouches for: each field is asked for by the type that belongs there."""

from __future__ import annotations

import json
import math
from typing import Any

from graphc.base.errors import ArtifactError, UnsupportedError

_SHOWN = 60
_SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""Numbers that JSON lacks, as torch writes them."""


class Field:
    """A value of the file and the path to it, which errors name."""

    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str):
        self.value = value
        self.path = path

    def wrong(self, wanted: str) -> ArtifactError:
        """The error that says what belongs here."""
        return ArtifactError(f"{self.path} is {_shown(self.value)}, {wanted} belongs there")

    def unsupported(self, what: str, remedy: str | None = None) -> UnsupportedError:
        """The error that says what of this field graphc does not have."""
        return UnsupportedError(what, where=self.path, remedy=remedy)

    @property
    def is_none(self) -> bool:
        """Whether it is null."""
        return self.value is None

    def text(self) -> str:
        """The text that it is."""
        if type(self.value) is not str:
            raise self.wrong("a text")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if type(self.value) is not bool:
            raise self.wrong("true or false")
        return self.value

    def whole(self, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
        """The whole number that it is, in ``low..high``."""
        if type(self.value) is not int or not low <= self.value <= high:
            raise self.wrong(f"a whole number from {low} to {high}")
        return self.value

    def real(self) -> float:
        """The number that it is."""
        found = _SPECIAL.get(self.value) if type(self.value) is str else self.value
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise self.wrong("a number")
        if isinstance(found, int) and abs(found) >= 1 << 63:
            raise self.wrong("a number")
        return float(found)

    def items(self) -> list[Field]:
        """The parts of a list."""
        if type(self.value) is not list:
            raise self.wrong("a list")
        return [Field(part, f"{self.path}[{i}]") for i, part in enumerate(self.value)]

    def entries(self) -> dict[str, Field]:
        """The parts of an object, by name."""
        if type(self.value) is not dict:
            raise self.wrong("an object")
        return {name: Field(part, f"{self.path}.{name[:_SHOWN]}") for name, part in self.value.items()}

    def record(self, needed: str, others: str = "") -> dict[str, Field]:
        """The parts of an object that has the ``needed`` names, and may have the ``others``, which are null where it
        does not. Raises UnsupportedError for another name that says anything: it may change what the rest means."""
        found = self.entries()
        known = needed.split()
        for name in known:
            if name not in found:
                raise ArtifactError(f"{self.path} lacks {name!r}")
        for name in others.split():
            found.setdefault(name, Field(None, f"{self.path}.{name}"))
        more = [n for n, part in found.items() if n not in known and n not in others.split() and part._says()]
        if more:
            raise self.unsupported(f"a field {more[0]!r}, which is newer than what this graphc knows")
        return found

    def _says(self) -> bool:
        return self.value is not None and self.value not in ([], {}, "", False)

    def union(self) -> tuple[str, Field]:
        """Which of several kinds an object is, and its content."""
        found = self.entries()
        if len(found) != 1:
            raise self.wrong("an object with one name")
        return next(iter(found.items()))

    def other(self, kind: str, known: str) -> ArtifactError:
        """The error for a kind of a union that there is not."""
        return ArtifactError(f"{self.path}: {kind[:_SHOWN]!r} is none of {known}")


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return f"{type(value).__name__} {str(value)[:_SHOWN]!r}" if isinstance(value, (str, int, float)) else "null"


def parse(data: bytes, path: str) -> Field:
    """The JSON text in ``data``; ``path`` is what errors call it. Raises ArtifactError for what is none, numbers that
    do not fit, names that an object has twice, and nesting that is too deep for Python's stack."""
    try:
        text = data.decode("utf-8")
        found = json.loads(text, parse_constant=_no_number, parse_float=_float, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is no JSON text that can be read: {error}"[:300]) from None
    return Field(found, path)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _float(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ValueError(f"the number {text[:_SHOWN]} is too large")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"an object has {twice[:_SHOWN]!r} twice")
    return found
