"""Bindings of compiled graphs to live tensors, and guards that check that nothing else outside has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import is_, methodcaller
from typing import Any

import numpy as np

from graphc.base.autocast_state import autocast_dtype
from graphc.base.locks import Lock
from graphc.base.mutation_epoch import COMMON_HOOKS, EPOCH, Members
from graphc.base.records import NamedTuple
from graphc.calls.prepacked_store import Prepacked, Prepacking, WeightVersion
from graphc.guards.facts import Table, broken
from graphc.guards.watch_words import Words
from graphc.runtime.arena import aligned
from graphc.tensors.creation import get_default_device, get_default_dtype
from graphc.tensors.journal import OPEN, note_write
from graphc.tensors.random.generator import PATH as RANDOM
from graphc.tensors.tensor import Tensor

_VALUES = methodcaller("values")
Maker = Callable[[np.ndarray], np.ndarray]
"""Converts a weight's array into the array that the program stores."""


class Modules:
    """The module tree of a model: the dictionaries of flags and children. Holds while the tree is unchanged."""

    def __init__(self, roots: Iterable[Any]):
        by_id: dict[int, Any] = {}
        for root in roots:
            for module in root.modules():
                by_id[id(module)] = module
        self.modules = list(by_id.values())
        self._fields = [vars(m) for m in self.modules]
        self._tables = [f["_modules"] for f in self._fields if "_modules" in f]
        self._counts = list(map(len, self._tables))
        self._children = self._present()
        self._seen = -1
        """The mutation epoch of the last check by ``holds`` that succeeded."""
        self._training: tuple[bool, ...] = ()

    def _present(self) -> list[Any]:
        return list(chain.from_iterable(map(_VALUES, self._tables)))

    def training(self) -> tuple[bool, ...]:
        """Return the training flag of every module."""
        if self._seen == EPOCH[0]:
            return self._training
        return tuple([f.get("training", True) for f in self._fields])

    def holds(self) -> bool:
        """Check that no child was added, removed or replaced."""
        epoch = EPOCH[0]
        if self._seen != epoch:
            if list(map(len, self._tables)) != self._counts or not _same(self._present(), self._children):
                return False
            self._training = self.training()
            self._seen = epoch
        return True

    def why(self) -> str:
        """Return what changed."""
        return "modules: a child was added, removed or replaced"

    def locations(self) -> dict[int, tuple[dict[Any, Any], Any]]:
        """Return the dictionary and key that hold each parameter and buffer, by the tensor's ``id``."""
        locations: dict[int, tuple[dict[Any, Any], Any]] = {}
        for table, key, tensor in self.members():
            if tensor is not None:
                locations.setdefault(id(tensor), (table, key))
        return locations

    def members(self) -> Iterator[tuple[dict[Any, Any], Any, Any]]:
        """Yield dictionary, key and tensor of each parameter and buffer."""
        for fields in self._fields:
            for table in (fields.get("_parameters"), fields.get("_buffers")):
                for key, tensor in (table or {}).items():
                    yield table, key, tensor  # type: ignore[misc]

    def tables(self) -> Iterator[Table]:
        """Yield guards that each module still has the dictionaries of its parameters, buffers and children."""
        for module, fields in zip(self.modules, self._fields, strict=True):
            for name in ("_parameters", "_buffers", "_modules"):
                yield Table(fields, name, f"attribute {name!r} of {type(module).__name__}")

    def hooks(self) -> Iterator[tuple[Any, str, dict[Any, Any]]]:
        """Yield module, name and content of each table of hooks that run at calls and in backward passes."""
        for module, fields in zip(self.modules, self._fields, strict=True):
            for name in _HOOKS:
                yield module, name, fields.get(name) or {}
        for table in COMMON_HOOKS:
            yield None, "hooks of all modules", table


_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Sharing:
    """The names of parameters and buffers, and which of them share a tensor."""

    def __init__(self, modules: Modules):
        self._modules = modules
        self._pattern = self._now()

    def _now(self) -> list[tuple[Any, int]]:
        first: dict[int, int] = {}
        members = self._modules.members()
        return [(key, -1 if t is None else first.setdefault(id(t), i)) for i, (_, key, t) in enumerate(members)]

    def holds(self) -> bool:
        """Check that names and sharing are unchanged."""
        return self._now() == self._pattern

    def why(self) -> str:
        """Return what changed."""
        now = self._now()
        if [key for key, _ in now] != [key for key, _ in self._pattern]:
            return "modules: a parameter or buffer was added or removed"
        names = [key for (key, a), (_, b) in zip(now, self._pattern, strict=True) if a != b]
        return f"modules: {', '.join(map(repr, names))} shares its tensor with others now, or no longer does"


