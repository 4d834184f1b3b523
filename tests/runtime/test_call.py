"""Calls: numbers, checks of every argument, sharing of memory, threads, and what a call leaves behind."""

from __future__ import annotations

import gc
import os
import resource
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from graphc.errors import ArgumentError, ArtifactError, DTypeError, GraphcError, ShapeError
from graphc.runtime import arena
from graphc.runtime.arena import address_of
from graphc.runtime.call import OWN_ARENA, Executable
from graphc.runtime.loader import host, load_object
from tests.runtime.native import build, executable, manifest

N = 6
RANDOM = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.fixture
def program() -> Executable:
    return executable(N)


@pytest.fixture
def x() -> np.ndarray:
    return f32(N)


@pytest.fixture
def w() -> np.ndarray:
    return f32(N)


@pytest.fixture
def s() -> np.ndarray:
    return np.zeros(N, np.float32)


def test_outputs_and_states(program: Executable, x: np.ndarray, w: np.ndarray, s: np.ndarray):
    (y,) = program.run([x], [w, s])
    np.testing.assert_array_equal(y, x * w + np.float32(0.5))
    np.testing.assert_array_equal(s, x)
    program.run([x], (w, s))
    np.testing.assert_array_equal(s, x + x)


def test_a_call_on_memory_of_others(program: Executable, x: np.ndarray, w: np.ndarray, s: np.ndarray):
    y, bound = np.zeros(N, np.float32), (w, s)
    assert program.sizes.fixed is not None
    for _ in range(2):
        program.run_at([address_of(x), address_of(y)], program.sizes.fixed, bound, lambda: [x])
        np.testing.assert_array_equal(y, program.run([x], (w, np.zeros(N, np.float32)))[0])
    np.testing.assert_array_equal(s, x + x)


def test_each_call_returns_new_arrays(program: Executable, x: np.ndarray, w: np.ndarray, s: np.ndarray):
    bound = (w, s)
    first = program.run([x], bound)[0]
    kept = first.copy()
    second = program.run([-x], bound)[0]
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("n", [1, 1023, 5000])
@pytest.mark.parametrize("arena_bytes", [None, OWN_ARENA + 64])
def test_sizes(n: int, arena_bytes: int | None):
    program = executable(n, arena=max(arena_bytes or 0, 4 * n))
    x, w, s = f32(n), f32(n), f32(n)
    before = s.copy()
    for _ in range(2):
        (y,) = program.run((x,), (w, s))
        np.testing.assert_array_equal(y, x * w + np.float32(0.5))
    np.testing.assert_array_equal(s, before + x + x)


def test_zero_elements():
    program = executable(0, shape=(3, 0), arena=0)
    empty = np.zeros((3, 0), np.float32)
    (y,) = program.run((empty,), (empty, empty.copy()))
    assert y.shape == (3, 0)


def strided(a: np.ndarray) -> np.ndarray:
    return np.repeat(a, 2)[::2]


def reversed_(a: np.ndarray) -> np.ndarray:
    return a[::-1].copy()[::-1]


def misaligned(a: np.ndarray) -> np.ndarray:
    block = np.zeros(a.nbytes + 1, np.uint8)[1:]
    view = block.view(a.dtype)
    view[...] = a
    assert not view.flags.aligned
    return view


def swapped(a: np.ndarray) -> np.ndarray:
    return a.astype(a.dtype.newbyteorder())


def read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def subclass(a: np.ndarray) -> np.ndarray:
    return a.view(np.recarray)


LAYOUTS = [strided, reversed_, misaligned, swapped, read_only, subclass]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_of_inputs_and_params(layout: Callable, program: Executable, x, w, s):
    (y,) = program.run([layout(x)], [layout(w), s])
    np.testing.assert_array_equal(y, x * w + np.float32(0.5))
    np.testing.assert_array_equal(s, x)


@pytest.mark.parametrize("layout", [strided, reversed_, misaligned, swapped])
def test_any_layout_of_states(layout: Callable, program: Executable, x, w, s):
    state = layout(s)
    bound = (w, state)
    program.run([x], bound)
    np.testing.assert_array_equal(state, x)
    state[:] = 1
    program.run([x], bound)
    np.testing.assert_array_equal(state, x + np.float32(1))


def test_a_param_changed_in_place_is_seen_in_any_layout(program: Executable, x, w, s):
    for param in (w, strided(w)):
        bound = (param, s)
        program.run([x], bound)
        param *= 2
        np.testing.assert_array_equal(program.run([x], bound)[0], x * param + np.float32(0.5))


def test_another_param_array_is_seen(program: Executable, x, w, s):
    bound = [w, s]
    program.run([x], bound)
    bound[0] = f32(N)
    np.testing.assert_array_equal(program.run([x], bound)[0], x * bound[0] + np.float32(0.5))


def test_equal_params_of_one_element_are_told_apart():
    program = executable(1)
    x, w, s = np.ones(1, np.float32), np.ones(1, np.float32), np.zeros(1, np.float32)
    program.run([x], [w, s])
    other = w.copy()
    program.run([x], [other, s])
    other[0] = 5
    assert program.run([x], [other, s])[0][0] == 5.5


def test_a_python_scalar_stands_for_an_input_without_dimensions():
    program = executable(1, shape=())
    one, zero = np.ones((), np.float32), np.zeros((), np.float32)
    for value in (2, 2.0, np.float32(2), np.array(2, np.float32)):
        assert program.run([value], [one, zero])[0] == 2.5
    for value in (True, 1j, "2", None, np.float64(2)):
        with pytest.raises((ArgumentError, DTypeError)):
            program.run([value], [one, zero])
    with pytest.raises(ArgumentError, match="a float, axpy takes a NumPy array"):
        executable(1).run([2.0], [np.ones(1, np.float32), np.zeros(1, np.float32)])


