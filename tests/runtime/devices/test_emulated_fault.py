"""Every fault of an emulated kernel has a message with what, where and the lines of the text."""

from __future__ import annotations

import re

import pytest

from graphc.errors import DeviceError
from graphc.runtime.devices.emulated import EmulatedDevice
from graphc.runtime.devices.emulated_build import SHIM
from graphc.runtime.devices.emulated_fault import CODES, EmulatorFault, message
from graphc.runtime.devices.emulated_text import kernels_of
from tests.runtime.devices.cuda_texts import SCALE

(KERNEL,) = kernels_of("int before;\n" + SCALE)
MESSAGES = {
    "outside": "reads element 7 of parameter 1 (y), which has 5",
    "misaligned": "gets the address 0x7 for parameter 1 (y), which is not a multiple of the element size",
    "extent": "declares 7 elements for parameter 1 (y), whose memory holds 5",
    "no_memory": "gets the address 0x7 for parameter 1 (y), where no live memory is",
    "diverged": "has a barrier that not all threads reach: this one waits there, thread 4 waits at line 3",
    "no_lane": "reads the value of lane 7 in a warp of 5",
    "race": "reads element 7 of parameter 1 (y) while thread 4 of block 9 may read it: no barrier in between",
    "unshared": "reads element 7 of parameter 1 (y), which no thread of the block has written",
    "shared_too_large": "uses 5 bytes of shared memory with parameter 1 (y)",
    "bad_launch": "cannot be launched like this",
    "fence": "has written around memory",
    "order": "leaves other values in parameter 1 (y), from byte 7 on, when its threads run in order 2",
    "aliased": "reads element 7 of parameter 1 (y), which it has written through another: they must not overlap",
}


def fault(kind: str, **fields: object) -> EmulatorFault:
    values = dict(code=CODES.index(kind), parameter=1, index=7, count=5, width=1, block=8, thread=6)
    return EmulatorFault(**(values | dict(other_block=9, other_thread=4, line=2, other_line=3) | fields))


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages(kind):
    lines = str(message(fault(kind), KERNEL)).splitlines()
    assert lines[0] == f"kernel scale {MESSAGES[kind]}"
    if kind in ("no_memory", "extent", "bad_launch", "order"):
        assert len(lines) == 1
    else:
        assert lines[1:] == ["  where  block 8, thread 6 | 4: GC_EXTENT(x, n); | 5: GC_EXTENT(y, n);"]


def test_every_code_has_a_message():
    assert MESSAGES.keys() == set(CODES) - {"fine"}
    text = (SHIM / "gc_state.h").read_text()
    (names,) = re.findall(r"enum gc_fault_code \{(.*?)\}", text, re.DOTALL)
    assert len(re.findall(r"GC_\w+", names)) == len(CODES)


def test_arrays_and_vectors_are_named():
    shared = str(message(fault("outside", parameter=-1, name=b"part", width=4, writes=1), KERNEL))
    assert "writes elements 7 to 10 of shared array part, which has 5" in shared
    private = str(message(fault("outside", parameter=-2, name=b"kept"), KERNEL))
    assert "uses element 7 of private array kept, which has 5" in private
    vector = str(message(fault("misaligned", width=4), KERNEL))
    assert "reads elements 7 to 10 of parameter 1 (y) at once, which do not start at a multiple of their size" in vector


def test_what_was_written_around_memory_is_told(monkeypatch):
    device = EmulatedDevice()
    memory = device.allocate(64)
    monkeypatch.setattr(device, "_check", lambda *_: None)
    device._fill(memory.address + 64, 0, 4)
    del memory
    monkeypatch.undo()
    with pytest.raises(DeviceError, match="wrote outside of the 64 bytes of memory"):
        device.synchronize()
    device.synchronize()
