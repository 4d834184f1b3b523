"""A sum with much behind it as two kernels: the sums alone, and what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.ir.kernel.index import Axis, Index, flatten
from graphc.ir.kernel.map import operands_of, scalars_read
from graphc.ir.kernel.statements import Acc, Buffer, Kernel, Load, Loop, Read, Stmt, Store, walk


def split_epilogue(kernel: Kernel, sums: str) -> tuple[Kernel, Kernel] | None:
    """Needs: a kernel of nested parallel loops with one accumulator inside. Does: makes a kernel that stores what is
    summed in row-major order of the loops into a buffer called ``sums``, its last argument, and one that reads it
    there, where it is the last input. Leaves: two kernels, the second one under the old name; or None."""
    axes, body = nest_of(kernel)
    reads = [s for s in body if isinstance(s, Read)]
    accs = [s for s in body if isinstance(s, Acc)]
    loops = [s for s in body if isinstance(s, Loop)]
    if not axes or len(reads) != 1 or len(accs) != 1 or len(loops) != 1:
        return None
    (read,), (acc,), (loop,) = reads, accs, loops
    place, size = row_major(axes)
    first = _needed(body, loop, acc)
    summing = (*first, acc, loop, read, Store(sums, place, read.name))
    using = [Load(read.name, sums, place, acc.dtype) if s is read else s for s in body if s not in (acc, loop)]
    if any(isinstance(s, Store) for s in first):
        return None
    out, given = Buffer(sums, acc.dtype, size, "out"), Buffer(sums, acc.dtype, size, "in")
    producer = part_of(kernel, f"{kernel.name}_product", axes, summing, (), (out,))
    consumer = part_of(kernel, kernel.name, axes, tuple(using), (given,), ())
    return producer, consumer


def nest_of(kernel: Kernel) -> tuple[list[Axis], tuple[Stmt, ...]]:
    """The axes of the parallel loops around all else, and what is in them."""
    axes: list[Axis] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
        axes.append(body[0].axis)
        body = body[0].body
    return axes, body


def row_major(axes: Sequence[Axis]) -> tuple[Index, int]:
    """The number of an iteration of all axes, and how many there are."""
    strides: list[int] = []
    size: int = 1
    for axis in reversed(axes):
        strides.insert(0, size)
        size = size * axis.extent
    return flatten(axes, strides), size


def _needed(body: Sequence[Stmt], loop: Loop, acc: Acc) -> tuple[Stmt, ...]:
    """The statements before a sum that it needs."""
    names = {name for s, _ in walk((loop,)) for name in scalars_read(s)} | {str(x) for x in operands_of(acc)}
    found: list[Stmt] = []
    for stmt in reversed(body[: body.index(loop)]):
        if getattr(stmt, "name", None) in names and not isinstance(stmt, Acc):
            names |= scalars_read(stmt)
            found.insert(0, stmt)
    return tuple(found)


def part_of(
    old: Kernel,
    name: str,
    axes: Sequence[Axis],
    body: tuple[Stmt, ...],
    before: Sequence[Buffer],
    after: Sequence[Buffer],
) -> Kernel:
    """A kernel of a part of another's statements, with the buffers that it uses."""
    used = {s.buffer for s, _ in walk(body) if isinstance(s, Load | Store)}
    kept = [b for b in old.buffers if b.name in used]
    inputs = [b for b in kept if b.role == "in"]
    others = [b for b in kept if b.role != "in"]
    for axis in reversed(axes):
        body = (Loop(axis, "parallel", body),)
    return replace(old, name=name, buffers=(*inputs, *before, *others, *after), body=body)
