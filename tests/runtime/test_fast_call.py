"""Native calls: what they accept, what they leave to Python, who owns what, threads, forks, and no leak."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphc.compiler.native_call import caller
from graphc.errors import ArgumentError, CompileError, DTypeError, ShapeError
from graphc.files.manifest import BufferSpec, Manifest
from graphc.runtime import fast_call
from graphc.runtime.call import OWN_ARENA, Executable
from graphc.runtime.fast_call import RELEASE_FROM, REUSE_FROM, Caller, Gate
from graphc.runtime.loader import host, load_object
from tests.runtime.native import build, executable

N = 6
RANDOM = np.random.default_rng(0)
HALF = np.float32(0.5)

# buffers: a f32[2,3], b i64[2] (inputs), c f32[2,3], d i64[2] (outputs), arena; copies a to c and b to d
COPY = """
define void @entry(ptr %t) {
  %a = load ptr, ptr %t
  %t1 = getelementptr ptr, ptr %t, i64 1
  %b = load ptr, ptr %t1
  %t2 = getelementptr ptr, ptr %t, i64 2
  %c = load ptr, ptr %t2
  %t3 = getelementptr ptr, ptr %t, i64 3
  %d = load ptr, ptr %t3
  %x = load [6 x float], ptr %a, align 4
  store [6 x float] %x, ptr %c, align 4
  %y = load [2 x i64], ptr %b, align 8
  store [2 x i64] %y, ptr %d, align 8
  ret void
}
"""


def f32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def native_caller() -> Caller:
    result = caller()
    assert result is not None
    return result


class Counted:
    """The Python way of a call, counting how often it was taken."""

    def __init__(self, program: Executable, bound: tuple[np.ndarray, ...] = (), single: bool = False):
        self.program, self.bound, self.single = program, bound, single
        self.calls = 0

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        self.calls += 1
        given = [out] if self.single and out is not None else out
        results = self.program.run(inputs, self.bound, given)
        return results[0] if self.single else results


class Axpy:
    """PROGRAM of tests.runtime.native as a native callable with one output."""

    def __init__(self, n: int = N, kind: type | None = None, **changes: Any):
        program = executable(n, arena=changes.pop("arena", None))
        if changes:
            program = Executable(replace(program.manifest, **changes), program._library, program._constants)
        self.w, self.s, self.x = f32(n), np.zeros(n, np.float32), f32(n)
        bound = (self.w, self.s)
        self.fallback = Counted(program, bound, kind is None)
        self.call = native_caller().bind(program, bound, self.fallback, kind)

    def expected(self) -> np.ndarray:
        return self.x * self.w + HALF


@pytest.fixture
def axpy() -> Axpy:
    return Axpy()


def copy_program() -> Executable:
    library = load_object(build(COPY), "entry", host())
    buffers = [BufferSpec(n, d, s, c) for n, d, s, c in (
        ("a", "f32", (2, 3), "input"), ("b", "i64", (2,), "input"),
        ("c", "f32", (2, 3), "output"), ("d", "i64", (2,), "output"),
        ("arena", "u8", (0,), "arena"),
    )]  # fmt: skip
    return Executable(Manifest("copy", "entry", tuple(buffers), 0, 0, host()), library, np.zeros(0, np.uint8))


@pytest.mark.parametrize("nanoseconds", [0, 1, RELEASE_FROM])
@pytest.mark.parametrize("arena", [None, OWN_ARENA + 64])
def test_a_plain_call_runs_no_python(nanoseconds: int, arena: int | None):
    axpy = Axpy(nanoseconds=nanoseconds, arena=arena)
    for number in range(1, 4):
        y = axpy.call(axpy.x)
        assert type(y) is np.ndarray and y.flags.owndata and y.flags.writeable and y.dtype is np.dtype("f4")
        np.testing.assert_array_equal(y, axpy.expected())
        np.testing.assert_allclose(axpy.s, number * axpy.x, rtol=1e-6)
    assert axpy.fallback.calls == 0


def test_out_is_filled_and_returned(axpy: Axpy):
    out = np.empty(N, np.float32)
    assert axpy.call(axpy.x, out=out) is out
    np.testing.assert_array_equal(out, axpy.expected())
    np.testing.assert_array_equal(axpy.call(axpy.x, out=None), axpy.expected())
    assert axpy.fallback.calls == 0


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_outputs_stand_in_a_list_or_tuple(kind: type):
    program = copy_program()
    fallback = Counted(program)
    call = native_caller().bind(program, (), fallback, kind)
    a, b = f32(2, 3), np.array([1, -2])
    result = call(a, b)
    assert type(result) is kind and len(result) == 2
    np.testing.assert_array_equal(result[0], a)
    np.testing.assert_array_equal(result[1], b)
    out = kind([np.empty((2, 3), np.float32), np.empty(2, np.int64)])
    result = call(a, b, out=out)
    assert type(result) is kind and all(r is o for r, o in zip(result, out, strict=True))
    np.testing.assert_array_equal(out[0], a)
    np.testing.assert_array_equal(out[1], b)
    assert fallback.calls == 0


@pytest.mark.parametrize("kind", [list, tuple])
def test_wrong_outs_of_several_are_left_to_python(kind: type):
    program = copy_program()
    fallback = Counted(program)
    call = native_caller().bind(program, (), fallback, kind)
    a, b = f32(2, 3), np.array([1, -2])
    c, d = np.empty((2, 3), np.float32), np.empty(2, np.int64)
    wrong: list[tuple[type[Exception], Any]] = [
        (ArgumentError, kind([c])),
        (ArgumentError, kind([c, d, d])),
        (ArgumentError, kind([])),
        (DTypeError, kind([c, c[0, :2]])),
        (ArgumentError, kind([c, b])),
        (ArgumentError, kind([a, d])),
        (ArgumentError, kind([c, c.reshape(-1)[2:].view(np.int64)])),
        (ArgumentError, kind([c, None])),
        (TypeError, object()),
    ]
    for number, (error, out) in enumerate(wrong, 1):
        before = [sys.getrefcount(o) for o in (a, b, c, d, out)]
        with pytest.raises(error):
            call(a, b, out=out)
        assert fallback.calls == number
        assert [sys.getrefcount(o) for o in (a, b, c, d, out)] == before
    other = tuple if kind is list else list
    assert call(a, b, out=other([c, d]))[0] is c


def swapped(a: np.ndarray) -> np.ndarray:
    return a.astype(a.dtype.newbyteorder())


def misaligned(a: np.ndarray) -> np.ndarray:
    view = np.zeros(a.nbytes + 1, np.uint8)[1:].view(a.dtype)
    view[...] = a
    return view


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "strided": lambda a: np.repeat(a, 2)[::2],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "misaligned": misaligned,
    "byte order": swapped,
    "subclass": lambda a: a.view(np.recarray),
    "matrix": lambda a: a.view(type("Own", (np.ndarray,), {})),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unusual_inputs_are_left_to_python(layout: str, axpy: Axpy):
    given = LAYOUTS[layout](axpy.x)
    np.testing.assert_array_equal(axpy.call(given), np.asarray(given, np.float32) * axpy.w + HALF)
    assert axpy.fallback.calls == 1


def test_a_read_only_input_is_plain(axpy: Axpy):
    axpy.x.flags.writeable = False
    np.testing.assert_array_equal(axpy.call(axpy.x), axpy.expected())
    assert axpy.fallback.calls == 0


def wrong_inputs() -> Iterator[tuple[type[Exception], Any]]:
    x = f32(N)
    yield ArgumentError, ()
    yield ArgumentError, (x, x)
    yield ArgumentError, (x,) * 1000
    yield ArgumentError, (None,)
    yield ArgumentError, (list(x),)
    yield ArgumentError, (x.tobytes(),)
    yield ArgumentError, (5,)
    yield ArgumentError, (np.ndarray,)
    yield ArgumentError, (memoryview(x),)
    yield ShapeError, (f32(N + 1),)
    yield ShapeError, (f32(N - 1),)
    yield ShapeError, (x[None],)
    yield ShapeError, (f32(0),)
    yield ShapeError, (np.float32(1),)
    yield ShapeError, (np.zeros((1,) * 60 + (N,), np.float32),)
    for dtype in (np.float64, np.int32, np.uint32, bool, "O", "V4", "U1", "M8[s]", np.float16, np.complex64):
        yield DTypeError, (np.zeros(N, dtype),)


@pytest.mark.parametrize("error,inputs", list(wrong_inputs()))
def test_wrong_inputs_get_their_error(error: type[Exception], inputs: tuple[Any, ...], axpy: Axpy):
    with pytest.raises(error):
        axpy.call(*inputs)
    assert axpy.fallback.calls == 1 and not axpy.s.any()
    np.testing.assert_array_equal(axpy.call(axpy.x), axpy.expected())
    assert axpy.fallback.calls == 1


def test_equal_but_other_dtype_objects_are_left_to_python(axpy: Axpy):
    named = np.dtype("f4", metadata={"unit": "m"})
    np.testing.assert_array_equal(axpy.call(axpy.x.astype(named)), axpy.expected())
    assert axpy.fallback.calls == 1


def test_keywords_are_left_to_python_unless_they_are_out(axpy: Axpy):
    seen: list[Any] = []

    def fallback(*inputs: Any, **named: Any) -> str:
        seen.append((inputs, named))
        return "python"

    call = native_caller().bind(axpy.fallback.program, (axpy.w, axpy.s), fallback, None)
    out = np.empty(N, np.float32)
    assert call(axpy.x, x=1) == "python"
    assert call(axpy.x, out=out, x=1) == "python"
    assert call(x=axpy.x) == "python"
    assert call(axpy.x, **{"ou" + chr(116): out}) == "python"
    assert [len(s[0]) for s in seen] == [1, 1, 0, 1]
    assert [list(s[1]) for s in seen] == [["x"], ["out", "x"], ["x"], ["out"]]
    assert call(axpy.x, **{}) is not None and len(seen) == 4


@pytest.mark.parametrize("layout", [*LAYOUTS, "read only", "shape", "dtype", "list"])
def test_a_wrong_out_gets_its_error(layout: str, axpy: Axpy):
    out = f32(N)
    out = {
        **LAYOUTS,
        "read only": lambda a: np.broadcast_to(a, a.shape),
        "shape": lambda a: a[:-1],
        "dtype": lambda a: a.astype(np.float64),
        "list": list,
    }[layout](out)
    before = np.array(out)
    if layout in ("subclass", "matrix"):
        assert axpy.call(axpy.x, out=out) is out
    else:
        with pytest.raises((ArgumentError, ShapeError, DTypeError)):
            axpy.call(axpy.x, out=out)
        np.testing.assert_array_equal(out, before)
        assert not axpy.s.any()
    assert axpy.fallback.calls == 1


def test_out_shares_memory_with_nothing():
    block = f32(3 * N)
    program = executable(N)
    x, w, s = (block[i * N : (i + 1) * N] for i in range(3))
    for place in range(2 * N + 1):
        window = block[place : place + N]
        for bound, given in (((f32(N), f32(N)), x), ((w, f32(N)), f32(N)), ((f32(N), s), f32(N))):
            fallback = Counted(program, bound, True)
            call = native_caller().bind(program, bound, fallback, None)
            if any(np.shares_memory(window, a) for a in (given, *bound)):
                with pytest.raises(ArgumentError, match="shares memory"):
                    call(given, out=window)
                assert fallback.calls == 1
            else:
                call(given, out=window)
                assert fallback.calls == 0


def test_inputs_may_share_memory_with_states():
    program = executable(N)
    for low in range(N):
        block = f32(2 * N)
        state, x, w = block[3 : 3 + N], block[low : low + N], f32(N)
        before, state_before = x.copy(), state.copy()
        fallback = Counted(program, (w, state), True)
        y = native_caller().bind(program, (w, state), fallback, None)(x)
        np.testing.assert_array_equal(y, before * w + HALF)
        np.testing.assert_array_equal(state, state_before + before)
        assert fallback.calls == 1


def test_bound_arrays_that_are_not_dense_are_left_to_python():
    program = executable(N)
    w, s = np.repeat(f32(N), 2)[::2], np.zeros(N, np.float32)
    fallback = Counted(program, (w, s), True)
    assert native_caller().bind(program, (w, s), fallback, None) is fallback
    with pytest.raises(ShapeError):
        native_caller().bind(program, (w, f32(N + 1)), fallback, None)


def test_zero_elements():
    program = executable(0, shape=(3, 0), arena=0)
    empty = np.zeros((3, 0), np.float32)
    fallback = Counted(program, (empty, empty.copy()), True)
    call = native_caller().bind(program, fallback.bound, fallback, None)
    assert call(empty).shape == (3, 0)
    inside = np.zeros(8, np.float32)[3:3].reshape(3, 0)
    assert call(inside, out=inside) is inside
    assert fallback.calls == 0


# ---- memory of outputs


LARGE = REUSE_FROM // 4


def test_large_outputs_are_aligned():
    for n in (1024, LARGE - 1, LARGE, LARGE + 3):
        axpy = Axpy(n)
        y = axpy.call(axpy.x)
        assert y.ctypes.data % 64 == 0 and y.flags.c_contiguous and y.flags.writeable and y.shape == (n,)
        np.testing.assert_array_equal(y, axpy.expected())
        assert axpy.fallback.calls == 0


def test_memory_that_nobody_can_reach_is_used_again():
    axpy = Axpy(LARGE)
    places = set()
    for _ in range(50):
        y = axpy.call(axpy.x)
        places.add(y.ctypes.data)
    assert len(places) == 2


HOLDERS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda y: y,
    "view": lambda y: y[5:],
    "view of view": lambda y: y[5:][3:].reshape(-1, 1),
    "memoryview": lambda y: memoryview(y),
    "buffer": lambda y: (ctypes.c_float * 4).from_buffer(y),
    "dlpack": lambda y: np.from_dlpack(y),
    "iterator": lambda y: y.flat,
    "interface": lambda y: np.asarray(type("Holder", (), {"__array_interface__": y.__array_interface__, "keep": y})()),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_memory_that_somebody_can_reach_is_not_used_again(kind: str):
    axpy = Axpy(LARGE)
    held, contents = [], []
    for number in range(6):
        axpy.x[:] = number
        y = axpy.call(axpy.x)
        held.append(HOLDERS[kind](y))
        contents.append(np.array(y))
        del y
    for holder, content in zip(held, contents, strict=True):
        now = np.array(holder).reshape(-1)
        np.testing.assert_array_equal(now, content[len(content) - now.size :] if kind != "buffer" else content[:4])


# ---- owners


def test_the_callable_owns_what_it_needs():
    axpy = Axpy()
    call, x, expected = axpy.call, axpy.x, axpy.expected()
    del axpy
    gc.collect()
    junk = [np.full(N, 7, np.float32) for _ in range(1000)]
    np.testing.assert_array_equal(call(x), expected)
    with pytest.raises(ShapeError):
        call(junk[0][1:])


def test_what_a_callable_owned_is_freed():
    freed: list[int] = []

    class Fallback:
        def __call__(self, *_: Any) -> None: ...

        def __del__(self):
            freed.append(1)

    program = executable(N)
    call = native_caller().bind(program, (f32(N), f32(N)), Fallback(), None)
    call(f32(N))
    assert not freed
    del call
    gc.collect()
    assert freed == [1]


def test_a_callable_describes_itself(axpy: Axpy):
    assert callable(axpy.call)
    assert axpy.call.__name__ == "call"
    assert axpy.call.__text_signature__ == "(*arrays, out=None)"
    assert "one array per input" in axpy.call.__doc__


def test_calls_leak_nothing():
    single, listed = Axpy(), Axpy(kind=list)
    large = Axpy(LARGE)
    out, outs = np.empty(N, np.float32), [np.empty(N, np.float32)]
    watched = [
        None,
        np.ndarray,
        np.dtype(np.float32),
        np.dtype(np.uint8),
        single.x,
        out,
        outs,
        outs[0],
        single.fallback,
    ]
    wrong = f32(N + 1)

    def calls(count: int) -> None:
        for _ in range(count):
            single.call(single.x)
            single.call(single.x, out=out)
            listed.call(listed.x)
            listed.call(listed.x, out=outs)
        for _ in range(count // 100):
            large.call(large.x)
            for call in (single.call, listed.call):
                try:
                    call(wrong)
                except ShapeError:
                    continue

    calls(1000)
    gc.collect()
    before = [sys.getrefcount(o) for o in watched]
    blocks, memory = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(25_000)
    gc.collect()
    after = [sys.getrefcount(o) for o in watched]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True)), (before, after)
    assert sys.getallocatedblocks() - blocks < 200
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 4096


# ---- several calls at once


@pytest.mark.parametrize("nanoseconds", [0, 1])
@pytest.mark.parametrize("arena", [None, OWN_ARENA + 64])
def test_eight_threads(nanoseconds: int, arena: int | None):
    n = 300
    program = executable(n, arena=arena or 4 * n)
    program = Executable(replace(program.manifest, nanoseconds=nanoseconds), program._library, program._constants)
    w, s = f32(n), np.zeros(n, np.float32)
    gate = Gate()

    def fallback(x: np.ndarray) -> np.ndarray:
        with gate.alone():
            return program.run((x,), (w, s))[0]

    call = native_caller().bind(program, (w, s), fallback, None, gate)
    failures: list[str] = []
    xs = [np.random.default_rng(seed).integers(-9, 9, n).astype(np.float32) for seed in range(8)]

    def work(seed: int) -> None:
        x = xs[seed]
        expected = x * w + HALF
        for _ in range(1000):
            if not np.array_equal(call(x), expected):
                failures.append("wrong")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    np.testing.assert_array_equal(s, 1000 * sum(xs))


def test_a_gate_keeps_native_calls_out(axpy: Axpy):
    gate = Gate()
    call = native_caller().bind(axpy.fallback.program, (axpy.w, axpy.s), axpy.fallback, None, gate)
    with gate.alone():
        call(axpy.x)
        assert axpy.fallback.calls == 1
    gate.busy = 1
    call(axpy.x)
    assert axpy.fallback.calls == 2
    done: list[int] = []

    def wait() -> None:
        with gate.alone():
            done.append(1)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(0.05)
    assert not done
    gate.busy = 0
    thread.join()
    assert done == [1]
    call(axpy.x)
    assert axpy.fallback.calls == 2


def test_a_forked_child_calls_even_when_a_call_was_running(axpy: Axpy):
    gate = Gate()
    call = native_caller().bind(axpy.fallback.program, (axpy.w, axpy.s), axpy.fallback, None, gate)
    gate.busy = 1
    child = os.fork()
    if child == 0:
        status = 1
        try:
            good = np.array_equal(call(axpy.x), axpy.expected()) and axpy.fallback.calls == 0
            with gate.alone():
                status = 0 if good else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_busy_shared_arena_is_not_waited_for():
    axpy = Axpy(arena=OWN_ARENA + 128)
    fast_call._shared.busy = 1
    try:
        np.testing.assert_array_equal(axpy.call(axpy.x), axpy.expected())
        before = fast_call._shared.size
        Axpy(arena=before + 4096)
        assert fast_call._shared.size == before, "a block in use is not replaced by a larger one"
    finally:
        fast_call._shared.busy = 0
    assert axpy.fallback.calls == 1


# ---- interpreters of another kind


@pytest.mark.parametrize("field", fast_call._OBJECTS)
def test_objects_that_lie_otherwise_in_memory_switch_native_calls_off(field: str, monkeypatch: pytest.MonkeyPatch):
    assert fast_call._objects_as_expected()
    shift = 4 if "rank" in field else 8
    monkeypatch.setitem(fast_call._OBJECTS, field, fast_call._OBJECTS[field] + shift)
    assert not fast_call._objects_as_expected()
    assert fast_call.api.__wrapped__() is None


@pytest.mark.parametrize("what", ["_supported", "_numpy_functions"])
def test_other_interpreters_switch_native_calls_off(what: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fast_call, what, lambda: None)
    fast_call.api.cache_clear()
    try:
        assert fast_call.api() is None and fast_call.layout() is None
        with pytest.raises(CompileError, match="cannot be used"):
            Caller(b"")
    finally:
        fast_call.api.cache_clear()
