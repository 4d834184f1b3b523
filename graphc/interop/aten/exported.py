"""A model of PyTorch that was exported: its graph, what each argument of the graph is, and how calls are nested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.errors import ArgumentError, DTypeError
from graphc.base.sizes.shape_patterns import Number, ShapePatterns, as_pattern
from graphc.base.sizes.size import hint, is_size
from graphc.interop.aten.graph import AtenGraph
from graphc.interop.aten.guards import Guards
from graphc.tensors.creation import as_tensor, zeros
from graphc.tensors.structure import Branch, Leaf, Structure, unflatten
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Held:
    """An argument of the graph that the module has: a parameter, a buffer, or a tensor without either name."""

    path: str


@dataclass(frozen=True, slots=True)
class Given:
    """An argument that each call gives."""

    title: str
    """What messages call it."""
    shape: tuple[Any, ...]
    """Sizes, some of which may depend on named dimensions; of a whole number ``Number((size,))``."""
    dtype: DType | None = None
    """None for a number."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """An argument that is part of the graph: each call gives the value that it had in the export."""

    title: str
    value: Any


@dataclass(frozen=True, slots=True)
class Write:
    """A result that is stored where it belongs when all are computed."""

    result: int
    path: str = ""
    """The tensor of the module that takes it, or where empty:"""
    given: int = -1
    """the number of the argument that takes it."""


@dataclass(slots=True)
class Exported:
    """A graph, and how it is called. Of ``inputs`` there is one for each input of the graph; those that are no Held are
    in the order of the leaves of ``takes``, the structure of (positional, keyword) arguments."""

    graph: AtenGraph
    inputs: list[Held | Given | Fixed]
    takes: Branch
    gives: Structure
    names: tuple[str, ...] = ()
    """What the arguments are called, in the order of the call, positional ones first; those beyond have no name."""
    results: tuple[int, ...] | None = None
    """Which results of the graph are those of the module, in the order of the leaves of ``gives``; None for all."""
    writes: tuple[Write, ...] = ()
    guards: tuple[str, ...] = ()
    """Conditions on sizes that the export relied on, as PyTorch writes them."""
    overlapping: tuple[str, ...] = ()
    """Tensors of the module that lie in PyTorch in memory of others without being the same: copies do not show what is
    written to these."""
    _guards: Guards | None = field(default=None, init=False, compare=False)
    _patterns: ShapePatterns | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        """Raises UnsupportedError for a condition that cannot be checked."""
        self._guards = Guards(self.guards, self._titles()) if self.guards else None

    def _titles(self) -> list[str]:
        """What conditions call the arguments, in the order of the call."""
        first, named = self.takes.children
        assert isinstance(first, Branch) and isinstance(named, Branch)
        count = len(first.children)
        return [*(self.names[:count] or [f"args_{i}" for i in range(count)]), *named.keys]

    @property
    def given(self) -> list[Given | Fixed]:
        """The arguments that calls give."""
        return [i for i in self.inputs if not isinstance(i, Held)]

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """What a call gives for each of ``given``: tensors and numbers. Raises ArgumentError, ShapeError and DTypeError
        where the call is not of the form that was exported."""
        arranged = self._arranged(args, kwargs)
        found = leaves_of(self.takes, arranged, "the arguments")
        values = [_fitting(spec, value) for spec, value in zip(self.given, found, strict=True)]
        self._check_shapes(values)
        if self._guards is not None:
            first, named = arranged
            self._guards.check(dict(zip(self._titles(), [*first, *named.values()], strict=True)))
        return values

    def _check_shapes(self, values: list[Any]) -> None:
        pairs = [(s, v) for s, v in zip(self.given, values, strict=True) if isinstance(s, Given)]
        if self._patterns is None:
            self._patterns = ShapePatterns([s.shape for s, _ in pairs], [s.title for s, _ in pairs])
        self._patterns.solve([as_pattern(v, s.shape) for s, v in pairs])

    def _arranged(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as they were given in the export, where some were by position and others by name."""
        first, named = self.takes.children
        assert isinstance(first, Branch) and isinstance(named, Branch)
        count = len(first.children)
        names = [*(self.names[:count] or (None,) * count), *named.keys]
        if len(args) > len(names):
            raise ArgumentError(f"{len(args)} arguments by position, {len(names)} were exported")
        found: dict[Any, Any] = dict(enumerate(args))
        for name, value in kwargs.items():
            if name not in names:
                known = ", ".join(n for n in names if n) or "none by name"
                raise ArgumentError(f"an argument {name!r} that was not exported", remedy=f"one of {known}")
            if names.index(name) in found:
                raise ArgumentError(f"argument {name!r} is given twice")
            found[names.index(name)] = value
        missing = [str(name or i) for i, name in enumerate(names) if i not in found]
        if missing:
            raise ArgumentError(f"the call lacks {', '.join(missing)}", remedy="all arguments that were exported")
        return [found[i] for i in range(count)], {n: found[count + i] for i, n in enumerate(named.keys)}

    def dims(self) -> dict[Any, Any] | None:
        """The named dimensions of arguments by name or position, as ``dims=`` of ``graphc.compile`` takes them; None
        where there are none."""
        shapes = [s.shape if isinstance(s, Given) else None for s in self.given]
        specs = [None if s is None or not any(map(is_size, s)) else _spec(s) for s in shapes]
        if not any(s is not None for s in specs):
            return None
        first, named = unflatten(self.takes, specs)
        count = len(first)
        keys = [*(self.names[:count] or range(count)), *named]
        return {k: v for k, v in zip(keys, [*first, *named.values()], strict=True) if _holds(v)}

    def examples(self) -> list[Any]:
        """Arguments by position with which a call can be traced: zeros of the expected sizes, and these sizes for
        whole numbers."""
        first, named = unflatten(self.takes, [_example(part) for part in self.given])
        return [*first, *named.values()]


