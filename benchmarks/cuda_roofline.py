"""Lower bounds of times on an H200, by bytes and operations of each kernel: ``python -m benchmarks.cuda_roofline``.

These are computed figures, not measurements. The bound of a launch is the largest of three: its bytes at the speed of a
copy, with each element of an argument counted once and no cache; its operations at the rate of its products; and the
time of one minimal kernel of a recorded graph.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

from benchmarks.harness.results import format_table
from benchmarks.workloads import WORKLOADS
from graphc.base.sizes.size import hint
from graphc.codegen.schedule.estimate.kernel_facts import kernel_facts
from graphc.ir.kernel.statements import Call, Kernel, Let, Store, Update, walk
from tools.cuda.programs import DeviceProgram, workload_programs
from tools.progress import progress_bar


@dataclass(frozen=True)
class Ceilings:
    """Best figures of an H200 SXM, as others have measured them (shared notes of the project: docs/cuda.md)."""

    copy: float = 4.3e12
    """Bytes in a second, read and written together."""
    f64: float = 60e12
    """Operations in a second on f64, by tensor cores."""
    f32: float = 60e12
    """Operations in a second on f32, without tensor cores."""
    tf32: float = 418e12
    """The same where products of f32 may round their operands."""
    bf16: float = 770e12
    """Floating-point operations per second of products of bf16 and f16."""
    kernel: float = 1.5e-6
    """Seconds between the starts of two small kernels of a recorded graph. Estimated, not measured."""
    replay: float = 5e-6
    """Seconds to start a recorded graph. Estimated, not measured."""
    launch: float = 4e-6
    """CPU seconds of a launch without a recorded graph. Estimated, not measured."""

    def rate(self, dtype: str, is_product: bool, tf32: bool) -> float:
        """Return operations in a second on elements of a type."""
        if dtype in ("bf16", "f16") and is_product:
            return self.bf16
        if dtype == "f64":
            return self.f64 if is_product else self.f64 / 2
        return self.tf32 if tf32 and is_product else self.f32


H200 = Ceilings()
_ARITHMETIC = dict.fromkeys(("add", "sub", "mul", "weigh", "div", "sqrt", "min", "max", "neg", "abs"), 1) | {"fma": 2}
"""Operations on floats that count, and as how many."""


@dataclass
class Line:
    """All launches of a kernel in one call of the program."""

    kernel: str
    kind: str
    """``product`` where the library computes it, else ``kernel``."""
    origin: str
    launches: int = 0
    bytes: int = 0
    flops: int = 0
    seconds: float = 0.0


@dataclass
class Sheet:
    """A workload on paper."""

    workload: str
    lines: list[Line] = field(default_factory=list)

    def total(self, of: str) -> float:
        return sum(getattr(line, of) for line in self.lines)


def sheet_of(program: DeviceProgram, ceilings: Ceilings = H200, tf32: bool = False) -> Sheet:
    """Return the kernels of a program, those that take the longest first."""
    lines: dict[str, Line] = {}
    for call in program.program.calls:
        line = lines.get(call.kernel)
        if line is None:
            kind = "product" if call.kernel in program.products else "kernel"
            line = lines[call.kernel] = Line(
                call.kernel, kind, ", ".join(program.program.kernel(call.kernel).origin[-1:])
            )
        _add(line, program, call, ceilings, tf32)
    return Sheet(program.name, sorted(lines.values(), key=lambda x: -x.seconds))


def _add(line: Line, program: DeviceProgram, call: Call, ceilings: Ceilings, tf32: bool) -> None:
    kernel = program.program.kernel(call.kernel)
    facts = kernel_facts(kernel)
    product = program.products.get(call.kernel)
    nbytes, flops = facts.read + facts.written, operations_of(kernel) if product is None else multiply_adds(product)
    floats = [b.dtype.name for b in kernel.arguments if b.dtype.kind == "f"]
    dtype = max(floats, key=lambda name: name == "f64", default="f32")
    rate = ceilings.rate(dtype, line.kind == "product", tf32)
    line.launches += call.runs * (1 if product is None else prod(map(hint, product.loops)))
    line.bytes += call.runs * nbytes
    line.flops += call.runs * flops
    line.seconds += call.runs * max(nbytes / ceilings.copy, flops / rate, ceilings.kernel)


def operations_of(kernel: Kernel) -> int:
    """Count floating-point operations in one run, each statement once for each iteration of all loops around it."""
    total = 0
    for stmt, loops in walk(kernel.body):
        weight = int(isinstance(stmt, Update) or (isinstance(stmt, Store) and bool(stmt.combine)))
        if isinstance(stmt, Let) and stmt.dtype.kind == "f":
            weight = _ARITHMETIC.get(stmt.op, 0)
        if weight:
            total += weight * prod(hint(loop.axis.extent) for loop in loops)
    return total


def multiply_adds(product: Any) -> int:
    """Return operations of a product of the library: two for each multiply-add."""
    return 2 * prod(hint(n) for n in (product.m, product.n, product.k, product.batch, *product.loops))


_HEADS = ("workload", "kernels", "products", "launches", "MB", "GFLOP", "bytes us", "operations us", "on paper us")


def format_sheets(sheets: Iterable[Sheet], ceilings: Ceilings = H200) -> str:
    rows = []
    for sheet in sheets:
        launches, nbytes = int(sheet.total("launches")), sheet.total("bytes")
        products = sum(line.kind == "product" for line in sheet.lines)
        paper = sheet.total("seconds") + ceilings.replay
        operations = sum(line.flops / ceilings.rate("f32", line.kind == "product", False) for line in sheet.lines)
        times = nbytes / ceilings.copy, operations, paper, max(paper, launches * ceilings.launch)
        counts = [sheet.workload, str(len(sheet.lines)), str(products), str(launches), f"{nbytes / 1e6:.1f}"]
        rows.append([*counts, f"{sheet.total('flops') / 1e9:.2f}", *(f"{1e6 * seconds:.1f}" for seconds in times)])
    return format_table([*_HEADS, "one by one us"], rows)


def format_kernels(sheet: Sheet, most: int) -> str:
    total, rows = sheet.total("seconds") or 1.0, []
    for line in sheet.lines[:most]:
        cells = [line.kernel, line.kind, str(line.launches), f"{1e6 * line.seconds:.1f}", f"{line.seconds / total:.0%}"]
        rows.append([*cells, f"{line.bytes / 1e6:.2f}", f"{line.flops / 1e6:.1f}", line.origin])
    columns = ["kernel", "kind", "launches", "us", "share", "MB", "MFLOP", "of"]
    return f"{sheet.workload}:\n\n{format_table(columns, rows)}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.cuda_roofline", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("cases", nargs="*", default=list(WORKLOADS), metavar="WORKLOAD", help="workloads (default: all)")
    add("--tf32", action="store_true", help="assume tensor cores for products of f32, with rounded operands")
    add("--kernels", type=int, default=0, metavar="N", help="list the N longest kernels of each workload")
    add("--json", action="store_true", help="print all kernels as JSON")
    options = parser.parse_args(argv)
    unknown = [name for name in options.cases if name not in WORKLOADS]
    if unknown:
        parser.error(f"there is no workload {unknown[0]!r}: one of {', '.join(WORKLOADS)}")
    sheets = []
    with progress_bar(len(options.cases), "workloads") as bar:
        for program in workload_programs(options.cases):
            sheets.append(sheet_of(program, tf32=options.tf32))
            bar.step()
    if options.json:
        print(json.dumps({"ceilings": asdict(H200), "workloads": [_as_data(s) for s in sheets]}, indent=1))
        return 0
    print(format_sheets(sheets))
    for sheet in sheets if options.kernels else ():
        print("\n" + format_kernels(sheet, options.kernels))
    return 0


def _as_data(sheet: Sheet) -> dict[str, Any]:
    totals = {name: sheet.total(name) for name in ("launches", "bytes", "flops", "seconds")}
    return {"workload": sheet.workload, "totals": totals, "kernels": [asdict(line) for line in sheet.lines]}


if __name__ == "__main__":
    sys.exit(main())
