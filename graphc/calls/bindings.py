"""What a compiled graph needs of the outside: tensors as they are now, and checks that nothing else has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import is_, methodcaller
from typing import Any, NamedTuple

import numpy as np

from graphc.base.autocast_state import autocast_dtype
from graphc.base.locks import Lock
from graphc.base.mutation_epoch import COMMON_HOOKS, EPOCH, Members
from graphc.calls import prepacked_store
from graphc.calls.prepacked_store import Prepacked
from graphc.guards.facts import Table, broken
from graphc.guards.watch_words import Words
from graphc.runtime.arena import aligned
from graphc.tensors.creation import get_default_device, get_default_dtype
from graphc.tensors.generator import PATH as RANDOM
from graphc.tensors.journal import note_write
from graphc.tensors.tensor import Tensor

_VALUES = methodcaller("values")
Maker = Callable[[np.ndarray], np.ndarray]
"""Makes what is stored for a weight."""


class Modules:
    """The modules of a model, by the dictionaries that hold their flags and children; holds while the tree is what it
    was."""

    def __init__(self, roots: Iterable[Any]):
        seen: dict[int, Any] = {}
        for root in roots:
            for module in root.modules():
                seen[id(module)] = module
        self.modules = list(seen.values())
        self._fields = [vars(m) for m in self.modules]
        self._tables = [f["_modules"] for f in self._fields if "_modules" in f]
        self._counts = list(map(len, self._tables))
        self._children = self._present()
        self._seen = -1
        """The mutation epoch when ``holds`` looked last and was true."""
        self._training: tuple[bool, ...] = ()

    def _present(self) -> list[Any]:
        return list(chain.from_iterable(map(_VALUES, self._tables)))

    def training(self) -> tuple[bool, ...]:
        """The training flag of every module."""
        if self._seen == EPOCH[0]:
            return self._training
        return tuple([f.get("training", True) for f in self._fields])

    def holds(self) -> bool:
        """Whether no child was added, removed or replaced."""
        epoch = EPOCH[0]
        if self._seen != epoch:
            if list(map(len, self._tables)) != self._counts or not _same(self._present(), self._children):
                return False
            self._training = self.training()
            self._seen = epoch
        return True

    def why(self) -> str:
        """What has changed."""
        return "modules: a child was added, removed or replaced"

    def places(self) -> dict[int, tuple[dict[Any, Any], Any]]:
        """For each parameter and buffer, by identity, the dictionary and key that hold it."""
        found: dict[int, tuple[dict[Any, Any], Any]] = {}
        for table, key, tensor in self.members():
            if tensor is not None:
                found.setdefault(id(tensor), (table, key))
        return found

    def members(self) -> Iterator[tuple[dict[Any, Any], Any, Any]]:
        """Dictionary, key and tensor of each parameter and buffer."""
        for fields in self._fields:
            for table in (fields.get("_parameters"), fields.get("_buffers")):
                for key, tensor in (table or {}).items():
                    yield table, key, tensor  # type: ignore[misc]

    def tables(self) -> Iterator[Table]:
        """That each module still has the dictionaries that hold its parameters, buffers and children."""
        for module, fields in zip(self.modules, self._fields, strict=True):
            for name in ("_parameters", "_buffers", "_modules"):
                yield Table(fields, name, f"attribute {name!r} of {type(module).__name__}")

    def hooks(self) -> Iterator[tuple[Any, str, dict[Any, Any]]]:
        """Module, name and content of each table of hooks that run at calls and in backward passes."""
        for module, fields in zip(self.modules, self._fields, strict=True):
            for name in _HOOKS:
                yield module, name, fields.get(name) or {}
        for table in COMMON_HOOKS:
            yield None, "hooks of all modules", table


_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Sharing:
    """Which names parameters and buffers have, and which of them are one tensor."""

    def __init__(self, modules: Modules):
        self._modules = modules
        self._pattern = self._now()

    def _now(self) -> list[tuple[Any, int]]:
        first: dict[int, int] = {}
        found = self._modules.members()
        return [(key, -1 if t is None else first.setdefault(id(t), i)) for i, (_, key, t) in enumerate(found)]

    def holds(self) -> bool:
        """Whether it is still so."""
        return self._now() == self._pattern

    def why(self) -> str:
        """What has changed."""
        now = self._now()
        if [key for key, _ in now] != [key for key, _ in self._pattern]:
            return "modules: a parameter or buffer was added or removed"
        names = [key for (key, a), (_, b) in zip(now, self._pattern, strict=True) if a != b]
        return f"modules: {', '.join(map(repr, names))} shares its tensor with others, or does no longer"


class ModuleHooks:
    """The hooks of modules, those of all modules included."""

    def __init__(self, modules: Modules):
        self._modules = modules
        self._hooks = self._now()

    def _now(self) -> list[tuple[Any, ...]]:
        return [tuple(table.items()) for _, _, table in self._modules.hooks()]

    def holds(self) -> bool:
        """Whether there are the same ones."""
        return self._now() == self._hooks

    def why(self) -> str:
        """What has changed."""
        found = zip(self._modules.hooks(), self._now(), self._hooks, strict=True)
        names = [
            f"{name.strip('_')}{'' if m is None else f' of {type(m).__name__}'}"
            for (m, name, _), a, b in found
            if a != b
        ]
        return f"hooks: {', '.join(names)} added or removed"


class TensorHooks:
    """The hooks of tensors outside."""

    def __init__(self, tensors: Iterable[Tensor]):
        self._tensors = tuple(tensors)
        self._hooks = self._now()

    def _now(self) -> list[tuple[Any, ...]]:
        return [tuple((table or {}).items()) for t in self._tensors for table in (t._hooks, t._post_hooks)]

    def holds(self) -> bool:
        """Whether there are the same ones."""
        return self._now() == self._hooks

    def why(self) -> str:
        """What has changed."""
        return "hooks: those of a parameter or another tensor were added or removed"


class DefaultType:
    """The element type of tensors that are made without one, and that of factors of products."""

    def __init__(self) -> None:
        self._dtype, self._device, self._factors = get_default_dtype(), get_default_device(), autocast_dtype()

    def holds(self) -> bool:
        """Whether it is the same."""
        same = get_default_dtype() is self._dtype and autocast_dtype() is self._factors
        return same and get_default_device() == self._device

    def why(self) -> str:
        """What has changed."""
        if autocast_dtype() is not self._factors:
            names = ["off" if d is None else d.name for d in (self._factors, autocast_dtype())]
            return f"autocast: {names[0]} -> {names[1]}"
        if get_default_device() != self._device:
            return f"default device: {self._device} -> {get_default_device()}"
        return f"default element type: {self._dtype.name} -> {get_default_dtype().name}"


class Slot:
    """Where a tensor outside is found at each call, and what it must be like."""

    __slots__ = ("counted", "dtype", "is_member", "key", "requires_grad", "shape", "table", "title", "where")

    def __init__(self, tensor: Tensor, place: tuple[dict[Any, Any], Any] | None, title: str = ""):
        """``title`` is what messages call the tensor."""
        self.title = title
        self.is_member = place is not None
        """Whether it is a parameter or buffer."""
        self.table, self.key = place or ({0: tensor}, 0)
        self.counted = place is None or isinstance(self.table, Members)
        """Whether another tensor in this place is counted as a change."""
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        self.requires_grad = tensor._requires_grad
        self.where = tensor._data.device
        """The device; 'cpu' for the host, as numpy calls it."""

    def tensor(self) -> Any:
        """The tensor, or None where there is none any more."""
        return self.table.get(self.key)

    def holds(self) -> bool:
        """Whether the tensor there has the type and flags that the graph was made for."""
        found = self.table.get(self.key)
        return (
            isinstance(found, Tensor)
            and found.dtype is self.dtype
            and found.shape == self.shape
            and found._requires_grad is self.requires_grad
            and found._data.device == self.where
        )

    def why(self) -> str:
        """What has changed."""
        now = self.tensor()
        if not isinstance(now, Tensor):
            return f"{self.title}: it is gone" if now is None else f"{self.title}: {now!r} has taken its place"
        before = (self.dtype.name, list(self.shape), self.requires_grad, device_of(self.where))
        after = (now.dtype.name, list(now.shape), now._requires_grad, device_of(now._data.device))
        names = ("element type", "shape", "requires_grad", "device")
        changed = [f"{n} {a} -> {b}" for n, a, b in zip(names, before, after, strict=True) if a != b]
        return f"{self.title}: {', '.join(changed)}"


def device_of(found: Any) -> str:
    """The name of what an array says of its device."""
    return getattr(found, "name", found)


class Binding:
    """The arrays of parameters and states in the order that a program takes them."""

    def __init__(self, slots: Sequence[Slot], written: Sequence[bool]):
        self.slots = tuple(slots)
        self.written = tuple(i for i, w in enumerate(written) if w)
        self._lookups = tuple((slot.table.get, slot.key) for slot in slots)
        self._flags = [slot.requires_grad for slot in slots]
        self._loose = tuple(i for i, slot in enumerate(slots) if not slot.counted)
        """Slots in dictionaries whose changes are not counted."""
        self._tensors: tuple[Any, ...] | None = None
        self._arrays: tuple[np.ndarray, ...] = ()
        self._seen = -1
        """The mutation epoch when ``holds`` looked last and was true."""

    def holds(self) -> bool:
        """Whether every tensor has the type and flags that the graph was made for."""
        epoch = EPOCH[0]
        if self._seen != epoch or not self._same_loose():
            if not self._look():
                return False
            self._seen = epoch
        return True

    def why(self) -> list[str]:
        """What has changed."""
        return broken(self.slots)

    def _same_loose(self) -> bool:
        tensors, lookups = self._tensors, self._lookups
        for i in self._loose:
            find, key = lookups[i]
            if tensors is None or find(key) is not tensors[i]:
                return False
        return True

    def _look(self) -> bool:
        known = self._tensors
        if (
            known is not None
            and _same([find(key) for find, key in self._lookups], known)
            and _same([t._data for t in known], self._arrays)
        ):
            return [t._requires_grad for t in known] == self._flags
        if not all(slot.holds() for slot in self.slots):
            return False
        self._tensors = tuple(slot.tensor() for slot in self.slots)
        self._arrays = tuple(t._data for t in self._tensors)
        return True

    def tensors(self) -> tuple[Any, ...]:
        """The tensors as ``holds`` found them."""
        return self._tensors or ()

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Their data; the same tuple while nothing was replaced."""
        return self._arrays

    def made(self) -> tuple[np.ndarray, ...]:
        """Arrays that it has made of those of the tensors, and keeps."""
        return ()

    def tell_writes(self) -> None:
        """Tells open journals what the program is about to write to, and the random states that it draws from."""
        for i, tensor in enumerate(self._tensors or ()):
            if i in self.written or getattr(tensor, "_capture_path", None) == RANDOM:
                note_write(tensor._data, tensor._counter)

    def note_writes(self) -> None:
        """Counts a write to every tensor that the program writes."""
        tensors = self._tensors or ()
        for i in self.written:
            counter = tensors[i]._counter
            if counter is not None:
                counter[0] += 1


