"""Calls of programs with named dimensions: sizes solved, checked and remembered; arenas and outputs that grow."""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.sizes import resident
from graphc.base.sizes.named_dims import size_of
from graphc.base.sizes.size import at
from graphc.compiler.native_call import caller
from graphc.errors import ArgumentError, DTypeError, ShapeError
from graphc.runtime import call_sizes, fast_call
from graphc.runtime.call import Executable
from tests.runtime.sized import check, executable_of, given, sized_program


@pytest.fixture
def program() -> Executable:
    return sized_program()


@pytest.mark.parametrize(("batch", "time"), [(1, 2), (64, 4096), (3, 5), (8, 16), (7, 1000), (1, 4096), (3, 5)])
def test_one_program_at_many_sizes(program: Executable, batch: int, time: int):
    x, w = given(batch, time)
    y, s = program(x, w)
    check([y, s], x, w)
    out = [np.empty_like(y), np.empty_like(s)]
    assert program.run((x, w), out=out)[0] is out[0]
    np.testing.assert_array_equal(out[0], y)


def test_sizes_that_do_not_fit_are_refused(program: Executable):
    x, w = given(3, 5)
    with pytest.raises(ShapeError, match=r"dimension 1 of input 'x' is 10, not 8 = 2\*time"):
        program(x, w[:4])
    with pytest.raises(ShapeError, match=r"batch is 65, outside of 1\.\.64"):
        program(np.zeros((65, 10), np.float32), w)
    with pytest.raises(ShapeError, match="dimension 1 of input 'x' is 9, not 8"):
        program(x[:, :9], w[:4])
    with pytest.raises(ShapeError, match="has 1 dimensions, not 2"):
        program(x[0], w)
    with pytest.raises(ArgumentError, match="takes 2 input arrays"):
        program(x)
    with pytest.raises(ArgumentError, match="is a list"):
        program(x, [1.0] * 5)
    with pytest.raises(DTypeError, match="float64"):
        program(x, w.astype(np.float64))
    with pytest.raises(ShapeError, match=r"output 'y' has shape \[3, 4\]"):
        program.run((x, w), out=[np.empty((3, 4), np.float32), np.empty(3, np.float32)])


def test_inputs_that_are_not_dense_are_copied(program: Executable):
    x, w = given(4, 6)
    wide = np.zeros((4, 24), np.float32)
    wide[:, ::2] = x
    np.testing.assert_array_equal(program(wide[:, ::2], w)[0], program(x, w)[0])


def test_what_calls_take_is_remembered_but_not_for_ever(program: Executable, monkeypatch: pytest.MonkeyPatch):
    sizes = program.sizes
    x, w = given(2, 3)
    shapes = (x.shape, w.shape)
    assert sizes.of_shapes(shapes) is sizes.of_shapes(shapes)
    monkeypatch.setattr(call_sizes, "REMEMBERED", 4)
    for time in range(2, 40):
        assert sizes.of_shapes(((1, 2 * time), (time,))).results[0][2] == (1, time)
    assert len(sizes._cache) <= 4


def test_sizes_for_named_dimensions_without_a_call(program: Executable):
    result = program.sizes.of_dimensions({"time": 100})
    assert [spec.shape for *_, spec in result.inputs] == [(8, 200), (100,)]
    assert result.arena >= 4 * 8 * 100 and result.arena == program.sizes.of_dimensions({"time": 100, "batch": 8}).arena
    with pytest.raises(ArgumentError, match="there is no dimension rows"):
        program.sizes.of_dimensions({"rows": 1})
    with pytest.raises(ArgumentError, match="dimension time is 1"):
        program.sizes.of_dimensions({"time": 1})


def test_one_callable_takes_all_sizes_of_named_dimensions():
    program = sized_program()
    binder = caller()
    assert binder is not None
    slow: list[tuple[int, ...]] = []

    def fallback(x: np.ndarray, w: np.ndarray, **options: object) -> list[np.ndarray]:
        slow.append(np.shape(x))
        return program.run((x, w))

    call = binder.bind(program, (), fallback)
    x, w = given(8, 16)
    check(call(x, w), x, w)
    assert not slow, "the callable is made for the hints"
    for batch, time in ((3, 5), (64, 4096), (1, 2), (8, 16), (64, 4095), (5, 3), (63, 700), (2, 4096)) * 2:
        x, w = given(batch, time)
        check(call(x, w), x, w)
    assert set(slow) <= {(64, 8192)} and len(slow) <= 1, "only a call that needs more shared memory than any before"
    results = [call(*given(8, 16)) for _ in range(3)]
    for result in results:
        check(result, *given(8, 16))
    with pytest.raises(ShapeError, match="outside of"):
        call(np.zeros((65, 10), np.float32), np.zeros(5, np.float32))
    with pytest.raises(ArgumentError):
        call([1.0], w)


