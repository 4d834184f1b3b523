"""Parameters and buffers of PyTorch as inputs of a program, and arrays prepared from them.

PyTorch counts the writes of its own operators to a tensor. It does not count writes through ``p.data``, ``p.numpy()``
and DLPack, nor new memory for ``p.data``. Dynamo's guards check types, sizes and strides, but not the identity of
parameters: equal blocks share a graph. Each call therefore checks the addresses of its weights, and prepared arrays
belong to these addresses. ``live`` programs check the contents in each call, and prepare again after a change.
``frozen`` programs never do, except for buffers, which models write to: there a call checks PyTorch's count of writes.
Weights read without preparation need no check.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from graphc.base.locks import Lock
from graphc.calls.prepacked_store import Prepacked, Prepacking, WeightVersion
from graphc.compiler.contents import Content, ContentComparison
from graphc.interop.torch.layout import Layout
from graphc.runtime.call import Executable

LIVE, FROZEN = "live", "frozen"


class Weights:
    """Arrays of a program besides its inputs."""

    def __init__(self, first: Executable | None, sources: Sequence[Any], layouts: Mapping[int, Layout], watch: str):
        """Take the program that prepares arrays from weights (``first``), and the source of each array.

        ``sources`` gives the source of each array of the program: an array, the path of an argument, or the index of a
        result of ``first``. ``layouts`` are the layouts of the arguments. ``watch`` is ``live`` (any write is noticed)
        or ``frozen`` (arrays prepared from parameters stay as they are, whether or not the parameters change; counted
        writes to buffers are noticed).
        """
        self._prepacking = None if first is None else Prepacking(first)
        self._sources = tuple(sources)
        self._layouts = layouts
        self._is_live = watch == LIVE
        self._prepared_from = [int(path) for path in self._prepacking.reads] if self._prepacking else []
        self._numbers = sorted({*self._prepared_from, *[int(s) for s in sources if isinstance(s, str)]})
        """Indices of the arguments that are read."""
        self._bound: dict[tuple[int, ...], AddressedWeights] = {}
        """Bound weights by their addresses."""
        self._last: AddressedWeights | None = None
        """Bound weights of the previous call."""
        self._lock = Lock()

    def bound(self, args: Sequence[Any]) -> AddressedWeights:
        """Return the bound weights for these arguments."""
        if not self._numbers and self._last is not None:
            return self._last
        addresses = [args[i].data_ptr() for i in self._numbers]
        current = self._last
        if current is None or current.places != addresses:
            current = self._last = self._bound.get(tuple(addresses)) or self._bind(args, tuple(addresses))
        if current.comparison is not None:
            states = [] if self._is_live else current.states(args)
            if self._is_live or current.is_written(args, states):
                current.comparison.look()
                if current.counters != current.versions:
                    self._prepare(current)
                # NOTE: not earlier: calls of other threads must not use arrays prepared before the write.
                current.compared = states
        return current

    def known(self) -> list[AddressedWeights]:
        """Return the bound weights of earlier calls whose tensors are still in place."""
        last = self._last
        return [*self._bound.values(), *([] if last is None else [last])]

    def look(self, bound: AddressedWeights, arrays: tuple[np.ndarray, ...]) -> Look:
        """Return the check for native code that ``arrays`` are still valid for the weights in ``bound``."""
        comparison = bound.comparison
        addresses = tuple(zip(self._numbers, bound.places, strict=True))
        if comparison is None or not (self._is_live or bound.has_buffers):
            return Look(addresses)
        if self._is_live and comparison.table:
            return Look(addresses, comparison.table)
        return Look((), 0, lambda args: self.bound(args).arrays is arrays)

    def _bind(self, args: Sequence[Any], addresses: tuple[int, ...]) -> AddressedWeights:
        with self._lock:
            # NOTE: parameters that have moved or are gone will not return to these addresses; this frees their memory.
            for old in [key for key, bound in self._bound.items() if not bound.holds()]:
                del self._bound[old]
            new = AddressedWeights(args, self._numbers, self._prepared_from, self._layouts)
            self._prepare(new)
            self._bound[addresses] = new
        return new

    def _prepare(self, bound: AddressedWeights) -> None:
        with self._lock:
            if bound.comparison is not None and not bound.prepared:
                bound.comparison.look()
            versions = [counter.copy() for counter in bound.counters]
            if bound.arrays and versions == bound.versions:
                return  # Another thread has prepared them.
            if self._prepacking is not None:
                arrays = [content.array for content in bound.contents]
                weights = [WeightVersion(*fields) for fields in zip(arrays, bound.counters, versions, strict=True)]
                bound.prepared = self._prepacking.pack(arrays, weights)
            bound.arrays = tuple([self._array(source, bound) for source in self._sources])
            bound.versions = versions

    @staticmethod
    def _array(source: Any, bound: AddressedWeights) -> np.ndarray:
        if isinstance(source, str):
            return bound.argument_arrays[int(source)]
        return bound.prepared[source].array if isinstance(source, int) else source


class Look(NamedTuple):
    """Check of native code that weights are unchanged."""

    places: tuple[tuple[int, int], ...]
    """Indices of arguments, and their required addresses."""
    contents: int = 0
    """Address of the table for ``graphc_unchanged``, which lists blocks that must be unchanged. 0 without such
    blocks."""
    check: Callable[[list[Any]], bool] | None = None
    """Check of the arguments of a call, in place of both."""


class AddressedWeights:
    """Weights of some calls, by address. While it lives, no other tensor can have these addresses."""

    def __init__(
        self, args: Sequence[Any], numbers: Sequence[int], prepared_from: Sequence[int], layouts: Mapping[int, Layout]
    ):
        self._tensors = [(weakref.ref(args[i]), args[i].data_ptr()) for i in numbers]
        self.places = [address for _, address in self._tensors]
        self.argument_arrays = {i: layouts[i].array(args[i]) for i in numbers}
        """Array of each argument that is read, which keeps its memory alive."""
        self.contents = [_content(self.argument_arrays[i]) for i in prepared_from]
        self.comparison = ContentComparison(self.contents) if prepared_from else None
        self._buffers = [i for i in prepared_from if not isinstance(args[i], torch.nn.Parameter)]
        self.compared = self.states(args)
        """States of the buffers when their contents were last compared."""
        self.counters = [content.counter for content in self.contents]
        self.versions: list[list[int]] = []
        """Counters when the arrays were prepared."""
        self.prepared: tuple[Prepacked, ...] = ()
        self.arrays: tuple[np.ndarray, ...] = ()

    @property
    def has_buffers(self) -> bool:
        """Check whether arrays are prepared from buffers, to which models write."""
        return bool(self._buffers)

    def states(self, args: Sequence[Any]) -> list[tuple[weakref.ref[Any], int | None]]:
        """Return the buffers and their write counts, None where PyTorch does not count."""
        return [(weakref.ref(args[i]), None if args[i].is_inference() else args[i]._version) for i in self._buffers]

    def is_written(self, args: Sequence[Any], states: Sequence[tuple[weakref.ref[Any], int | None]]) -> bool:
        """Check whether the buffers may have been written to since they were ``compared``.

        Other tensors in the same memory have counts of their own.
        """
        pairs = zip(self._buffers, self.compared, states, strict=True)
        return any(ref() is not args[i] or count is None or count != now for i, (ref, count), (_, now) in pairs)

    def holds(self) -> bool:
        """Check whether the tensors are alive and still at their addresses."""
        return all((tensor := ref()) is not None and tensor.data_ptr() == address for ref, address in self._tensors)


_contents: weakref.WeakValueDictionary[Any, Content] = weakref.WeakValueDictionary()
"""Contents of all programs by address, type and shape: several programs of a model check the same one."""


def _content(array: np.ndarray) -> Content:
    key = array.ctypes.data, array.dtype.str, array.shape
    return _contents.get(key) or _contents.setdefault(key, Content(array))
