"""Named dimensions of arguments, as users declare them in ``dims=``."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ShapeError
from graphc.base.sizes.named_dims import chosen_sizes, dimensions, size_of
from graphc.base.sizes.shape_patterns import Number, ShapePatterns
from graphc.base.sizes.size import Dimension, at, hint, is_size
from graphc.tensors.creation import zeros
from graphc.tensors.structure import (
    Branch,
    Leaf,
    NumberLeaf,
    NumberTensor,
    Static,
    Structure,
    flatten,
    is_whole,
    shape_of,
    unflatten,
)
from graphc.tensors.structure import names as names_in
from graphc.tensors.tensor import Tensor

Spec = Any
"""The sizes of one tensor, from the first dimension on: dimensions (``gc.Dim`` or expressions of them), ints, and None
for a size that is fixed at each call. A single dimension is the first one, or the value of an integer argument. Also
None, or specs nested like the argument."""


class Dims:
    """The declaration ``dims=``: a spec for each name or position of an argument, or a sequence of specs in order."""

    def __init__(
        self, dims: Mapping[Any, Spec] | Sequence[Spec], function: Callable[..., Any], names: Sequence[str] = ()
    ):
        """Check the declaration. ``names`` are the names of the arguments if the function's signature lacks them.

        Raises ArgumentError for a malformed declaration, for an argument the function does not have, and for two
        dimensions of one name.
        """
        if isinstance(dims, (tuple, list)):
            dims = dict(enumerate(dims))
        if not isinstance(dims, Mapping):
            raise ArgumentError(
                f"dims must map arguments to their named sizes, got {type(dims).__name__}",
                remedy="pass dims={'x': (gc.Dim('batch'), gc.Dim('time'))}",
            )
        self.specs = dict(dims)
        """The spec of each argument, by name or position."""
        self._function = function
        self._given_names = names
        self._names = names or _positional(function)
        if not names:
            self._check_names(function)
        elif unknown := [n for n in self.specs if n not in names and n not in range(len(names))]:
            raise ArgumentError(
                f"dims names an argument {unknown[0]!r}, which {_title(function)} does not have",
                remedy=f"use one of {', '.join(names)}",
            )
        self.dimensions = dimensions(size for spec in self.specs.values() for size in _sizes(spec))
        """Dimensions by name."""
        if not self.dimensions:
            raise ArgumentError("dims names no dimension", remedy="pass dims={'x': (gc.Dim('batch'),)}")

    def _check_names(self, function: Callable[..., Any]) -> None:
        parameters = _parameters(function)
        if parameters is None:
            return
        kinds = {p.kind for p in parameters}
        parameter_names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for name in self.specs:
            by_name = isinstance(name, str) and (name in parameter_names or inspect.Parameter.VAR_KEYWORD in kinds)
            first = type(name) is int and (name < len(self._names) or inspect.Parameter.VAR_POSITIONAL in kinds)
            if not (by_name or first):
                raise ArgumentError(
                    f"dims names an argument {name!r}, which {_title(function)} does not have",
                    remedy=f"use one of {', '.join(parameter_names)}" if parameter_names else None,
                )

    @staticmethod
    def titles(function: Callable[..., Any], structure: Structure | int, names: Sequence[str] = ()) -> list[str]:
        """Return the name that messages use for each tensor of a call."""
        arguments = _arguments(structure, names or _positional(function))
        return [t for name, argument in arguments for t in names_in(argument, str(name[0]))]

    def hinted(self, hints: Mapping[str, int]) -> Dims:
        """Return the declaration with these hints, by name of the dimension. Raises ArgumentError for an unknown name
        and for a size out of range."""
        chosen_sizes(self.dimensions, hints)
        values = {d: size_of(replace(d, hint=hints.get(name, d.hint))) for name, d in self.dimensions.items()}
        return Dims(_substituted(self.specs, values), self._function, self._given_names)

    def expecting(self, structure: Structure | int, leaves: Sequence[Tensor]) -> Dims:
        """Return the declaration with the sizes of a call as hints of the dimensions that have none."""
        if all(d.is_hinted for d in self.dimensions.values()):
            return self
        sizes = self.patterns(structure, leaves).solve([shape_of(leaf) for leaf in leaves])
        return self.hinted({d.name: n for d, n in sizes.items() if not d.is_hinted})

    def varying(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[Any, Spec]:
        """Return specs in which one dimension varies, and others have the sizes of a call. Raise ArgumentError for an
        unknown name."""
        if name not in self.dimensions:
            names = ", ".join(self.dimensions)
            raise ArgumentError(
                f"the model has no dimension {name!r} (its dimensions: {names})", remedy="pass dim=NAME"
            )
        leaves, structure = flatten(self.with_numbers(tuple(args), dict(kwargs)))
        sizes: dict[Dimension, Any] = dict(self.patterns(structure, leaves).solve([shape_of(leaf) for leaf in leaves]))
        own = self.dimensions[name]
        return _substituted(self.specs, sizes | {own: size_of(own)})

    def expected_examples(self, examples: Sequence[Any]) -> list[Any]:
        """Return zeros of the expected sizes in place of the tensors of a call, and these sizes for whole numbers."""
        args, _ = self.with_numbers(tuple(examples), {})
        leaves, structure = flatten((args, {}))
        shapes = self.patterns(structure, leaves).shapes
        expected = [
            hint(shape[0]) if isinstance(leaf, NumberTensor) else zeros(tuple(map(hint, shape)), dtype=leaf.dtype)
            for leaf, shape in zip(leaves, shapes, strict=True)
        ]
        return list(unflatten(structure, expected)[0])

    def with_numbers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Replace integer arguments that ``dims`` names by number tensors."""
        names, specs = self._names, self.specs
        positional_specs = [
            specs.get(names[i]) if i < len(names) and names[i] in specs else specs.get(i) for i in range(len(args))
        ]
        args = tuple([x if s is None else _opened(s, x) for s, x in zip(positional_specs, args, strict=True)])
        return args, {name: _opened(specs[name], x) if name in specs else x for name, x in kwargs.items()}

    def patterns(self, structure: Structure | int, leaves: Sequence[Tensor]) -> ShapePatterns:
        """Return the shapes of a call's tensors with their named dimensions, and the equations for these.

        ``structure`` describes (positional arguments, keyword arguments), or is the number of positional tensors.
        Raises ArgumentError or ShapeError for arguments that do not fit.
        """
        titled_shapes: list[tuple[str, tuple[Any, ...]]] = []
        rest = iter(leaves)
        for name, argument in _arguments(structure, self._names):
            keys = [key for key in name if key in self.specs]
            if len(keys) > 1:
                raise ArgumentError(f"dims names argument {keys[0]!r} twice, as {keys[1]!r} too")
            titled_shapes += _walk(self.specs[keys[0]] if keys else None, argument, rest, str(name[0]))
        return ShapePatterns([shape for _, shape in titled_shapes], [title for title, _ in titled_shapes])