class ModuleHooks:
    """The hooks of modules, including the global ones of all modules."""

    def __init__(self, modules: Modules):
        self._modules = modules
        self._hooks = self._now()

    def _now(self) -> list[tuple[Any, ...]]:
        return [tuple(table.items()) for _, _, table in self._modules.hooks()]

    def holds(self) -> bool:
        """Check for the same hooks."""
        return self._now() == self._hooks

    def why(self) -> str:
        """Return what changed."""
        tables = zip(self._modules.hooks(), self._now(), self._hooks, strict=True)
        names = [
            f"{name.strip('_')}{'' if m is None else f' of {type(m).__name__}'}"
            for (m, name, _), a, b in tables
            if a != b
        ]
        return f"hooks: {', '.join(names)} added or removed"


class TensorHooks:
    """The hooks of tensors outside the graph."""

    def __init__(self, tensors: Iterable[Tensor]):
        self._tensors = tuple(tensors)
        self._hooks = self._now()

    def _now(self) -> list[tuple[Any, ...]]:
        return [tuple((table or {}).items()) for t in self._tensors for table in (t._hooks, t._post_hooks)]

    def holds(self) -> bool:
        """Check for the same hooks."""
        return self._now() == self._hooks

    def why(self) -> str:
        """Return what changed."""
        return "hooks: hooks of a parameter or another tensor were added or removed"


class DefaultType:
    """The default element type and device of new tensors, and the autocast type of factors of products."""

    def __init__(self) -> None:
        self._dtype, self._device, self._factors = get_default_dtype(), get_default_device(), autocast_dtype()

    def holds(self) -> bool:
        """Check for the same defaults."""
        same = get_default_dtype() is self._dtype and autocast_dtype() is self._factors
        return same and get_default_device() == self._device

    def why(self) -> str:
        """Return what changed."""
        if autocast_dtype() is not self._factors:
            names = ["off" if d is None else d.name for d in (self._factors, autocast_dtype())]
            return f"autocast: {names[0]} -> {names[1]}"
        if get_default_device() != self._device:
            return f"default device: {self._device} -> {get_default_device()}"
        return f"default element type: {self._dtype.name} -> {get_default_dtype().name}"


class Slot:
    """The location of a tensor outside the graph, looked up at each call, and the tensor's required type."""

    __slots__ = ("counted", "device", "dtype", "is_member", "key", "requires_grad", "shape", "table", "title")

    def __init__(self, tensor: Tensor, location: tuple[dict[Any, Any], Any] | None, title: str = ""):
        """``title`` names the tensor in messages."""
        self.title = title
        self.is_member = location is not None
        """Whether the tensor is a parameter or buffer."""
        self.table, self.key = location or ({0: tensor}, 0)
        self.counted = location is None or isinstance(self.table, Members)
        """Whether replacing the tensor advances the mutation epoch."""
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        self.requires_grad = tensor._requires_grad
        self.device = tensor._data.device
        """Device of the tensor; 'cpu' for the host, as in NumPy."""

    def tensor(self) -> Any:
        """Return the tensor, or None where it no longer exists."""
        return self.table.get(self.key)

    def holds(self) -> bool:
        """Check that the tensor has the type and flags for which the graph was compiled."""
        tensor = self.table.get(self.key)
        return (
            isinstance(tensor, Tensor)
            and tensor.dtype is self.dtype
            and tensor.shape == self.shape
            and tensor._requires_grad is self.requires_grad
            and tensor._data.device == self.device
        )

    def why(self) -> str:
        """Return what changed."""
        now = self.tensor()
        if not isinstance(now, Tensor):
            return f"{self.title}: it was deleted" if now is None else f"{self.title}: {now!r} replaced it"
        before = (self.dtype.name, list(self.shape), self.requires_grad, device_of(self.device))
        after = (now.dtype.name, list(now.shape), now._requires_grad, device_of(now._data.device))
        names = ("element type", "shape", "requires_grad", "device")
        changed = [f"{n} {a} -> {b}" for n, a, b in zip(names, before, after, strict=True) if a != b]
        return f"{self.title}: {', '.join(changed)}"


def device_of(device: Any) -> str:
    """Return the name of an array's ``device`` attribute."""
    return getattr(device, "name", device)