def test_small_calls_need_no_shared_memory_after_one_that_found_it_busy(program: Executable):
    slow: list[int] = []
    run = caller().bind(program, (), lambda *arrays: slow.append(len(arrays[0])) or program.run(arrays))
    large, small = given(64, 4096), given(3, 5)
    run(*large), run(*large)
    slow.clear()
    fast_call._shared.busy = 1
    try:
        for arrays in (large, small, small, large):
            check(run(*arrays), *arrays)
    finally:
        fast_call._shared.busy = 0
    check(run(*large), *large)
    assert slow == [64, 64]


def test_a_callable_for_all_sizes_is_freed():
    call = caller().bind(sized_program(), (), lambda *arrays, **options: None)
    context = weakref.ref(call.__self__)
    del call
    assert context() is None


def test_threads_with_other_sizes_share_one_callable(program: Executable):
    run = caller().bind(program, (), lambda *arrays, out=None: program.run(arrays, (), out))
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            for _ in range(200):
                arrays = given(int(random.integers(1, 65)), int(random.integers(2, 200)))
                check(run(*arrays), *arrays)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_outputs_may_be_given_at_any_size(program: Executable):
    run = caller().bind(program, (), python_only)
    for batch, time in ((3, 5), (8, 16), (1, 700), (3, 5)):
        x, w = given(batch, time)
        outs = [np.empty((batch, time), np.float32), np.empty(batch, np.float32)]
        result = run(x, w, out=outs)
        assert all(a is b for a, b in zip(result, outs, strict=True))
        check(result, x, w)


def python_only(*_: object, **__: object) -> list[np.ndarray]:
    raise AssertionError("the call went to Python")


@pytest.mark.parametrize(
    ("x", "w"),
    [((65, 10), (5,)), ((0, 10), (5,)), ((3, 2), (1,)), ((3, 11), (5,)), ((3, 10), (6,)), ((3, 10, 1), (5,))],
)
def test_what_fits_no_sizes_goes_to_python_and_the_callable_stays_right(program: Executable, x, w):
    refused: list[object] = []
    run = caller().bind(program, (), lambda *arrays, **_: refused.append(arrays) or [])
    for _ in range(2):
        run(np.zeros(x, np.float32), np.zeros(w, np.float32))
        assert len(refused) == 1
        refused.clear()
        arrays = given(7, 9)
        check(run(*arrays), *arrays)
    assert not refused


def test_large_outputs_of_other_sizes_take_memory_that_is_large_enough(program: Executable):
    run = caller().bind(program, (), lambda *arrays, **_: program.run(arrays))
    outputs, random = [], np.random.default_rng(0)
    for number in range(60):
        arrays = given(int(random.integers(1, 65)), int(random.integers(2, 3000)))
        results = run(*arrays)
        check(results, *arrays)
        if number % 7 == 0:
            outputs.append((results, arrays))
    for results, arrays in outputs:
        check(results, *arrays)


def test_random_sizes_leave_no_memory_behind(program: Executable):
    run = caller().bind(program, (), lambda *arrays, **_: program.run(arrays))
    random = np.random.default_rng(0)

    def calls() -> int:
        for _ in range(150):
            run(*given(int(random.integers(1, 65)), int(random.integers(2, 3000))))
        return resident()

    run(*given(64, 4096)), run(*given(64, 4096))
    calls()
    before = calls()
    assert calls() - before < 2_000_000


def common_program() -> Executable:
    """The same with a common size."""
    program = sized_program()
    dims = tuple(replace(d, common=(5,)) if d.name == "batch" else d for d in program.manifest.dims)
    batch = [size_of(d) for d in dims]

    def shape(extents):
        sizes = dict(zip(program.manifest.dims, batch, strict=True))
        return tuple(at(extent, sizes) for extent in extents)

    buffers = tuple(replace(b, shape=shape(b.shape)) for b in program.manifest.buffers)
    arena = shape((program.manifest.arena,))[0]
    manifest = replace(program.manifest, dims=dims, buffers=buffers, arena=arena)
    return Executable(manifest, program._library, program._constants)


