"""Exported PyTorch model: its graph, the source of each of the graph's inputs, and the nesting of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.errors import ArgumentError, DTypeError
from graphc.base.records import dataclass
from graphc.base.sizes.shape_patterns import Number, ShapePatterns, as_pattern
from graphc.base.sizes.size import hint, is_size
from graphc.interop.aten.graph import AtenGraph
from graphc.interop.aten.guards import Guards
from graphc.tensors.creation import as_tensor, zeros
from graphc.tensors.structure import Branch, Leaf, Structure, unflatten
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class ModuleTensor:
    """Graph input provided by the module: a parameter, a buffer, or another tensor."""

    path: str


@dataclass(frozen=True, slots=True)
class CallArgument:
    """Graph input that each call provides."""

    title: str
    """Name for messages."""
    shape: tuple[Any, ...]
    """Sizes, some of which may depend on named dimensions. ``Number((size,))`` for a whole number."""
    dtype: DType | None = None
    """None for a number."""


@dataclass(frozen=True, slots=True)
class FixedArgument:
    """Argument fixed by the export: each call must pass the same value."""

    title: str
    value: Any


@dataclass(frozen=True, slots=True)
class Write:
    """Result to store after all results are computed."""

    result: int
    path: str = ""
    """Tensor of the module to write to. If empty:"""
    argument: int = -1
    """index of the argument to write to."""


@dataclass(slots=True)
class Exported:
    """Graph and its calling convention.

    ``inputs`` has one entry for each input of the graph. Entries other than ModuleTensor are in the order of the leaves
    of ``argument_tree``, the structure of (positional, keyword) arguments.
    """

    graph: AtenGraph
    inputs: list[ModuleTensor | CallArgument | FixedArgument]
    argument_tree: Branch
    result_tree: Structure
    names: tuple[str, ...] = ()
    """Names of the arguments in the order of the call, positional ones first. Further arguments have no name."""
    results: tuple[int, ...] | None = None
    """Indices of the graph's results that the module returns, in the order of the leaves of ``result_tree``. None for
    all."""
    writes: tuple[Write, ...] = ()
    guards: tuple[str, ...] = ()
    """Conditions on sizes that the export relied on, in PyTorch's notation."""
    overlapping: tuple[str, ...] = ()
    """Tensors of the module that partly share memory in PyTorch. Copies would not see writes to the shared memory."""
    _guards: Guards | None = field(default=None, init=False, compare=False)
    _patterns: ShapePatterns | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a condition that cannot be checked."""
        self._guards = Guards(self.guards, self._titles()) if self.guards else None

    def _titles(self) -> list[str]:
        """Return the names of the arguments in conditions, in the order of the call."""
        first, named = self.argument_tree.children
        assert isinstance(first, Branch) and isinstance(named, Branch)
        count = len(first.children)
        return [*(self.names[:count] or [f"args_{i}" for i in range(count)]), *named.keys]

    @property
    def call_arguments(self) -> list[CallArgument | FixedArgument]:
        """Return the arguments that calls provide."""
        return [i for i in self.inputs if not isinstance(i, ModuleTensor)]

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the value of each of ``call_arguments`` in a call: tensors and numbers.

        Raises ArgumentError, ShapeError and DTypeError where the call differs in form from the export.
        """
        arranged = self._arranged(args, kwargs)
        leaves = leaves_of(self.argument_tree, arranged, "the arguments")
        values = [_fitting(spec, value) for spec, value in zip(self.call_arguments, leaves, strict=True)]
        self._check_shapes(values)
        if self._guards is not None:
            first, named = arranged
            self._guards.check(dict(zip(self._titles(), [*first, *named.values()], strict=True)))
        return values

    def _check_shapes(self, values: list[Any]) -> None:
        pairs = [(s, v) for s, v in zip(self.call_arguments, values, strict=True) if isinstance(s, CallArgument)]
        if self._patterns is None:
            self._patterns = ShapePatterns([s.shape for s, _ in pairs], [s.title for s, _ in pairs])
        self._patterns.solve([as_pattern(v, s.shape) for s, v in pairs])

    def _arranged(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments as positional or keyword arguments, as they were in the export."""
        first, named = self.argument_tree.children
        assert isinstance(first, Branch) and isinstance(named, Branch)
        count = len(first.children)
        names = [*(self.names[:count] or (None,) * count), *named.keys]
        if len(args) > len(names):
            raise ArgumentError(f"got {len(args)} arguments by position, the export has {len(names)}")
        bound: dict[Any, Any] = dict(enumerate(args))
        for name, value in kwargs.items():
            if name not in names:
                listed = ", ".join(n for n in names if n)
                remedy = f"use {listed}" if listed else "pass all arguments by position"
                raise ArgumentError(f"the export has no argument {name!r}", remedy=remedy)
            if names.index(name) in bound:
                raise ArgumentError(f"argument {name!r} is given twice")
            bound[names.index(name)] = value
        missing = [str(name or i) for i, name in enumerate(names) if i not in bound]
        if missing:
            raise ArgumentError(f"the call lacks {', '.join(missing)}", remedy="pass all arguments of the export")
        return [bound[i] for i in range(count)], {n: bound[count + i] for i, n in enumerate(named.keys)}

    def dims(self) -> dict[Any, Any] | None:
        """Return the named dimensions of arguments by name or position, or None where there are none.

        ``dims=`` of ``graphc.compile`` takes them.
        """
        shapes = [s.shape if isinstance(s, CallArgument) else None for s in self.call_arguments]
        specs = [None if s is None or not any(map(is_size, s)) else _spec(s) for s in shapes]
        if not any(s is not None for s in specs):
            return None
        first, named = unflatten(self.argument_tree, specs)
        count = len(first)
        keys = [*(self.names[:count] or range(count)), *named]
        return {k: v for k, v in zip(keys, [*first, *named.values()], strict=True) if _holds(v)}

    def examples(self) -> list[Any]:
        """Return positional arguments with which a call can be traced.

        They are zeros of the expected sizes, and these sizes for whole numbers.
        """
        first, named = unflatten(self.argument_tree, [_example(argument) for argument in self.call_arguments])
        return [*first, *named.values()]


def overlapping(extents: Mapping[str, tuple[Any, int, int, Any]]) -> tuple[str, ...]:
    """Return the tensors that share memory with different tensors.

    ``extents`` maps paths to a storage, the first byte and the end of a tensor in it, and a key that tensors with the
    same address and shape share.
    """
    filled = [path for path, (_, low, high, _) in extents.items() if low < high]
    groups: list[list[str]] = []
    reach: tuple[Any, int] = None, 0
    for path in sorted(filled, key=lambda p: (str(extents[p][0]), extents[p][1])):
        storage, low, high, _ = extents[path]
        if storage == reach[0] and low < reach[1]:
            groups[-1].append(path)
            high = max(high, reach[1])
        else:
            groups.append([path])
        reach = storage, high
    overlapping_paths = {p for group in groups if len({extents[p][3] for p in group}) > 1 for p in group}
    return tuple(p for p in extents if p in overlapping_paths)


def _example(argument: CallArgument | FixedArgument) -> Any:
    if isinstance(argument, FixedArgument):
        return argument.value
    sizes = tuple(map(hint, argument.shape))
    return sizes[0] if argument.dtype is None else zeros(sizes, dtype=argument.dtype)


def _spec(shape: tuple[Any, ...]) -> Any:
    """Return the sizes of one tensor in the form of ``dims=``."""
    if isinstance(shape, Number):
        return shape[0]
    return tuple([s if is_size(s) else None for s in shape])


def _holds(spec: Any) -> bool:
    children = spec.values() if isinstance(spec, Mapping) else spec if isinstance(spec, (tuple, list)) else ()
    return is_size(spec) or any(map(_holds, children))


def _fitting(spec: CallArgument | FixedArgument, value: Any) -> Any:
    if isinstance(spec, FixedArgument):
        if type(value) is not type(spec.value) or value != spec.value:
            raise ArgumentError(
                f"{spec.title} was {spec.value!r} in the export, which is part of the graph; got {value!r}"[:300],
                remedy="export with that value, or with a tensor instead",
            )
        return value
    if spec.dtype is None:
        return value
    tensor = as_tensor(value)
    if tensor.dtype is not spec.dtype:
        raise DTypeError(
            f"{spec.title} was {spec.dtype.long_name} in the export, got {tensor.dtype.long_name}",
            remedy=f"pass {spec.title}.to(graphc.{spec.dtype.long_name})",
        )
    return tensor


def leaves_of(structure: Structure, value: Any, title: str) -> list[Any]:
    """Return the leaves of a value nested as ``structure``. Dictionaries may have another order. Raises
    ArgumentError."""
    if isinstance(structure, Leaf):
        return [value]
    if not isinstance(structure, Branch):
        return []
    keyed = issubclass(structure.kind, dict)
    children: Any = [value[k] for k in structure.keys] if keyed and _has(value, structure.keys) else value
    sequence = isinstance(children, (list, tuple)) and len(children) == len(structure.children)
    if not sequence or (keyed and children is value):
        expected = f"a dictionary with {list(structure.keys)}" if keyed else f"{len(structure.children)} elements"
        raise ArgumentError(f"{title}: the export has {expected}, got {_describe(value)}")
    names = structure.keys or range(len(children))
    pairs = zip(names, structure.children, children, strict=True)
    return [leaf for n, s, v in pairs for leaf in leaves_of(s, v, f"{title}[{n!r}]")]


def _has(value: Any, keys: tuple[Any, ...]) -> bool:
    return isinstance(value, Mapping) and len(value) == len(keys) and all(k in value for k in keys)


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {list(value.shape)}"
    return f"{type(value).__name__} of {list(value)}" if isinstance(value, Mapping) else type(value).__name__
