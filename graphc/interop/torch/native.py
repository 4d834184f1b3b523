"""Calls of programs on tensors of PyTorch that run no Python, where PyTorch says how its tensors are read."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from graphc.compiler.contents import quiet_words, unchanged_function
from graphc.compiler.native_call import tensor_caller
from graphc.interop.torch.weights import Bound, Weights
from graphc.runtime.call import Executable
from graphc.runtime.call_sizes import CallSizes
from graphc.runtime.tensor_call import Input, NativeCall, Output, TensorLibrary, Weight

empty: Callable[..., torch.Tensor] = getattr(
    import_module("torch._C._dynamo.guards"),
    "_empty_strided_cpu",
    lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype),
)
"""An uninitialised tensor; Dynamo's function takes half the time of torch.empty_strided."""
MOST = 8
"""Sizes of calls for which a program has native calls at a time: each has scratch memory of its own."""
_VERSION, _CAPSULE = 1, b"dlpack_exchange_api"


class _Exchange(ctypes.Structure):
    """DLPackExchangeAPI of DLPack 1.3."""

    _fields_ = (
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("allocate", "export", "import_", "read", "stream")),
    )


@cache
def library() -> TensorLibrary | None:
    """How native calls read and make tensors; None where PyTorch does not say (before 2.10)."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = pointer(capsule, _CAPSULE)
    while address and _Exchange.from_address(address).major != _VERSION:
        address = _Exchange.from_address(address).older
    read = _Exchange.from_address(address).read if address else None
    if not read:
        return None
    found = TensorLibrary(read, empty, torch.Tensor.is_neg, torch.get_num_threads, unchanged_function())
    return found if _reads_as_expected(found) else None


def _reads_as_expected(found: TensorLibrary) -> bool:
    # NOTE: graphs are compiled while PyTorch makes fake tensors only.
    with _disable_current_modes():
        samples = (torch.zeros(3, 4)[1:, ::2], torch.zeros(2, dtype=torch.int64), torch.tensor(True))
        return all(_reads(found, x) for x in (*samples, torch.nn.Parameter(torch.zeros(2, 3).t())))


def _reads(found: TensorLibrary, x: torch.Tensor) -> bool:
    view, rank = found.view(x), x.dim()
    return (
        view is not None
        and ((view.data or 0) + view.offset, view.rank) == (x.data_ptr(), rank)
        and (tuple(view.extents[:rank]), tuple(view.strides[:rank])) == (tuple(x.shape), x.stride())
    )


def unknown(_: list[Any]) -> None:
    """The native call of a program that has none."""


class Natives:
    """The native calls of one program: for the sizes and weights of calls that are made twice in a row."""

    def __init__(self, program: Executable, weights: Weights):
        self._program, self._weights = program, weights
        self._calls: dict[int, _Native] = {}
        """By the identity of plans."""
        self._arrays: Any = None
        """What all of them are bound to."""
        self._before: tuple[Any, Any] = (None, None)
        """Plan and arrays of the call before."""
        self._is_possible = not program.interruptible and library() is not None and tensor_caller() is not None

    def after(
        self,
        plan: Any,
        bound: Bound,
        arrays: tuple[np.ndarray, ...],
        state: tuple[int, int],
        parts: Callable[[], Parts | None],
    ) -> Callable[[list[Any]], list[Any] | None]:
        """The native call for calls like the one that was just made through Python. ``state`` is how many threads may
        be used, and what ``changes`` said before it; ``parts`` gives those of the plan, None where it can have none."""
        if not self._is_possible:
            return unknown
        if self._arrays is not arrays:
            self._calls, self._arrays = {}, arrays
        found = self._calls.get(id(plan))
        if found is None:
            before, self._before = self._before, (plan, arrays)
            if before[0] is not plan or before[1] is not arrays:
                return unknown
            if len(self._calls) >= MOST:
                self._calls.clear()
            found = self._calls[id(plan)] = self._made(plan, bound, arrays, parts())
        if found.call is None:
            return unknown
        threads, count = state
        found.call.allow(threads, quiet_words(count) if found.compares else {})
        return found.call.call

    def _made(self, plan: Any, bound: Bound, arrays: tuple[np.ndarray, ...], parts: Parts | None) -> _Native:
        caller, known = tensor_caller(), library()
        if caller is None or known is None or parts is None:
            return _Native(plan, None, False)
        sizes, inputs, results, count = parts
        look = self._weights.look(bound, arrays)
        given = [*inputs, *[Weight(*pair) for pair in look.places]]
        call = caller.bind(known, self._program, arrays, sizes, given, results, count, look.contents, look.check)
        return _Native(plan, call, look.contents != 0)


class _Native(NamedTuple):
    plan: Any
    """Kept, so that its identity stays its own."""
    call: NativeCall | None
    compares: bool
    """Whether the contents of weights are compared."""


Parts = tuple[CallSizes, Sequence[Input], Sequence[Output], int]
"""Of a plan: sizes, what the program reads, what it gives, and how many arguments there are."""