class Binding:
    """The arrays of parameters and states, in the order in which a program takes them."""

    device: Any = None
    """The device that the arrays are copied to; None for the host."""

    def __init__(self, slots: Sequence[Slot], written: Sequence[bool]):
        self.slots = tuple(slots)
        self.written = tuple(i for i, w in enumerate(written) if w)
        self._lookups = tuple((slot.table.get, slot.key) for slot in slots)
        self._flags = [slot.requires_grad for slot in slots]
        self._loose = tuple(i for i, slot in enumerate(slots) if not slot.counted)
        """Slots in dictionaries whose changes do not advance the mutation epoch."""
        self._tensors: tuple[Any, ...] | None = None
        self._arrays: tuple[np.ndarray, ...] = ()
        self._seen = -1
        """The mutation epoch of the last check by ``holds`` that succeeded."""

    def holds(self) -> bool:
        """Check that every tensor has the type and flags for which the graph was compiled."""
        epoch = EPOCH[0]
        if self._seen != epoch or not self._same_loose():
            if not self._look():
                return False
            self._seen = epoch
        return True

    @property
    def is_loose(self) -> bool:
        """Whether a tensor can be replaced without a step of the mutation epoch."""
        return bool(self._loose)

    def why(self) -> list[str]:
        """Return what changed."""
        return broken(self.slots)

    def _same_loose(self) -> bool:
        tensors, lookups = self._tensors, self._lookups
        for i in self._loose:
            find, key = lookups[i]
            if tensors is None or find(key) is not tensors[i]:
                return False
        return True

    def _look(self) -> bool:
        previous = self._tensors
        if (
            previous is not None
            and _same([find(key) for find, key in self._lookups], previous)
            and _same([t._data for t in previous], self._arrays)
        ):
            return [t._requires_grad for t in previous] == self._flags
        if not all(slot.holds() for slot in self.slots):
            return False
        self._tensors = tuple(slot.tensor() for slot in self.slots)
        self._arrays = tuple(t._data for t in self._tensors)
        return True

    def tensors(self) -> tuple[Any, ...]:
        """Return the tensors that ``holds`` looked up."""
        return self._tensors or ()

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the tensors' arrays. The tuple stays the same object while no tensor is replaced."""
        return self._arrays

    def made(self) -> tuple[np.ndarray, ...]:
        """Return cached arrays derived from the tensors' arrays."""
        return ()

    def announce_writes(self) -> None:
        """Announce the program's coming writes to open journals, and its random states."""
        if not OPEN.get():
            return
        for i, tensor in enumerate(self._tensors or ()):
            if i in self.written or getattr(tensor, "_capture_path", None) == RANDOM:
                note_write(tensor._data, tensor._counter)

    def note_writes(self) -> None:
        """Count a write to every tensor written by the program."""
        tensors = self._tensors or ()
        for i in self.written:
            counter = tensors[i]._counter
            if counter is not None:
                counter[0] += 1


class Frozen:
    """Tensors whose elements became constants of a program. Holds while they are unchanged."""

    def __init__(self, slots: Iterable[Slot]):
        self._slots = tuple(slots)
        self._tensors = [slot.tensor() for slot in self._slots]
        self._arrays = [t._data for t in self._tensors]
        self._counters = [t._counter for t in self._tensors if t._counter is not None]
        self._versions = self._written()

    def _written(self) -> int:
        """Return the total number of writes to the tensors. Versions only grow, so an equal sum means no write."""
        return sum([c[0] for c in self._counters])

    def why(self) -> str:
        """Return what changed."""
        return "a frozen parameter or buffer was replaced or written to"

    def holds(self) -> bool:
        """Check that no tensor was replaced, or written to by an operation."""
        if self._written() != self._versions:
            return False
        now = [slot.tensor() for slot in self._slots]
        return _same(now, self._tensors) and _same([t._data for t in now], self._arrays)

    def watch(self, words: Words) -> bool:
        """Add the words in memory that hold the versions.

        Return False where the mutation epoch does not count replacements of the tensors.
        """
        return all([words.list_(c) for c in self._counters]) and all(slot.counted for slot in self._slots)


def _narrow(make: Maker, array: np.ndarray) -> np.ndarray:
    return aligned(np.ascontiguousarray(make(array)))


