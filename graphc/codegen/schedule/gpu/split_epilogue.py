"""Split a sum with a long epilogue into two kernels: one for the sums, one for the epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.ir.kernel.index import Axis, Index, flatten
from graphc.ir.kernel.map import operands_of, scalars_read
from graphc.ir.kernel.statements import Acc, Buffer, Kernel, Load, Loop, Read, Stmt, Store, walk


def split_epilogue(kernel: Kernel, sums: str) -> tuple[Kernel, Kernel] | None:
    """Split a kernel into its sums and their epilogue.

    Needs: a kernel of nested parallel loops with one accumulator inside. Does: makes a kernel that stores the sums, in
    row-major order of the loops, into the buffer ``sums``, its last argument. A second kernel reads it as its last
    input. Leaves: two kernels, the second one under the old name; or None for other kernels.
    """
    axes, body = nest_of(kernel)
    reads = [s for s in body if isinstance(s, Read)]
    accs = [s for s in body if isinstance(s, Acc)]
    loops = [s for s in body if isinstance(s, Loop)]
    if not axes or len(reads) != 1 or len(accs) != 1 or len(loops) != 1:
        return None
    (read,), (acc,), (loop,) = reads, accs, loops
    position, size = row_major(axes)
    first = _needed(body, loop, acc)
    summing = (*first, acc, loop, read, Store(sums, position, read.name))
    using = [Load(read.name, sums, position, acc.dtype) if s is read else s for s in body if s not in (acc, loop)]
    if any(isinstance(s, Store) for s in first):
        return None
    output, stored = Buffer(sums, acc.dtype, size, "out"), Buffer(sums, acc.dtype, size, "in")
    producer = part_of(kernel, f"{kernel.name}_product", axes, summing, (), (output,))
    consumer = part_of(kernel, kernel.name, axes, tuple(using), (stored,), ())
    return producer, consumer


def nest_of(kernel: Kernel) -> tuple[list[Axis], tuple[Stmt, ...]]:
    """Return the axes of the parallel loops around the whole body, and that body."""
    axes: list[Axis] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
        axes.append(body[0].axis)
        body = body[0].body
    return axes, body


def row_major(axes: Sequence[Axis]) -> tuple[Index, int]:
    """Return the row-major number of an iteration of all axes, and the number of iterations."""
    strides: list[int] = []
    size: int = 1
    for axis in reversed(axes):
        strides.insert(0, size)
        size = size * axis.extent
    return flatten(axes, strides), size


def _needed(body: Sequence[Stmt], loop: Loop, acc: Acc) -> tuple[Stmt, ...]:
    """Return the statements before a sum on which it depends."""
    names = {name for s, _ in walk((loop,)) for name in scalars_read(s)} | {str(x) for x in operands_of(acc)}
    needed: list[Stmt] = []
    for stmt in reversed(body[: body.index(loop)]):
        if getattr(stmt, "name", None) in names and not isinstance(stmt, Acc):
            names |= scalars_read(stmt)
            needed.insert(0, stmt)
    return tuple(needed)


def part_of(
    old: Kernel,
    name: str,
    axes: Sequence[Axis],
    body: tuple[Stmt, ...],
    before: Sequence[Buffer],
    after: Sequence[Buffer],
) -> Kernel:
    """Return a kernel with some of another's statements in loops over ``axes``, and only the used buffers.

    ``before`` are further inputs, ``after`` further outputs.
    """
    used = {s.buffer for s, _ in walk(body) if isinstance(s, Load | Store)}
    remaining = [b for b in old.buffers if b.name in used]
    inputs = [b for b in remaining if b.role == "in"]
    others = [b for b in remaining if b.role != "in"]
    for axis in reversed(axes):
        body = (Loop(axis, "parallel", body),)
    return replace(old, name=name, buffers=(*inputs, *before, *others, *after), body=body)
