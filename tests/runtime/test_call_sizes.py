"""Calls of programs with named dimensions: sizes solved, checked and remembered; arenas and outputs that grow."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from graphc.compiler.native_call import caller
from graphc.errors import ArgumentError, DTypeError, ShapeError
from graphc.runtime import call_sizes, fast_call
from graphc.runtime.call import Executable
from tests.runtime.sized import check, given, sized_program


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
    assert len(sizes._known) <= 4


def test_sizes_for_named_dimensions_without_a_call(program: Executable):
    found = program.sizes.of_dimensions({"time": 100})
    assert [spec.shape for *_, spec in found.inputs] == [(8, 200), (100,)]
    assert found.arena >= 4 * 8 * 100 and found.arena == program.sizes.of_dimensions({"time": 100, "batch": 8}).arena
    with pytest.raises(ArgumentError, match="there is no dimension rows"):
        program.sizes.of_dimensions({"rows": 1})
    with pytest.raises(ArgumentError, match="dimension time is 1"):
        program.sizes.of_dimensions({"time": 1})


def test_one_callable_takes_all_sizes_of_named_dimensions():
    program = sized_program()
    found = caller()
    assert found is not None
    slow: list[tuple[int, ...]] = []

    def fallback(x: np.ndarray, w: np.ndarray, **options: object) -> list[np.ndarray]:
        slow.append(np.shape(x))
        return program.run((x, w))

    call = found.bind(program, (), fallback)
    x, w = given(8, 16)
    check(call(x, w), x, w)
    assert not slow, "the callable is made for the hints"
    for batch, time in ((3, 5), (64, 4096), (1, 2), (8, 16)):
        x, w = given(batch, time)
        slow.clear()
        for _ in range(5):
            check(call(x, w), x, w)
        assert len(slow) == 2, "the second call of a size in a row makes the next ones native"
    kept = [call(*given(8, 16)) for _ in range(3)]
    for result in kept:
        check(result, *given(8, 16))
    with pytest.raises(ShapeError, match="outside of"):
        call(np.zeros((65, 10), np.float32), np.zeros(5, np.float32))
    with pytest.raises(ArgumentError):
        call([1.0], w)


def test_a_callable_for_all_sizes_is_freed():
    call = caller().bind(sized_program(), (), lambda *arrays, **options: None)
    context = weakref.ref(call.__self__)
    del call
    assert context() is None


def test_calls_while_a_callable_changes_its_sizes_do_not_take_what_is_half_changed(
    program: Executable, monkeypatch: pytest.MonkeyPatch
):
    native = caller()
    if native is None:
        pytest.skip("native calls cannot be used in this interpreter")
    run = native.bind(program, (), program.__call__)
    large, small = given(8, 16), given(2, 4)
    for _ in range(3):
        run(*large)
    fit, between = fast_call._fit_tensors, []

    def interrupted(*arguments: object) -> None:
        between.append(run(*large))
        fit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fast_call, "_fit_tensors", interrupted)
    for _ in range(3):
        check(run(*small), *small)
    assert between, "the callable was not made fit for other sizes"
    for results in between:
        check(results, *large)
    check(run(*large), *large)
