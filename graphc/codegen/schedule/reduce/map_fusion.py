"""Vertical fusion of a map with a column reduction: rows that both access are read once from memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from graphc.base.records import dataclass
from graphc.base.sizes.size import always, hint
from graphc.codegen.schedule.loops.transform import block_index, merge_loops, wrap
from graphc.codegen.schedule.reduce.column_reduction import Ahead, ColumnSums
from graphc.ir.kernel.access import access
from graphc.ir.kernel.index import Axis, Index, bounds
from graphc.ir.kernel.map import BodyCopier, Names, is_leaf, rename_buffers, substitute_axes
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Load, Loop, Program, Stmt, Store, walk


@dataclass(frozen=True)
class RowSums:
    """A kernel that adds up all rows in order."""

    kernel: Kernel
    sums: ColumnSums
    build: Callable[[Ahead], Kernel]
    """Function that returns the same kernel with statements before rows are added."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.sums.loop.axis.extent

    @property
    def width(self) -> int:
        """Number of elements of a row."""
        return self.sums.columns.extent


def fuse_maps(program: Program, rows: Kernel, first: Call, sums: RowSums, second: Call) -> tuple[Kernel, Call] | None:
    """Fuse a call of ``rows`` and the call of ``sums`` right after it into one kernel, with its call.

    Returns None where the sums read much besides the buffers of ``rows``, or rows not computed yet, or where ``rows``
    is not a single loop.
    """
    names = Names("j")
    nest = _row_loop(rows, sums, names)
    bound = dict(zip((b.name for b in rows.arguments), first.args, strict=True))
    summed = dict(zip((b.name for b in sums.kernel.arguments), second.args, strict=True))
    if nest is None or not _share_rows(program, rows, bound, sums, summed, nest):
        return None
    sum_buffers = {storage: name for name, storage in summed.items()}
    renamed = {name: sum_buffers.get(storage, f"row{i}") for i, (name, storage) in enumerate(bound.items())}
    renamed |= {b.name: f"row_{b.name}" for b in rows.buffers if b.role == "scratch"}
    body = rename_buffers(nest.body, renamed)

    def ahead(start: Index, count: int) -> tuple[Stmt, ...]:
        row = names.axis("i", count)
        return wrap([(row, "parallel")], BodyCopier(names, {nest.axis: block_index(0, (row, 1)) + start}).body(body))

    built = sums.build(ahead)
    own = {renamed[b.name]: replace(b, name=renamed[b.name]) for b in rows.buffers}
    shared = [replace(b, role=_role(own[b.name], b)) if b.name in own else b for b in built.buffers]
    others = [b for n, b in own.items() if n not in summed]
    buffers = sorted((*shared, *others), key=lambda b: b.role == "scratch")
    storages = summed | {renamed[name]: storage for name, storage in bound.items()}
    kernel = Kernel(f"{rows.name}_{built.name}", tuple(buffers), built.body, (*rows.origin, *built.origin))
    args = tuple(storages[b.name] for b in kernel.arguments)
    return kernel, replace(second, kernel=kernel.name, args=args, values=(*first.values, *second.values))


def _role(of_rows: Buffer, of_sums: Buffer) -> str:
    return of_sums.role if of_rows.role == "in" else of_rows.role


def _row_loop(kernel: Kernel, sums: RowSums, names: Names) -> Loop | None:
    """Return the loop over rows that makes up a kernel, or None; split a loop over all elements into rows."""
    body = merge_loops(kernel.body, names)
    outer = body[0] if len(body) == 1 else None
    if not isinstance(outer, Loop) or outer.kind != "parallel":
        return None
    if outer.axis.extent == sums.rows * sums.width and is_leaf(outer):
        row, column = names.axis("i", sums.rows), names.axis("i", sums.width)
        copier = BodyCopier(names, {outer.axis: block_index(0, (row, sums.width), (column, 1))})
        return Loop(row, "parallel", (Loop(column, "parallel", copier.body(outer.body)),))
    inside = [s for s in outer.body if isinstance(s, Loop)]
    flat = all(not isinstance(s, Loop) for loop in inside for s in loop.body)
    short = all(hint(loop.axis.extent) <= sums.sums.costs.longer_row * hint(sums.width) for loop in inside)
    return outer if outer.axis.extent == sums.rows and inside and flat and short else None


def _share_rows(
    program: Program, rows: Kernel, bound: Mapping[str, str], sums: RowSums, summed: Mapping[str, str], nest: Loop
) -> bool:
    """Check whether the sums read little besides the buffers of ``rows``, and only the current row of written ones."""
    shared = {*bound.values(), *summed.values()}
    if any(s.alias and (s.name in shared or s.alias in shared) for s in program.storages):
        return False
    touched = {storage: rows.buffer(name) for name, storage in bound.items()}
    for buffer in sums.kernel.arguments:
        large = 2 * hint(buffer.size) >= hint(sums.rows * sums.width)
        if buffer.role == "in" and large and summed[buffer.name] not in touched:
            return False
    if any(isinstance(s, Store) and s.combine for s, _ in walk(rows.body)):
        return False
    written = {storage: b.name for storage, b in touched.items() if b.role != "in"}
    for name, storage in summed.items():
        if storage in written and not _same_rows(nest, written[storage], sums, name):
            return False
    return True


def _same_rows(nest: Loop, written: str, sums: RowSums, read: str) -> bool:
    """Check whether one kernel writes a buffer row by row, and the other reads it row by row."""
    buffer = sums.kernel.buffer(read)
    width, rest = divmod(buffer.size, sums.rows)
    if rest or not width:
        return False
    own = [(s.index, nest.axis) for s, _ in walk(nest.body) if isinstance(s, Store | Load) and s.buffer == written]
    used = [(s.index, sums.sums.loop.axis) for s in sums.sums.body if isinstance(s, Load) and s.buffer == read]
    return all(_in_row(index, row, width) for index, row in (*own, *used))


def _in_row(index: Index, row: Axis, width: int) -> bool:
    """Check whether an index stays within the ``width`` elements of a row."""
    low, high = bounds(substitute_axes(index, {row: 0}))
    return access(index, row, ()).stride == width and always("<=", 0, low) and always("<=", high, width - 1)
