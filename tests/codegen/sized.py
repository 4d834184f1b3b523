"""Kernels and programs that are scheduled once for all sizes of their dimensions, checked at many of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.ir.kernel.dims import bind, bind_kernel
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Call, Kernel, Program, Storage
from graphc.ir.kernel.verify import verify_kernel, verify_program
from tests.codegen.kernel_native import check_equivalent, interpreted, random_memory
from tests.native import Tolerance

Sizes = Mapping[str, int]
"""A size for each dimension."""


def around(target: Target, *more: int) -> list[int]:
    """Lengths at which loops over vectors of f32 change their course."""
    lanes = target.vector_bytes // 4
    return [*range(1, 4), lanes - 1, lanes, lanes + 1, 2 * lanes - 1, 4 * lanes, 5 * lanes + 3, *more]


def check_sizes(before: Kernel, after: Kernel, sizes: Iterable[Sizes]) -> None:
    """A kernel that was made of another one for all sizes is valid for all, and means the same at those given."""
    verify_kernel(after)
    for given in sizes:
        check_equivalent(bind_kernel(before, given), bind_kernel(after, given))


def single(kernel: Kernel) -> Program:
    """A program that calls the kernel once; everything it writes is a state."""
    arguments = sorted(kernel.arguments, key=lambda b: b.role != "in")
    storages = [Storage(b.name, b.dtype, (b.size,), "input" if b.role == "in" else "state", b.name) for b in arguments]
    call = Call(kernel.name, tuple(b.name for b in kernel.arguments))
    return Program("test", tuple(storages), (kernel,), (call,))


def check_schedule(kernel: Kernel, target: Target, sizes: Sequence[Sizes]) -> Program:
    """The kernel scheduled once, with what it wants packed, is what it was at every one of the sizes; returns that
    program, which is valid for all sizes."""
    program = schedule_program(single(kernel), target)
    verify_program(program)
    own = [s.name for s in program.storages if s.cls in ("input", "state")]
    for given in sizes:
        bound, plain = bind(program, given), bind_kernel(kernel, given)
        verify_program(bound)
        memory = random_memory(plain)
        arrays = [memory[name].copy() for name in own]
        run_program(bound, arrays)
        expected = interpreted(plain, memory)
        Tolerance().check(arrays, [expected[name] for name in own], f"{target.cpu} {given}")
    return program
