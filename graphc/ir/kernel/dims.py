"""Named dimensions of kernels and programs: which ones they use, and substitution of numbers for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphc.base.sizes.named_dims import chosen_sizes, dimensions
from graphc.base.sizes.size import Dimension, at, is_size
from graphc.ir.kernel.index import Axis, Div, Dynamic, Index, as_index, sizes_of, total
from graphc.ir.kernel.map import indices_of, map_statements
from graphc.ir.kernel.statements import Bound, Call, Guard, Kernel, Load, Loop, Program, Stmt, Storage, Store, walk


def dims_of_kernel(kernel: Kernel) -> dict[str, Dimension]:
    """Return the dimensions used by a kernel, in order of their names; a kernel remembers them."""
    dims = vars(kernel).get("dims")
    if dims is None:
        dims = vars(kernel)["dims"] = _sorted(dimensions(_kernel_sizes(kernel)))
    return dims


def dims_of_program(program: Program) -> dict[str, Dimension]:
    """Return the dimensions used by a program and its kernels, in order of their names, except those bound by calls."""
    bound_by_calls = dims_of_calls(program)
    return {name: d for name, d in _sorted(dimensions(_program_sizes(program))).items() if name not in bound_by_calls}


def dims_of_calls(program: Program) -> dict[str, Dimension]:
    """Return the dimensions of kernels that calls bind to sizes, in order of their names."""
    return _sorted({d.name: d for call in program.calls for d, _ in call.sizes})


def _sorted(dims: dict[str, Dimension]) -> dict[str, Dimension]:
    return dict(sorted(dims.items()))


def _kernel_sizes(kernel: Kernel) -> Iterator[Any]:
    yield from [b.size for b in kernel.buffers if is_size(b.size)]
    for stmt, _ in walk(kernel.body):
        if isinstance(stmt, Loop):
            yield stmt.axis.extent
        if isinstance(stmt, Load | Store):
            for bound in stmt.guard:
                yield from (bound.low, bound.high)
        for index in indices_of(stmt):
            yield from sizes_of(index)


def _program_sizes(program: Program) -> Iterator[Any]:
    for storage in program.storages:
        yield from (*storage.shape, storage.offset)
        if storage.equals is not None:
            yield storage.equals
    for kernel in program.kernels:
        yield from _kernel_sizes(kernel)
    for call in program.calls:
        yield from (axis.extent for axis in call.loops)
        yield from (size for _, size in call.sizes)
        for offset in call.offsets:
            yield from sizes_of(offset)
    yield from (program.arena, program.scratch)


def bind_kernel(kernel: Kernel, sizes: Mapping[str, Any]) -> Kernel:
    """Substitute sizes for dimensions of a kernel, see ``bind``."""
    return _Binder(chosen_sizes(dims_of_kernel(kernel), sizes)).kernel(kernel)


def bind(program: Program, sizes: Mapping[str, Any]) -> Program:
    """Substitute sizes for dimensions of a program: by name, numbers or other sizes. Other dimensions stay.

    Loops that never run are removed; all else stays as it was compiled for every size. A kernel to which calls pass
    numbers is copied for each of them. Raises ArgumentError for an unknown name and for a number outside of its range.
    """
    inside = chosen_sizes(dims_of_calls(program), {})
    bound = _Binder({**chosen_sizes(dims_of_program(program), sizes), **inside}).program(program)
    return _with_kernels_by_call(bound) if inside else bound


def _with_kernels_by_call(program: Program) -> Program:
    """Specialize kernels to the sizes of calls that pass only numbers."""
    kernels: dict[str, Kernel] = {}
    calls: list[Call] = []
    own = {kernel.name for kernel in program.kernels}
    for call in program.calls:
        kernel, sizes = program.kernel(call.kernel), {d.name: size for d, size in call.sizes}
        if sizes and not any(is_size(size) for size in sizes.values()):
            sizes = {name: size for name, size in sizes.items() if name in dims_of_kernel(kernel)}
            name = "_".join([kernel.name, *map(str, sizes.values())])
            while name in own:
                name += "_"
            kernel = replace(bind_kernel(kernel, sizes), name=name)
            call = replace(call, kernel=kernel.name, sizes=())
        kernels[kernel.name] = kernel
        calls.append(call)
    return replace(program, kernels=tuple(kernels.values()), calls=tuple(calls))


class _Binder:
    """Substitution of sizes: one method per kind of object that contains sizes."""

    def __init__(self, values: Mapping[Dimension, Any]):
        self.values = values

    def size(self, size: Any) -> Any:
        return at(size, self.values)

    def program(self, program: Program) -> Program:
        return replace(
            program,
            storages=tuple(self.storage(s) for s in program.storages),
            kernels=tuple(self.kernel(k) for k in program.kernels),
            calls=tuple(bound for call in program.calls for bound in self.call(call)),
            arena=self.size(program.arena),
            scratch=self.size(program.scratch),
        )

    def storage(self, storage: Storage) -> Storage:
        shape = tuple(self.size(n) for n in storage.shape)
        equals = storage.equals if storage.equals is None else self.size(storage.equals)
        return replace(storage, shape=shape, offset=self.size(storage.offset), equals=equals)

    def call(self, call: Call) -> Sequence[Call]:
        loops = tuple(self.axis(a) for a in call.loops)
        if any(_never_runs(a) for a in loops):
            return ()
        sizes = tuple((d, self.size(size)) for d, size in call.sizes)
        return (replace(call, loops=loops, offsets=tuple(self.index(i) for i in call.offsets), sizes=sizes),)

    def kernel(self, kernel: Kernel) -> Kernel:
        buffers = tuple(replace(b, size=self.size(b.size)) for b in kernel.buffers)
        return replace(kernel, buffers=buffers, body=self.body(kernel.body))

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return map_statements(body, leaf=self.leaf, enter=self.loop)

    def loop(self, loop: Loop) -> Sequence[Stmt]:
        axis = self.axis(loop.axis)
        return () if _never_runs(axis) else (replace(loop, axis=axis, body=self.body(loop.body)),)

    def leaf(self, stmt: Stmt) -> Sequence[Stmt]:
        if not indices_of(stmt):
            return (stmt,)
        changed: dict[str, Any] = {"index": self.index(stmt.index)}  # type: ignore[union-attr]
        if isinstance(stmt, Load | Store):
            changed["guard"] = self.guard(stmt.guard)
        return (replace(stmt, **changed),)

    def guard(self, guard: Guard) -> Guard:
        return tuple(Bound(self.index(b.index), self.size(b.low), self.size(b.high)) for b in guard)

    def axis(self, axis: Axis) -> Axis:
        return axis._replace(extent=self.size(axis.extent)) if is_size(axis.extent) else axis

    def index(self, index: Index) -> Index:
        terms = [self.atom(atom) * self.size(coefficient) for atom, coefficient in index.terms]
        return total(terms, self.size(index.constant))

    def atom(self, atom: Any) -> Index:
        if isinstance(atom, Axis):
            return as_index(self.axis(atom))
        if isinstance(atom, Dynamic):
            return Index(((Dynamic(atom.name, self.size(atom.low), self.size(atom.high)), 1),))
        operand, divisor = self.index(atom.operand), self.size(atom.divisor)
        return operand // divisor if isinstance(atom, Div) else operand % divisor


def _never_runs(axis: Axis) -> bool:
    return type(axis.extent) is int and axis.extent <= 0
