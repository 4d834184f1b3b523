"""The warning after many programs of one function: which sizes and numbers of its arguments vary, and what to do."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from graphc.base import config
from graphc.base.errors import RecompileWarning
from graphc.calls.guards import Key
from graphc.tensors.structure import Branch, Leaf, Open, Structure, numbers

SHOWN = 8
"""Most sizes or values that one line names."""
_NUMBERS = (bool, int, float, complex)


class RecompileCount:
    """Counts the programs of one function and warns once."""

    def __init__(self, name: str, names: Callable[[], list[str]]):
        """``names`` gives the names of the arguments by position, when there is something to tell."""
        self._name, self._names = name, names
        self._count = 0
        self._told = False
        self._keys: list[Key] = []

    def note(self, key: tuple[Any, ...], stacklevel: int) -> None:
        """Counts a program that was made for ``key``, the fields of guards.Key; ``stacklevel`` is that of the call of
        the function, seen from the caller of this."""
        most = config.read().warn_programs
        if self._told or most <= 0:
            return
        self._count += 1
        self._keys.append(Key(*key))
        if self._count >= most:
            self._told = True
            keys, self._keys = self._keys, []
            warnings.warn(self._message(keys, most), RecompileWarning, stacklevel=stacklevel + 1)

    def _message(self, keys: list[Key], most: int) -> str:
        lines, remedies = variations(keys, self._names())
        if not lines:
            asked = "numbers compare in other ways, or " if any(_is_open(k.structure) for k in keys) else ""
            lines = [f"{asked}what it read outside of its arguments changed"]
            remedies = ["GRAPHC_EXPLAIN_RECOMPILES=1 tells which guard did not hold"]
        remedies.append(f"GRAPHC_WARN_PROGRAMS=N with N over {most}, 0 for never, where so many are meant")
        head = f"{self._name}: {self._count} programs were compiled, one for each signature of its arguments"
        return "\n".join([head, *(f"  {line}" for line in lines), *(f"  try    {text}" for text in remedies)])


def variations(keys: list[Key], names: list[str]) -> tuple[list[str], list[str]]:
    """What differs between signatures, what varies most first, and what can be done about it."""
    sizes: dict[tuple[str, int], dict[int, None]] = {}
    values: dict[str, dict[Any, None]] = {}
    for key in keys:
        leaves = iter(key.leaves)
        for title, part in _parts(key.structure, len(key.leaves), names):
            if isinstance(part, Leaf):
                for dim, size in enumerate(next(leaves)[1]):
                    sizes.setdefault((title, dim), {})[size] = None
            elif isinstance(part.value, _NUMBERS) and not isinstance(part, Open):
                values.setdefault(title, {})[part.value] = None
    found = [(f"argument {t}: dimension {dim} took", "sizes", list(v)) for (t, dim), v in sizes.items() if len(v) > 1]
    remedies = ["pad to a few fixed sizes"] if found else []
    numbers = [(f"argument {title} took", "values", list(v)) for title, v in values.items() if len(v) > 1]
    if numbers:
        remedies.append(
            "numbers that only meet tensors and numbers; GRAPHC_EXPLAIN_RECOMPILES=1 tells the line that needs a value"
        )
    found = sorted(found + numbers, key=lambda line: -len(line[2]))
    return [f"{what} {len(v)} {kind} ({_listed(v)})" for what, kind, v in found], remedies


def _listed(values: list[Any]) -> str:
    return ", ".join([*map(repr, values[:SHOWN]), *(["..."] if len(values) > SHOWN else [])])


def _parts(structure: Structure | int | tuple[int, ...], count: int, names: list[str]) -> Iterator[tuple[str, Any]]:
    """Each tensor (as a Leaf) and static value of the arguments with its title, in the order of the tensors."""
    if not isinstance(structure, Branch):
        yield from ((_title((i,), names), Leaf()) for i in range(count))
        return
    stack: list[tuple[tuple[Any, ...], Structure]] = []
    before = 0
    for arguments in structure.children:
        stack += _children((), arguments, before)
        before += len(arguments.children) if isinstance(arguments, Branch) and not arguments.keys else 0
    stack.reverse()
    while stack:
        path, part = stack.pop()
        if isinstance(part, Branch):
            stack += reversed(_children(path, part))
        else:
            yield _title(path, names), part


def _is_open(structure: Structure | int | tuple[int, ...]) -> bool:
    """Whether calls give a number of it."""
    return isinstance(structure, Branch) and any(isinstance(part, Open) for _, part in numbers(structure))


def _children(path: tuple[Any, ...], part: Structure, first: int = 0) -> list[tuple[tuple[Any, ...], Structure]]:
    if not isinstance(part, Branch):
        return [(path, part)]
    keys = part.keys or range(first, first + len(part.children))
    return [((*path, key), child) for key, child in zip(keys, part.children, strict=True)]


def _title(path: tuple[Any, ...], names: list[str]) -> str:
    first = path[0] if path else 0
    if isinstance(first, int) and not isinstance(first, bool):
        first = names[first] if first < len(names) else first
    return "".join([str(first), *(f"[{key!r}]" for key in path[1:])])


def argument_names(function: Any) -> list[str]:
    """Names of the arguments of a function, or of a module's forward, that can be given by position."""
    try:
        parameters = inspect.signature(getattr(function, "forward", function)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
