"""Kernels and programs that are scheduled once for all sizes of their dimensions, checked at many of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.ir.kernel.dims import bind, bind_kernel
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Program, Storage
from graphc.ir.kernel.verify import verify_kernel, verify_program
from tests.codegen.kernel_native import check_equivalent, random_array
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


def check_program(before: Program, after: Program, sizes: Iterable[Sizes], what: str = "") -> None:
    """A program that was made of another one for all sizes is valid for all, and leaves the same in every output and
    state at those given."""
    verify_program(after)
    for given in sizes:
        plain, bound = bind(before, given), bind(after, given)
        verify_program(bound)
        own = [s for s in plain.storages if s.cls in ("input", "param", "state", "weight")]
        buffers = [Buffer(s.name, s.dtype, s.size, "in") for s in own]
        memory = [random_array(b, i).reshape(s.shape) for i, (b, s) in enumerate(zip(buffers, own, strict=True))]
        arrays = [[a.copy() for a in memory] for _ in range(2)]
        expected = [*run_program(plain, arrays[0]), *arrays[0]]
        Tolerance().check([*run_program(bound, arrays[1]), *arrays[1]], expected, f"{what} {given}")


def check_schedule(kernel: Kernel, target: Target, sizes: Iterable[Sizes]) -> Program:
    """The kernel scheduled once, with what it wants packed, is what it was at every one of the sizes; returns that
    program, which is valid for all sizes."""
    program = single(kernel)
    scheduled = schedule_program(program, target)
    check_program(program, scheduled, sizes, target.cpu)
    return scheduled
