"""Figures of this machine, beside the constants in use for a target: ``python -m benchmarks.machine [--target avx2]``.

Measures on one core, with code that graphc emits, the independent facts of ``graphc.codegen.machine.costs``: peak,
latencies, reads from each cache, copies, packing. Others need times of whole kernels; they are listed as not measured.
``--read`` prints instead the speed of reading arrays of many sizes, ``--copy`` that of copying them, with ordinary
stores and with non-temporal ones.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.harness import probes
from benchmarks.harness.process import pin
from benchmarks.harness.results import cell, format_table
from benchmarks.harness.sweep import restart, tell
from graphc.base.dtypes import float32
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.probe import PEAK, emit_peak, flops_per_round
from graphc.codegen.machine.target import Target, named_targets
from graphc.compiler.profile import load_stamped
from graphc.compiler.ready import running_target, target_spec
from graphc.compiler.stages import Stages
from graphc.errors import CompileError
from graphc.ir.graph.parse import parse_graph
from graphc.ops.contraction.byte_product import PAIR, QUAD
from graphc.runtime.arena import address_of
from graphc.runtime.loader import Library, load_object
from graphc.runtime.profile import measure_peak, time_calls

Row = dict[str, Any]
_PASS = 0.002
"""Least seconds that a loop runs for each of its times: shorter than a time slice of another process on this core."""
_TRIES = 25
_LARGEST = 128 << 20
"""Bytes of arrays that no cache holds."""
_READ_BYTES = tuple(s << 10 for s in (16, 32, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072))
_COPY_BYTES = tuple(m << 20 for m in (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128))
"""Bytes read and written together."""
_CLEARLY = 1.05
"""Least speedup of one kind of stores over the other that counts as clear."""
_PRODUCT = 512
"""Rows and columns of a packed operand."""
_RANDOM = np.random.default_rng(0)


class Measurements:
    """Figures of one core with the instructions of a target; each is measured on first use."""

    def __init__(self, target: Target):
        self.target = target
        self.source, self.goal = (_aligned(_LARGEST) for _ in range(2))

    @cached_property
    def ghz(self) -> float:
        """Return cycles in a nanosecond."""
        return 2 * probes.STEPS / self._round_ns(probes.emit_clock(self.target))

    @cached_property
    def operations(self) -> float:
        """Return multiply-adds of a vector in a nanosecond."""
        target = self.target
        code = build_object(emit_peak(target), target)
        flops = measure_peak(code, PEAK, flops_per_round(target), target_spec(target))
        return flops / 2 / target.lanes(float32) / 1e9

    @cached_property
    def operation_cycles(self) -> float:
        """Return cycles of one of many operations on vectors."""
        return self.ghz / self.operations

    def chain_cycles(self) -> float:
        """Return cycles of a multiply-add that waits for the one before."""
        return self._round_ns(probes.emit_chain(self.target)) * self.ghz / probes.STEPS

    def fold_cycles(self) -> float:
        """Return cycles to add up the lanes of one of many vectors."""
        return self._round_ns(probes.emit_folds(self.target)) * self.ghz / probes.STEPS

    def read_speed(self, nbytes: int) -> float:
        """Return bytes in a nanosecond of reading an array again and again."""
        return nbytes / self._round_ns(probes.emit_read(self.target, self.target.vector_bytes), nbytes)

    def read_cycles(self, nbytes: int) -> float:
        """Return cycles to read a vector of such an array."""
        return self.target.vector_bytes / self.read_speed(nbytes) * self.ghz

    def page_read_cycles(self, nbytes: int) -> float:
        """Return the cycles of a read where each vector lies on another page than the previous one."""
        page = self.target.page_bytes
        text = probes.emit_read(self.target, page, page)
        return self._round_ns(text, nbytes) / (nbytes // page) * self.ghz

    def copy_speed(self, nbytes: int, non_temporal: bool) -> float:
        """Return the bytes per nanosecond, read and written, of a copy that touches ``nbytes``."""
        return nbytes / self._round_ns(probes.emit_copy(self.target, non_temporal), nbytes // 2)

    def non_temporal_bytes(self) -> float | None:
        """Return bytes of a copy from which stores past the caches are the faster ones; None where they never are."""
        threshold = None
        for nbytes in reversed(_COPY_BYTES):
            if self.copy_speed(nbytes, True) < _CLEARLY * self.copy_speed(nbytes, False):
                break
            threshold = float(nbytes)
        return threshold

    def gathered_operations(self) -> float:
        """Return operations that one lane of a gathered read takes as long as."""
        text = """graph @g(%x: f32[5120]) -> (f32[1024]) {
          %y = slice(%x) {starts=[0], stops=[5120], steps=[5]} : f32[1024]
          return %y
        }"""
        return self._kernel_cycles(text) / 1024 / self.operation_cycles

    def exponential_operations(self) -> float:
        """Return the number of operations that take as long as an exponential."""
        text = "graph @e(%x: f32[4096]) -> (f32[4096]) {\n  %y = exp(%x) : f32[4096]\n  return %y\n}"
        return self._kernel_cycles(text) / (4096 / self.target.lanes(float32)) / self.operation_cycles

    def transposed_cycles(self) -> float:
        """Return the cycles to read an element by register transposes."""
        text = """graph @t(%x: f32[64,64]) -> (f32[64,64]) {
          %y = transpose(%x) {permutation=[1,0]} : f32[64,64]
          return %y
        }"""
        return self._kernel_cycles(text) / 64**2

    def packed_cycles(self, turned: bool) -> float | None:
        """Return cycles to pack an element of an operand, as it lies or by register transposes; None where none is
        packed."""
        n = _PRODUCT
        text = f"""graph @p(%x: f32[{n},{n}], %w: f32[{n},{n}]) -> (f32[{n},{n}]) {{
          %y = matmul(%x, %w) {{transpose_b={str(turned).lower()}}} : f32[{n},{n}]
          return %y
        }}"""
        cycles = self._kernel_cycles(text, "_pack")
        return cycles / n**2 if cycles else None

    def byte_speed(self) -> float:
        """Return multiply-adds of bytes, in the words that the target multiplies, in the time of one of f32."""
        n = _PRODUCT
        name, count = ("pair_matmul", PAIR) if self.target.costs.rewrites.byte_pairs else ("quad_matmul", QUAD)
        floats = f"""graph @f(%x: f32[{n},{n}], %w: f32[{n},{n}]) -> (f32[{n},{n}]) {{
          %y = matmul(%x, %w) {{transpose_b=true}} : f32[{n},{n}]
          return %y
        }}"""
        words = f"""graph @w(%x: i32[{n},{n // count}], %w: i32[{n},{n // count}]) -> (i32[{n},{n}]) {{
          %y = {name}(%x, %w) : i32[{n},{n}]
          return %y
        }}"""
        return self._kernel_cycles(floats) / self._kernel_cycles(words)

    def _kernel_cycles(self, text: str, suffix: str = "") -> float:
        """Return cycles of the kernels of a graph, those whose names end so."""
        stages = Stages(parse_graph(text), target=self.target, tuned={})
        inputs = [_RANDOM.standard_normal(v.shape).astype(v.dtype.numpy) for v in stages.traced.inputs]
        times = time_calls(load_stamped(stages), inputs, (), 0.2, 20_000, quantile=0.05)
        calls = zip(stages.scheduled.calls, times.calls, strict=True)
        return 1e9 * self.ghz * sum(seconds for call, seconds in calls if call.kernel.endswith(suffix))

    def _round_ns(self, text: str, nbytes: int = 0) -> float:
        """Return nanoseconds of a round of a probe: the best of several tries."""
        library = load_object(build_object(text, self.target), probes.PROBE, target_spec(self.target))
        rounds, spent = 1, 0.0
        while spent < _PASS:
            rounds = max(2 * rounds, int(rounds * _PASS / spent) if spent > _PASS / 100 else 8 * rounds)
            spent = self._run(library, rounds, nbytes)
        return 1e9 * min(self._run(library, rounds, nbytes) for _ in range(_TRIES)) / rounds

    def _run(self, library: Library, rounds: int, nbytes: int) -> float:
        table = (ctypes.c_int64 * 4)(rounds, address_of(self.source), address_of(self.goal), nbytes)
        start = time.perf_counter()
        library.entry(ctypes.addressof(table))
        return time.perf_counter() - start


def make_read(nbytes: int) -> Callable[[], None]:
    """Return a call that reads ``nbytes`` of memory once, in order."""
    target = running_target("host")
    step = probes.STEPS * target.vector_bytes
    source = _aligned(-(-nbytes // step) * step)
    code = build_object(probes.emit_read(target, target.vector_bytes), target)
    library = load_object(code, probes.PROBE, target_spec(target))
    result = _aligned(step)
    table = (ctypes.c_int64 * 4)(1, address_of(source), address_of(result), len(source))

    def call() -> None:
        assert len(source) and len(result)  # they stay in memory as long as the call
        library.entry(ctypes.addressof(table))

    return call


def _aligned(nbytes: int) -> np.ndarray:
    """Return zeros in resident memory, aligned to a page."""
    page = 4096
    raw = np.zeros(nbytes + page, np.uint8)
    raw.fill(0)
    start = -address_of(raw) % page
    return raw[start : start + nbytes]


@dataclass(frozen=True)
class Field:
    """A measured cost."""

    unit: str
    source: str
    """Formula of the measurement."""
    measure: Callable[[Measurements], float | None]


def _l2(m: Measurements) -> int:
    return m.target.l2_bytes // 2


def _llc(m: Measurements) -> int:
    return 4 * m.target.l2_bytes


FIELDS: dict[str, Field] = {
    "speeds.operations": Field("operations/ns", "independent multiply-adds", lambda m: m.operations),
    "speeds.l1": Field("bytes/ns", "reading half of L1", lambda m: m.read_speed(m.target.l1_bytes // 2)),
    "speeds.l2": Field("bytes/ns", "reading half of L2", lambda m: m.read_speed(_l2(m))),
    "speeds.llc": Field("bytes/ns", "reading four times L2", lambda m: m.read_speed(_llc(m))),
    "speeds.memory": Field("bytes/ns", "reading 128 MiB", lambda m: m.read_speed(_LARGEST)),
    "memory.non_temporal_bytes": Field("bytes", "copies with both kinds of stores", lambda m: m.non_temporal_bytes()),
    "contraction.multiply_adds": Field("per cycle", "independent multiply-adds", lambda m: m.operations / m.ghz),
    "contraction.chain_cycles": Field("cycles", "multiply-adds in a row", lambda m: m.chain_cycles()),
    "contraction.l1_read": Field("cycles", "reading half of L1", lambda m: m.read_cycles(m.target.l1_bytes // 2)),
    "contraction.l2_read": Field("cycles", "reading half of L2", lambda m: m.read_cycles(_l2(m))),
    "contraction.llc_read": Field("cycles", "reading four times L2", lambda m: m.read_cycles(_llc(m))),
    "contraction.llc_page_read": Field("cycles", "the same page by page", lambda m: m.page_read_cycles(_llc(m))),
    "contraction.fold": Field("cycles", "sums of lanes", lambda m: m.fold_cycles()),
    "contraction.transposed_access": Field("cycles", "transpose of 64x64", lambda m: m.transposed_cycles()),
    "contraction.pack_element": Field("cycles", "product of 512x512", lambda m: m.packed_cycles(False)),
    "contraction.pack_turned_element": Field("cycles", "the same transposed", lambda m: m.packed_cycles(True)),
    "rewrites.byte_speed": Field("per multiply-add", "products of 512x512", lambda m: m.byte_speed()),
    "lanes.gather": Field("operations", "every fifth of 5120", lambda m: m.gathered_operations()),
    "lanes.transcendental": Field("operations", "exp of 4096", lambda m: m.exponential_operations()),
    "lanes.fold": Field("operations", "sums of lanes", lambda m: m.fold_cycles() / m.operation_cycles),
}
"""Fields by record and field name of the costs."""


def in_use(target: Target, name: str) -> float:
    """Return the cost of that name, as ``contraction.fold``."""
    topic, _, field = name.partition(".")
    return getattr(getattr(target.costs, topic), field)


def names_of_costs(target: Target) -> list[str]:
    """Return all costs of a target."""
    topics = (field.name for field in fields(target.costs) if is_dataclass(getattr(target.costs, field.name)))
    return [f"{topic}.{field.name}" for topic in topics for field in fields(getattr(target.costs, topic))]


def measure(target: Target, names: Sequence[str]) -> tuple[float, list[Row]]:
    """Return the clock in cycles per nanosecond, and a row for each name; the measured figure is None where there is
    nothing to measure: no operand is packed, no store past the caches is faster."""
    measurements, rows = Measurements(target), []
    for name in names:
        tell(name)
        field = FIELDS[name]
        measured = field.measure(measurements)
        rows.append({"name": name, "in_use": in_use(target, name), "measured": measured, "unit": field.unit})
        rows[-1]["source"] = field.source
    return measurements.ghz, rows


def format_rows(title: str, ghz: float, rows: Sequence[Row], missing: Sequence[str]) -> str:
    """Return a table in Markdown, and the names of the fields missing from it."""
    lines = []
    for row in rows:
        figures = [row["in_use"], row["measured"]]
        if row["unit"] == "bytes":
            cells = [f"{(x or 0) / (1 << 20):.0f} MiB" for x in figures]
        else:
            cells = [cell(x, ".3g") for x in figures]
        lines.append([row["name"], *cells, row["unit"], row["source"]])
    table = format_table(["name", "in use", "measured", "unit", "from"], lines)
    text = f"{title}, one core at {ghz:.2f} GHz\n\n{table}\n\nNot measured, although in use: facts of the target, and"
    topics: dict[str, list[str]] = {}
    for topic, _, field in (name.partition(".") for name in missing):
        topics.setdefault(topic, []).append(field)
    return "\n".join([text, *(f"  {topic}: {', '.join(entries)}" for topic, entries in topics.items())])


def read_table(target: Target, sizes: Sequence[int] = _READ_BYTES) -> list[dict[str, float]]:
    """Return the bytes per nanosecond of reading arrays, by size."""
    m = Measurements(target)
    return [{"KiB": nbytes / 1024, "read": m.read_speed(nbytes)} for nbytes in sizes]


def copy_table(target: Target, sizes: Sequence[int] = _COPY_BYTES) -> list[dict[str, float]]:
    """Return the bytes per nanosecond, read and written, of copies, by size."""
    m = Measurements(target)
    return [
        {"KiB": nbytes / 1024, "copy": m.copy_speed(nbytes, False), "past the caches": m.copy_speed(nbytes, True)}
        for nbytes in sizes
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.machine", description=__doc__)
    add = parser.add_argument
    named = "target whose costs and instructions are measured (default: host)"
    add("--target", default="host", choices=["host", *named_targets()], help=named)
    add("--only", default="", metavar="TEXT", help="measure only costs whose name contains this")
    add("--read", action="store_true", help="measure the speed of reading arrays of many sizes")
    add("--copy", action="store_true", help="measure the speed of copying arrays, with both kinds of stores")
    add("--json", action="store_true", help="print the table as JSON")
    options = parser.parse_args(argv)
    names = [name for name in FIELDS if options.only in name]
    if not names:
        parser.error(f"no measured cost has {options.only!r} in its name: {', '.join(FIELDS)}")
    try:
        target = running_target(options.target)
    except CompileError as error:
        parser.error(error.what)
    pin(1)
    if options.read or options.copy:
        speeds = (copy_table if options.copy else read_table)(target)
        forms = ["{:.0f}", *["{:.1f}"] * 2]
        lines = [[form.format(value) for form, value in zip(forms, row.values(), strict=False)] for row in speeds]
        table = f"Bytes in a nanosecond\n\n{format_table(list(speeds[0]), lines)}"
        print(json.dumps(speeds, indent=1) if options.json else table)
        return 0
    ghz, rows = measure(target, names)
    missing = [name for name in names_of_costs(target) if name not in FIELDS]
    report = {"target": options.target, "ghz": ghz, "rows": rows, "not measured": missing}
    print(json.dumps(report, indent=1) if options.json else format_rows(options.target, ghz, rows, missing))
    return 0


if __name__ == "__main__":
    restart("benchmarks.machine")
    sys.exit(main())
