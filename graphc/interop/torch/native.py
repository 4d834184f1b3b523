"""Calls of programs on PyTorch tensors without Python, through PyTorch's DLPack exchange API."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from graphc.compiler.contents import quiet_words, unchanged_function
from graphc.compiler.native_call import tensor_caller
from graphc.interop.torch.weights import AddressedWeights, Weights
from graphc.runtime.call import Executable
from graphc.runtime.call_sizes import CallSizes
from graphc.runtime.tensor_call import Input, NativeCall, Output, TensorLibrary, Weight

empty: Callable[..., torch.Tensor] = getattr(
    import_module("torch._C._dynamo.guards"),
    "_empty_strided_cpu",
    lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype, device="cpu"),
)
"""Creates an uninitialised tensor. Dynamo's function takes half the time of torch.empty_strided."""
MOST, CALLS_BEFORE_EVICTION, REMEMBERED = 64, 1000, 1024
"""Native calls of a program at a time (each has scratch memory of its own), calls after which a further kind evicts
them, and kinds of calls whose calls are counted."""
_VERSION, _CAPSULE = 1, b"dlpack_exchange_api"


class _Exchange(ctypes.Structure):
    """DLPackExchangeAPI of DLPack 1.3."""

    _fields_ = (
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("allocate", "export", "import_", "read", "stream")),
    )


@cache
def library() -> TensorLibrary | None:
    """Return functions by which native calls read and create tensors, or None where PyTorch lacks them (before
    2.10)."""
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
    functions = TensorLibrary(read, empty, torch.Tensor.is_neg, torch.get_num_threads, unchanged_function())
    return functions if _reads_as_expected(functions) else None


def _reads_as_expected(functions: TensorLibrary) -> bool:
    # NOTE: PyTorch only creates fake tensors while graphs are compiled.
    with _disable_current_modes():
        number, flag = torch.zeros(2, dtype=torch.int64, device="cpu"), torch.tensor(True, device="cpu")
        block, parameter = torch.zeros(3, 4, device="cpu"), torch.nn.Parameter(torch.zeros(2, 3, device="cpu").t())
        return all(_reads(functions, x) for x in (number, flag, block[1:, ::2], parameter))


def _reads(functions: TensorLibrary, x: torch.Tensor) -> bool:
    view, rank = functions.view(x), x.dim()
    return (
        view is not None
        and ((view.data or 0) + view.offset, view.rank) == (x.data_ptr(), rank)
        and (tuple(view.extents[:rank]), tuple(view.strides[:rank])) == (tuple(x.shape), x.stride())
    )


class Native:
    """Native call of a program, for arguments of some sizes and some weights."""

    __slots__ = ("arrays", "bound", "call", "native", "plan", "successor")

    def __init__(self, plan: Any, bound: AddressedWeights | None, arrays: Any, native: NativeCall | None):
        self.plan, self.bound, self.arrays, self.native = plan, bound, arrays, native
        self.call: Callable[[list[Any]], list[Any] | None] = _none if native is None else native.call
        """Returns None for other arguments."""
        self.successor: Native = self
        """Native call to try after this one: calls that alternate between sizes or weights follow an order."""


def _none(_: list[Any]) -> None:
    return None


NONE = Native(None, None, None, None)
"""Native call of a program without any."""


class Natives:
    """Native calls of one program, for argument kinds already called through Python."""

    def __init__(self, program: Executable, weights: Weights):
        self._program, self._weights = program, weights
        self._natives: dict[tuple[int, int], Native] = {}
        """Native calls by the identity of plans and of bound arrays. The call is ``_none`` where no native call is
        possible."""
        self._counts: dict[tuple[int, int], int] = {}
        """Number of calls of the kinds without a native call."""
        self._arrays: dict[int, Any] = {}
        """Arrays that were bound last, by the identity of their Bound."""
        self._is_possible = not program.interruptible and library() is not None and tensor_caller() is not None

    def after(
        self,
        previous: Native,
        plan: Any,
        bound: AddressedWeights,
        arrays: tuple[np.ndarray, ...],
        state: tuple[int, dict[int, int], int],
        specification: Callable[[], Parts | None],
    ) -> Native:
        """Return the native call for calls like the one that Python just made.

        ``previous`` is the native call before it. ``state`` holds the number of usable threads, the words that say so,
        and the result of ``changes`` before the call. ``specification`` returns the Parts of the plan, or None where a
        native call is impossible.
        """
        if not self._is_possible:
            return NONE
        if self._arrays.get(id(bound)) is not arrays:
            self._forget()
            self._arrays[id(bound)] = arrays
        key = id(plan), id(arrays)
        native = self._natives.get(key)
        if native is None:
            if not self._is_frequent(key):
                return NONE
            native = self._natives[key] = self._bind(plan, bound, arrays, specification())
        if previous is not NONE:
            previous.successor = native
        if native.native is not None:
            threads, words, count = state
            native.native.allow(threads, words | quiet_words(count) if native.native.compares else words)
        return native

    def _is_frequent(self, key: tuple[int, int]) -> bool:
        """Check whether this is the second call of a kind, or the ``CALLS_BEFORE_EVICTION``-th if all slots are in
        use."""
        if len(self._counts) >= REMEMBERED:
            self._counts.clear()
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if len(self._natives) < MOST:
            return count > 1
        if count < CALLS_BEFORE_EVICTION:
            return False
        self._natives.clear()
        self._counts.clear()
        return True

    def _forget(self) -> None:
        """Drop calls whose weights are gone or were prepared again."""
        bound_by_id = {id(bound): bound for bound in self._weights.known()}
        remaining = {
            key: native
            for key, native in list(self._natives.items())  # other threads may add some meanwhile
            if id(native.bound) in bound_by_id and bound_by_id[id(native.bound)].arrays is native.arrays
        }
        for native in remaining.values():
            native.successor = native
        self._natives = remaining
        self._arrays = {key: bound.arrays for key, bound in bound_by_id.items() if key in self._arrays}

    def _bind(
        self, plan: Any, bound: AddressedWeights, arrays: tuple[np.ndarray, ...], specification: Parts | None
    ) -> Native:
        caller, functions = tensor_caller(), library()
        if caller is None or functions is None or specification is None:
            return Native(plan, bound, arrays, None)
        sizes, inputs, results, count = specification
        look = self._weights.look(bound, arrays)
        operands = [*inputs, *[Weight(*pair) for pair in look.places]]
        call = caller.bind(functions, self._program, arrays, sizes, operands, results, count, look.contents, look.check)
        return Native(plan, bound, arrays, call)


Parts = tuple[CallSizes, Sequence[Input], Sequence[Output], int]
"""Specification of a native call: sizes, what the program reads, what it returns, and the number of arguments."""
