"""Loading of object code: symbols, errors, lifetime, other processes."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import os
import subprocess
import sys
import threading

import pytest

from graphc.errors import CompileError
from graphc.files.manifest import TargetSpec
from graphc.runtime.loader import Library, host, load_object, runs_here
from tests.architecture.scan import ROOT
from tests.runtime.native import build, kept_bytes

ADD = "define void @entry(ptr %p) {{ %v = load i64, ptr %p\n %w = add i64 %v, {n}\n store i64 %w, ptr %p\n ret void }}"


def added(library: Library, start: int) -> int:
    cell = ctypes.c_int64(start)
    library.entry(ctypes.addressof(cell))
    return cell.value


def test_a_library_runs_and_libraries_with_one_symbol_do_not_meet():
    libraries = [load_object(build(ADD.format(n=n)), "entry", host()) for n in (1, 20, 300)]
    assert [added(library, 5) for library in libraries] == [6, 25, 305]
    assert len({library.address for library in libraries}) == 3


def test_code_stays_while_its_library_lives_and_goes_with_it():
    keep = load_object(build(ADD.format(n=7)), "entry", host())
    for n in range(50):
        assert added(load_object(build(ADD.format(n=n)), "entry", host()), 1) == n + 1
    gc.collect()
    assert added(keep, 1) == 8


def test_symbols_of_the_process_are_found():
    text = """
declare ptr @memcpy(ptr, ptr, i64)
@source = internal constant [2 x i64] [i64 40, i64 2]
define void @entry(ptr %p) { %r = call ptr @memcpy(ptr %p, ptr @source, i64 16)\n ret void }
"""
    cells = (ctypes.c_int64 * 2)()
    load_object(build(text), "entry", host()).entry(ctypes.addressof(cells))
    assert list(cells) == [40, 2]


@pytest.mark.parametrize("entry", ["missing", ""])
def test_a_missing_entry_is_a_compile_error(entry: str):
    with pytest.raises(CompileError, match=f"entry '{entry}' could not be loaded"):
        load_object(build(ADD.format(n=1)), entry, host())


def test_an_unknown_symbol_is_a_compile_error():
    text = "declare void @nobody_has_this()\ndefine void @entry(ptr %p) { call void @nobody_has_this()\n ret void }"
    with pytest.raises(CompileError, match="could not be loaded"):
        load_object(build(text), "entry", host())


@pytest.mark.parametrize("code", [b"", b"not an object", b"\x7fELF"])
def test_what_is_no_object_is_a_compile_error(code: bytes):
    with pytest.raises(CompileError, match="could not be loaded"):
        load_object(code, "entry", host())


def test_code_for_instructions_that_this_machine_lacks_is_not_loaded():
    here = host()
    beyond = dataclasses.replace(here, features=(*here.features, "zz-tensor-cores"))
    with pytest.raises(
        CompileError, match="'entry' cannot run here: it needs zz-tensor-cores, which this machine lacks"
    ):
        load_object(build(ADD.format(n=1)), "entry", beyond)


def test_threads_load_at_once():
    found: list[int] = []

    def work(n: int) -> None:
        found.append(added(load_object(build(ADD.format(n=n)), "entry", host()), 0))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(8))


def test_a_forked_child_calls_and_loads():
    library = load_object(build(ADD.format(n=1)), "entry", host())
    code = build(ADD.format(n=2))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if (added(library, 1), added(load_object(code, "entry", host()), 1)) == (2, 3) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert added(library, 4) == 5


def test_an_interpreter_with_live_libraries_ends_quietly():
    program = (
        "from tests.runtime.native import executable; import numpy as np; e = executable(4);"
        "x = np.ones(4, 'f4'); print(e.run((x,), (x, x.copy()))[0].sum())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "6.0\n", "")


def test_the_host_runs_its_own_code_and_no_other():
    here = host()
    assert here.triple and here.cpu and list(here.features) == sorted(here.features)
    assert runs_here(here) == ""
    assert runs_here(dataclasses.replace(here, features=here.features[:1])) == ""
    more = dataclasses.replace(here, features=(*here.features, "zz-tensor-cores"))
    assert runs_here(more) == "it needs zz-tensor-cores, which this machine lacks"
    assert "sparc" in runs_here(TargetSpec("sparc-sun-solaris", "", ()))


def test_programs_that_are_dropped_leave_nothing_behind():
    code = build(ADD.format(n=1))
    assert kept_bytes(lambda: load_object(code, "entry", host()), 80, 320) < 320 * 500
