"""Planted faults of the CUDA emitter, and the check that notices each: ``python -m tools.cuda.faults``.

A fault changes the code of one program: its kernels just before emission, as an emitter that misreads a statement
would, or the emitted text. Each fault must change something and be noticed, either by the emulated device, which
refuses the program, or by numbers that differ from the CPU's.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.harness.results import format_table
from graphc.base.errors import DeviceError, VerifyError
from graphc.codegen.cuda.emit import CudaSource
from graphc.compiler import stages
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.map import map_parts, map_statements, substitute_axes
from graphc.ir.kernel.statements import Acc, Barrier, Let, Load, Loop, Program, Read, Stmt, Store
from tools.cuda.cases import Case
from tools.cuda.runs import EQUAL, Compiled, compare, expected
from tools.nets.run import own_cache
from tools.progress import progress_bar

DEVICE = "cuda-emu"
CAUGHT = ("verifier", "emulator", "numbers")
"""Checks that can notice a fault."""


# ---- programs with planted faults

_SUBJECTS = Path(__file__).with_name("subjects.gc")
"""Their graphs."""


@cache
def subjects() -> dict[str, str]:
    """Return the texts of graphs by name."""
    texts = _SUBJECTS.read_text(encoding="utf-8").split("\n\n")
    return {text[len("graph @") : text.index("(")]: text for text in texts}


def subject(name: str) -> Case:
    """Return the program of that name with random arguments, some of them equal and some not numbers."""
    graph = parse_graph(subjects()[name])
    random = np.random.default_rng(7)
    arrays = []
    for value in graph.inputs:
        if value.dtype.kind == "f":
            array = random.standard_normal(value.shape)
        elif name == "places":
            array = random.integers(0, 40, value.shape)
        else:
            array = random.integers(1, 9, value.shape) * random.choice([-1, 1], value.shape)
        arrays.append(np.asarray(array).astype(value.dtype.numpy))
    if name == "largest":
        arrays[1][::7] = np.nan
    if name == "compared":
        arrays[1][::3] = arrays[0][::3]
    return Case(name, graph, (tuple(arrays),), growth=8.0)


# ---- faults

Edit = Callable[[Any, Program], CudaSource]
"""Function of the emitter and a scheduled program that returns wrong text and launches."""


@dataclass(frozen=True)
class Fault:
    """A fault, and the program in which it is planted."""

    name: str
    subject: str
    edit: Edit


class _NothingToChangeError(AssertionError):
    """The program has no place for a fault."""


def in_kernels(change: Callable[[Stmt, tuple[Loop, ...]], Sequence[Stmt] | None], nth: int = 0) -> Edit:
    """Return a fault of emitting a statement: ``change`` replaces the nth statement for which it returns something."""

    def edit(emit: Any, program: Program) -> CudaSource:
        return emit(edited(program, change, nth))

    return edit


def edited(
    program: Program, change: Callable[[Stmt, tuple[Loop, ...]], Sequence[Stmt] | None], nth: int = 0
) -> Program:
    """Return the program with one statement replaced."""
    remaining = nth

    def replaced(body: tuple[Stmt, ...], loops: tuple[Loop, ...]) -> tuple[Stmt, ...]:
        nonlocal remaining
        result: list[Stmt] = []
        for stmt in body:
            new = None if remaining < 0 else change(stmt, loops)
            if new is not None:
                remaining -= 1
            if new is not None and remaining < 0:
                result += new
            elif isinstance(stmt, Loop):
                result.append(replace(stmt, body=replaced(stmt.body, (*loops, stmt))))
            else:
                result.append(stmt)
        return tuple(result)

    kernels = tuple(replace(k, body=replaced(k.body, ())) for k in program.kernels)
    if remaining >= 0:
        raise _NothingToChangeError("no statement to change")
    return replace(program, kernels=kernels)


def in_text(pattern: str, new: str | Callable[[re.Match[str]], str], count: int = 1, after: str = "") -> Edit:
    """Return a fault of the text: it replaces matches of a regular expression after the first occurrence of ``after``
    (the first ``count`` matches; 0 replaces all)."""

    def edit(emit: Any, program: Program) -> CudaSource:
        source = emit(program)
        head, mark, tail = source.text.partition(after) if after else ("", "", source.text)
        text, changes = re.subn(pattern, new, tail, count=count)
        if not changes or text == tail:
            raise _NothingToChangeError(f"no {pattern!r} in the text")
        return replace(source, text=head + mark + text)

    return edit


def _loop(kind: str, extent: Callable[[int], int]) -> Callable[[Stmt, tuple[Loop, ...]], Sequence[Stmt] | None]:
    """Return a fault that changes the number of iterations of a loop."""

    def change(stmt: Stmt, loops: tuple[Loop, ...]) -> Sequence[Stmt] | None:
        if not isinstance(stmt, Loop) or stmt.kind != kind or stmt.axis.extent < 2:
            return None
        new = extent(stmt.axis.extent)
        axis = stmt.axis._replace(extent=new)
        body = map_statements(stmt.body, leaf=lambda s: (_with_axis(s, stmt.axis, axis),))
        return (replace(stmt, axis=axis, body=body),)

    return change


def _with_axis(stmt: Stmt, old: Any, new: Any) -> Stmt:
    return map_parts(stmt, index=lambda i: substitute_axes(i, {old: Index(((new, 1),))}))


def _shifted(kind: type[Load] | type[Store], by: int) -> Callable[[Stmt, tuple[Loop, ...]], Sequence[Stmt] | None]:
    """Return an access to the neighbour of the intended element."""

    def change(stmt: Stmt, loops: tuple[Loop, ...]) -> Sequence[Stmt] | None:
        return (replace(stmt, index=stmt.index + by),) if isinstance(stmt, kind) and loops else None

    return change


def _stride(stmt: Stmt, loops: tuple[Loop, ...]) -> Sequence[Stmt] | None:
    """Return a load whose first term has one more or less than its factor."""
    if not isinstance(stmt, Load) or not any(c not in (0, 1) for _, c in stmt.index.terms):
        return None
    terms = tuple((a, c - 1 if c not in (0, 1) else c) for a, c in stmt.index.terms)
    return (replace(stmt, index=Index(terms, stmt.index.constant)),)


def _without_guard(kind: type[Load] | type[Store]) -> Callable[[Stmt, tuple[Loop, ...]], Sequence[Stmt] | None]:
    def change(stmt: Stmt, loops: tuple[Loop, ...]) -> Sequence[Stmt] | None:
        return (replace(stmt, guard=()),) if isinstance(stmt, kind) and stmt.guard else None

    return change


def _swapped(op: str) -> Callable[[Stmt, tuple[Loop, ...]], Sequence[Stmt] | None]:
    def change(stmt: Stmt, loops: tuple[Loop, ...]) -> Sequence[Stmt] | None:
        return (replace(stmt, args=stmt.args[::-1]),) if isinstance(stmt, Let) and stmt.op == op else None

    return change


def _barrier(stmt: Stmt, loops: tuple[Loop, ...]) -> Sequence[Stmt] | None:
    return () if isinstance(stmt, Barrier) else None


def _combine(stmt: Stmt, loops: tuple[Loop, ...]) -> Sequence[Stmt] | None:
    return (replace(stmt, combine="max"),) if isinstance(stmt, Acc) and stmt.combine == "add" else None


def _own_sum(stmt: Stmt, loops: tuple[Loop, ...]) -> Sequence[Stmt] | None:
    return (replace(stmt, over=""),) if isinstance(stmt, Read) and stmt.over else None


KERNEL = "__global__ void __launch_bounds__"
"""Start of each kernel in a text; the code before the first kernel does not contain it."""


def in_kernel(pattern: str, new: str | Callable[[re.Match[str]], str], count: int = 1) -> Edit:
    """Return a fault in the text of the first kernel that matches the pattern."""
    return in_text(pattern, new, count, KERNEL)


def in_launch(**changes: Callable[[Any], Any]) -> Edit:
    """Return a fault of how the first kernel is started."""

    def edit(emit: Any, program: Program) -> CudaSource:
        source = emit(program)
        name, launch = next(iter(source.launches.items()))
        wrong = replace(launch, **{field: change(getattr(launch, field)) for field, change in changes.items()})
        return replace(source, launches={**source.launches, name: wrong})

    return edit


def _both(edit: Edit, pattern: str, new: str) -> Edit:
    """Return two faults at once, the second one of the text."""
    return lambda emit, program: in_kernel(pattern, new)(lambda p: edit(emit, p), program)


def _less(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) - 1}{match[3]}"


FAULTS: tuple[Fault, ...] = (
    # Threads that meet.
    Fault("no barrier before sums of warps are read", "long_softmax", in_kernel(r"gc_block_sync\(\);", "")),
    Fault(
        "no barrier before sums of warps are overwritten",
        "long_softmax",
        in_kernel(r"(gc_block_sync\(\);(?:.|\n)*?)gc_block_sync\(\);", r"\1"),
    ),
    Fault(
        "a barrier that half of the threads come to",
        "long_softmax",
        in_kernel(r"gc_block_sync\(\);", "if (threadIdx.x < 128) gc_block_sync();"),
    ),
    Fault("no barrier between a tile and its readers", "tiles", in_kernels(_barrier)),
    Fault("no barrier between a tile and the next one", "tiles", in_kernels(_barrier, 1)),
    Fault("a sum over threads is that of one thread", "softmax", in_kernels(_own_sum)),
    Fault("the second sum over threads is that of one thread", "long_softmax", in_kernels(_own_sum, 1)),
    Fault("a shuffle over too few lanes", "short_rows", in_kernel(r"gc_o = 16;", "gc_o = 8;")),
    Fault("a shuffle that leaves lanes out", "short_rows", in_kernel(r"gc_o >>= 1", "gc_o >>= 2")),
    Fault(
        "a shuffle that half of the lanes come to",
        "short_rows",
        in_kernel(r"gc_o > 0;", "gc_o > (int)threadIdx.x % 2;"),
    ),
    Fault("sums of too few warps", "row_sums", in_kernel(r"(gc_w < )(\d+)(;)", _less)),
    Fault("sums of more warps than there are", "row_sums", in_kernel(r"gc_w < \d+;", "gc_w < 9;")),
    Fault("each thread adds the start value of a sum", "row_sums", in_kernel(r"(float acc\w+ = )[^;]+;", r"\1 1.0f;")),
    Fault("all threads store what one of them should", "long_softmax", in_kernel(r"if \(threadIdx.x % 32 == 0\) ", "")),
    # Which iterations there are, and whose.
    Fault("no end of the grid", "elements", in_kernel(r"if \(gc_at >= \d+\) return;", "")),
    Fault("the grid ends one element late", "elements", in_kernel(r"gc_at >= ", "gc_at > ")),
    Fault("a block too few", "elements", in_launch(grid=lambda n: n - 1)),
    Fault(
        "a block too many and no end of the grid",
        "turned",
        _both(in_launch(grid=lambda n: n + 1), r"if \(gc_at >= \d+\) return;", ""),
    ),
    Fault("fewer threads than the kernel was made for", "row_sums", in_launch(threads=lambda n: n // 2)),
    Fault("a loop of threads leaves the last element out", "row_sums", in_kernels(_loop("thread", lambda n: n - 1))),
    Fault("a loop of lanes leaves the last element out", "short_rows", in_kernels(_loop("lane", lambda n: n - 1))),
    Fault("a wrong step of a loop of threads", "row_sums", in_kernel(r"\+= 256", "+= 255")),
    Fault(
        "lanes counted to 16", "short_rows", in_kernel(r"= \(int\)\(threadIdx.x % 32\)", "= (int)(threadIdx.x % 16)")
    ),
    Fault("a wrong divisor of a flattened loop", "turned", in_kernel(r"% \(unsigned\)65", "% (unsigned)64")),
    # Private rows.
    Fault("the last round of a private row is missing", "softmax", in_kernel(r"(gc_round < )(\d+)(;)", _less)),
    Fault("the wrong slot of a private row", "softmax", in_kernel(r"(b\d+)\[gc_round\] =", r"\1[0] =")),
    Fault("no tail of the rounds of a private row", "softmax", in_kernel(r"if \(gc_i_\w+ < 300\)", "if (true)")),
    Fault("a private row that is too short", "softmax", in_kernel(r"(GC_PRIVATE\(\w+, \w+, )(\d+)(\))", _less)),
    # Memory.
    Fault("a load of the next element", "elements", in_kernels(_shifted(Load, 1))),
    Fault("a load of the element before", "columns", in_kernels(_shifted(Load, -1))),
    Fault("a store to the next element", "elements", in_kernels(_shifted(Store, 1))),
    Fault("a wrong stride", "turned", in_kernels(_stride)),
    Fault("a load without its guard", "padded", in_kernel(r"= \(\(.*?\) \? ", "= (true) ? ")),
    Fault("a guard that ends one element late", "padded", in_kernel(r"< 31\)", "<= 31)")),
    Fault("another value where a guard is false", "padded", in_kernel(r": GC_F32\(0x3fc00000\)", ": 0.0f")),
    Fault("a shared array that is too small", "long_softmax", in_kernel(r"gc_part_float, 32", "gc_part_float, 4")),
    Fault(
        "parameters in another order",
        "vectors",
        in_kernel(r"GC_IN\(float\) b0, GC_IN\(float\) b1", "GC_IN(float) b1, GC_IN(float) b0"),
    ),
    # Arithmetic.
    Fault("sums are combined by max", "row_sums", in_kernels(_combine)),
    Fault("operands of a difference swapped", "elements", in_kernels(_swapped("sub"))),
    Fault("products of 64 bits in 32", "wide", in_kernel(r"\(unsigned long long\)v", "(unsigned)v")),
    Fault("f64 kept in f32", "exact", in_kernel(r"const double a(\d+)_", r"const float a\1_")),
    Fault("quotients rounded towards zero", "integers", in_kernel(r"\(v\w+ \? v\w+ : (v\w+)\)", r"(\1)")),
    Fault(
        "a maximum that drops what is no number",
        "largest",
        in_text(r"a > b \|\| a != a \? a : b", "a > b || b != b ? a : b"),
    ),
    Fault("less or equal for less", "compared", in_kernel(r"\((v\w+) < (v\w+)\)", r"(\1 <= \2)")),
)


# ---- running


@dataclass(frozen=True)
class Found:
    """Outcome of a fault."""

    fault: str
    subject: str
    by: str
    """One of CAUGHT; ``nothing`` where it was not noticed, ``nowhere`` where there was nothing to change."""
    said: str = ""


def run_faults(faults: Sequence[Fault] = FAULTS, tell: Callable[[], None] = lambda: None) -> list[Found]:
    """Plant each fault in a program of its own; all programs are compiled before one runs."""
    planted = [(fault, _planted(fault)) for fault in faults]
    references = {name: expected(subject(name)) for name in {f.subject for f in faults}}
    outcomes = []
    for fault, compiled in planted:
        outcomes.append(_judge(fault, compiled, references[fault.subject]))
        tell()
    return outcomes


def _planted(fault: Fault) -> Compiled:
    emit = stages.emit_cuda
    with mock.patch.object(stages, "emit_cuda", lambda program: fault.edit(emit, program)):
        return Compiled(subject(fault.subject), DEVICE)


def _judge(fault: Fault, compiled: Compiled, reference: Any) -> Found:
    error = compiled.error
    if error is None:
        try:
            outcome = compare(fault.subject, compiled.run(1), reference, compiled.case.growth)
        except DeviceError as refused:
            return Found(fault.name, fault.subject, "emulator", _line(refused))
        caught = "nothing" if outcome.kind == EQUAL else "numbers"
        return Found(fault.name, fault.subject, caught, outcome.detail)
    if isinstance(error, _NothingToChangeError):
        return Found(fault.name, fault.subject, "nowhere", str(error))
    if isinstance(error, VerifyError):
        return Found(fault.name, fault.subject, "verifier", _line(error))
    raise error


def _line(error: Exception) -> str:
    return str(error).splitlines()[0]


def format_found(outcomes: Sequence[Found]) -> str:
    """Return a table in Markdown."""
    heads = ("fault", "planted in", "caught by", "which says")
    return format_table(heads, ((f.fault, f.subject, f.by, f.said) for f in outcomes))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 where a fault was not noticed."""
    parser = argparse.ArgumentParser("python -m tools.cuda.faults", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="plant only faults whose name contains this")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    faults = [f for f in FAULTS if options.only in f.name]
    with own_cache(False), progress_bar(len(faults), "faults") as bar:
        outcomes = run_faults(faults, bar.step)
    print(json.dumps([vars(f) for f in outcomes], indent=1) if options.json else format_found(outcomes))
    missed = [f for f in outcomes if f.by not in CAUGHT]
    print(f"{len(outcomes) - len(missed)} of {len(outcomes)} faults caught", file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
