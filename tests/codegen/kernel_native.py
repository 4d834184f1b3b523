"""Runs scheduled kernels as native code and by the kernel interpreter on equal memory."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from graphc.base.dtypes import narrow, pair
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.interpret import run_kernel, run_program
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Program, Storage
from graphc.ir.kernel.verify import verify_kernel
from tests.native import Native, Tolerance, scheduled, why_not_here


def kernel_of(text: str) -> Kernel:
    """Parse and verify a kernel from indented text."""
    kernel = parse_kernel(textwrap.dedent(text).strip() + "\n")
    verify_kernel(kernel)
    return kernel


def copying(
    loops: str,
    load: str,
    store: str,
    sizes: tuple[int, int],
    dtype: str = "f32",
    guard: str = "",
    names: tuple[str, str] = ("x", "y"),
) -> Kernel:
    """Return a kernel of a perfect nest, ``"i in 2 parallel, j in 3 parallel"``, that copies an element in each
    iteration. ``load`` and ``store`` are indices into the buffers; ``guard`` follows the load."""
    heads = [f"for {loop.strip()} {{" for loop in loops.split(",")]
    (x, y), (x_size, y_size) = names, sizes
    body = f"v: {dtype} = load %{x}[{load}] {guard} store %{y}[{store}] = v"
    buffers = f"%{x}: {dtype}[{x_size}] in, %{y}: {dtype}[{y_size}] out"
    return kernel_of(f"kernel @k({buffers}) {{ {' '.join(heads)} {body} {'} ' * len(heads)}}}")


def single(kernel: Kernel) -> Program:
    """A program that calls the kernel once; everything it writes is a state."""
    storages = tuple(
        Storage(b.name, b.dtype, (b.size,), "input" if b.role == "in" else "state", path=b.name)
        for b in sorted(kernel.arguments, key=lambda b: b.role != "in")
    )
    call = Call(kernel.name, tuple(b.name for b in kernel.arguments))
    return Program("test", storages, (kernel,), (call,))


def program_of(kernel: Kernel) -> Program:
    """The same with its memory planned."""
    return plan_memory(single(kernel))


def random_memory(kernel: Kernel, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random contents for every argument, outputs included."""
    random = np.random.default_rng(seed)
    return {b.name: _random(b, random) for b in kernel.arguments}


def random_array(buffer: Buffer, seed: int = 0) -> np.ndarray:
    """Random contents for a buffer."""
    return _random(buffer, np.random.default_rng(seed))


def _random(buffer: Buffer, random: np.random.Generator) -> np.ndarray:
    if buffer.dtype.kind == "f":
        return (random.integers(-16, 17, buffer.size) / 8).astype(buffer.dtype.numpy)
    if buffer.dtype.kind == "h":
        return narrow((random.integers(-16, 17, buffer.size) / 8).astype(np.float32), buffer.dtype)
    if buffer.dtype.kind == "p":
        return pair(*(random.integers(-16, 17, (2, buffer.size)) / 8).astype(np.float32))
    low, high = {"b": (0, 2), "u": (0, 100)}.get(buffer.dtype.kind, (-50, 50))
    return random.integers(low, high, buffer.size).astype(buffer.dtype.numpy)


def interpreted(kernel: Kernel, memory: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All arguments after a run by the interpreter."""
    arrays = {name: array.copy() for name, array in memory.items()}
    run_kernel(kernel, arrays)
    return arrays


def native(kernel: Kernel, memory: Mapping[str, np.ndarray], target: Target) -> dict[str, np.ndarray]:
    """All arguments after a native run."""
    program = program_of(kernel)
    arrays = {s.name: memory[s.name].copy() for s in program.storages}
    Native(program, target)(list(arrays.values()))
    return arrays


def check_native(
    kernel: Kernel, target: Target, memory: Mapping[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Check that the native kernel and the interpreter leave the same memory; return it."""
    memory = random_memory(kernel) if memory is None else memory
    expected, got = interpreted(kernel, memory), native(kernel, memory, target)
    for name, array in expected.items():
        Tolerance().check([got[name]], [array], f"{target.cpu} %{name}")
    return got


def check_sizes(kernel: Kernel, target: Target, sizes: Iterable[Mapping[str, int]]) -> None:
    """Check that one native kernel and the interpreter leave the same memory for each of the sizes, and that the native
    kernel does not write around its buffers."""
    whole, known = Native(program_of(kernel), target), dims_of_kernel(kernel)
    for given in sizes:
        named = {name: size for name, size in given.items() if name in known}
        fixed = bind_kernel(kernel, named)
        verify_kernel(fixed)
        memory = random_memory(fixed)
        fenced = {name: Fenced(array) for name, array in memory.items()}
        order = [s.name for s in whole.program.storages]
        whole([fenced[name].array for name in order], sizes=named)
        for name, array in interpreted(fixed, memory).items():
            what = f"{target.cpu} %{name} {dict(named)}"
            Tolerance().check([fenced[name].array], [array], what)
            assert fenced[name].is_whole, what


class Fenced:
    """A copy of an array with bytes around it that nothing may write to."""

    def __init__(self, array: np.ndarray):
        self._block = np.full(array.nbytes + 2 * _FENCE, 0x5A, np.uint8)
        self.array = self._block[_FENCE : _FENCE + array.nbytes].view(array.dtype).reshape(array.shape)
        self.array[...] = array

    @property
    def is_whole(self) -> bool:
        """Whether the bytes around are as they were."""
        return bool((self._block[:_FENCE] == 0x5A).all() and (self._block[-_FENCE:] == 0x5A).all())


_FENCE = 256


def check_equivalent(before: Kernel, after: Kernel, memory: Mapping[str, np.ndarray] | None = None) -> None:
    """Both kernels mean the same, and the second one is valid."""
    verify_kernel(after)
    memory = random_memory(before) if memory is None else memory
    expected, got = interpreted(before, memory), interpreted(after, memory)
    for name, array in expected.items():
        Tolerance().check([got[name]], [array], f"%{name}")


def check_scheduled(kernel: Kernel, target: Target, natively: bool = True) -> Program:
    """Check that the kernel means the same as a scheduled program with packed operands: interpreted, and as native code
    where this machine has the target's instructions. Return that program."""
    program = scheduled(program_of(kernel), target)
    memory = random_memory(kernel)
    expected = interpreted(kernel, memory)
    own = [s.name for s in program.storages if s.cls in ("input", "state")]
    native_too = natively and not why_not_here(target)
    for run in (partial(run_program, program), Native(program, target))[: 1 + native_too]:
        arrays = [memory[name].copy() for name in own]
        run(arrays)
        Tolerance().check(arrays, [expected[name] for name in own], f"{target.cpu} {own}")
    return program
