"""What a memory budget has led to: what is kept for the backward pass, and what is computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from graphc.base.sizes.size import hint
from graphc.ir.graph.graph import Node
from graphc.passes.operand_access import is_virtual
from graphc.recompute.cut import Choice, Recomputation

_LINES = 40
"""Modules that the text shows; all are in the record."""


@dataclass(frozen=True)
class Part:
    """Values of one module."""

    module: str
    """The dotted path of the module; empty for what is computed outside of any."""
    ops: tuple[str, ...]
    """Names of the ops that make them."""
    nbytes: int
    nanoseconds: float = 0.0
    """Time that computing them again takes, by estimate."""


@dataclass(frozen=True)
class MemoryReport:
    """The plan of a program under a memory budget; sizes are bytes of the arena, those of values."""

    name: str
    budget: int
    before: int
    """What the program takes without a budget."""
    after: int
    kept: tuple[Part, ...] = ()
    """What lies in memory from the forward to the backward part, largest first."""
    again: tuple[Part, ...] = ()
    """What the backward part computes again, largest first."""

    @property
    def nanoseconds(self) -> float:
        """Time that all second computations take, by estimate."""
        return sum(part.nanoseconds for part in self.again)

    def __str__(self) -> str:
        head = f"{self.name}: {_size(self.after)} of temporary memory, {_size(self.before)} without a budget"
        if not self.again:
            return f"{head}; nothing is computed again"
        lines = [f"{head}, {_size(self.budget)} allowed"]
        kept, again = (sum(part.nbytes for part in parts) for parts in (self.kept, self.again))
        lines.append(f"computed again: {_size(again)} of values, about {self.nanoseconds / 1e6:.2f} ms")
        lines += _table(self.again, lambda part: f"{part.nanoseconds / 1e6:9.3f} ms")
        lines.append(f"kept for the backward part: {_size(kept)}")
        lines += _table(self.kept, lambda part: "")
        return "\n".join(lines)


def report_of(
    name: str, budget: int, before: int, after: int, found: Recomputation | None = None, choice: Choice | None = None
) -> MemoryReport:
    """The report of what was chosen, or of a program that fits as it is."""
    if found is None or choice is None:
        return MemoryReport(name, budget, before, after)
    again = [n for n in choice.second.again if not is_virtual(n)]
    kept = [v.node for v in found.kept_values(choice.second)]
    return MemoryReport(name, budget, before, after, _parts(kept, found, False), _parts(again, found, True))


def _parts(nodes: Iterable[Node], found: Recomputation, priced: bool) -> tuple[Part, ...]:
    by_module: dict[str, list[Node]] = {}
    for node in dict.fromkeys(nodes):
        by_module.setdefault(node.location.module, []).append(node)
    parts = [
        Part(
            module,
            tuple(sorted({n.op.name for n in members})),
            sum(hint(r.type.nbytes) for n in members for r in n.results),
            sum(map(found.price, members)) if priced else 0.0,
        )
        for module, members in by_module.items()
    ]
    return tuple(sorted(parts, key=lambda part: (-part.nbytes, part.module)))


def _table(parts: Sequence[Part], time: Callable[[Part], str]) -> list[str]:
    lines = []
    for part in parts[:_LINES]:
        lines.append(f"  {_size(part.nbytes):>10} {time(part)} {part.module or '(no module)'}: {', '.join(part.ops)}")
    rest = parts[_LINES:]
    return [*lines, f"  {_size(sum(p.nbytes for p in rest)):>10} in {len(rest)} more"] if rest else lines


def _size(nbytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes} B"
