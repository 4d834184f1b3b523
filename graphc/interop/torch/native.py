"""Calls of programs on tensors of PyTorch that run no Python, where PyTorch says how its tensors are read."""

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
from graphc.interop.torch.weights import Bound, Weights
from graphc.runtime.call import Executable
from graphc.runtime.call_sizes import CallSizes
from graphc.runtime.tensor_call import Input, NativeCall, Output, TensorLibrary, Weight

empty: Callable[..., torch.Tensor] = getattr(
    import_module("torch._C._dynamo.guards"),
    "_empty_strided_cpu",
    lambda sizes, strides, dtype: torch.empty_strided(sizes, strides, dtype=dtype, device="cpu"),
)
"""An uninitialised tensor; Dynamo's function takes half the time of torch.empty_strided."""
MOST, PATIENCE, REMEMBERED = 64, 1000, 1024
"""How many native calls a program has at a time (each has scratch memory of its own), how many calls another one waits
for its turn then, and of how many the calls are counted."""
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
        number, flag = torch.zeros(2, dtype=torch.int64, device="cpu"), torch.tensor(True, device="cpu")
        block, parameter = torch.zeros(3, 4, device="cpu"), torch.nn.Parameter(torch.zeros(2, 3, device="cpu").t())
        return all(_reads(found, x) for x in (number, flag, block[1:, ::2], parameter))


def _reads(found: TensorLibrary, x: torch.Tensor) -> bool:
    view, rank = found.view(x), x.dim()
    return (
        view is not None
        and ((view.data or 0) + view.offset, view.rank) == (x.data_ptr(), rank)
        and (tuple(view.extents[:rank]), tuple(view.strides[:rank])) == (tuple(x.shape), x.stride())
    )


class Native:
    """A native call of a program: for arguments of some sizes, with some weights."""

    __slots__ = ("arrays", "bound", "call", "following", "native", "plan")

    def __init__(self, plan: Any, bound: Bound | None, arrays: Any, native: NativeCall | None):
        self.plan, self.bound, self.arrays, self.native = plan, bound, arrays, native
        self.call: Callable[[list[Any]], list[Any] | None] = _none if native is None else native.call
        """Gives None where the arguments are others."""
        self.following: Native = self
        """What is tried for the call behind one of this: calls of sizes or blocks that take turns come in an order."""


def _none(_: list[Any]) -> None:
    return None


NONE = Native(None, None, None, None)
"""The native call of a program that has none."""


class Natives:
    """The native calls of one program, for what was called through Python before."""

    def __init__(self, program: Executable, weights: Weights):
        self._program, self._weights = program, weights
        self._natives: dict[tuple[int, int], Native] = {}
        """By the identity of plans and of bound arrays; one whose call is ``_none`` where there can be no other."""
        self._counts: dict[tuple[int, int], int] = {}
        """How often those without a native call were called."""
        self._arrays: dict[int, Any] = {}
        """The arrays that were bound last, by the identity of what they were made of."""
        self._is_possible = not program.interruptible and library() is not None and tensor_caller() is not None

    def after(
        self,
        last: Native,
        plan: Any,
        bound: Bound,
        arrays: tuple[np.ndarray, ...],
        state: tuple[int, dict[int, int], int],
        parts: Callable[[], Parts | None],
    ) -> Native:
        """The native call for calls like the one that was just made through Python. ``last`` is that of the call
        before. ``state`` is how many threads may be used, words that say so, and what ``changes`` said before the call;
        ``parts`` gives those of the plan, None where it can have none."""
        if not self._is_possible:
            return NONE
        if self._arrays.get(id(bound)) is not arrays:
            self._forget()
            self._arrays[id(bound)] = arrays
        key = id(plan), id(arrays)
        found = self._natives.get(key)
        if found is None:
            if not self._is_wanted(key):
                return NONE
            found = self._natives[key] = self._made(plan, bound, arrays, parts())
        if last is not NONE:
            last.following = found
        if found.native is not None:
            threads, words, count = state
            found.native.allow(threads, words | quiet_words(count) if found.native.compares else words)
        return found

    def _is_wanted(self, key: tuple[int, int]) -> bool:
        """Whether the second call of a kind was made; where others have taken all places, the ``PATIENCE``-th."""
        if len(self._counts) >= REMEMBERED:
            self._counts.clear()
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if len(self._natives) < MOST:
            return count > 1
        if count < PATIENCE:
            return False
        self._natives.clear()
        self._counts.clear()
        return True

    def _forget(self) -> None:
        """Lets go of calls whose weights are gone, or were prepared again."""
        known = {id(bound): bound for bound in self._weights.known()}
        kept = {
            key: native
            for key, native in list(self._natives.items())  # other threads may add some meanwhile
            if id(native.bound) in known and known[id(native.bound)].arrays is native.arrays
        }
        for native in kept.values():
            native.following = native
        self._natives = kept
        self._arrays = {key: bound.arrays for key, bound in known.items() if key in self._arrays}

    def _made(self, plan: Any, bound: Bound, arrays: tuple[np.ndarray, ...], parts: Parts | None) -> Native:
        caller, known = tensor_caller(), library()
        if caller is None or known is None or parts is None:
            return Native(plan, bound, arrays, None)
        sizes, inputs, results, count = parts
        look = self._weights.look(bound, arrays)
        given = [*inputs, *[Weight(*pair) for pair in look.places]]
        call = caller.bind(known, self._program, arrays, sizes, given, results, count, look.contents, look.check)
        return Native(plan, bound, arrays, call)


Parts = tuple[CallSizes, Sequence[Input], Sequence[Output], int]
"""Of a plan: sizes, what the program reads, what it gives, and how many arguments there are."""
