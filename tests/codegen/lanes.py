"""Runs expressions of scalar operations natively over arrays, and measures errors in units of the last place."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence

import mpmath
import numpy as np
from llvmlite import binding

from graphc.base.dtypes import DType
from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target, host_target, target_machine
from graphc.codegen.schedule.expansion.expand import expand
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Let, Loop, Program, Storage, walk
from graphc.ir.kernel.verify import verify_kernel
from tests.native import emitted

Build = Callable[..., Scalar]
"""``(nest, *operands) -> Scalar``."""

_numbers = itertools.count()


def operation(name: str) -> Build:
    """The builder of one scalar operation."""
    return lambda nest, *operands: nest.op(name, *operands)


def kernel_of(build: Build, types: Sequence[DType], result: DType, blocks: int, lanes: int) -> Kernel:
    """A kernel over arrays of ``blocks * lanes`` elements, not yet expanded."""
    nest = NestBuilder()
    with nest.loop(blocks, "serial") as block:  # one thread does it all
        outer = nest
        axis = Axis("lane", lanes)
        inner = _Body(outer)
        at = block * lanes + as_index(axis)
        loaded = [inner.load_at(f"in{k}", at, t) for k, t in enumerate(types)]
        inner.store_at("out", at, build(inner, *loaded))
        outer.append(Loop(axis, "vector", inner.body()))
    size = blocks * lanes
    buffers = [Buffer(f"in{k}", t, size, "in") for k, t in enumerate(types)]
    return Kernel("lanes", (*buffers, Buffer("out", result, size, "out")), nest.body())


class _Body(NestBuilder):
    """Body of the vector loop, with names distinct from the surrounding builder's."""

    def __init__(self, outer: NestBuilder):
        super().__init__()
        self._outer = outer

    def fresh(self, prefix: str = "v") -> str:
        return self._outer.fresh(prefix)


def count_operations(kernel: Kernel) -> int:
    """Scalar operations of a kernel; casts of bits cost nothing."""
    lets = [stmt for stmt, _ in walk(kernel.body) if isinstance(stmt, Let)]
    return sum(let.op != "bitcast" for let in lets)


def expanded(build: Build, types: Sequence[DType], result: DType, blocks: int, lanes: int) -> Kernel:
    """The kernel after expansion, verified, and with no transcendental operation left."""
    kernel = expand(kernel_of(build, types, result, blocks, lanes))
    verify_kernel(kernel)
    assert not any(isinstance(s, Let) and SCALAR_OPS[s.op].transcendental for s, _ in walk(kernel.body))
    return kernel


def program_of(kernel: Kernel) -> Program:
    """A program of one call."""
    storages = [Storage(b.name, b.dtype, (b.size,), "output" if b.role == "out" else "input") for b in kernel.buffers]
    return Program("lanes", tuple(storages), (kernel,), (Call("lanes", tuple(b.name for b in kernel.buffers)),))


def native(kernel: Kernel, arrays: Sequence[np.ndarray], target: Target) -> np.ndarray:
    """Compiles a kernel and runs it on arrays of the sizes of its buffers; returns its one output."""
    program = program_of(kernel)
    code = build_object(emitted(program, target), target)
    jit = binding.create_lljit_compiler(target_machine(target))
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(ENTRY)
    library = builder.link(jit, f"lanes{next(_numbers)}")
    out = np.empty(kernel.buffers[-1].size, kernel.buffers[-1].dtype.numpy)
    table = (ctypes.c_void_p * (len(arrays) + 2))(*(a.ctypes.data for a in arrays), out.ctypes.data, None)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library[ENTRY])(ctypes.addressof(table))
    return out


def assembly(build: Build, types: Sequence[DType], target: Target) -> str:
    """Assembly of ``build`` for a machine that need not be this one."""
    kernel = expanded(build, types, types[0], 2, target.lanes(types[0]))
    return emit_assembly(emitted(program_of(kernel), target), target)


def evaluate(
    build: Build, types: Sequence[DType], arrays: Sequence[np.ndarray], target: Target | None = None, lanes: int = 0
) -> np.ndarray:
    """``build`` applied natively to every element of equally long arrays; the result has the type of the first.

    ``lanes`` elements are computed at once, by default as many as a register holds.
    """
    target = target or host_target()
    lanes, size = lanes or target.lanes(types[0]), arrays[0].size
    pad = -size % lanes + lanes
    padded = [np.concatenate([a, np.ones(pad, a.dtype)]).astype(t.numpy) for a, t in zip(arrays, types, strict=True)]
    kernel = expanded(build, types, types[0], (size + pad) // lanes, lanes)
    return native(kernel, padded, target)[:size]


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors of f32 results in units in the last place of the exact value, which is given in f64.

    Infinite where one is NaN or infinite and the other is not, and where the sign (of a zero, too) is wrong.
    """
    with np.errstate(all="ignore"):
        want = exact.astype(np.float32)
        unit = np.spacing(np.maximum(np.abs(want), np.finfo(np.float32).tiny)).astype(np.float64)
        error = np.abs(got.astype(np.float64) - exact) / unit
    same = (np.isnan(got) & np.isnan(want)) | (got == want)
    finite = np.isfinite(got) & np.isfinite(want)
    error = np.where(finite, error, np.where(same, 0.0, np.inf))
    return np.where(~np.isnan(want) & (np.signbit(got) != np.signbit(want)), np.inf, error)


def worst(name: str, errors: np.ndarray, *inputs: np.ndarray) -> tuple[float, str]:
    """The largest error, and a sentence that says where it is."""
    at = int(np.argmax(errors))
    operands = ", ".join(repr(x[at].item()) for x in inputs)
    return float(errors[at]), f"{name}({operands}) of {inputs[0].dtype} is {errors[at]:.3f} ULP off"


def every(stride: int) -> np.ndarray:
    """Every ``stride``-th f32 there is, NaNs included."""
    return np.arange(0, 1 << 32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


def random_bits_f64(count: int) -> np.ndarray:
    """f64 of uniformly random bits: every exponent alike, NaNs included."""
    return np.random.default_rng(11).integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)


def powers_of_two(low: float, high: float, count: int) -> np.ndarray:
    """Random f64 of either sign between two powers of two, every exponent alike."""
    rng = np.random.default_rng(13)
    return np.exp2(rng.uniform(low, high, count)) * rng.choice([-1.0, 1.0], count)


def ulps_exact(got: np.ndarray, exact: Sequence[mpmath.mpf]) -> np.ndarray:
    """Errors of f64 results against values of mpmath, as ``ulps`` does for f32."""
    errors = np.empty(len(exact))
    for i, (value, want) in enumerate(zip(got.tolist(), exact, strict=True)):
        rounded = float(want)
        if not (np.isfinite(value) and np.isfinite(rounded)):
            errors[i] = 0.0 if value == rounded or (value != value and rounded != rounded) else np.inf
            continue
        unit = float(np.spacing(max(abs(rounded), np.finfo(np.float64).tiny)))
        errors[i] = float(abs(mpmath.mpf(value) - want) / unit)
    return errors
