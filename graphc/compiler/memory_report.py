"""Report of a memory budget: values kept for the backward pass, and values computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.ir.graph.graph import Node
from graphc.passes.operand_access import is_virtual
from graphc.recompute.cut import Choice, Recomputation

_LINES = 40
"""Limit on the modules in the text; the record has all."""


@dataclass(frozen=True)
class ModuleMemory:
    """Values of one module."""

    module: str
    """The dotted path of the module; empty for values outside any module."""
    ops: tuple[str, ...]
    """Names of the ops that compute them."""
    nbytes: int
    nanoseconds: float = 0.0
    """Estimated time for computing them again."""


@dataclass(frozen=True)
class MemoryReport:
    """The plan of a program under a memory budget. Sizes are bytes of the arena; of values in the parts."""

    name: str
    budget: int
    before: int
    """Bytes without a budget."""
    after: int
    kept: tuple[ModuleMemory, ...] = ()
    """Values in memory from the forward to the backward pass, largest first."""
    again: tuple[ModuleMemory, ...] = ()
    """Values computed again in the backward pass, largest first."""

    @property
    def nanoseconds(self) -> float:
        """Estimated time of all recomputations."""
        return sum(group.nanoseconds for group in self.again)

    def __str__(self) -> str:
        head = f"{self.name}: {_size(self.after)} of temporary memory, {_size(self.before)} without a budget"
        if not self.again:
            return f"{head}; nothing is computed again"
        lines = [f"{head}, {_size(self.budget)} allowed"]
        kept_bytes, again_bytes = (sum(group.nbytes for group in groups) for groups in (self.kept, self.again))
        lines.append(f"computed again: {_size(again_bytes)} of values, about {self.nanoseconds / 1e6:.2f} ms")
        lines += _table(self.again, lambda group: f"{group.nanoseconds / 1e6:9.3f} ms")
        lines.append(f"kept for the backward part: {_size(kept_bytes)}")
        lines += _table(self.kept, lambda group: "")
        return "\n".join(lines)


def report_of(
    name: str,
    budget: int,
    before: int,
    after: int,
    recomputation: Recomputation | None = None,
    choice: Choice | None = None,
) -> MemoryReport:
    """Return the report of a choice, or of a program that fits unchanged."""
    if recomputation is None or choice is None:
        return MemoryReport(name, budget, before, after)
    again_nodes = [n for n in choice.second.again if not is_virtual(n)]
    kept_nodes = [v.node for v in recomputation.kept_values(choice.second)]
    return MemoryReport(
        name, budget, before, after, _parts(kept_nodes, recomputation, False), _parts(again_nodes, recomputation, True)
    )


def _parts(nodes: Iterable[Node], recomputation: Recomputation, priced: bool) -> tuple[ModuleMemory, ...]:
    by_module: dict[str, list[Node]] = {}
    for node in dict.fromkeys(nodes):
        by_module.setdefault(node.location.module, []).append(node)
    groups = [
        ModuleMemory(
            module,
            tuple(sorted({n.op.name for n in members})),
            sum(hint(r.type.nbytes) for n in members for r in n.results),
            sum(map(recomputation.price, members)) if priced else 0.0,
        )
        for module, members in by_module.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.nbytes, group.module)))


def _table(groups: Sequence[ModuleMemory], time: Callable[[ModuleMemory], str]) -> list[str]:
    lines = []
    for group in groups[:_LINES]:
        lines.append(
            f"  {_size(group.nbytes):>10} {time(group)} {group.module or '(no module)'}: {', '.join(group.ops)}"
        )
    rest = groups[_LINES:]
    return [*lines, f"  {_size(sum(p.nbytes for p in rest)):>10} in {len(rest)} more"] if rest else lines


def _size(nbytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes} B"
