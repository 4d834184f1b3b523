"""Native calls on tensors of another library, which is NumPy here: what they look at, give and leave to others."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from graphc.compiler.native_call import tensor_caller
from graphc.runtime import tensor_call
from graphc.runtime.call import Executable
from graphc.runtime.tensor_call import (
    ARGUMENT,
    MADE,
    OBJECT,
    SAME,
    Input,
    NativeCall,
    Output,
    TensorLibrary,
    View,
    Weight,
)
from tests.runtime.native import executable

if tensor_call.layout() is None:
    pytest.skip("no native calls in this interpreter", allow_module_level=True)
N = 6
_shapes: dict[int, Any] = {}


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
def read(array: Any, to: int) -> int:
    if not isinstance(array, np.ndarray):
        return -1
    view, rank = View.from_address(to), array.ndim
    numbers = (ctypes.c_int64 * (2 * rank + 1))(*array.shape, *[s // array.itemsize for s in array.strides])
    _shapes[to] = numbers
    view.data, view.offset, view.device, view.rank = array.ctypes.data - 8, 8, 1, rank
    view.dtype = {"f": 2, "i": 0}[array.dtype.kind] | array.itemsize << 11 | 1 << 16
    view.extents = ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64))
    view.strides = ctypes.cast(ctypes.addressof(numbers) + 8 * rank, ctypes.POINTER(ctypes.c_int64))
    return 0


class Library:
    """Library of tensors for the native call."""

    def __init__(self) -> None:
        self.count = 1
        self.made: list[np.ndarray] = []

    def make(self, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> np.ndarray:
        if sizes == (13,):
            raise MemoryError
        self.made.append(np.full(sizes, np.nan, dtype))
        return self.made[-1]

    def is_negative(self, array: np.ndarray) -> bool:
        return bool(np.isnan(array).any())

    def threads(self) -> int:
        return self.count


def f32(value: float) -> np.ndarray:
    return np.full(N, value, np.float32)


def bound_call(
    program: Executable,
    results: Sequence[Output],
    count: int,
    library: Library,
    bound: tuple[np.ndarray, ...],
    rest: Sequence[Weight | Input] = (),
    **named: Any,
) -> NativeCall:
    address = ctypes.cast(read, ctypes.c_void_p).value or 0
    tensor_library = TensorLibrary(address, library.make, library.is_negative, library.threads, 0)
    caller = tensor_caller()
    assert caller is not None and program.sizes.fixed is not None
    arguments = [Input(0, f32(0)), *rest]
    found = caller.bind(tensor_library, program, bound, program.sizes.fixed, arguments, results, count, **named)
    assert found is not None
    found.allow(1, {})
    return found


NEW = Output(MADE, value=((N,), (1,), np.float32))


def test_a_call_gives_new_tensors_objects_arguments_and_what_it_gave_before():
    library, bound, other = Library(), (f32(2), f32(0)), object()
    results = [Output(OBJECT, value=other), NEW, Output(SAME, 1), Output(ARGUMENT, 1)]
    run = bound_call(executable(N), results, 2, library, bound)
    x, y = f32(3), object()
    expected = executable(N).run([x], (f32(2), f32(0)))[0]
    arguments = [x, y]
    result = run.call(arguments)
    assert result is not None and arguments == []
    assert result[0] is other and result[1] is result[2] is library.made[0] and result[3] is y
    assert result[1].tolist() == expected.tolist() and bound[1].tolist() == [3.0] * N
    references = [sys.getrefcount(v) for v in (x, y, other, None)]
    for _ in range(100):
        assert run.call([x, y]) is not None
    library.made.clear()
    assert [sys.getrefcount(v) for v in (x, y, other)] == references[:3]


def test_what_is_not_as_declared_is_left_to_others():
    library, word = Library(), ctypes.c_uint64(5)
    run = bound_call(executable(N), [NEW], 1, library, (f32(2), f32(0)))
    wrong: list[Any] = [np.zeros(N), np.zeros(N + 1, np.float32), np.zeros((N, 1), np.float32), f32(np.nan), "x", None]
    wrong += [np.zeros(2 * N, np.float32)[::2], np.zeros(N, np.int32)]
    for value in wrong:
        arguments = [value]
        assert run.call(arguments) is None and arguments[0] is value
    assert run.call([]) is None and run.call([f32(1)] * 2) is None and run.call((f32(1),)) is None  # type: ignore[arg-type]
    assert not library.made
    assert run.call([f32(1)]) is not None
    library.count = 2
    assert run.call([f32(1)]) is None
    run.allow(2, {ctypes.addressof(word): 5})
    assert run.call([f32(1)]) is not None
    word.value = 6
    assert run.call([f32(1)]) is None


def test_a_weight_must_lie_where_it_lies_and_a_check_must_say_yes():
    library, w, answers = Library(), f32(2), [True, False, 1]
    run = bound_call(executable(N), [NEW], 2, library, (w, f32(0)), [Weight(1, w.ctypes.data)])
    assert run.call([f32(1), w]) is not None and run.call([f32(1), f32(2)]) is None
    questions: list[Any] = []

    def check(args: list[Any]) -> Any:
        questions.append(list(args))
        return answers.pop(0)

    run = bound_call(executable(N), [NEW], 1, library, (w, f32(0)), check=check)
    x = f32(1)
    assert [run.call([x]) is None for _ in range(3)] == [False, True, True]
    assert all(args[0] is x for args in questions)
    with pytest.raises(IndexError):
        run.call([x])


def test_an_exception_of_who_makes_tensors_is_raised():
    library = Library()
    run = bound_call(executable(N), [Output(MADE, value=((13,), (1,), np.float32))], 1, library, (f32(2), f32(0)))
    arguments = [f32(1)]
    with pytest.raises(MemoryError):
        run.call(arguments)
    assert len(arguments) == 1


@pytest.mark.parametrize("question", ["is_negative", "threads"])
def test_an_exception_of_what_is_asked_is_raised(question: str, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    library = Library()
    with monkeypatch.context() as patch:
        patch.setattr(library, question, interrupted)
        run = bound_call(executable(N), [NEW], 1, library, (f32(2), f32(0)))
        arguments = [f32(1)]
        with pytest.raises(KeyboardInterrupt):
            run.call(arguments)
        assert len(arguments) == 1 and run.call([]) is None


def test_bound_arrays_that_are_copied_at_each_call_have_no_native_call():
    caller, program = tensor_caller(), executable(N)
    library = Library()
    tensor_library = TensorLibrary(
        ctypes.cast(read, ctypes.c_void_p).value or 0, library.make, library.is_negative, library.threads, 0
    )
    assert caller is not None and program.sizes.fixed is not None
    bound = np.zeros(2 * N, np.float32)[::2], f32(0)
    assert caller.bind(tensor_library, program, bound, program.sizes.fixed, [Input(0, f32(0))], [NEW], 1) is None
    unread = [Input(0, "no tensor")]
    assert caller.bind(tensor_library, program, (f32(1), f32(0)), program.sizes.fixed, unread, [NEW], 1) is None
