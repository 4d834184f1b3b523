"""Registers and spills of the benchmark models by NVRTC, without a GPU: ``python -m tools.cuda.kernel_table``."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass

from benchmarks.harness.results import format_table
from benchmarks.workloads import WORKLOADS
from graphc.codegen.cuda.nvrtc import compile_cubin, compile_ptx
from tools.cuda.programs import QUICK, DeviceProgram, workload_programs
from tools.progress import progress_bar

ARCHITECTURES = ("sm_80", "sm_90", "sm_90a", "sm_100")
"""Architectures for which kernels are compiled."""
_VECTOR = re.compile(r"(?:ld|st)\.global(?:\.nc)?\.v[24]\.")


@dataclass(frozen=True)
class Row:
    """A program for one architecture."""

    workload: str
    arch: str
    kernels: int
    """Kernels in its text."""
    products: int
    """Kernels that a library computes; the text holds a fallback for each."""
    registers: int
    """The most of a thread of any kernel."""
    spilled: int
    """Bytes that all threads' registers do not hold."""
    stack: int
    """Bytes of memory of all threads' arrays that registers do not hold, of one thread of each kernel."""
    shared: int
    """The most bytes of a block of any kernel."""
    vector: int
    """Loads and stores of several elements at once in the compiler's assembly."""
    lines: int
    """Lines of CUDA C."""
    seconds: float
    """Duration of the compilation."""
    widest: str = ""
    """The kernel with the most registers."""


def row_of(program: DeviceProgram, arch: str) -> Row:
    """Compile a program and count."""
    text = program.source.text
    start = time.perf_counter()
    cubin = compile_cubin(text, arch)
    seconds = time.perf_counter() - start
    every = cubin.kernels
    widest = max(every, key=lambda name: every[name].registers, default="")
    return Row(
        program.name,
        arch,
        len(every),
        len(program.products),
        max((r.registers for r in every.values()), default=0),
        sum(r.spilled for r in every.values()),
        sum(r.stack for r in every.values()),
        max((r.shared for r in every.values()), default=0),
        len(_VECTOR.findall(compile_ptx(text, arch.replace("sm_", "compute_")))),
        text.count("\n"),
        seconds,
        widest,
    )


def format_rows(rows: Iterable[Row]) -> str:
    """Return a table in Markdown."""
    heads = ("workload", "architecture", "kernels", "products", "registers", "spilled bytes", "stack bytes")
    heads += ("shared bytes", "vector accesses", "lines", "seconds")
    return format_table(heads, ([*map(str, astuple(r)[:-2]), f"{r.seconds:.2f}"] for r in rows))


def summary(rows: Sequence[Row]) -> str:
    """Return one line with the totals of all programs."""
    spilled = [f"{r.workload} ({r.arch}, {r.spilled} bytes)" for r in rows if r.spilled]
    kernels, seconds = sum(r.kernels for r in rows), sum(r.seconds for r in rows)
    most = max((r.registers for r in rows), default=0)
    text = f"{len(rows)} programs, {kernels} kernels, at most {most} registers, {seconds:.1f} s of NVRTC; spilled: "
    return text + (", ".join(spilled) or "nothing")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 where a kernel spills."""
    parser = argparse.ArgumentParser(
        "python -m tools.cuda.kernel_table", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("cases", nargs="*", metavar="WORKLOAD", help="workloads to compile (default: all)")
    parser.add_argument(
        "--arch", action="append", choices=ARCHITECTURES, help="target architecture; repeat for several (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help=f"compile only {', '.join(QUICK)}")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args(argv)
    names = options.cases or (QUICK if options.quick else tuple(WORKLOADS))
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        parser.error(f"there is no workload {unknown[0]!r}: one of {', '.join(WORKLOADS)}")
    rows = table(names, options.arch or ARCHITECTURES)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print(format_rows(rows))
    print(summary(rows), file=sys.stderr)
    return int(any(row.spilled for row in rows))


def table(names: Sequence[str], architectures: Sequence[str]) -> list[Row]:
    """Return the rows of workloads for architectures, by workload."""
    rows: list[Row] = []
    with progress_bar(len(names) * len(architectures), "programs") as bar:
        for arch in architectures:
            for program in workload_programs(names, arch):
                rows.append(row_of(program, arch))
                bar.step()
    return sorted(rows, key=lambda row: list(names).index(row.workload))


if __name__ == "__main__":
    sys.exit(main())
