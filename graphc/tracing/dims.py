"""Named dimensions of arguments: which size of which tensor has a name, as users declare it."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ShapeError
from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.shape_patterns import Number, ShapePatterns
from graphc.base.sizes.size import is_size
from graphc.tensors.structure import (
    Branch,
    Leaf,
    NumberLeaf,
    NumberTensor,
    Static,
    Structure,
    flatten,
    is_whole,
    unflatten,
)
from graphc.tensors.structure import names as names_in
from graphc.tensors.tensor import Tensor

Spec = Any
"""The sizes of one tensor from the first on: dimensions (``gc.Dim``, or what is computed of them), ints, None for what
is fixed at the size of each call; one dimension alone means the first, and for a whole number the number itself. Or
None, or specs nested as the argument is."""


class Dims:
    """What ``dims=`` declares of the arguments of a function: a spec for each name or position of an argument, or a
    sequence of specs in their order."""

    def __init__(
        self, dims: Mapping[Any, Spec] | Sequence[Spec], function: Callable[..., Any], names: Sequence[str] = ()
    ):
        """``names`` are those of the arguments where the signature of the function does not say so.

        Raises ArgumentError for what is no such declaration, for an argument that the function does not have, and
        where two dimensions have one name."""
        if isinstance(dims, (tuple, list)):
            dims = dict(enumerate(dims))
        if not isinstance(dims, Mapping):
            raise ArgumentError(
                f"dims says which sizes of which argument have a name, got {type(dims).__name__}",
                remedy="dims={'x': (gc.Dim('batch'), gc.Dim('time'))}",
            )
        self._specs = dict(dims)
        self._names = names or _positional(function)
        if not names:
            self._check_names(function)
        elif unknown := [n for n in self._specs if n not in names and n not in range(len(names))]:
            raise ArgumentError(
                f"dims names an argument {unknown[0]!r}, which {_title(function)} does not have",
                remedy=f"one of {', '.join(names)}",
            )
        self.dimensions = dimensions(size for spec in self._specs.values() for size in _sizes(spec))
        """By name."""
        if not self.dimensions:
            raise ArgumentError("dims names no dimension", remedy="dims={'x': (gc.Dim('batch'),)}")

    def _check_names(self, function: Callable[..., Any]) -> None:
        parameters = _parameters(function)
        if parameters is None:
            return
        kinds = {p.kind for p in parameters}
        known = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for name in self._specs:
            by_name = isinstance(name, str) and (name in known or inspect.Parameter.VAR_KEYWORD in kinds)
            first = type(name) is int and (name < len(self._names) or inspect.Parameter.VAR_POSITIONAL in kinds)
            if not (by_name or first):
                raise ArgumentError(
                    f"dims names an argument {name!r}, which {_title(function)} does not have",
                    remedy=f"one of {', '.join(known)}" if known else None,
                )

    @staticmethod
    def titles(function: Callable[..., Any], structure: Structure | int, known: Sequence[str] = ()) -> list[str]:
        """What messages call each tensor of a call."""
        arguments = _arguments(structure, known or _positional(function))
        return [t for name, part in arguments for t in names_in(part, str(name[0]))]

    def with_numbers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with tensors in the places of whole numbers that are sizes."""
        names, specs = self._names, self._specs
        given = [
            specs.get(names[i]) if i < len(names) and names[i] in specs else specs.get(i) for i in range(len(args))
        ]
        args = tuple([x if s is None else _opened(s, x) for s, x in zip(given, args, strict=True)])
        return args, {name: _opened(specs[name], x) if name in specs else x for name, x in kwargs.items()}

    def patterns(self, structure: Structure | int, leaves: Sequence[Tensor]) -> ShapePatterns:
        """The shapes of the tensors of a call with dimensions in the places that have one, and how these are solved.

        ``structure`` is that of (positional arguments, keyword arguments), or the number of tensors by position. Raises
        ArgumentError and ShapeError where the arguments do not fit."""
        found: list[tuple[str, tuple[Any, ...]]] = []
        rest = iter(leaves)
        for name, part in _arguments(structure, self._names):
            keys = [key for key in name if key in self._specs]
            if len(keys) > 1:
                raise ArgumentError(f"dims names argument {keys[0]!r} twice, as {keys[1]!r} too")
            found += _walk(self._specs[keys[0]] if keys else None, part, rest, str(name[0]))
        return ShapePatterns([shape for _, shape in found], [title for title, _ in found])


