"""The emulated device: kernels compute what they should, memory is checked, graphs are replayed."""

from __future__ import annotations

import gc
import os
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from graphc.errors import ArgumentError, ArtifactError, CompileError, DeviceError, MemoryLimitError
from graphc.runtime.devices import emulated
from graphc.runtime.devices.emulated import CODES, ORDERS, EmulatedDevice, EmulatorFault, message
from graphc.runtime.devices.emulated_build import SHIM
from graphc.runtime.devices.emulated_text import kernels_of
from tests.runtime.devices.cuda_texts import SCALE, SCALE_VECTORS, SOFTMAX, SUMS_OF_WARPS, TRANSPOSE, changed


@pytest.fixture
def device():
    return EmulatedDevice(orders=ORDERS, races=True)


def on_device(device, array):
    memory = device.allocate(array.nbytes)
    device.copy_in(memory.address, array)
    return memory


def from_device(device, memory, like):
    array = np.empty_like(like)
    device.copy_out(memory.address, array)
    return array


def run(device, text, symbol, grid, threads, x, *sizes):
    """Return the output of a kernel with one input of the same shape."""
    source, result = on_device(device, x), device.allocate(x.nbytes)
    function = device.load(text).function(symbol)
    device.launch(function, grid, threads, 0, [source.address, result.address, *sizes])
    return from_device(device, result, x)


