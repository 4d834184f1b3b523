"""The warning after many programs of one function: sizes and numbers of arguments that vary, and remedies."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from graphc.base import config
from graphc.base.errors import RecompileWarning
from graphc.calls.recompile_reasons import Key
from graphc.tensors.structure import Branch, Leaf, Open, Structure, numbers

SHOWN = 8
"""Limit on the sizes or values in one line."""
_NUMBERS = (bool, int, float, complex)


class RecompileCount:
    """Counts the programs of one function and warns once."""

    def __init__(self, name: str, names: Callable[[], list[str]]):
        """``names`` returns the names of the arguments by position; it is called only for a warning."""
        self._name, self._names = name, names
        self._count = 0
        self._has_warned = False
        self._keys: list[Key] = []

    def silence(self) -> None:
        """Never warn."""
        self._has_warned = True

    def note(self, key: tuple[Any, ...], stacklevel: int) -> None:
        """Count a program for ``key``, the fields of calls.recompile_reasons.Key. ``stacklevel`` locates the call of
        the function, seen from the caller.
        """
        most = config.read().warn_programs
        if self._has_warned or most <= 0:
            return
        self._count += 1
        self._keys.append(Key(*key))
        if self._count >= most:
            self._has_warned = True
            keys, self._keys = self._keys, []
            warnings.warn(self._message(keys, most), RecompileWarning, stacklevel=stacklevel + 1)

    def _message(self, keys: list[Key], most: int) -> str:
        lines, remedies = variations(keys, self._names())
        if not lines:
            numbers_differ = "numbers compare differently, or " if any(_is_open(k.structure) for k in keys) else ""
            lines = [f"{numbers_differ}a value outside its arguments changed"]
            remedies = ["set GRAPHC_EXPLAIN_RECOMPILES=1 to see which guard failed"]
        remedies.append(f"set GRAPHC_WARN_PROGRAMS over {most}, or to 0 for never, if this is intended")
        head = f"{self._name}: {self._count} programs were compiled, one for each signature of its arguments"
        return "\n".join([head, *(f"  {line}" for line in lines), *(f"  try    {text}" for text in remedies)])


def variations(keys: list[Key], names: list[str]) -> tuple[list[str], list[str]]:
    """Return the differences between signatures, most varied first, and remedies."""
    sizes: dict[tuple[str, int], dict[int, None]] = {}
    values: dict[str, dict[Any, None]] = {}
    for key in keys:
        leaves = iter(key.leaves)
        for title, node in _parts(key.structure, len(key.leaves), names):
            if isinstance(node, Leaf):
                for dim, size in enumerate(next(leaves)[1]):
                    sizes.setdefault((title, dim), {})[size] = None
            elif isinstance(node.value, _NUMBERS) and not isinstance(node, Open):
                values.setdefault(title, {})[node.value] = None
    lines = [(f"argument {t}: dimension {dim} took", "sizes", list(v)) for (t, dim), v in sizes.items() if len(v) > 1]
    remedies = ["pad to a few fixed sizes"] if lines else []
    numbers = [(f"argument {title} took", "values", list(v)) for title, v in values.items() if len(v) > 1]
    if numbers:
        remedies.append(
            "combine numbers only with tensors and numbers; GRAPHC_EXPLAIN_RECOMPILES=1 shows lines that need a value"
        )
    lines = sorted(lines + numbers, key=lambda line: -len(line[2]))
    return [f"{what} {len(v)} {kind} ({_listed(v)})" for what, kind, v in lines], remedies


def _listed(values: list[Any]) -> str:
    return ", ".join([*map(repr, values[:SHOWN]), *(["..."] if len(values) > SHOWN else [])])


def _parts(structure: Structure | int | tuple[int, ...], count: int, names: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield each tensor (as a Leaf) and static value of the arguments with its title, in the order of the tensors."""
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
        path, node = stack.pop()
        if isinstance(node, Branch):
            stack += reversed(_children(path, node))
        else:
            yield _title(path, names), node


def _is_open(structure: Structure | int | tuple[int, ...]) -> bool:
    """Return whether calls pass a number of the structure."""
    return isinstance(structure, Branch) and any(isinstance(number, Open) for _, number in numbers(structure))


def _children(path: tuple[Any, ...], node: Structure, first: int = 0) -> list[tuple[tuple[Any, ...], Structure]]:
    if not isinstance(node, Branch):
        return [(path, node)]
    keys = node.keys or range(first, first + len(node.children))
    return [((*path, key), child) for key, child in zip(keys, node.children, strict=True)]


def _title(path: tuple[Any, ...], names: list[str]) -> str:
    first = path[0] if path else 0
    if isinstance(first, int) and not isinstance(first, bool):
        first = names[first] if first < len(names) else first
    return "".join([str(first), *(f"[{key!r}]" for key in path[1:])])


def argument_names(function: Any) -> list[str]:
    """Return the names of the positional arguments of a function, or of a module's forward."""
    try:
        parameters = inspect.signature(getattr(function, "forward", function)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
