"""Programs and LLVM texts with names that say nothing: numbered in the order in which they appear."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from graphc.files.manifest import PREPACKED
from graphc.ir.kernel.index import Axis, Dynamic, Index, substitute
from graphc.ir.kernel.statements import Acc, IndexLet, Kernel, Let, Load, Loop, Program, Read, walk
from graphc.ir.kernel.text import print_program


class _Names(dict[Any, Any]):
    """New names by old ones."""

    def __init__(self, prefix: str):
        super().__init__()
        self.prefix = prefix

    def number(self, old: str) -> str:
        """Return the new name of ``old``, which gets the next number where it has none yet."""
        return self.setdefault(old, f"{self.prefix}{len(self)}")

    def axis(self, axis: Axis) -> Axis:
        """Return the new axis for ``axis``."""
        return self.setdefault(axis, Axis(f"{self.prefix}{len(self)}", axis.extent))


_WORDS = frozenset({"op", "kind", "combine", "role", "dtype"})
"""Fields of statements whose strings are not names."""


class _KernelNames:
    """The names inside of one kernel."""

    def __init__(self, kernel: Kernel):
        self.buffers, self.axes, self.scalars = _Names("b"), _Names("i"), _Names("v")
        for buffer in kernel.buffers:
            self.buffers.number(buffer.name)
        for statement, _ in walk(kernel.body):
            if isinstance(statement, Loop):
                self.axes.axis(statement.axis)
            elif isinstance(statement, (Let, IndexLet, Load, Acc, Read)):
                self.scalars.number(statement.name)

    def kernel(self, kernel: Kernel, name: str) -> Kernel:
        """Return the kernel under its new name, with new names inside, without the module paths of its origin."""
        buffers = tuple(replace(b, name=self.buffers[b.name]) for b in kernel.buffers)
        return Kernel(name, buffers, self.renamed(kernel.body))

    def renamed(self, node: Any) -> Any:
        """Return any part of a statement."""
        if isinstance(node, Index):
            return substitute(node, self._atom)
        if isinstance(node, Axis):
            return self.axes.axis(node)
        if isinstance(node, tuple):
            return tuple(map(self.renamed, node))
        if isinstance(node, str):
            return self.scalars.get(node, node)
        if not is_dataclass(node) or isinstance(node, type):
            return node
        changed = {f.name: self._field(f.name, getattr(node, f.name)) for f in fields(node) if f.init}
        return type(node)(**changed)

    def _field(self, name: str, value: Any) -> Any:
        if name in _WORDS:
            return value
        return self.buffers[value] if name == "buffer" else self.renamed(value)

    def _atom(self, atom: Axis | Dynamic) -> Axis | Index:
        if isinstance(atom, Axis):
            return self.axes.axis(atom)
        return Index(((replace(atom, name=self.scalars.get(atom.name, atom.name)), 1),))


def canonical_program(program: Program) -> str:
    """Return the text of a scheduled program with numbers for names of storages, kernels, buffers, axes, scalars and
    accumulators. Paths of params and states stay; module paths of kernels, which are for people, are left out."""
    storages, kernels, axes = _Names("s"), _Names("k"), _Names("r")
    for storage in program.storages:
        storages.number(storage.name)
    for kernel in program.kernels:
        kernels.number(kernel.name)
    for axis in (a for call in program.calls for a in call.loops):
        axes.axis(axis)

    def offset(index: Index) -> Index:
        return substitute(index, lambda atom: axes[atom])

    return print_program(
        replace(
            program,
            name="program",
            storages=tuple(
                replace(
                    s,
                    name=storages[s.name],
                    path=PREPACKED if s.path.startswith(PREPACKED) else s.path,
                    alias=storages.get(s.alias, ""),
                )
                for s in program.storages
            ),
            kernels=tuple(_KernelNames(k).kernel(k, kernels[k.name]) for k in program.kernels),
            calls=tuple(
                replace(
                    c,
                    kernel=kernels[c.kernel],
                    args=tuple(storages[a] for a in c.args),
                    values=(),
                    loops=tuple(axes[a] for a in c.loops),
                    offsets=tuple(map(offset, c.offsets)),
                )
                for c in program.calls
            ),
        )
    )


_LOCAL = re.compile(r'%(?:"[^"]*"|[\w.$-]+)|^(?:"[^"]*"|[\w.$-]+)(?=:)', re.MULTILINE)
_GLOBAL = re.compile(r'@(?:"[^"]*"|[\w.$-]+)')
_INTERNAL = re.compile(r'define internal [^@]*(@(?:"[^"]*"|[\w.$-]+))')


def canonical_llvm(text: str) -> str:
    """Return an LLVM module in which values, labels and internal functions have numbers for names; other symbols
    stay."""
    internal = set(_INTERNAL.findall(text))
    functions = _Names("@f")
    text = _GLOBAL.sub(lambda m: functions.number(m[0]) if m[0] in internal else m[0], text)
    head, *bodies = re.split(r"(?m)^(?=define )", text)
    return head + "".join(_LOCAL.sub(_local(_Names("")), body) for body in bodies)


def _local(names: _Names) -> Callable[[re.Match[str]], str]:
    def number(match: re.Match[str]) -> str:
        mark = "%" if match[0].startswith("%") else ""
        return mark + names.number(match[0].removeprefix("%"))

    return number