def message(error: type[GraphcError], program: Executable, *arguments: object) -> str:
    with pytest.raises(error) as caught:
        program.run(*arguments)  # type: ignore[arg-type]
    return str(caught.value)


def test_wrong_inputs_are_named(program: Executable, x, w, s):
    bound = (w, s)
    text = message(ShapeError, program, [f32(7)], bound)
    assert text == (
        "input 'x' has shape [7], axpy takes [6]\n"
        "  where  axpy(x: f32[6]) -> (y: f32[6])\n"
        "  try    pass an array of that shape, or compile the model for this one"
    )
    assert "shape [6,1]" in message(ShapeError, program, [x[:, None]], bound).replace(", ", ",")
    text = message(DTypeError, program, [x.astype(np.float64)], bound)
    assert "input 'x' has element type float64, axpy takes float32" in text and "x.astype(np.float32)" in text
    assert "input 'x' is a list" in message(ArgumentError, program, [list(x)], bound)
    assert "takes 1 input arrays (x), got 2" in message(ArgumentError, program, [x, x], bound)
    assert "takes 1 input arrays (x), got 0" in message(ArgumentError, program, [], bound)
    assert not s.any()


def test_wrong_params_and_states_are_named(program: Executable, x, w, s):
    assert "param 'fc.weight' has shape [7]" in message(ShapeError, program, [x], (f32(7), s))
    assert "state 'fc.sum' has element type int32" in message(DTypeError, program, [x], (w, s.astype(np.int32)))
    assert "takes 2 param or state arrays (fc.weight, fc.sum), got 1" in message(ArgumentError, program, [x], (w,))
    assert "its array is read-only" in message(ArgumentError, program, [x], (w, read_only(s)))
    np.testing.assert_array_equal(program.run([x], (w, s))[0], x * w + np.float32(0.5))


def test_states_share_memory_with_nothing_bound(program: Executable, x, w, s):
    assert "share memory" in message(ArgumentError, program, [x], (s, s))
    block = f32(N + 1)
    assert "share memory" in message(ArgumentError, program, [x], (block[1:], block[:-1]))
    assert "share memory" in message(ArgumentError, program, [x], (block[:-1], block[1:]))


def test_an_input_may_share_memory_with_what_is_written(program: Executable, w):
    for low in range(N):
        block = f32(2 * N)
        state = block[3 : 3 + N]
        x = block[low : low + N]
        before, state_before = x.copy(), state.copy()
        (y,) = program.run([x], (w, state))
        np.testing.assert_array_equal(y, before * w + np.float32(0.5))
        np.testing.assert_array_equal(state, state_before + before)


def test_out_is_filled_and_returned(program: Executable, x, w, s):
    out = np.empty(N, np.float32)
    for _ in range(2):
        result = program.run([x], (w, s), out=[out])
        assert result[0] is out
        np.testing.assert_array_equal(out, x * w + np.float32(0.5))


def test_out_must_fit(program: Executable, x, w, s):
    bound = (w, s)
    assert "output 'y' has shape [7]" in message(ShapeError, program, [x], bound, [f32(7)])
    assert "element type float64" in message(DTypeError, program, [x], bound, [np.zeros(N)])
    assert "takes 1 output arrays (y), got 0" in message(ArgumentError, program, [x], bound, [])
    for layout in (strided, misaligned, swapped, read_only):
        assert "not dense and writeable" in message(ArgumentError, program, [x], bound, [layout(f32(N))])
    block = f32(2 * N)
    for name, arguments in {
        "input 'x'": ([block[:N]], bound),
        "param 'fc.weight'": ([x], (block[:N], s)),
        "state 'fc.sum'": ([x], (w, block[:N])),
    }.items():
        assert f"shares memory with {name}" in message(ArgumentError, program, *arguments, [block[N - 1 : -1]])
        assert program.run(*arguments, [block[N:]])[0].base is block


def test_constants_must_have_the_declared_size():
    library = load_object(build("define void @entry(ptr %p) { ret void }"), "entry", host())
    with pytest.raises(ArtifactError, match="has 3 bytes, 68 are declared"):
        Executable(manifest(4), library, np.zeros(3, np.uint8))


def test_threads_call_one_program():
    n = 300
    program = executable(n, arena=OWN_ARENA + 4 * n)
    own = executable(n)
    failures: list[str] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        w, s = random.normal(size=(2, n)).astype(np.float32)
        bound = (w, s)
        for _ in range(500):
            x = random.normal(size=n).astype(np.float32)
            expected = s + x
            for each in (program, own):
                if not np.array_equal(each.run((x,), bound)[0], x * w + np.float32(0.5)):
                    failures.append("output")
                if not np.array_equal(s, expected):
                    failures.append("state")
                expected = s + x

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_forked_child_calls(program: Executable, x, w, s):
    program.run([x], (w, s))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if np.array_equal(program.run([x], (w, s))[0], x * w + np.float32(0.5)) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(s, x)


def test_calls_keep_no_memory(program: Executable, w, s):
    bound = (w, s)
    x = f32(N)
    program.run([x], bound)
    arena.POOL.clear()
    gc.collect()
    reference = weakref.ref(x)
    del x
    assert reference() is None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20_000):
        program.run([w], bound)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096


def test_failed_calls_keep_no_frames(program: Executable, x, w, s):
    for _ in range(100):
        with pytest.raises(ShapeError):
            program.run([f32(7)], (w, s))
        with pytest.raises(ShapeError):
            program.run([x], (f32(7), s))
    assert len(program._frames) == 1
    np.testing.assert_array_equal(program.run([x], (w, s))[0], x * w + np.float32(0.5))
