"""Checks of kernels and programs scheduled once for all sizes, at many sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.base import Context, ProgramPass
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.pipeline import PIPELINE, schedule
from graphc.ir.kernel.dims import bind, bind_kernel
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Buffer, Kernel, Program
from graphc.ir.kernel.verify import verify_kernel, verify_program
from tests.codegen.kernel_native import check_equivalent, random_array, single
from tests.native import Native, Tolerance, why_not_here

Sizes = Mapping[str, int]
"""A size for each dimension."""


def around(target: Target, *more: int) -> list[int]:
    """Lengths at which loops over vectors of f32 change their course."""
    lanes = target.vector_bytes // 4
    return [*range(1, 4), lanes - 1, lanes, lanes + 1, 2 * lanes - 1, 4 * lanes, 5 * lanes + 3, *more]


def check_sizes(before: Kernel, after: Kernel, sizes: Iterable[Sizes]) -> None:
    """Check that a rewritten kernel is valid for all sizes, and equal to the original at the given ones."""
    verify_kernel(after)
    for given in sizes:
        check_equivalent(bind_kernel(before, given), bind_kernel(after, given))


def check_program(before: Program, after: Program, sizes: Iterable[Sizes], target: Target | None = None) -> None:
    """Check that a rewritten program is valid for all sizes, and leaves the same outputs and states at the given ones:
    bound and interpreted, and as native code that takes sizes, if a target is given."""
    verify_program(after)
    native = Native(after, target) if target is not None else None
    for given in sizes:
        plain, bound = bind(before, given), bind(after, given)
        verify_program(bound)
        expected = _results(plain, lambda arrays, plain=plain: run_program(plain, arrays))
        got = _results(plain, lambda arrays, bound=bound: run_program(bound, arrays))
        Tolerance().check(got, expected, f"{given}")
        if native is not None:
            got = _results(plain, lambda arrays, given=given: native(arrays, sizes=given))
            Tolerance().check(got, expected, f"natively {given}")


def _results(program: Program, run: Callable[[list[np.ndarray]], Sequence[np.ndarray]]) -> list[np.ndarray]:
    """All outputs of a run on random arguments, and these arguments after it."""
    own = [s for s in program.storages if s.cls in ("input", "param", "state", "weight")]
    buffers = [Buffer(s.name, s.dtype, s.size, "in") for s in own]
    arrays = [random_array(b, i).reshape(s.shape) for i, (b, s) in enumerate(zip(buffers, own, strict=True))]
    return [*run(arrays), *arrays]


def check_schedule(
    given: Program | Kernel, target: Target, sizes: Iterable[Sizes], passes: Sequence[ProgramPass] = PIPELINE
) -> Program:
    """Check that the program (or that of one kernel), scheduled once with packed operands, gives equal results at each
    of the sizes; natively too where such code runs here. Return that program, which is valid for all sizes."""
    program = single(given) if isinstance(given, Kernel) else given
    after = schedule(program, Context(Forms(target)), passes)[0].program
    check_program(program, after, sizes, None if why_not_here(target) else target)
    return after