class PrepackedBinding(Binding):
    """A binding that passes narrow copies of tensors, and arrays that a program packs. A write to a tensor or its
    replacement refreshes them.

    With a packing program it fits only tensors whose writes are all counted. It also stops fitting where writes happen
    between nearly all calls: packing in each call is cheaper then.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        written: Sequence[bool],
        makers: Mapping[int, Maker],
        prepacking: Prepacking | None = None,
        takes: Sequence[int] = (),
        gives: Sequence[int] | None = None,
    ):
        """``makers`` make narrow copies, which replace the slots' arrays.

        ``takes`` holds the indices of the slots whose arrays ``prepacking`` reads. ``gives`` names each array of the
        program by index: of a slot or, from ``len(slots)`` on, of a result of ``prepacking`` (default: all slots).
        """
        super().__init__(slots, written)
        self._makers = dict(makers)
        self._prepacking = prepacking
        self._counted = (*takes, *(i for i in self._makers if i not in takes))
        self._takes, self._gives = tuple(takes), tuple(range(len(slots)) if gives is None else gives)
        self._copies = {i: self._gives.index(i) for i in self._makers if i in self._gives}
        """Indices of the program's arrays that are narrow copies, by slot."""
        self._counters: list[list[int]] = []
        """Write counters of the tensors in ``takes`` and of those with narrow copies."""
        self._made = _NOTHING_MADE
        self._calls, self._rewrites = STABLE_CALLS, 0
        self._lock = Lock()

    def holds(self) -> bool:
        """Check that every tensor has the type and flags for which the graph was compiled, and that prepacking still
        pays.
        """
        if not super().holds():
            return False
        if self._prepacking is None or self._counters == self._made.versions:
            return True
        if self.is_escaped() or self.is_thrashing():
            self._made = _NOTHING_MADE
            return False
        return True

    def why(self) -> list[str]:
        """Return what changed."""
        reasons = super().why()
        if self.is_escaped():
            reasons.append("the memory of a parameter or buffer was handed out, so not all writes to it are counted")
        elif self.is_thrashing():
            reasons.append("parameters or buffers are written to between nearly all calls")
        return reasons

    def is_escaped(self) -> bool:
        """Return whether a tensor's memory can be written to without its version being counted."""
        return self._prepacking is not None and any([len(c) > 1 for c in self._counters])

    def is_thrashing(self) -> bool:
        """Return whether writes to the tensors happened between nearly all of the last calls."""
        return self._prepacking is not None and self._rewrites >= MOST_REWRITES

    def _look(self) -> bool:
        if not super()._look():
            return False
        tensors = self.tensors()
        self._counters = [tensors[i]._counter or [0, 1] for i in self._counted]
        return True

    def versions(self) -> tuple[list[list[int]], list[list[int]]] | None:
        """Return the counters of the source tensors, and their values when the arrays were packed.

        The arrays are valid while the two are equal. Return None until the weights were stable for several calls.
        """
        return None if self._calls < STABLE_CALLS else (self._counters, self._made.versions)

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return the program's arrays. The tuple stays the same object until a write to or replacement of a tensor."""
        packed = self._made
        if packed.sources is not self._arrays or packed.versions != self._counters:
            with self._lock:
                packed = self._made
                if packed.sources is not self._arrays or packed.versions != self._counters:
                    packed = self._made = self._make()
        self._calls += 1
        return packed.arrays

    def made(self) -> tuple[np.ndarray, ...]:
        """Return the narrow copies and the packed arrays."""
        made = self._made
        copies = [made.arrays[n] for n in self._copies.values()] if made.arrays else []
        return (*copies, *(packed.array for packed in made.prepacked))

    def _make(self) -> _MadeArrays:
        self._rewrites = self._rewrites + 1 if self._calls < STABLE_CALLS else 0
        self._calls = 0
        arrays, counters, before = self._arrays, self._counters, self._made
        versions = [c.copy() for c in counters]
        everything = [*arrays]
        for number, i in enumerate(self._counted):
            if i in self._makers:
                same = before.sources and before.sources[i] is arrays[i] and before.versions[number] == versions[number]
                reused = before.arrays[self._copies[i]] if same and i in self._copies else None
                everything[i] = _narrow(self._makers[i], arrays[i]) if reused is None else reused
        packed: tuple[Prepacked, ...] = ()
        if self._prepacking is not None:
            pairs = zip([arrays[i] for i in self._takes], counters, versions, strict=False)
            packed = self._prepacking.pack([everything[i] for i in self._takes], [WeightVersion(*p) for p in pairs])
            everything += [result.array for result in packed]
        return _MadeArrays(versions, arrays, tuple([everything[i] for i in self._gives]), packed)


STABLE_CALLS, MOST_REWRITES = 2, 8
"""Calls without a write after which tensors count as stable, and the rewrites in a row after which they thrash."""


class _MadeArrays(NamedTuple):
    """Arrays made from tensors, and the versions for which they are valid."""

    versions: list[list[int]]
    sources: tuple[np.ndarray, ...] | None
    """Arrays of all tensors of the binding. None before arrays were made."""
    arrays: tuple[np.ndarray, ...]
    prepacked: tuple[Prepacked, ...] = ()
    """The packed arrays among them."""


_NOTHING_MADE = _MadeArrays([], None, ())


def _same(now: Sequence[Any], then: Sequence[Any]) -> bool:
    """Check that two sequences of equal length hold the same objects."""
    return all(map(is_, now, then))
