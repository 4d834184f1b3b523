"""Linking by LLVM's engines: results, errors, lifetime, memory in pieces."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys

import pytest

from graphc.errors import CompileError
from graphc.runtime.code import llvm_engine
from graphc.runtime.code.llvm_engine import LINKED, EngineCode, link
from graphc.runtime.loader import host, load_object
from tests.architecture.scan import ROOT
from tests.runtime.native import build, kept_bytes
from tests.runtime.test_loader import ADD, added


def add(code: EngineCode, start: int) -> int:
    cell = ctypes.c_int64(start)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses["entry"])(ctypes.addressof(cell))
    return cell.value


def test_imports_and_symbols_of_the_process_are_found():
    text = """
@step = external global i64
declare i64 @labs(i64)
define void @entry(ptr %p) {
  %v = load i64, ptr %p
  %s = load i64, ptr @step
  %w = sub i64 %v, %s
  %a = call i64 @labs(i64 %w)
  store i64 %a, ptr %p
  ret void
}
"""
    step = ctypes.c_int64(12)
    assert add(link([build(text)], ("entry",), {"step": ctypes.addressof(step)}), 2) == 10


@pytest.mark.parametrize("code", [b"", b"not an object", b"\x7fELF"])
def test_what_is_no_object_is_a_compile_error(code: bytes):
    with pytest.raises(CompileError):
        link([code], ("entry",), {})


def test_programs_of_one_engine_live_as_long_as_they_are_needed():
    codes: list[EngineCode | None] = [link([build(ADD.format(n=n))], ("entry",), {}) for n in range(3 * LINKED)]
    for number in range(0, 3 * LINKED, 5):
        codes[number] = None
    del codes[:LINKED]
    gc.collect()
    for n, code in enumerate(codes, LINKED):
        assert code is None or add(code, 1) == n + 1


def test_engines_whose_programs_are_dropped_leave_nothing_behind():
    code = build(ADD.format(n=1))
    assert kept_bytes(lambda: link([code], ("entry",), {}), 5 * LINKED, 20 * LINKED) < 20 * LINKED * 500


def test_the_loader_takes_it_where_the_own_linker_does_not_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("graphc.runtime.loader.can_link", lambda: False)
    library = load_object(build(ADD.format(n=4)), "entry", host())
    assert added(library, 1) == 5
    assert isinstance(library.entry.owner, llvm_engine.EngineCode)  # type: ignore[attr-defined]
    with pytest.raises(CompileError, match="entry 'missing' could not be loaded"):
        load_object(build(ADD.format(n=1)), "missing", host())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux for memory")
def test_objects_may_lie_gigabytes_apart():
    found = subprocess.run(
        [sys.executable, "-m", "tests.runtime.code.scattered"], capture_output=True, text=True, cwd=ROOT
    )
    assert found.stdout.split() == ["42", "True"], found.stderr