class Frozen:
    """Tensors whose elements became constants of a program, which holds as long as they are what they were."""

    def __init__(self, slots: Iterable[Slot]):
        self._slots = tuple(slots)
        self._tensors = [slot.tensor() for slot in self._slots]
        self._arrays = [t._data for t in self._tensors]
        self._counters = [t._counter for t in self._tensors if t._counter is not None]
        self._versions = self._written()

    def _written(self) -> int:
        """How often they were written to, all together: versions only grow."""
        return sum([c[0] for c in self._counters])

    def why(self) -> str:
        """What has changed."""
        return "a frozen parameter or buffer was replaced or written to"

    def holds(self) -> bool:
        """Whether none was replaced, or written to by an operation."""
        if self._written() != self._versions:
            return False
        now = [slot.tensor() for slot in self._slots]
        return _same(now, self._tensors) and _same([t._data for t in now], self._arrays)

    def watch(self, words: Words) -> bool:
        """Adds the words that versions are; False where replacements are not counted by the mutation epoch."""
        return all([words.list_(c) for c in self._counters]) and all(slot.counted for slot in self._slots)


def _narrow(make: Maker, array: np.ndarray) -> np.ndarray:
    return aligned(np.ascontiguousarray(make(array)))


class NarrowBinding(Binding):
    """A binding in which some arrays are narrow copies of what the tensors hold, made again after a tensor was written
    to."""

    def __init__(self, slots: Sequence[Slot], written: Sequence[bool], makers: Sequence[Maker | None]):
        super().__init__(slots, written)
        self._makers = tuple((i, make) for i, make in enumerate(makers) if make is not None)
        self._given: tuple[np.ndarray, ...] = ()
        """The tensors' arrays from which the copies were made, and the versions that they had."""
        self._versions: list[int] = []
        self._copies: tuple[np.ndarray, ...] = ()

    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the program takes; the same tuple while nothing was replaced or written to by an operation."""
        given, tensors = self._arrays, self.tensors()
        versions = [0 if tensors[i]._counter is None else tensors[i]._counter[0] for i, _ in self._makers]
        if given is not self._given or versions != self._versions:
            copies = list(given)
            for number, (i, make) in enumerate(self._makers):
                same = self._copies and given[i] is self._given[i] and versions[number] == self._versions[number]
                copies[i] = self._copies[i] if same else _narrow(make, given[i])
            self._given, self._versions, self._copies = given, versions, tuple(copies)
        return self._copies

    def made(self) -> tuple[np.ndarray, ...]:
        """The copies that it keeps."""
        return tuple([self._copies[i] for i, _ in self._makers]) if self._copies else ()


class PrepackedBinding(Binding):
    """A binding of which some arrays are made from tensors by a program, which runs again after one of these tensors
    was replaced or written to.

    It fits only tensors whose writes are all counted. Where they are written to between nearly all calls, it stops
    fitting too: then the work is better done with each call.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        written: Sequence[bool],
        takes: Sequence[int],
        gives: Sequence[int],
        run: Callable[[list[np.ndarray], Sequence[bool]], list[np.ndarray]],
        recipes: Sequence[tuple[Hashable, Sequence[int]]],
        makers: Mapping[int, Maker] | None = None,
    ):
        """``takes`` are the numbers of the slots whose arrays ``run`` takes, and which results are known already.
        ``gives`` names each array of the program: a slot's by its number, or one of those that ``run`` makes, counted
        from the number of slots. Of each of these ``recipes`` holds what it is known by, and which of the arrays that
        are taken it is made of. ``makers`` make narrow copies, which are used in the place of the slots' arrays."""
        super().__init__(slots, written)
        self._makers = dict(makers or {})
        self._counted = (*takes, *(i for i in self._makers if i not in takes))
        self._takes, self._gives, self._run = tuple(takes), tuple(gives), run
        self._recipes = tuple(recipes)
        self._counters: list[list[int]] = []
        """Of the tensors that are taken, or of which there are narrow copies."""
        self._made = _NOT_MADE
        self._calls, self._rewrites = STABLE_CALLS, 0
        self._lock = Lock()

    def holds(self) -> bool:
        """Whether every tensor has the type and flags that the graph was made for, and is watched with profit."""
        if not super().holds():
            return False
        if self._counters == self._made.versions:
            return True
        if self.is_escaped() or self.is_thrashing():
            self._made = _NOT_MADE
            return False
        return True

    def why(self) -> list[str]:
        """What has changed."""
        found = super().why()
        if self.is_escaped():
            found.append("the memory of a parameter or buffer was given out, so that not all writes to it are counted")
        elif self.is_thrashing():
            found.append("parameters or buffers are written to between nearly all calls")
        return found

    def is_escaped(self) -> bool:
        """Whether the memory of a tensor can be written to without its version being counted."""
        return any([len(c) > 1 for c in self._counters])

    def is_thrashing(self) -> bool:
        """Whether the tensors were written to between nearly all of the last calls."""
        return self._rewrites >= MOST_REWRITES

    def _look(self) -> bool:
        if not super()._look():
            return False
        tensors = self.tensors()
        self._counters = [tensors[i]._counter or [0, 1] for i in self._counted]
        return True

    def versions(self) -> tuple[list[list[int]], list[list[int]]] | None:
        """The counters of the tensors that are taken, and what they were when the arrays were made; the arrays hold
        while the two are equal. None while it is not clear that this is so for several calls."""
        return None if self._calls < STABLE_CALLS else (self._counters, self._made.versions)

    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the program takes; the same tuple while nothing was replaced or written to."""
        made = self._made
        if made.given is not self._arrays or made.versions != self._counters:
            with self._lock:
                made = self._made
                if made.given is not self._arrays or made.versions != self._counters:
                    made = self._made = self._make()
        self._calls += 1
        return made.arrays

    def made(self) -> tuple[np.ndarray, ...]:
        """The arrays that the program has made of weights."""
        return tuple([found.array for found in self._made.prepacked])

    def _make(self) -> _Made:
        self._rewrites = self._rewrites + 1 if self._calls < STABLE_CALLS else 0
        self._calls = 0
        given, counters = self._arrays, self._counters
        versions = [c.copy() for c in counters]
        used = [_narrow(self._makers[i], a) if i in self._makers else a for i, a in enumerate(given)]
        made = self._prepack(given, used, counters, versions)
        everything = [*used, *[found.array for found in made]]
        return _Made(versions, given, tuple([everything[i] for i in self._gives]), made)

    def _prepack(
        self,
        given: Sequence[np.ndarray],
        used: Sequence[np.ndarray],
        counters: list[list[int]],
        versions: list[list[int]],
    ) -> tuple[Prepacked, ...]:
        """What is made of the arrays."""
        return prepacked_store.prepared(
            lambda known: self._run([used[i] for i in self._takes], known),
            self._recipes,
            [given[i] for i in self._takes],
            counters,
            versions,
        )


STABLE_CALLS, MOST_REWRITES = 2, 8
"""Calls without a write after which tensors are stable, and how often in a row there may be fewer: then they thrash."""


class _Made(NamedTuple):
    """Arrays made from tensors, and when they hold."""

    versions: list[list[int]]
    given: tuple[np.ndarray, ...] | None
    """Arrays of all tensors of the binding, None before any were made."""
    arrays: tuple[np.ndarray, ...]
    prepacked: tuple[Prepacked, ...] = ()
    """Those of them that are not the tensors' own."""


_NOT_MADE = _Made([], None, ())


def _same(now: Sequence[Any], then: Sequence[Any]) -> bool:
    """Whether two sequences of equal length hold the same objects."""
    return all(map(is_, now, then))