@pytest.mark.parametrize("apart", [False, True])
def test_common_sizes_are_left_to_programs_of_their_own(apart: bool):
    program = common_program()
    slow: list[int] = []

    def fallback(x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
        slow.append(len(x))
        return program.run((x, w))

    run = caller().bind(program, (), fallback, apart=apart)
    for batch in (4, 5, 6, 5):
        arrays = given(batch, 16)
        check(run(*arrays), *arrays)
    assert slow == ([5, 5] if apart else [])


NUMBERED = """\
dim batch = 1..64 hint 8
dim pos = 0..9 hint 4
program @f {
  input %x: f32[batch,10]
  input %pos: i64[] equals pos
  output %y: f32[batch]
  temp %t: f32[batch,pos + 1]

  kernel @twice(%x: f32[10*batch] in, %t: f32[batch*pos + batch] out) {
    for i in batch parallel {
      for j in pos + 1 parallel {
        a: f32 = load %x[10*i + j]
        b: f32 = add(a, a)
        store %t[(pos + 1)*i + j] = b
      }
    }
  }

  kernel @sums(%t: f32[batch*pos + batch] in, %y: f32[batch] out) {
    for i in batch parallel {
      acc sum: f32 = add f32(0.0)
      for j in pos + 1 reduce {
        a: f32 = load %t[(pos + 1)*i + j]
        update sum with a
      }
      r = read sum
      store %y[i] = r
    }
  }

  call @twice(%x, %t)
  call @sums(%t, %y)
}
"""


def sums(x: np.ndarray, pos: int) -> np.ndarray:
    return (2 * x[:, : pos + 1]).sum(1)


def test_one_native_callable_serves_all_numbers():
    program = executable_of(NUMBERED)
    lookups: list[object] = []

    def fallback(*arrays: object, **options: object) -> object:
        lookups.append(arrays[1])
        return program.run(arrays)

    binder = caller()
    assert binder is not None
    call = binder.bind(program, (), fallback)
    for batch in (8, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 10)).astype(np.float32)
        for pos in (0, 9, 4, 9, 1, 0):
            np.testing.assert_allclose(call(x, pos)[0], sums(x, pos), rtol=1e-5, atol=1e-6)
    assert not lookups
    np.testing.assert_allclose(call(x, np.int64(3))[0], sums(x, 3), rtol=1e-5, atol=1e-6)
    assert len(lookups) == 1
    for wrong in (10, -1, True, 3.0, None, 1 << 80, "3"):
        with pytest.raises(ArgumentError, match="pos"):
            call(x, wrong)


def counted(program: Executable, lookups: list[object]):
    """A fallback."""
    return lambda *arrays: lookups.append(arrays) or program.run(arrays)


def test_numbers_that_are_expressions_or_give_the_shapes_of_outputs_are_native_too():
    longer = NUMBERED.replace("output %y: f32[batch]", "output %z: f32[batch,pos + 1]\n  output %y: f32[batch]")
    longer = longer.replace("  temp %t: f32[batch,pos + 1]\n", "").replace("@twice(%x, %t)", "@twice(%x, %z)")
    longer = longer.replace("call @sums(%t", "call @sums(%z")
    twice = NUMBERED.replace("  output %y", "  input %twice: i64[] equals 2*pos\n  output %y")
    binder, x = caller(), np.random.default_rng(0).standard_normal((8, 10)).astype(np.float32)
    assert binder is not None
    for text in (longer, twice):
        program = executable_of(text)
        lookups: list[object] = []
        call = binder.bind(program, (), counted(program, lookups))
        for pos in (2, 0, 9):
            more = (2 * pos,) if text is twice else ()
            result = call(x, pos, *more)
            np.testing.assert_allclose(result[-1], sums(x, pos), rtol=1e-5, atol=1e-6)
            assert text is twice or result[0].shape == (8, pos + 1)
        assert not lookups
    with pytest.raises(ArgumentError, match=r"the number input 'twice' is 5, not 4 = 2\*pos"):
        call(x, 2, 5)
