"""Libraries of compiled programs: the bits that the loader of this process gives, and no other library than libc."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link.builtins import NAMES
from graphc.codegen.link.coff_reader import read_coff
from graphc.codegen.link.macho.reader import read_macho
from graphc.codegen.link.memory_functions import MEMORY_FUNCTIONS
from graphc.codegen.link.reader import read_object
from graphc.codegen.link.wasm_reader import read_wasm_object
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.thread_pool import RESET, RUN, SIZE, emit_pool
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target, named_targets, target_named
from graphc.compiler.linking import builtins_for, hide_names, link_library
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from tests.compiler.graphs import arguments, lookup, mlp
from tests.end_to_end.seeded_graphs import seeded_graph
from tests.native import TARGETS, Native, lowered, scheduled, target_or_skip

ROUNDING = """graph @rounding(%x: f32[3,17], %y: f64[5,7], %z: f64[5,7]) -> (f32[3,17], f64[5,7], f64[5,7]) {
  %a = floor(%x) : f32[3,17]
  %b = exp(%a) : f32[3,17]
  %c = trunc(%y) : f64[5,7]
  %d = floor_div(%y, %z) : f64[5,7]
  %e = pow(%z, %c) : f64[5,7]
  return %b, %d, %e
}"""
CPUS = [
    name
    for name, target in named_targets().items()
    if not (target.gpu is not None or target.is_bare or target.is_wasm or target.is_windows or target.is_macos)
]
"""Targets whose libraries are ELF files."""


class FromLibrary(Native):
    """A program in a shared library instead of object code in this process."""

    def __init__(self, native: Native, folder: Path):
        self.program, self.target, self.text = native.program, native.target, native.text
        path = folder / "lib.so"
        path.write_bytes(link_library([build_object(self.text, self.target)], [ENTRY], self.target))
        entry = ctypes.CDLL(str(path)).graphc_entry
        entry.argtypes, entry.restype = [ctypes.c_void_p], None
        self.__dict__["library"] = SimpleNamespace(entry=entry)


def both(graph: Graph, given: list[np.ndarray], target: Target, folder: Path) -> list[list[np.ndarray]]:
    native = Native(scheduled(lowered(graph), target), target)
    return [run([a.copy() for a in given]) for run in (native, FromLibrary(native, folder))]


GRAPHS = {"mlp": mlp, "lookup": lookup, "rounding": lambda: parse_graph(ROUNDING)} | {
    f"random {seed}": lambda seed=seed: seeded_graph(seed) for seed in range(6)
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_library_gives_the_bits_that_the_loader_here_gives(graph: str, name: str, tmp_path: Path):
    made = GRAPHS[graph]()
    expected, found = both(made, arguments(made), target_or_skip(name), tmp_path)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", CPUS)
def test_functions_of_mathematics_are_supplied(name: str):
    supply = builtins_for(target_named(name))
    for function in sorted(NAMES):
        code = supply(function)
        assert code is not None and supply(function) is code
        assert function in {s.name for s in read_object(code).symbols}
        assert not [s for s in read_object(code).symbols if s.section is None and s.binding], "it calls nothing"
    assert supply("malloc") is None


def test_webassembly_has_the_same_functions_and_no_relocatable_objects():
    target = target_named("wasm")
    supply = builtins_for(target)
    for function in sorted(NAMES):
        code = supply(function)
        assert code is not None
        undefined = {s.name for s in read_wasm_object(code).symbols if s.definition is None}
        assert undefined <= {"__stack_pointer", "__multi3", "__ashlti3", "__lshrti3"}
    with pytest.raises(CompileError, match="as a module of a library only") as caught:
        hide_names(code, {function: function})
    assert "build_library" in str(caught.value.remedy)


def test_windows_has_the_same_functions_and_a_probe_of_stack_pages():
    target = target_named("windows-sse2")
    supply = builtins_for(target)
    for function in sorted({*NAMES, "__chkstk"}):
        code = supply(function)
        assert code is not None and function in {s.name for s in read_coff(code).symbols if s.section}
    assert builtins_for(target_named("sse2"))("__chkstk") is None


def test_object_code_for_windows_exists_in_a_library_only():
    code = build_object("define void @f() {\n  ret void\n}\n", target_named("windows-sse2"))
    with pytest.raises(CompileError, match="in a library only") as caught:
        hide_names(code, {"f": "g"})
    assert "build_library" in str(caught.value.remedy)


@pytest.mark.parametrize(("name", "clear"), [("macos-neon", "bzero"), ("macos-avx2", "__bzero")])
def test_macos_has_the_same_functions_and_one_that_clears_memory(name: str, clear: str):
    target = target_named(name)
    text = f"""\
target triple = "{target.triple}"
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @f(ptr %p) {{
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 4096, i1 false)
  ret void
}}
"""
    assert [s.name for s in read_macho(build_object(text, target)).symbols if s.section is None] == [clear]
    supply = builtins_for(target, needs_libc=False)
    for function in sorted({*NAMES, *MEMORY_FUNCTIONS, clear}):
        code = supply(function)
        assert code is not None and function in {s.name for s in read_macho(code).symbols if s.section}
    assert builtins_for(target_named("neon"), needs_libc=False)(clear) is None


def test_object_code_for_macos_exists_in_a_library_only():
    code = build_object("define void @f() {\n  ret void\n}\n", target_named("macos-neon"))
    with pytest.raises(CompileError, match="code for macOS exists in a library only") as caught:
        hide_names(code, {"f": "g"})
    assert "net.dylib" in str(caught.value.remedy)


@pytest.mark.parametrize("name", CPUS)
def test_the_pool_of_threads_becomes_a_library(name: str):
    target = target_named(name)
    code = link_library([build_object(emit_pool(target), target)], [RUN, RESET, SIZE], target)
    assert b"libc.so.6" in code and b"pthread_create" in code


def test_programs_with_equal_names_share_a_library(tmp_path: Path):
    target = target_or_skip("sse2")
    parts = []
    for i, graph in enumerate((mlp(), lookup())):
        native = Native(scheduled(lowered(graph), target), target)
        parts.append(hide_names(build_object(native.text, target), {ENTRY: f"run_{i}"}))
    library = link_library(parts, ["run_0", "run_1"], target)
    path = tmp_path / "lib.so"
    path.write_bytes(library)
    loaded = ctypes.CDLL(str(path))
    assert loaded.run_0 and loaded.run_1
