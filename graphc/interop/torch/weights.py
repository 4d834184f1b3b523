"""Parameters and buffers of PyTorch that a program reads: what is prepared of them, and when it is prepared again.

PyTorch counts the writes of its own operators to a tensor, but not those through ``p.data``, ``p.numpy()`` and DLPack,
nor another memory given to ``p.data``. Dynamo's guards look at types, sizes and strides, and not at whether a parameter
is the same object: blocks of one kind share a graph. So each call looks where its weights lie, and what is prepared
belongs to those places. What is prepared of them holds in ``live`` programs while their contents are what they were,
which is looked at in each call; in ``frozen`` ones for ever, but for buffers, which models write to themselves: for
these a call asks PyTorch's count of writes. Weights that a program reads as they are need no look.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from graphc.base.locks import Lock
from graphc.calls import prepacked_store
from graphc.calls.prepacked_store import Prepacked
from graphc.compiler.contents import Comparison, Content
from graphc.files.manifest import Recipe
from graphc.interop.torch.layout import Layout
from graphc.runtime.call import Executable

LIVE, FROZEN = "live", "frozen"


class Weights:
    """The arrays that a program takes beside its inputs."""

    def __init__(self, first: Executable | None, sources: Sequence[Any], layouts: Mapping[int, Layout], watch: str):
        """``first`` prepares arrays of weights. Of each array of the program ``sources`` says what it is: an array, the
        path of an argument, or the number of a result of ``first``. ``layouts`` are those of the arguments. ``watch``
        is ``live`` (a write of any kind is seen) or ``frozen`` (what is prepared of parameters stays as it is, and a
        write may be seen or not; writes to buffers that PyTorch counts are seen)."""
        self._first = first
        self._sources = tuple(sources)
        self._layouts = layouts
        self._is_live = watch == LIVE
        self._taken = [int(spec.path) for spec in first.inputs] if first else []
        self._numbers = sorted({*self._taken, *[int(s) for s in sources if isinstance(s, str)]})
        """The arguments that are read."""
        recipes = [Recipe.parse(s.path) if s.path else Recipe("", ()) for s in first.outputs] if first else []
        machine = first.manifest.target if first else None
        self._recipes = [(r.digest and (r.digest, machine), r.inputs) for r in recipes]
        self._bound: dict[tuple[int, ...], Bound] = {}
        """By the places of the arguments that are read."""
        self._last: Bound | None = None
        """Those of the call before."""
        self._lock = Lock()

    def arrays(self, args: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """What the program takes for these arguments; the same tuple while nothing has changed."""
        return self.bound(args).arrays

    def bound(self, args: Sequence[Any]) -> Bound:
        """The same, with what it was made of."""
        if not self._numbers and self._last is not None:
            return self._last
        places = [args[i].data_ptr() for i in self._numbers]
        found = self._last
        if found is None or found.places != places:
            found = self._last = self._bound.get(tuple(places)) or self._bind(args, tuple(places))
        if found.comparison is not None:
            states = [] if self._is_live else found.states(args)
            if self._is_live or found.is_written(args, states):
                found.comparison.look()
                if found.counters != found.versions:
                    self._prepare(found)
                # NOTE: not before, for calls of other threads must not take what was prepared before the write.
                found.seen = states
        return found

    def known(self) -> list[Bound]:
        """Those of the places that calls were given weights at, while these lie there."""
        last = self._last
        return [*self._bound.values(), *([] if last is None else [last])]

    def look(self, found: Bound, arrays: tuple[np.ndarray, ...]) -> Look:
        """How native code sees that these arrays of ``found`` are those of later calls."""
        comparison = found.comparison
        places = tuple(zip(self._numbers, found.places, strict=True))
        if comparison is None or not (self._is_live or found.has_buffers):
            return Look(places)
        if self._is_live and comparison.table:
            return Look(places, comparison.table)
        return Look((), 0, lambda args: self.bound(args).arrays is arrays)

    def made(self) -> list[np.ndarray]:
        """The arrays that it has made of weights and keeps."""
        return [part.array for found in self._bound.values() for part in found.prepared]

    def _bind(self, args: Sequence[Any], places: tuple[int, ...]) -> Bound:
        with self._lock:
            # NOTE: parameters that lie elsewhere by now, or are gone, will not be seen at these places again; without
            # this their memory would be kept.
            for old in [key for key, bound in self._bound.items() if not bound.holds()]:
                del self._bound[old]
            found = Bound(args, self._numbers, self._taken, self._layouts)
            self._prepare(found)
            self._bound[places] = found
        return found

    def _prepare(self, found: Bound) -> None:
        with self._lock:
            if found.comparison is not None and not found.prepared:
                found.comparison.look()
            versions = [counter.copy() for counter in found.counters]
            if found.arrays and versions == found.versions:
                return  # Another thread was faster.
            first = self._first
            if first is not None:
                found.prepared = prepacked_store.prepared(
                    lambda known: first.run([c.array for c in found.contents], (), first.outputs_together(known)),
                    self._recipes,
                    [c.array for c in found.contents],
                    found.counters,
                    versions,
                )
            found.arrays = tuple([self._array(source, found) for source in self._sources])
            found.versions = versions

    @staticmethod
    def _array(source: Any, found: Bound) -> np.ndarray:
        if isinstance(source, str):
            return found.given[int(source)]
        return found.prepared[source].array if isinstance(source, int) else source


class Look(NamedTuple):
    """What native code looks at to see that weights are what they were."""

    places: tuple[tuple[int, int], ...]
    """Numbers of arguments, and where they must lie."""
    contents: int = 0
    """Where the table for ``graphc_unchanged`` lies, of the blocks that must be unchanged; 0 where there is none."""
    check: Callable[[list[Any]], bool] | None = None
    """Tells it of the arguments of a call, in place of both."""


class Bound:
    """The weights of some calls, by where they lie. While it lives, nothing else can lie there."""

    def __init__(
        self, args: Sequence[Any], numbers: Sequence[int], taken: Sequence[int], layouts: Mapping[int, Layout]
    ):
        self._tensors = [(weakref.ref(args[i]), args[i].data_ptr()) for i in numbers]
        self.places = [place for _, place in self._tensors]
        self.given = {i: layouts[i].array(args[i]) for i in numbers}
        """The array of each argument that is read, which keeps its memory."""
        self.contents = [_content(self.given[i]) for i in taken]
        self.comparison = Comparison(self.contents) if taken else None
        self._buffers = [i for i in taken if not isinstance(args[i], torch.nn.Parameter)]
        self.seen = self.states(args)
        """What the buffers were when their contents were compared."""
        self.counters = [content.counter for content in self.contents]
        self.versions: list[list[int]] = []
        """What the counters were when the arrays were made."""
        self.prepared: tuple[Prepacked, ...] = ()
        self.arrays: tuple[np.ndarray, ...] = ()

    @property
    def has_buffers(self) -> bool:
        """Whether something is prepared of buffers, to which models write."""
        return bool(self._buffers)

    def states(self, args: Sequence[Any]) -> list[tuple[weakref.ref[Any], int | None]]:
        """The buffers, and how often they were written to; None where PyTorch does not count."""
        return [(weakref.ref(args[i]), None if args[i].is_inference() else args[i]._version) for i in self._buffers]

    def is_written(self, args: Sequence[Any], states: Sequence[tuple[weakref.ref[Any], int | None]]) -> bool:
        """Whether the buffers may have been written to since they were ``seen``. Other tensors in the same memory have
        counts of their own."""
        pairs = zip(self._buffers, self.seen, states, strict=True)
        return any(ref() is not args[i] or count is None or count != now for i, (ref, count), (_, now) in pairs)

    def holds(self) -> bool:
        """Whether the tensors are alive and lie where they lay."""
        return all((tensor := ref()) is not None and tensor.data_ptr() == place for ref, place in self._tensors)


_contents: weakref.WeakValueDictionary[Any, Content] = weakref.WeakValueDictionary()
"""Of all programs, by where and what they are: several programs of a model look at the same one."""


def _content(array: np.ndarray) -> Content:
    key = array.ctypes.data, array.dtype.str, array.shape
    return _contents.get(key) or _contents.setdefault(key, Content(array))
