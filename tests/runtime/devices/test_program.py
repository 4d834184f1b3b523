"""Calls of programs on the emulated device: what they take, give, refuse, record and give back."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphc.errors import ArgumentError, ArtifactError, DeviceError, DTypeError, IndexRangeError, ShapeError
from graphc.files.device_plan import DevicePlan, LaunchSpec, Place
from graphc.files.manifest import BufferSpec, Manifest, TargetSpec
from graphc.runtime.devices import emulated
from graphc.runtime.devices import program as module
from graphc.runtime.devices.array import DeviceArray, from_host, zeros
from graphc.runtime.devices.emulated import EmulatedDevice
from graphc.runtime.devices.program import DeviceExecutable, state_of

TEXT = """
extern "C" __global__ void add(GC_IN(float) x, GC_IN(float) y, GC_OUT(float) z, long long n) {
  GC_EXTENT(x, n);
  GC_EXTENT(y, n);
  GC_EXTENT(z, n);
  if (threadIdx.x < n) z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x];
}
extern "C" __global__ void refuse(GC_IN(float) x, GC_INOUT(unsigned char) status) {
  if (threadIdx.x == 0 && x[0] < 0.0f) status[0] = 1;
}
extern "C" __global__ void bump(GC_IN(float) x, GC_INOUT(float) total, long long n) {
  GC_EXTENT(x, n);
  GC_EXTENT(total, n);
  if (threadIdx.x < n) total[threadIdx.x] = total[threadIdx.x] + x[threadIdx.x];
}
"""
N = 6
X = np.arange(1, N + 1, dtype=np.float32)
W = np.full(N, 10, np.float32)


@pytest.fixture
def device():
    return EmulatedDevice()


def launch(symbol: str, *names: str) -> LaunchSpec:
    sizes = () if symbol == "refuse" else (N,)
    return LaunchSpec(symbol, symbol, 1, 32, 0, tuple(map(Place, names)), sizes)


def spec(name: str, cls: str, **others: Any) -> BufferSpec:
    return BufferSpec(name, "f32", (N,), cls, **others)


def made(device: Any, launches: list[LaunchSpec], buffers: list[BufferSpec], checked: int = 0) -> DeviceExecutable:
    arena = BufferSpec("arena", "u8", (4 * N,), "arena", written=True)
    target = TargetSpec("nvptx64-nvidia-cuda", "sm_90", ())
    constants = 64 + 4 * N if any(b.cls == "constant" for b in buffers) else 0
    manifest = Manifest("main", "cuda", (*buffers, arena), 4 * N, constants, target)
    block = np.zeros(constants, np.uint8)
    block[64:].view(np.float32)[...] = 100
    return DeviceExecutable(DevicePlan(manifest, tuple(launches), checked), device, device.load(TEXT), block)


def sums(device: Any) -> DeviceExecutable:
    """y = (x + w) + 100, with a temporary in the arena and a constant."""
    buffers = [
        spec("x", "input"),
        spec("w", "param", path="fc.w"),
        spec("y", "output"),
        spec("c", "constant", offset=64),
    ]
    return made(device, [launch("add", "x", "w", "arena"), launch("add", "arena", "c", "y")], buffers)


def counter(device: Any) -> DeviceExecutable:
    """Refuses x of which the first element is negative; y = x + total; total += x."""
    buffers = [
        *(spec("x", "input"), spec("total", "state", path="total", written=True), spec("y", "output")),
        BufferSpec("status", "bool", (1,), "status", written=True),
    ]
    order = [launch("refuse", "x", "status"), launch("add", "x", "total", "y"), launch("bump", "x", "total")]
    return made(device, order, buffers, checked=1)


def test_arrays_of_host_and_device_are_taken_and_given(device):
    program = sums(device)
    x, w = from_host(device, X), from_host(device, W)
    for _ in range(5):
        for inputs, bound in (([X], [W]), ([x], [w]), ([X], [w]), ([x], [W])):
            (y,) = program.run(inputs, bound)
            assert isinstance(y, DeviceArray) == (inputs[0] is x or bound[0] is w)
            assert np.array_equal(y.get() if isinstance(y, DeviceArray) else y, X + 110)
    (y,) = program.run([X], [W], host=False)
    assert isinstance(y, DeviceArray)
    (y,) = program.run([x], [w], host=True)
    assert isinstance(y, np.ndarray)


def test_the_third_call_on_the_same_memory_is_replayed(device):
    program = sums(device)
    w = from_host(device, W)
    for call in range(1, 6):
        x = X * call
        (y,) = program.run([from_host(device, x)], (w,))
        assert program.replays == max(0, call - 2)
        assert np.array_equal(y.get(), x + 110), "results of earlier calls have memory of their own"
    first = program.run([from_host(device, X)], (w,))[0]
    program.run([from_host(device, 2 * X)], (w,))
    assert np.array_equal(first.get(), X + 110)
    for call in range(1, 4):  # other memory: recorded again
        (y,) = program.run([X], (from_host(device, 2 * W),) if call == 1 else program._bound.arguments)
        assert np.array_equal(y.get(), X + 120)
    assert program.replays == 6


def test_a_larger_arena_makes_recordings_anew(device):
    program, other = sums(device), sums(device)
    for _ in range(3):
        program.run([X], [W])
        other.run([X], [W])
    gc.collect()
    taken = device.memory_stats().allocated
    before = state_of(device)._arena.nbytes
    state_of(device).arena(1 << 16)
    slots = 4 * 4 * N
    assert device.memory_stats().allocated == taken - before - slots + (1 << 16), "nobody keeps the smaller one"
    for call in range(1, 5):
        assert np.array_equal(program.run([X], [W])[0], X + 110)
        assert program.replays == 1 + max(0, call - 2)


def test_few_launches_with_large_arguments_are_not_recorded(device, monkeypatch):
    monkeypatch.setattr(module, "COPY_PER_LAUNCH", 8)
    program = sums(device)
    for _ in range(5):
        assert np.array_equal(program.run([X], [W])[0], X + 110)
    assert program.replays == 0


@pytest.mark.parametrize("on_device", [True, False])
def test_states_are_written_where_they_lie(device, on_device):
    program = counter(device)
    host = W.copy()
    total: Any = from_host(device, host) if on_device else host
    for call in range(1, 7):
        (y,) = program.run([X], (total,), host=True)
        assert np.array_equal(y, X + W + (call - 1) * X)
        assert np.array_equal(total.get() if on_device else total, W + call * X)
    if not on_device:
        host[...] = 0
        program.run([X], (total,))
        assert np.array_equal(host, X), "what the caller has written counts"


def test_a_failed_check_writes_no_state(device):
    program = counter(device)
    total = from_host(device, W)
    written = 0
    for call in range(8):
        if call % 2:
            with pytest.raises(IndexRangeError, match="out of range, or a condition false, in a call of main"):
                program.run([-X], (total,))
        else:
            program.run([X], (total,))
            written += 1
        assert np.array_equal(total.get(), W + written * X)
    seen = []
    program.explain = lambda inputs, bound: seen.append((inputs, bound)) or ArgumentError("explained")
    with pytest.raises(ArgumentError, match="explained"):
        program.run([from_host(device, -X)], (total,))
    ((x,), bound) = seen[0]
    assert np.array_equal(x, -X) and np.array_equal(bound["total"], total.get())


def test_inputs_that_share_memory_with_states_are_copied(device):
    program = counter(device)
    for call in range(1, 6):
        memory = from_host(device, np.concatenate([W, X]))
        total = memory[:N]
        (y,) = program.run([total], (total,)) if call == 1 else program.run([memory[3 : 3 + N]], (total,))
        x = np.concatenate([W, X])[3 : 3 + N] if call > 1 else W
        assert np.array_equal(y.get(), x + W)
        assert np.array_equal(total.get(), x + W)
    for _ in range(4):  # the same memory, replayed
        expected = memory.get()[3 : 3 + N] + memory.get()[:N]
        program.run([memory[3 : 3 + N]], (total,))
        assert np.array_equal(total.get(), expected)
    assert program.replays > 0


def test_strided_arrays_are_made_dense(device):
    program = counter(device)
    pairs = np.arange(4 * N, dtype=np.float32).reshape(2 * N, 2)
    total = from_host(device, pairs)[:N, 1]
    before = total.get()
    for call in range(1, 5):
        (y,) = program.run([from_host(device, pairs)[::2, 0]], (total,))
        assert np.array_equal(y.get(), pairs[::2, 0] + before + (call - 1) * pairs[::2, 0])
        assert np.array_equal(total.get(), before + call * pairs[::2, 0])
    assert np.array_equal(total.memory and from_host(device, pairs)[:, 0].get(), pairs[:, 0])


def test_results_go_where_the_caller_wants_them(device):
    program, w = sums(device), from_host(device, W)
    for _ in range(4):
        on_device, on_host = zeros(device, (N,), "f32"), np.zeros(N, np.float32)
        assert program.run([X], (w,), out=[on_device])[0] is on_device
        assert program.run([X], (w,), out=[on_host])[0] is on_host
        assert np.array_equal(on_device.get(), X + 110) and np.array_equal(on_host, X + 110)
    x = from_host(device, X)
    for wrong, what in (
        ([x], "shares memory"),
        ([], "takes 1 output"),
        ([zeros(device, (2 * N,), "f32")[::2]], "dense"),
    ):
        with pytest.raises(ArgumentError, match=what):
            program.run([x], (w,), out=wrong)
    with pytest.raises(ArgumentError, match="shares memory with param"):
        program.run([x], (w,), out=[w])


def test_wrong_arguments_are_refused(device):
    program = sums(device)
    for inputs, bound, error, what in (
        ([], [W], ArgumentError, r"main takes 1 input arrays \(x\), got 0"),
        ([X], [], ArgumentError, r"takes 1 param or state arrays \(fc\.w\), got 0"),
        ([[1.0]], [W], ArgumentError, "input 'x' is a list"),
        ([X[:2]], [W], ShapeError, r"shape \[2\], main takes \[6\]"),
        ([from_host(device, X[:2])], [W], ShapeError, r"shape \[2\]"),
        ([X.astype(np.float64)], [W], DTypeError, "float64"),
        ([X], [from_host(device, W.astype(np.int32))], DTypeError, "param 'fc.w' has element type int32"),
    ):
        with pytest.raises(error, match=what) as raised:
            program.run(inputs, bound)
        assert "main(" in raised.value.where
    with pytest.raises(ArgumentError, match="read-only"):
        counter(device).run([X], (from_host(device, W[:1]).broadcast_to((N,)),))


def test_another_device_is_refused(device):
    other = EmulatedDevice()
    program = sums(device)
    with pytest.raises(ArgumentError, match="lies on cuda-emu, main runs on"):
        program.run([from_host(other, X)], [W])
    with pytest.raises(ArgumentError, match="lies on cuda-emu"):
        program.run([X], [from_host(other, W)])


def test_written_states_have_memory_of_their_own(device):
    buffers = [
        *(spec("x", "input"), spec("a", "state", path="a", written=True), spec("b", "param", path="b")),
        spec("y", "output"),
    ]
    program = made(device, [launch("bump", "b", "a"), launch("add", "x", "a", "y")], buffers)
    memory = from_host(device, np.concatenate([W, X]))
    program.run([X], (memory[:N], memory[N:]))
    for a, b in ((memory[:N], memory[:N]), (memory[:N], memory[2 : 2 + N])):
        with pytest.raises(ArgumentError, match="share memory, and main writes to it"):
            program.run([X], (a, b))
    host = np.concatenate([W, X])
    with pytest.raises(ArgumentError, match="share memory"):
        program.run([X], (host[:N], host[1 : 1 + N]))


def test_memory_is_given_back(device):
    gc.collect()
    before = device.memory_stats().allocated
    program = sums(device)
    for _ in range(4):
        program.run([X], [W])
    assert program.replays == 2
    assert program.nbytes == 64 + 4 * N * 4, "constants, the copy of a param, two slots"
    program.give_back()
    state_of(device).give_back()
    gc.collect()
    assert device.memory_stats().allocated - before == program.manifest.constants
    for _ in range(4):
        assert np.array_equal(program.run([X], [W])[0], X + 110)
    assert program.replays == 4
    del program
    state_of(device).give_back()
    gc.collect()
    assert device.memory_stats().allocated == before


def test_threads_take_turns(device):
    program, totals, errors = counter(device), [from_host(device, W * i) for i in range(4)], []

    def work(number: int) -> None:
        try:
            for call in range(6):
                (y,) = program.run([X * number], (totals[number],))
                assert np.array_equal(y.get(), X * number + W * number + call * X * number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert all(np.array_equal(t.get(), W * i + 6 * i * X) for i, t in enumerate(totals))


def test_a_program_without_arguments_gives_arrays_of_the_host_unless_told(device):
    program = made(device, [launch("add", "c", "c", "y")], [spec("y", "output"), spec("c", "constant", offset=64)])
    assert np.array_equal(program()[0], np.full(N, 200))
    assert isinstance(program.run([], host=False)[0], DeviceArray)


def test_constants_that_do_not_fit_are_refused(device):
    program = sums(device)
    with pytest.raises(ArtifactError, match="constant block"):
        DeviceExecutable(program.plan, device, device.load(TEXT), np.zeros(3, np.uint8))


def test_a_device_that_does_not_record_is_told_of_once(device, monkeypatch):
    program = sums(device)
    monkeypatch.setattr(device, "launch", lambda *a, launch=device.launch: refuse_recording(device) or launch(*a))
    for call in range(1, 6):
        if call == 3:
            with pytest.warns(RuntimeWarning, match=r"main is launched kernel by kernel.*not supported"):
                result = program.run([X], [W])
        else:
            result = program.run([X], [W])
        assert np.array_equal(result[0], X + 110)
    assert program.replays == 0


def refuse_recording(device):
    if threading.get_ident() in device._recorded:
        raise DeviceError("operation not supported")


def test_few_sizes_are_recorded(device, monkeypatch):
    monkeypatch.setattr(module, "MAX_RECORDINGS", 2)
    program = sums(device)
    sizes = [module.Sized(program.sizes.fixed, ()) for _ in range(4)]
    program._sized.update({i: s for i, s in enumerate(sizes)})
    for sized in sizes:
        sized.recording = program._recorded(sized, [0] * 5, None)
    assert [s.recording is not None for s in sizes] == [False, False, True, True]


def test_each_launch_is_timed(device, monkeypatch):
    program, total = counter(device), from_host(device, W)
    for _ in range(4):
        program.run([X], (total,))
    readings = iter([0, 1_000_000, 1_500_000, 4_500_000])
    with monkeypatch.context() as patch:
        patch.setattr(emulated, "time", SimpleNamespace(perf_counter_ns=lambda: next(readings)))
        assert program.timed([X], (total,)) == [("refuse", 1.0), ("add", 0.5), ("bump", 3.0)]
    assert np.array_equal(total.get(), W + 5 * X)
    assert program.replays == 2
    program.run([X], (total,))
    assert program.replays == 3
