"""Comparison of a command's JSON with the fields documented by its module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphc.cli.fields import Field

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
    "any": (object,),
}


def mismatches(value: Any, fields: Sequence[Field]) -> list[str]:
    """Return messages about fields of a value that are undocumented, of another type, or absent."""
    stated = {field.path: field for field in fields}
    messages: list[str] = []
    for path, element in _parts("", value, stated):
        if path not in stated:
            if not any(name.startswith((f"{path}.", f"{path}[]")) for name in stated):
                messages.append(f"{path} is not stated")
        elif not _fits(element, stated[path].type):
            messages.append(f"{path} is {type(element).__name__}, stated is {stated[path].type}")
    paths = {path for path, _ in _parts("", value, stated)}
    objects = {path for path, element in _parts("", value, stated) if isinstance(element, dict)}
    for field in fields:
        parent, _, last = field.path.rpartition(".")
        if not field.optional and "[]" not in last and last != "*" and (not parent or parent in objects):
            messages += [f"{field.path} is absent"] if field.path not in paths else []
    return messages


def _parts(path: str, value: Any, stated: dict[str, Field]) -> Iterator[tuple[str, Any]]:
    if path:
        yield path, value
    if path in stated and stated[path].type == "any":
        return
    if isinstance(value, dict):
        free = f"{path}.*" if path else "*"
        for name, element in value.items():
            own = f"{path}.{name}" if path else name
            is_stated = own in stated or any(s.startswith((f"{own}.", f"{own}[]")) for s in stated)
            is_free = not is_stated and any(s.startswith(free) for s in stated)
            yield from _parts(free if is_free else own, element, stated)
    elif isinstance(value, list):
        for element in value:
            yield from _parts(f"{path}[]", element, stated)


def _fits(value: Any, kinds: str) -> bool:
    types = [kind for name in kinds.split(" or ") for kind in _KINDS[name]]
    if isinstance(value, bool) and object not in types:
        return bool in types
    return isinstance(value, tuple(types))