def _positional(function: Callable[..., Any]) -> list[str]:
    """Names of the arguments that can be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in _parameters(function) or () if p.kind in kinds]


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(getattr(function, "forward", function)).parameters.values())
    except (TypeError, ValueError):
        return None


def _title(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def _sizes(spec: Spec) -> Iterator[Any]:
    """The sizes that a spec names, nested ones too."""
    if is_size(spec):
        yield spec
    elif isinstance(spec, Mapping):
        for part in spec.values():
            yield from _sizes(part)
    elif isinstance(spec, (tuple, list)):
        for part in spec:
            yield from _sizes(part)
    elif spec is not None and type(spec) is not int:
        raise ArgumentError(
            f"dims is made of dimensions, ints and None, got {type(spec).__name__}", remedy="gc.Dim('batch')"
        )


def _names_any(spec: Spec) -> bool:
    return next(_sizes(spec), None) is not None


def _arguments(structure: Structure | int, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Structure]]:
    """What each argument is called (name and position, or only one of them), and what it is made of."""
    if not isinstance(structure, Branch):
        structure = Branch(tuple, (), (Branch(tuple, (), (Leaf(),) * int(structure)), Branch(dict, (), ())))  # type: ignore[arg-type]
    positional, keyword = structure.children
    assert isinstance(positional, Branch) and isinstance(keyword, Branch)
    for i, part in enumerate(positional.children):
        yield ((names[i], i) if i < len(names) else (i,)), part
    for name, part in zip(keyword.keys, keyword.children, strict=True):
        yield (name,), part


def _walk(spec: Spec, part: Structure, leaves: Iterator[Tensor], title: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Title and shape of each tensor of an argument."""
    if isinstance(part, NumberLeaf):
        next(leaves)
        yield title, Number((spec,))
    elif isinstance(part, Leaf):
        yield title, _shape(spec, next(leaves).shape, title)
    elif isinstance(part, Branch):
        keys = part.keys or range(len(part.children))
        for key, child, inner in zip(keys, part.children, _inner(spec, part, title), strict=True):
            yield from _walk(inner, child, leaves, f"{title}[{key!r}]")
    elif spec is not None and part.value is not None and _names_any(spec):
        raise ArgumentError(f"dims names dimensions of {title}, which is neither tensor nor int but {part.value!r}")


def _opened(spec: Spec, value: Any) -> Any:
    """What an argument holds, with tensors in the places of whole numbers that are sizes."""
    if is_whole(value):
        return NumberTensor.of(value) if is_size(spec) else value
    if isinstance(value, (Tensor, np.ndarray)):
        return value
    leaves, structure = flatten(value)
    return unflatten(opened, leaves) if (opened := _open(spec, structure)) is not structure else value


def _open(spec: Spec, part: Structure) -> Structure:
    """A structure with constants in the place of whole numbers."""
    if isinstance(part, Static) and is_size(spec) and is_whole(part.value):
        return Static(NumberTensor.of(part.value))
    if not isinstance(part, Branch) or not _names_any(spec):
        return part
    children = tuple(
        [_open(s, child) for s, child in zip(_inner(spec, part, "an argument"), part.children, strict=True)]
    )
    same = all(map(operator.is_, children, part.children))
    return part if same else Branch(part.kind, part.keys, children, part.types)


def _inner(spec: Spec, part: Branch, title: str) -> list[Spec]:
    """The specs of what a container holds; what is a shape holds for every tensor in it."""
    count = len(part.children)
    if isinstance(spec, Mapping):
        keys = list(part.keys or range(count))
        unknown = [key for key in spec if key not in keys]
        if unknown:
            raise ArgumentError(f"dims names {unknown[0]!r} of {title}, which has {', '.join(map(repr, keys))}")
        return [spec.get(key) for key in keys]
    if isinstance(spec, (tuple, list)) and any(isinstance(s, (tuple, list, Mapping)) for s in spec):
        if len(spec) != count:
            raise ArgumentError(f"dims has {len(spec)} entries for {title}, which holds {count}")
        return list(spec)
    return [spec] * count


def _shape(spec: Spec, shape: Sequence[int], title: str) -> tuple[Any, ...]:
    """A shape with the dimensions that a spec names."""
    if spec is None:
        return tuple(shape)
    given = tuple(spec) if isinstance(spec, (tuple, list)) else (spec,)
    if isinstance(spec, Mapping) or any(isinstance(s, (tuple, list, Mapping)) for s in given):
        raise ArgumentError(f"dims nests the dimensions of {title}, which is a tensor", remedy="(batch, time)")
    if len(given) > len(shape):
        raise ShapeError(f"dims names {len(given)} dimensions of {title}, which has {len(shape)}: {list(shape)}")
    for dim, (size, extent) in enumerate(zip(given, shape, strict=False)):
        if type(size) is int and size != extent:
            raise ShapeError(f"dimension {dim} of {title} is {extent}, not {size} as dims says")
    return (*(extent if s is None else s for s, extent in zip(given, shape, strict=False)), *shape[len(given) :])
