"""Ops as machine code of other processors: samples of the registry in a shared library, run under qemu or here.

``python -m tools.codegen.cross_ops --target rv64gc`` builds one library of object code for a target, with an entry for
each sample, and a C program that loads the library and calls the entries. That machine's ``cc`` compiles the program;
qemu-user runs both if the target is another machine. ``macho_loader.h`` loads libraries for macOS, on Linux.
WebAssembly is one module that Node calls. The results are compared with the references of the ops. ``--count N --seed
S`` draws N samples at random; the default is all of them. Exits 1 where a result differs.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import graphc.ops.registry as registry
from graphc.base.dtypes import BY_NAME
from graphc.checks.op_check import sample_graph
from graphc.codegen.link.macho.shared import link_dylib
from graphc.codegen.llvm.module import LlvmModule
from graphc.codegen.machine.target import Target, architecture, host_target, named_targets, target_named
from graphc.compiler.compile import manifest_of
from graphc.compiler.linking import builtins_for, hide_names, link_library
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.files.manifest import Manifest
from graphc.files.object_archive import split_objects
from graphc.ir.graph.graph import Graph
from graphc.ir.op import REGISTRY, OpDef, Sample, Trait
from graphc.runtime.loader import host, runs_here
from tools.codegen import board_ops, boards
from tools.codegen.wasm_ops import RUNNER as WASM_RUNNER
from tools.codegen.wasm_ops import module_of, object_of

assert registry.FAMILIES, "all ops"

TOLERANCE = {"float32": 8e-6, "float64": 4e-13, "complex64": 8e-6, "complex128": 4e-13}
"""Relative to the largest finite result, and to each element: a few roundings."""
PROCESSORS = {"riscv64": "rv64,v=true,vext_spec=v1.0"}
"""qemu's name for a processor with all features that targets need, where it is not ``max``."""
WITHOUT_I8MM = "cortex-a76"
"""qemu's name for a processor that multiplies signed bytes only (``dotprod``)."""
LIMIT = 600
"""Seconds that all calls may take."""
RUNNER = Path(__file__).with_name("cases.c")
"""C program that calls all cases, on Linux and on Windows."""


@dataclass(frozen=True)
class Program:
    """Program for a target, its operands, and the results to expect."""

    title: str
    operands: Sequence[np.ndarray]
    expected: Sequence[np.ndarray]
    manifest: Manifest
    constants: np.ndarray
    module: LlvmModule
    code: bytes
    """Object code; empty where programs get distinct names first: WebAssembly, macOS, microcontrollers."""

    def __str__(self) -> str:
        return self.title

    @property
    def words(self) -> list[tuple[bytes, bool]]:
        """Return the bytes of each block in the program's table, and whether the block is a result."""
        operands, blocks = iter(self.operands), []
        for buffer in self.manifest.buffers:
            contents = bytes(buffer.nbytes)
            if buffer.cls in ("input", "state", "param"):
                contents = np.ascontiguousarray(next(operands)).tobytes()
            elif buffer.cls == "constant":
                contents = self.constants[buffer.offset : buffer.offset + buffer.nbytes].tobytes()
            elif buffer.cls == "arena":
                contents = bytes(self.manifest.arena)
            blocks.append((contents, buffer.cls == "output"))
        return blocks


def all_samples() -> list[tuple[OpDef, int, Sample]]:
    """Return the samples of all ops except those that call Python."""
    ops = [op for op in REGISTRY.values() if op.samples and not op.has(Trait.HOST)]
    return [(op, i, sample) for op in ops for i, sample in enumerate(op.samples() if op.samples else ())]


def build_case(op: OpDef, number: int, sample: Sample, target: Target) -> Program | None:
    """Return the program of a sample; None where the sample cannot be compiled by itself."""
    graph = sample_graph(op, sample.operands, sample.attrs)
    expected = op.evaluate(sample.operands, op.normalize(sample.attrs))
    return build_program(f"{op.name}-{number}", graph, sample.operands, expected, target)


def build_program(
    title: str, graph: Graph, operands: Sequence[np.ndarray], expected: Sequence[np.ndarray], target: Target
) -> Program | None:
    """Return the program of a graph; None where it has open sizes or checks."""
    stages = Stages(graph, target=target, tuned={})
    manifest, constants = manifest_of(stages.scheduled, "graphc_entry", target)
    if manifest.dims or any(buffer.cls == "status" for buffer in manifest.buffers):
        return None
    code = b"" if target.is_wasm or target.is_windows or target.is_macos or target.is_bare else stages.object
    return Program(title, operands, expected, manifest, constants, stages.module, code)


def library_of(cases: Sequence[Program], target: Target) -> bytes:
    """Return a shared library, or a WebAssembly module, with an entry ``case_N`` for each."""
    names = [f"case_{i}" for i in range(len(cases))]
    if target.is_wasm:
        objects = [object_of(case.module, name, target) for case, name in zip(cases, names, strict=True)]
        return module_of(objects, names, target)
    if target.is_macos:
        code = [object_of(case.module, name, target) for case, name in zip(cases, names, strict=True)]
        pieces, supply = [piece for c in code for piece in split_objects(c)], builtins_for(target, needs_libc=False)
        return link_dylib(pieces, names, name=file_name(target), supply=supply)
    objects = [hide_names(case.code, {"graphc_entry": name}) for case, name in zip(cases, names, strict=True)]
    return link_library(objects, names, target, soname=file_name(target))


def file_name(target: Target) -> str:
    """Return the name of the file with all cases."""
    return "cases.wasm" if target.is_wasm else "libcases.dylib" if target.is_macos else "libcases.so"


