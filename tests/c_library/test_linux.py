"""Linux libraries: what they need, show and write, and programs that link them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tests.c_library.conftest import (
    Built,
    build_demo,
    expected,
    printed,
    run_tool,
    tool_or_skip,
)
from tests.c_library.freestanding import Loaded
from tests.c_library.nets import NETS


def test_a_library_shows_its_functions_alone(built: Built):
    library = built("decoder")
    lines = run_tool(tool_or_skip("nm"), "-D", "--defined-only", library.files["so"]).splitlines()
    names = [line.split()[-1] for line in lines]
    assert names and all(name.startswith("decoder_") and "__" not in name for name in names)


def test_no_memory_of_a_library_is_written(built: Built):
    tool = tool_or_skip("readelf")
    for name in NETS:
        text = run_tool(tool, "-lW", built(name).files["so"])
        loaded = [x.split() for x in text.splitlines() if x.split()[:1] == ["LOAD"]]
        protected = [x.split() for x in text.splitlines() if x.split()[:1] == ["GNU_RELRO"]]
        writable = [int(x[5], 16) for x in loaded if "W" in x[6:-1]]
        assert sum(writable) <= sum(-(-int(x[5], 16) // 4096) * 4096 for x in protected)


@pytest.mark.parametrize("kind", ["o", "a"])
def test_code_is_linked_into_a_program(kind: str, built: Built):
    net = NETS["digits"]
    library = built("digits", emit=("o", "a", "h", "c", "so"))
    program = library.files["c"].with_suffix(f".{kind}.program")
    run_tool(tool_or_skip("cc"), library.files["c"], library.files[kind], "-o", program)
    shared = build_demo(library, compiler="cc")
    assert run_tool(program, "--all") == run_tool(shared, "--all")
    assert printed(run_tool(program))["output"] and net.calls


THREADS = frozenset(
    (
        *("aligned_alloc", "clock_gettime", "free", "pthread_create", "pthread_detach", "pthread_join"),
        *("pthread_sigmask", "sched_yield", "syscall", "memcpy", "memset"),
    )
)
"""Functions of glibc 2.17: the last ones to appear were aligned_alloc (2.16) and clock_gettime in libc.so.6 (2.17)."""


@pytest.mark.parametrize("name", NETS)
def test_a_library_without_threads_needs_no_other(built: Built, name: str):
    path = built(name).files["so"]
    assert "NEEDED" not in run_tool(tool_or_skip("readelf"), "-dW", path)
    assert not run_tool(tool_or_skip("nm"), "-D", "--undefined-only", path)


def test_threads_need_functions_of_glibc_2_17(built: Built):
    path = built("wide", threads=True).files["so"]
    needed = [x for x in run_tool(tool_or_skip("readelf"), "-dW", path).splitlines() if "NEEDED" in x]
    assert [line.split("[")[1] for line in needed] == ["libpthread.so.0]", "libc.so.6]"]
    names = run_tool(tool_or_skip("nm"), "-D", "--undefined-only", path).split()
    assert "pthread_create" in names and {*names} - {"U"} <= THREADS


@pytest.mark.parametrize(("name", "threads"), [("policy", False), ("decoder", False), ("sizes", False), ("wide", True)])
def test_the_demo_runs_with_musl(built: Built, name: str, threads: bool):
    library = built(name, threads=threads)
    found, wanted = (
        printed(run_tool(build_demo(library, compiler=tool_or_skip(compiler)))) for compiler in ("musl-gcc", "cc")
    )
    assert found == wanted and found


@pytest.mark.parametrize("name", ["policy", "digits", "lstm", "decoder"])
def test_a_library_runs_without_a_system(built: Built, tmp_path: Path, name: str):
    library, net = built(name), NETS[name]
    loaded = Loaded(library.files["so"])
    arena_size = loaded.call(f"{name}_run_arena_size", result=ctypes.c_size_t)
    context, arena = (aligned(size) for size in (library.context_bytes, arena_size))
    pointer = context.ctypes.data
    assert loaded.call(f"{name}_init", ctypes.c_void_p(pointer), ctypes.c_size_t(context.size)) == 0
    for inputs, outputs in zip(net.calls, expected(net, tmp_path), strict=True):
        found = [np.full_like(a, 7) for a in outputs]
        places = [ctypes.c_void_p(a.ctypes.data) for a in (context, *inputs, *found, arena)]
        assert loaded.call(f"{name}_run", *places, ctypes.c_size_t(arena.size)) == 0
        for a, b in zip(found, outputs, strict=True):
            np.testing.assert_array_equal(a, b)


def aligned(size: int) -> np.ndarray:
    memory = np.zeros(size + 64, np.uint8)
    return memory[-memory.ctypes.data % 64 :][:size]