def _positional(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that may be passed by position."""
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
    """Yield the sizes a spec names, nested ones too."""
    if is_size(spec):
        yield spec
    elif isinstance(spec, Mapping):
        for item in spec.values():
            yield from _sizes(item)
    elif isinstance(spec, (tuple, list)):
        for item in spec:
            yield from _sizes(item)
    elif spec is not None and type(spec) is not int:
        raise ArgumentError(
            f"dims may hold dimensions, ints and None, got {type(spec).__name__}", remedy="use gc.Dim('batch')"
        )


def _substituted(spec: Spec, values: Mapping[Dimension, Any]) -> Spec:
    """Return a spec with sizes in place of its dimensions."""
    if isinstance(spec, Mapping):
        return {key: _substituted(item, values) for key, item in spec.items()}
    if isinstance(spec, (tuple, list)):
        return type(spec)([_substituted(item, values) for item in spec])
    return at(spec, values) if is_size(spec) else spec


def _names_any(spec: Spec) -> bool:
    return next(_sizes(spec), None) is not None


def _arguments(structure: Structure | int, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Structure]]:
    """Yield the names of each argument (name and position, or only one of them) and its structure."""
    if not isinstance(structure, Branch):
        structure = Branch(tuple, (), (Branch(tuple, (), (Leaf(),) * int(structure)), Branch(dict, (), ())))  # type: ignore[arg-type]
    positional, keyword = structure.children
    assert isinstance(positional, Branch) and isinstance(keyword, Branch)
    for i, argument in enumerate(positional.children):
        yield ((names[i], i) if i < len(names) else (i,)), argument
    for name, argument in zip(keyword.keys, keyword.children, strict=True):
        yield (name,), argument


def _walk(
    spec: Spec, structure: Structure, leaves: Iterator[Tensor], title: str
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the title and shape of each tensor of an argument."""
    if isinstance(structure, NumberLeaf):
        next(leaves)
        yield title, Number((spec,))
    elif isinstance(structure, Leaf):
        yield title, _shape(spec, next(leaves).shape, title)
    elif isinstance(structure, Branch):
        keys = structure.keys or range(len(structure.children))
        for key, child, inner in zip(keys, structure.children, _inner(spec, structure, title), strict=True):
            yield from _walk(inner, child, leaves, f"{title}[{key!r}]")
    elif spec is not None and structure.value is not None and _names_any(spec):
        raise ArgumentError(
            f"dims names dimensions of {title}, which is neither tensor nor int but {structure.value!r}"
        )


def _opened(spec: Spec, value: Any) -> Any:
    """Replace integers declared as sizes by number tensors in an argument."""
    if is_whole(value):
        return NumberTensor.of(value) if is_size(spec) else value
    if isinstance(value, (Tensor, np.ndarray)):
        return value
    leaves, structure = flatten(value)
    return unflatten(with_tensors, leaves) if (with_tensors := _open(spec, structure)) is not structure else value


def _open(spec: Spec, structure: Structure) -> Structure:
    """Replace integers declared as sizes by constants in a structure."""
    if isinstance(structure, Static) and is_size(spec) and is_whole(structure.value):
        return Static(NumberTensor.of(structure.value))
    if not isinstance(structure, Branch) or not _names_any(spec):
        return structure
    children = tuple(
        [_open(s, child) for s, child in zip(_inner(spec, structure, "an argument"), structure.children, strict=True)]
    )
    same = all(map(operator.is_, children, structure.children))
    return structure if same else structure.with_children(children)


def _inner(spec: Spec, branch: Branch, title: str) -> list[Spec]:
    """Return the specs of a container's items; a single shape applies to every tensor in it."""
    count = len(branch.children)
    if isinstance(spec, Mapping):
        keys = list(branch.keys or range(count))
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
    """Return a shape with the dimensions a spec names."""
    if spec is None:
        return tuple(shape)
    sizes = tuple(spec) if isinstance(spec, (tuple, list)) else (spec,)
    if isinstance(spec, Mapping) or any(isinstance(s, (tuple, list, Mapping)) for s in sizes):
        raise ArgumentError(f"dims nests the dimensions of {title}, which is a tensor", remedy="pass (batch, time)")
    if len(sizes) > len(shape):
        raise ShapeError(f"dims names {len(sizes)} dimensions of {title}, which has {len(shape)}: {list(shape)}")
    for dim, (size, extent) in enumerate(zip(sizes, shape, strict=False)):
        if type(size) is int and size != extent:
            raise ShapeError(f"dimension {dim} of {title} is {extent}, not {size} as dims says")
    return (*(extent if s is None else s for s, extent in zip(sizes, shape, strict=False)), *shape[len(sizes) :])
