"""Identity of the processor: equal for each call, process and core; it has what the kernel tells of the processor."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from graphc.runtime.code import processor_identity as module
from graphc.runtime.code.code_memory import can_link
from graphc.runtime.code.processor_identity import processor_identity
from tests.architecture.scan import ROOT

x86 = pytest.mark.skipif(not can_link(), reason="no x86-64 processor under Linux")


@x86
def test_all_processes_on_all_cores_have_the_same():
    program = "from graphc.runtime.code.processor_identity import processor_identity as f; print(f().hex())"
    for core in os.sched_getaffinity(0):
        command = ["taskset", "-c", str(core), sys.executable, "-c", program]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == processor_identity().hex() != ""


@x86
def test_it_has_the_maker_the_model_and_the_features_that_the_kernel_shows():
    identity, shown = processor_identity(), dict[str, str]()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        shown.setdefault(name.strip(), value.strip())
    _, *maker = struct.unpack_from("<4I", identity)
    assert struct.pack("<3I", maker[0], maker[2], maker[1]).decode() == shown["vendor_id"]
    eax, ecx, edx = struct.unpack_from("<3I", identity, 16)
    family = (eax >> 8 & 15) + (eax >> 20 & 255 if eax >> 8 & 15 == 15 else 0)
    assert family == int(shown["cpu family"])
    flags = shown["flags"].split()
    for name, word, bit in (("sse2", edx, 26), ("avx", ecx, 28), ("fma", ecx, 12), ("f16c", ecx, 29)):
        assert (name in flags) == bool(word >> bit & 1), name


def test_a_machine_whose_code_cannot_be_loaded_has_none(monkeypatch: pytest.MonkeyPatch):
    def refuse(nbytes: int) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(module, "CodeMemory", refuse)
    assert processor_identity.__wrapped__() == b""
    monkeypatch.setattr(module, "can_link", lambda: False)
    assert processor_identity.__wrapped__() == b""
