"""Every instruction beyond plain LLVM as text and as meaning: both are executed on edge values, bits are compared."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.module import Item, text_of
from graphc.codegen.machine.instruction import Instruction, element_of, lanes_of, of_type
from graphc.codegen.machine.instructions import COMMON
from graphc.codegen.machine.target import Target, families, named_targets
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.statements import Buffer, Kernel
from graphc.runtime.loader import load_object
from tests.codegen.kernel_native import kernel_of
from tests.native import native_spec, why_not_here

DTYPES = {"float": "f32", "double": "f64", "i8": "u8", "i16": "f16", "i32": "i32", "i64": "i64"}
KINDS = {"widen": ("float", "<4 x float>", "<8 x float>", "<16 x float>")} | {
    "ldexp by integer": ("<4 x float>", "<8 x float>", "<16 x float>", "<2 x double>", "<8 x double>"),
    "fma": ("float", "double", "<2 x float>", "<4 x float>", "<16 x float>", "<2 x double>", "<8 x double>"),
    "non-temporal store": ("<16 x float>", "<8 x double>", "<16 x i32>"),
}
"""Types with which instructions are tried that have no list of their own."""
COMMON_KINDS = ("<4 x float>", "<16 x float>", "<8 x double>", "<16 x i8>", "<1 x float>", "<8 x i64>")
EDGES = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-40, -1e-44, 1.17549435e-38, 3.4028235e38, -3.4e38, 2.0**-149)
SMALL = (0.0, -0.0, *(sign * 2.0**power for sign in (-1, 1) for power in (-62, -63, -64, -70)))
"""Normal numbers of which products are denormal."""
ROUNDS = 60
SPELLED = ("x86_64", "aarch64")
"""Families whose names of common instructions are known; others may drop a hint."""


@dataclass(frozen=True)
class Case:
    """An instruction on values of a type, for a target that has it."""

    instruction: Instruction
    kind: str
    target: Target

    def __str__(self) -> str:
        family = self.target.triple.partition("-")[0]
        return f"{family} {self.instruction.name} {self.kind} {' '.join(sorted(self.instruction.features))}".strip()

    @property
    def kernel(self) -> Kernel:
        """Its meaning."""
        return kernel_of(self.instruction.kernel(self.kind, DTYPES.get(element_of(self.kind), "i32")))


def kinds_of(instruction: Instruction) -> tuple[str, ...]:
    if not instruction.operands:
        return ("i32",)
    common = COMMON_KINDS if instruction in COMMON else ()
    return instruction.kinds or KINDS.get(instruction.name) or common


def cases() -> Iterator[Case]:
    """All instructions: of a family for its processors with the features, common ones for each named target."""
    for family in families():
        any_of_them = next(iter(family.named.values()))
        for instruction in family.instructions:
            features = {f"+{f}" for f in instruction.features} | set(any_of_them.features.split(","))
            target = replace(any_of_them, features=",".join(sorted(features)))
            yield from (Case(instruction, kind, target) for kind in kinds_of(instruction))
    for target in (target for target in named_targets().values() if target.gpu is None):
        yield from (Case(instruction, kind, target) for instruction in COMMON for kind in kinds_of(instruction))


CASES = list(cases())


def runs_here(case: Case) -> bool:
    return not why_not_here(case.target)


def text_of_case(case: Case) -> str:
    """A function ``void @f(ptr, ...)`` of the buffers of the meaning that does the same by the instruction."""
    declarations: dict[str, Item] = {}
    writer, kernel, instruction = FunctionWriter(declarations), case.kernel, case.instruction
    names, operands = iter(enumerate(kernel.buffers)), []
    written = False
    for how in instruction.operands:
        i, buffer = next(names)
        written = written or (how in ("memory", "places") and buffer.role == "inout")
        operands.append(_operand(writer, how, f"%b{i}", buffer, case.kind))
        if how == "places":
            k, _ = next(names)
            places = writer.line(f"load {of_type(case.kind, 'i64')}, ptr %b{k}, align 8")
            element = element_of(case.kind)
            operands[-1] = writer.line(f"getelementptr {element}, ptr %b{i}, {of_type(case.kind, 'i64')} {places}")
    call = instruction.text(writer, operands, case.kind)
    if "void" in call.split("@")[0] or call.startswith("store") or written:
        writer.statement(call)
    else:
        result, _ = next(names)
        writer.statement(f"store {case.kind} {writer.line(call)}, ptr %b{result}, align 1")
    parameters = ", ".join(f"ptr %b{i}" for i in range(len(kernel.buffers)))
    outside = "\n".join(map(text_of, declarations.values()))
    body = f"define void @f({parameters}) {{\nentry:\n{writer.text()}\n  ret void\n}}"
    return f'target triple = "{case.target.triple}"\n{outside}\n{body}\n'


def _operand(writer: FunctionWriter, how: str, pointer: str, buffer: Buffer, kind: str) -> str:
    if how in ("memory", "places"):
        return pointer
    if how == "mask":
        bytes_ = of_type(kind, "i8")
        zero = "zeroinitializer" if lanes_of(kind) else "0"
        return writer.line(f"icmp ne {bytes_} {writer.line(f'load {bytes_}, ptr {pointer}, align 1')}, {zero}")
    element = {name: llvm for llvm, name in DTYPES.items()}[buffer.dtype.name]
    return writer.line(f"load {of_type(kind, element)}, ptr {pointer}, align 1")


@cache
def built(case: Case) -> object:
    return load_object(build_object(text_of_case(case), case.target), "f", native_spec(case.target))


def contents(case: Case, buffer: Buffer, random: np.random.Generator, small: bool) -> np.ndarray:
    """Random numbers of all sizes with edges among them, or ``small`` ones."""
    dtype, size = buffer.dtype, buffer.size
    if buffer.name in case.instruction.whole:
        limit = 300 if element_of(case.kind) == "float" else 2300
        return random.integers(-limit, limit + 1, size).astype(dtype.numpy)
    if buffer.name == "p":
        return random.permutation(size).astype(np.int64)
    if dtype.kind == "b":
        return random.integers(0, 2, size).astype(np.bool_)
    bits = np.frombuffer(random.bytes(size * dtype.itemsize), dtype.numpy).copy()
    if dtype.name == "i32":  # pairs of bf16, too
        upper = np.asarray(random.choice(SMALL if small else EDGES, 2 * size), np.float32).view(np.uint16)[1::2].copy()
        return upper.view(np.int32) if small else np.where(random.integers(0, 2, size), upper.view(np.int32), bits)
    if dtype.kind != "f" or dtype.name == "f16":
        return bits
    usual = (random.standard_normal(size) * 2.0 ** random.integers(-20, 20, size)).astype(dtype.numpy)
    edges = np.asarray(random.choice(SMALL if small else EDGES, size), np.float64).astype(dtype.numpy)
    return edges if small else np.choose(random.integers(0, 3, size), [bits, usual, edges]).astype(dtype.numpy)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit by bit. Which NaN a NaN is counts nowhere: processors keep the payload of one of several operands.
    Rounding differs nowhere: a sum of products of bf16 in f32 is exact in f64, but for numbers of very different sizes,
    where the interpreter rounds twice; among these values that changes no result."""
    if a.dtype.kind == "f":
        both = np.isnan(a) & np.isnan(b)
        a, b = np.where(both, 0, a).astype(a.dtype), np.where(both, 0, b).astype(b.dtype)
    return a.tobytes() == b.tobytes()


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at a cache line, as non-temporal stores need it."""
    raw = np.zeros(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


@pytest.mark.parametrize("case", [c for c in CASES if runs_here(c)], ids=str)
@pytest.mark.filterwarnings("ignore:.*encountered.*:RuntimeWarning")
def test_the_text_of_an_instruction_does_what_its_meaning_says(case: Case):
    library, kernel = built(case), case.kernel
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kernel.buffers))(library.address)
    random = np.random.default_rng(7)
    for turn in range(ROUNDS):
        memory = {b.name: contents(case, b, random, turn % 4 == 3) for b in kernel.buffers}
        native = [aligned(memory[b.name]) for b in kernel.buffers]
        before = {name: array.copy() for name, array in memory.items()}
        run_kernel(kernel, memory)
        function(*[array.ctypes.data for array in native])
        for buffer, found in zip(kernel.buffers, native, strict=True):
            assert same_bits(found, memory[buffer.name]), (buffer.name, before, found, memory[buffer.name])


def is_spelled(case: Case) -> bool:
    common = case.instruction in COMMON
    return bool(case.instruction.mnemonics) and (not common or case.target.triple.startswith(SPELLED))


@pytest.mark.parametrize("case", [c for c in CASES if is_spelled(c)], ids=str)
def test_the_assembly_holds_the_instruction(case: Case):
    lines = emit_assembly(text_of_case(case), case.target).replace("{vex}", "").splitlines()
    verbs = [line.split()[0] for line in lines if line.startswith("\t") and line.split()]
    assert any(verb.startswith(case.instruction.mnemonics) for verb in verbs), verbs


@pytest.mark.parametrize("case", [c for c in CASES if not is_spelled(c) and not runs_here(c)], ids=str)
def test_every_family_has_code_for_what_all_have(case: Case):
    assert "f:" in emit_assembly(text_of_case(case), case.target)