def overlapping(places: Mapping[str, tuple[Any, int, int, Any]]) -> tuple[str, ...]:
    """The tensors that lie in memory of others which are not the same: ``places`` are a storage, its first byte and the
    one behind the last that a tensor has, and what those at one place with one shape have in common, by path."""
    filled = [path for path, (_, low, high, _) in places.items() if low < high]
    groups: list[list[str]] = []
    reach: tuple[Any, int] = None, 0
    for path in sorted(filled, key=lambda p: (str(places[p][0]), places[p][1])):
        storage, low, high, _ = places[path]
        if storage == reach[0] and low < reach[1]:
            groups[-1].append(path)
            high = max(high, reach[1])
        else:
            groups.append([path])
        reach = storage, high
    found = {p for group in groups if len({places[p][3] for p in group}) > 1 for p in group}
    return tuple(p for p in places if p in found)


def _example(part: Given | Fixed) -> Any:
    if isinstance(part, Fixed):
        return part.value
    sizes = tuple(map(hint, part.shape))
    return sizes[0] if part.dtype is None else zeros(sizes, dtype=part.dtype)


def _spec(shape: tuple[Any, ...]) -> Any:
    """The sizes of one tensor as ``dims=`` names them."""
    if isinstance(shape, Number):
        return shape[0]
    return tuple([s if is_size(s) else None for s in shape])


def _holds(spec: Any) -> bool:
    parts = spec.values() if isinstance(spec, Mapping) else spec if isinstance(spec, (tuple, list)) else ()
    return is_size(spec) or any(map(_holds, parts))


def _fitting(spec: Given | Fixed, value: Any) -> Any:
    if isinstance(spec, Fixed):
        if type(value) is not type(spec.value) or value != spec.value:
            raise ArgumentError(
                f"{spec.title} was {spec.value!r} in the export, which is part of the graph; got {value!r}"[:300],
                remedy="an export with that value, or a tensor in its place",
            )
        return value
    if spec.dtype is None:
        return value
    tensor = as_tensor(value)
    if tensor.dtype is not spec.dtype:
        raise DTypeError(
            f"{spec.title} was {spec.dtype.long_name} in the export, got {tensor.dtype.long_name}",
            remedy=f"{spec.title}.to(graphc.{spec.dtype.long_name})",
        )
    return tensor


def leaves_of(structure: Structure, value: Any, title: str) -> list[Any]:
    """The leaves of a value that is nested as ``structure``; dictionaries may have another order. Raises
    ArgumentError."""
    if isinstance(structure, Leaf):
        return [value]
    if not isinstance(structure, Branch):
        return []
    keyed = issubclass(structure.kind, dict)
    parts: Any = [value[k] for k in structure.keys] if keyed and _has(value, structure.keys) else value
    sequence = isinstance(parts, (list, tuple)) and len(parts) == len(structure.children)
    if not sequence or (keyed and parts is value):
        shown = f"a dictionary with {list(structure.keys)}" if keyed else f"{len(structure.children)} parts"
        raise ArgumentError(f"{title}: {shown} were exported, got {_shown(value)}")
    names = structure.keys or range(len(parts))
    pairs = zip(names, structure.children, parts, strict=True)
    return [leaf for n, s, v in pairs for leaf in leaves_of(s, v, f"{title}[{n!r}]")]


def _has(value: Any, keys: tuple[Any, ...]) -> bool:
    return isinstance(value, Mapping) and len(value) == len(keys) and all(k in value for k in keys)


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {list(value.shape)}"
    return f"{type(value).__name__} of {list(value)}" if isinstance(value, Mapping) else type(value).__name__
