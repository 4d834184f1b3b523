"""Kernels become shared objects: together, once, kept on disk, and with a clear message where there is no compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from graphc.errors import CompileError
from graphc.runtime.devices import emulated_build
from graphc.runtime.devices.emulated import EmulatedDevice
from graphc.runtime.devices.emulated_build import source
from graphc.runtime.devices.emulated_text import kernels_of
from tests.runtime.devices.cuda_texts import SCALE, SOFTMAX, changed

RUN = """
import numpy as np
from graphc.runtime.devices import emulated_build
from graphc.runtime.devices.emulated import EmulatedDevice
from tests.runtime.devices.cuda_texts import SCALE, SOFTMAX

compiled = []
compile_unit = emulated_build._compile
emulated_build._compile = lambda *args: (compiled.append(args), compile_unit(*args))[1]
device = EmulatedDevice()
other = device.load(SOFTMAX)
function = device.load(SCALE).function("scale")
memory, result = device.allocate(16), device.allocate(16)
device.copy_in(memory.address, np.ones(4, np.float32))
device.launch(function, 1, 128, 0, [memory.address, result.address, 4])
found = np.empty(4, np.float32)
device.copy_out(result.address, found)
assert (found == 2).all()
assert other.function("softmax").address
print(len(compiled))
"""


def run(**environment):
    """Count the translation units compiled by a process that runs a kernel of two sources."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_libraries_are_kept_on_disk(tmp_path):
    kept = dict(GRAPHC_CACHE="on", GRAPHC_CACHE_DIR=str(tmp_path))
    assert run(**kept) == 2  # What executes kernels, and both texts together.
    assert run(**kept) == 0
    (index,) = (tmp_path / "emulated").glob("*.json")
    assert len(json.loads(index.read_bytes())) == 2
    assert run(**kept) == 0
    index.unlink()
    assert run(**kept) == 1
    assert run(GRAPHC_CACHE="off", GRAPHC_CACHE_DIR=str(tmp_path)) == 2


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    (tmp_path / "emulated").mkdir(mode=0o777)
    (tmp_path / "emulated").chmod(0o777)
    kept = dict(GRAPHC_CACHE="on", GRAPHC_CACHE_DIR=str(tmp_path))
    assert run(**kept) == run(**kept) == 2


def test_libraries_are_kept_where_somebody_wants_them(tmp_path, monkeypatch):
    monkeypatch.setattr(emulated_build, "_chosen_folders", [])
    emulated_build.keep_in(tmp_path / "kept")
    assert emulated_build._folder.__wrapped__() == tmp_path / "kept"
    (tmp_path / "kept").chmod(0o777)
    assert emulated_build._folder.__wrapped__() != tmp_path / "kept"


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "")
    with pytest.raises(CompileError, match=r"host's C\+\+ compiler.*\n.*\n.*apt-get install"):
        emulated_build.compiler.__wrapped__()


def test_a_common_prelude_is_compiled_once():
    prelude = "static inline float twice(float x) { return x + x; }\n"
    texts = [prelude + changed(SCALE, "x[i] * 2.0f", f"twice(x[i]) + {i}") for i in range(3)]
    kernels = [kernel for text in texts for kernel in kernels_of(text)]
    made = source(kernels)
    assert made.count("float twice") == 1
    assert made.count("namespace gc_") == 3
    other = source([*kernels, *kernels_of(f"int other(int);\n{SOFTMAX}")])
    assert other.count("float twice") == other.count("int other") == 1


def test_kernels_of_other_texts_are_built_once():
    x = np.ones(4, np.float32)
    device = EmulatedDevice()
    first, second = changed(SCALE, "2.0f", "7.0f"), changed(SCALE, "2.0f", "8.0f")
    memory = device.allocate(16)
    device.copy_in(memory.address, x)
    device.launch(device.load(first).function("scale"), 1, 128, 0, [memory.address, memory.address, 4])
    before = set(emulated_build._built)
    renamed = changed(first, " scale(", " renamed(")
    device.launch(device.load(second + renamed).function("renamed"), 1, 128, 0, [memory.address, memory.address, 4])
    device.copy_out(memory.address, x)
    assert (x == 49).all()
    assert set(emulated_build._built) == before


def test_kernels_are_split_over_cores_and_units(monkeypatch):
    monkeypatch.setattr(emulated_build, "_cores", lambda: 2)
    (kernel,) = kernels_of(SCALE)
    sizes = [sorted(map(len, emulated_build._groups([kernel] * n))) for n in (0, 3, 9, 400)]
    assert sizes == [[], [3], [4, 5], [100] * 4]