@pytest.mark.parametrize("n", [1, 127, 128, 1000])
@pytest.mark.parametrize("text, per_block", [(SCALE, 128), (SCALE_VECTORS, 256)])
def test_elementwise(device, text, per_block, n):
    x = np.arange(n, dtype=np.float32)
    assert np.array_equal(
        run(device, text, "scale", -(-n // per_block), per_block // (1 if text is SCALE else 4), x, n), 2 * x
    )


@pytest.mark.parametrize("n", [1, 31, 256, 1000])
def test_softmax_by_shuffles_and_shared_memory(device, n):
    x = np.random.default_rng(n).normal(size=(5, n)).astype(np.float32) * 4
    y = run(device, SOFTMAX, "softmax", 5, 256, x, n)
    expected = np.exp(x - x.max(1, keepdims=True), dtype=np.float64)
    assert np.allclose(y, expected / expected.sum(1, keepdims=True), rtol=1e-6, atol=0)
    assert device.last.fewest_barriers == device.last.most_barriers == 3
    assert device.last.exchanges == 5 * 8 * 16
    assert device.last.shared == 32


def test_transpose(device):
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    assert np.array_equal(run(device, TRANSPOSE, "transpose", 1, 256, x), x.T)


def test_no_blocks_do_nothing(device):
    x = np.ones(4, np.float32)
    assert np.isnan(run(device, SCALE, "scale", 0, 128, x, 4)).all()


FAULTS = {
    "one element too many": (SCALE, "i < n", "i <= n", "element 300 of parameter 0 .x., which has 300"),
    "a missing tail": (SCALE, "if (i < n) ", "", "reads element 300"),
    "below the start": (SCALE, "x[i] *", "x[i - 1] *", "reads element -1"),
    "a write behind the end": (SCALE, "y[i] = x[i]", "y[i + 1] = x[i]", "writes element 300 of parameter 1 .y."),
    "vectors of three": (SCALE_VECTORS, "threadIdx.x) * 4", "threadIdx.x) * 3", "which do not start at a multiple"),
    "a vector over the end": (SCALE_VECTORS, "i + 4 <= n", "i < n + 3", "elements 300 to 303 of parameter 0"),
    "an extent too large": (
        SCALE,
        "GC_EXTENT(x, n)",
        "GC_EXTENT(x, n + 1)",
        "declares 301 elements for parameter 0 .x., whose memory holds 300",
    ),
    "all threads write the same": (SCALE, "if (i < n) y[i]", "if (i < n) y[0]", "writes element 0 .* while thread"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_elementwise_kernels(device, fault):
    text, old, new, result = FAULTS[fault]
    with pytest.raises(DeviceError, match=result):
        run(device, changed(text, old, new), "scale", 3, 128 if text is SCALE else 64, np.ones(300, np.float32), 300)


ROW_FAULTS = {
    "no barrier before partial sums are read": (
        "gc_block_sync();  // first",
        "",
        "reads element 0 of shared|no thread .* written",
    ),
    "no barrier before partial sums are written": ("gc_block_sync();  // second", "", "shared array part while thread"),
    "a barrier for some": (
        "gc_block_sync();  // third",
        "if (warp < 4) gc_block_sync();",
        "not all threads reach|no barrier in between",
    ),
    "a barrier that one thread misses": (
        "gc_block_sync();  // second",
        "if (t) gc_block_sync();",
        "not all threads reach",
    ),
    "a shuffle in a branch": (
        "s += gc_shfl_xor(s, o);\n  if (lane",
        "if (lane > 3) s += gc_shfl_xor(s, o);\n  if (lane",
        "not all threads",
    ),
    "a wrong stride": (
        "const long long row = blockIdx.x * n",
        "const long long row = blockIdx.x * (n + 1)",
        "reads element 1500",
    ),
    "too little shared memory": (
        "GC_SHARED(float, part, 8)",
        "GC_SHARED(float, part, 7)",
        "writes element 7 of shared array part",
    ),
    "too much shared memory": (
        "GC_SHARED(float, part, 8)",
        "GC_SHARED(float, part, 60000)",
        "240000 bytes of shared memory",
    ),
}


@pytest.mark.parametrize("fault", ROW_FAULTS)
def test_faults_of_row_kernels(device, fault):
    old, new, result = ROW_FAULTS[fault]
    with pytest.raises(DeviceError, match=result):
        run(device, changed(SOFTMAX, old, new), "softmax", 5, 256, np.ones((5, 300), np.float32), 300)


def sums(device, text):
    x, y = np.arange(256, dtype=np.float32), np.zeros(8, np.float32)
    source, result = on_device(device, x), on_device(device, y)
    device.launch(device.load(text).function("sums"), 1, 256, 0, [source.address, result.address])
    return from_device(device, result, y)


def test_shared_memory_of_warps(device):
    assert np.array_equal(sums(device, SUMS_OF_WARPS), np.arange(256).reshape(8, 32).sum(1))


WARP_FAULTS = {
    "no barrier of the warp": ("gc_warp_sync();", "", "reads element .* of shared array own"),
    "a barrier of the block in one warp": ("gc_warp_sync();", "gc_warp_sync(); if (first) gc_block_sync();", "not all"),
    "a barrier of half a warp": ("gc_warp_sync();", "if (lane < 16) gc_warp_sync();", "not all threads|no thread"),
    "other lanes": ("+ lane + 16]", "+ lane + 17]", "own while thread 32|which no thread"),
    "outside of registers": (
        "GC_PRIVATE(float, kept, 2)",
        "GC_PRIVATE(float, kept, 1)",
        "element 1 of private array kept",
    ),
    "two blocks of shared memory": (
        "GC_SHARED(float, own, 256)",
        "GC_SHARED(float, own, 248)",
        "element 248 of shared",
    ),
}


@pytest.mark.parametrize("fault", WARP_FAULTS)
def test_faults_of_warps(device, fault):
    old, new, result = WARP_FAULTS[fault]
    with pytest.raises(DeviceError, match=result):
        sums(device, changed(SUMS_OF_WARPS, old, new))


def test_private_memory_is_unknown_at_first(device):
    assert np.isnan(
        sums(device, changed(SUMS_OF_WARPS, "kept[1] = lane < 16 ? own[first + lane + 16] : 0.0f;", ""))
    ).all()


def test_a_wrong_shuffle_changes_results(device):
    x = np.random.default_rng(0).normal(size=(5, 300)).astype(np.float32)
    wrong = changed(
        SOFTMAX, "for (int o = 16; o > 0; o >>= 1) s += gc_shfl_xor", "for (int o = 8; o > 0; o >>= 1) s += gc_shfl_xor"
    )
    assert not np.allclose(run(device, wrong, "softmax", 5, 256, x, 300).sum(1), 1, atol=1e-3)


def test_lanes_that_are_not_there(device):
    with pytest.raises(DeviceError, match="lane 16 in a warp of 8"):
        run(device, SOFTMAX, "softmax", 5, 40, np.ones((5, 300), np.float32), 300)


def test_races_show_in_other_orders_too():
    device = EmulatedDevice(orders=ORDERS, races=False)
    text = changed(TRANSPOSE, "  gc_block_sync();\n", "")
    with pytest.raises(DeviceError, match=r"leaves other values in parameter 1 .y."):
        run(device, text, "transpose", 1, 256, np.arange(1024, dtype=np.float32))


def test_what_was_written_is_not_read_through_another_parameter(device):
    text = changed(SCALE, "y[i] = x[i] * 2.0f", "{ y[i] = x[i] * 2.0f; y[i] = y[i] + x[i]; }")
    memory = on_device(device, np.ones(128, np.float32))
    function = device.load(SCALE).function("scale")
    device.launch(function, 1, 128, 0, [memory.address, memory.address, 128])
    with pytest.raises(DeviceError, match=r"element 0 of parameter 0 .x., which it has written through y"):
        device.launch(device.load(text).function("scale"), 1, 128, 0, [memory.address, memory.address, 128])
    overlaps = changed(text, "GC_IN(float) x, GC_OUT(float) y", "GC_IN_SHARED(float) x, GC_OUT_SHARED(float) y")
    device.launch(device.load(overlaps).function("scale"), 1, 128, 0, [memory.address, memory.address, 128])


def test_faults_name_lines_of_the_text(device):
    wrong = changed(SOFTMAX, "  gc_block_sync();  // second\n", "")
    with pytest.raises(DeviceError) as caught:
        run(device, wrong, "softmax", 5, 256, np.ones((5, 300), np.float32), 300)
    assert str(caught.value).splitlines() == [
        "kernel softmax writes element 0 of shared array part while threads may read it: no barrier in between",
        "  where  block 0, thread 0 | 18: if (lane == 0) part[warp] = s; | 13: m = part[lane % 8];",
    ]


def test_a_kernel_works_after_one_that_failed(device):
    x = np.ones((5, 300), np.float32)
    with pytest.raises(DeviceError):
        run(device, changed(SOFTMAX, "gc_block_sync();  // first", ""), "softmax", 5, 256, x, 300)
    assert np.allclose(run(device, SOFTMAX, "softmax", 5, 256, x, 300), 1 / 300)


def test_what_is_only_read_has_no_stores(device):
    with pytest.raises(CompileError, match="refused"):
        run(device, changed(SCALE, "y[i] = x[i] * 2.0f", "x[i] = 1.0f"), "scale", 3, 128, np.ones(300, np.float32), 300)


def test_one_text_that_cannot_be_built_does_not_harm_others(device):
    broken = device.load(changed(SCALE, "2.0f", "nonsense")).function("scale")
    x = np.ones(4, np.float32)
    assert np.array_equal(run(device, changed(SCALE, "2.0f", "3.0f"), "scale", 1, 128, x, 4), 3 * x)
    memory = device.allocate(16)
    with pytest.raises(CompileError, match="nonsense"):
        device.launch(broken, 1, 128, 0, [memory.address, memory.address, 4])


def test_symbols_and_arguments_are_checked(device):
    module = device.load(SCALE)
    with pytest.raises(ArtifactError, match="no kernel softmax"):
        module.function("softmax")
    with pytest.raises(DeviceError, match="3 parameters, got 2"):
        device.launch(module.function("scale"), 1, 128, 0, [1, 2])
    with pytest.raises(DeviceError, match=r"0x10 for parameter 0 .x., where no live memory is"):
        device.launch(module.function("scale"), 1, 128, 0, [16, 16, 4])
    with pytest.raises(DeviceError, match="1025 threads"):
        device.launch(module.function("scale"), 1, 1025, 0, [16, 16, 4])


LARGE_ARRAY = """
extern "C" __global__ void scale(GC_IN(float) x, GC_OUT(float) y, long long n) {
  GC_PRIVATE(float, kept, 8192);
  for (int i = 0; i < 8192; ++i) kept[i] = x[threadIdx.x] * i;
  gc_block_sync();
  y[threadIdx.x] = kept[8191 - threadIdx.x];
}
"""


def test_threads_have_room_for_large_arrays(device):
    x = np.ones(64, np.float32)
    assert np.array_equal(run(device, LARGE_ARRAY, "scale", 1, 64, x, 64), 8191 - np.arange(64))


def test_threads_of_the_host_take_turns(device):
    texts = [changed(SOFTMAX, "__builtin_expf(x[row + i] - m) / s", f"{i}.0f * s / s") for i in range(4)]
    functions = [device.load(text).function("softmax") for text in texts]
    x = on_device(device, np.ones((20, 100), np.float32))
    results = [device.allocate(x.nbytes) for _ in texts]

    def work(number):
        for _ in range(5):
            device.launch(functions[number], 20, 256, 0, [x.address, results[number].address, 100])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for number, result in enumerate(results):
        assert (from_device(device, result, np.empty(2000, np.float32)) == number).all()


def test_a_child_after_fork_runs_kernels(device):
    x = np.ones((5, 300), np.float32)
    run(device, SOFTMAX, "softmax", 5, 256, x, 300)
    child = os.fork()
    if child == 0:
        result = run(device, SOFTMAX, "softmax", 5, 256, x, 300)
        os._exit(0 if np.allclose(result, 1 / 300) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.allclose(run(device, SOFTMAX, "softmax", 5, 256, x, 300), 1 / 300)


# ---- traffic


def traffic(text, symbol, grid, threads, x, *sizes):
    device = EmulatedDevice(orders=(0, 1), races=True, traffic=True)
    run(device, text, symbol, grid, threads, x, *sizes)
    return device.traffic[symbol]


def test_neighbours_share_sectors():
    x = np.zeros(1024, np.float32)
    one = traffic(SCALE, "scale", 8, 128, x, 1024)
    assert (one.load_requests, one.load_bytes, one.load_sectors, one.loaded) == (32, 4096, 128, 128)
    assert (one.store_requests, one.store_bytes, one.store_sectors, one.stored) == (32, 4096, 128, 128)
    four = traffic(SCALE_VECTORS, "scale", 4, 64, x, 1024)
    assert (four.load_requests, four.load_bytes, four.load_sectors) == (8, 4096, 128)
    apart = changed(SCALE, "blockIdx.x * 128 + threadIdx.x", "threadIdx.x * 8 + blockIdx.x")
    assert traffic(apart, "scale", 8, 128, x, 1024).load_sectors == 1024


def test_banks_of_shared_memory():
    x = np.zeros((32, 32), np.float32)
    padded = traffic(TRANSPOSE, "transpose", 1, 256, x)
    assert padded.shared_requests == padded.shared_rounds == padded.shared_ideal == 64
    conflicts = traffic(TRANSPOSE.replace("33", "32"), "transpose", 1, 256, x)
    assert conflicts.shared_rounds == 32 + 32 * 32


# ---- memory


def test_memory_is_counted_and_given_back(device):
    gc.collect()
    before = device.memory_stats()
    memory = device.allocate(1000)
    assert memory.address % 256 == 0
    assert device.memory_stats().allocated == before.allocated + 1000
    assert device.memory_stats().allocations == before.allocations + 1
    del memory
    gc.collect()
    after = device.memory_stats()
    assert (after.allocated, after.allocations) == (before.allocated, before.allocations)
    assert after.peak >= before.allocated + 1000
    device.reset_peak()
    assert device.memory_stats().peak == after.allocated


def test_new_memory_is_no_number(device):
    assert np.isnan(from_device(device, device.allocate(64), np.empty(16, np.float32))).all()
    assert (from_device(device, device.allocate(64), np.empty(16, np.int32)) == -1).all()


def test_what_is_discarded_is_unknown(device):
    memory = on_device(device, np.ones(4, np.float32))
    device.discard(memory.address + 4, 8)
    assert np.array_equal(np.isnan(from_device(device, memory, np.empty(4, np.float32))), [False, True, True, False])


def test_copies_are_checked(device):
    memory, other = device.allocate(64), device.allocate(64)
    device.copy_in(memory.address, np.arange(32, dtype=np.int16)[::2])
    device.copy(other.address, memory.address, 32)
    device.fill(other.address + 32, 7, 32)
    result = from_device(device, other, np.empty(64, np.uint8))
    assert (result[:32:2] == np.arange(16) * 2).all() and (result[32:] == 7).all()
    with pytest.raises(DeviceError, match="only 60 bytes are left"):
        device.copy_in(memory.address + 4, np.zeros(64, np.uint8))
    with pytest.raises(DeviceError, match="no live memory"):
        device.fill(16, 0, 4)
    with pytest.raises(DeviceError, match="overlaps"):
        device.copy(memory.address, memory.address + 4, 8)
    with pytest.raises(ArgumentError, match="C-contiguous"):
        device.copy_out(memory.address, np.zeros((4, 4), np.uint8).T[:2])


def test_there_is_only_so_much():
    with pytest.raises(MemoryLimitError, match="1000 bytes"):
        EmulatedDevice(total=1000).allocate(1001)


def test_no_bytes_can_be_allocated(device):
    memory = device.allocate(0)
    device.copy_in(memory.address, np.empty(0, np.float32))
    with pytest.raises(DeviceError, match="only 0 bytes are left"):
        device.copy_in(memory.address, np.zeros(1, np.uint8))


# ---- graphs


def test_a_graph_does_again_what_was_recorded(device):
    x = np.arange(300, dtype=np.float32)
    first, second = on_device(device, x), device.allocate(x.nbytes)
    function = device.load(SCALE).function("scale")
    device.begin_capture()
    device.launch(function, 3, 128, 0, [first.address, second.address, 300])
    device.copy(first.address, second.address, x.nbytes)
    with pytest.raises(DeviceError, match="allocations cannot be recorded"):
        device.allocate(4)
    with pytest.raises(DeviceError, match="transfers cannot be recorded"):
        device.copy_in(first.address, x)
    graph = device.end_capture()
    assert np.array_equal(from_device(device, first, x), x)
    graph.launch()
    graph.launch()
    assert np.array_equal(from_device(device, first, x), 4 * x)
    del second
    gc.collect()
    with pytest.raises(DeviceError, match=r"for parameter 1 .y., where no live memory is"):
        graph.launch()


def test_recording_begins_and_ends_once(device):
    device.begin_capture()
    with pytest.raises(DeviceError, match="already"):
        device.begin_capture()
    assert len(device.end_capture()) == 0
    with pytest.raises(DeviceError, match="no graph"):
        device.end_capture()


def test_events_are_done_and_hold_the_time(device, monkeypatch):
    readings = iter([1_000_000, 3_500_000])
    monkeypatch.setattr(emulated, "time", SimpleNamespace(perf_counter_ns=lambda: next(readings)))
    first, second = device.event(), device.event()
    second.synchronize()
    assert second.is_done() and second.milliseconds_since(first) == 2.5


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