def input_of(cases: Sequence[Program]) -> bytes:
    """Return the input file of the C program."""
    chunks = [struct.pack("<q", len(cases))]
    for words in (case.words for case in cases):
        chunks.append(struct.pack("<q", len(words)))
        chunks += [struct.pack("<qq", len(contents), result) + contents for contents, result in words]
    return b"".join(chunks)


def missing_tool(target: Target) -> str:
    """Return the missing tool or instruction without which code of the target cannot run here; empty where nothing is
    missing."""
    if target.is_wasm and target.fma and not host_target().fma:
        return "no multiply-add"
    tools = commands(target)
    missing = next((f"no {tool}" for tool in tools if shutil.which(tool) is None), "")
    if missing or tools != ["cc"]:
        return missing
    return runs_here(replace(target_spec(target), triple=host().triple))


def commands(target: Target) -> list[str]:
    """Return the C compiler for a target's machine, and qemu for another machine than this; Node for WebAssembly."""
    name = architecture(target)
    if target.is_wasm:
        return ["node"]
    if target.is_bare:
        return [*boards.board_of(target).tools]
    if name == architecture(host_target()):
        return ["cc"]
    return [f"{name}-linux-gnu-gcc", f"qemu-{name}"]


def processor(target: Target) -> str:
    """Return qemu's name for a processor that has the target's features."""
    if target.has("dotprod") and not target.has("i8mm") and not target.is_macos:
        return WITHOUT_I8MM
    return PROCESSORS.get(architecture(target), "max")


def run(cases: Sequence[Program], target: Target, folder: Path) -> list[str]:
    """Run all cases in a folder; one line for each that differs from its reference. Raises CalledProcessError."""
    if target.is_bare:
        objects = [object_of(case.module, f"case_{i}", target) for i, case in enumerate(cases)]
        return compare(cases, board_ops.run_chunks(objects, lambda some: input_of(cases[some]), target, folder))
    (folder / file_name(target)).write_bytes(library_of(cases, target))
    (folder / "in").write_bytes(input_of(cases))
    if target.is_wasm:
        (folder / "runner.cjs").write_text(WASM_RUNNER)
        subprocess.run(["node", "runner.cjs"], cwd=folder, check=True, timeout=LIMIT)
        return compare(cases, (folder / "out").read_bytes())
    compiler, *emulator = commands(target)
    flags = ["-DMACHO", "-static"] if target.is_macos else []
    subprocess.run([compiler, "-O1", *flags, "-o", folder / "runner", RUNNER, "-ldl"], check=True)
    if emulator:
        emulator += ["-cpu", processor(target), "-L", f"/usr/{architecture(target)}-linux-gnu"]
    subprocess.run([*emulator, "./runner"], cwd=folder, check=True, timeout=LIMIT)
    return compare(cases, (folder / "out").read_bytes())


def compare(cases: Sequence[Program], results: bytes) -> list[str]:
    """Return one line for each case whose results differ from its reference."""
    lines, start = [], 0
    for case in cases:
        for buffer, expected in zip(
            (b for b in case.manifest.buffers if b.cls == "output"), case.expected, strict=True
        ):
            dtype = BY_NAME[buffer.dtype].numpy
            result = np.frombuffer(results[start : start + buffer.nbytes], dtype).reshape(buffer.shape)
            start += buffer.nbytes
            if not agree(result, expected):
                lines.append(f"{case}: {result.reshape(-1)[:4]} and not {expected.reshape(-1)[:4]}")
    return lines


def agree(result: np.ndarray, expected: np.ndarray) -> bool:
    """Return whether the arrays are equal; floats up to a few roundings of the largest one."""
    tolerance = TOLERANCE.get(str(expected.dtype))
    if tolerance is None:
        return np.array_equal(result, expected)
    finite = np.abs(expected[np.isfinite(expected)])
    return np.allclose(result, expected, tolerance, tolerance * min(finite.max(initial=0.0), 1.0), equal_nan=True)


def chosen(target: Target, count: int | None, seed: int) -> list[Program]:
    """Return the cases of all samples, or of as many by chance. Whether one is drawn does not depend on which others
    there are, but for the last."""
    samples = all_samples()
    if count is not None:
        samples = sorted(samples, key=lambda s: crc32(f"{seed} {s[0].name} {s[1]}".encode()))[:count]
    return [case for sample in samples if (case := build_case(*sample, target)) is not None]


def command(
    description: str,
    kind: str,
    count: int | None,
    programs: Callable[[Target, Any, int], Sequence[Program]],
    arguments: Sequence[str] | None,
) -> int:
    """Parse a command line with a target, a number of programs (``count`` is its default) and a seed; run the programs.

    Prints a line for each program that differs. Returns 1 where one does, and 2 where a tool is missing.
    """
    parser = argparse.ArgumentParser(description=description)
    cpus = [n for n, t in named_targets().items() if t.gpu is None and not t.is_windows]
    parser.add_argument("--target", choices=cpus, required=True)
    number = "all" if count is None else count
    parser.add_argument("--count", type=int, default=count, help=f"number of {kind} to draw (default: {number})")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    target = target_named(options.target)
    if reason := missing_tool(target):
        print(f"{options.target} cannot run here: {reason}", file=sys.stderr)
        return 2
    cases = programs(target, options.count, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        lines = run(cases, target, Path(folder))
    print("\n".join([*lines, f"{options.target}: {len(cases)} {kind}, {len(lines)} differ"]))
    return 1 if lines else 0


def main(arguments: Sequence[str] | None = None) -> int:
    return command((__doc__ or "").partition("\n")[0], "samples", None, chosen, arguments)


if __name__ == "__main__":
    sys.exit(main())
