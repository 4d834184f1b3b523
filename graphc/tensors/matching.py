"""Match a nested structure of tensors to an expected one, and describe differences by the path of a leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.base.records import dataclass
from graphc.tensors.structure import Branch, Leaf, Static, Structure, flatten
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class Sides:
    """Words of messages about two structures that must be equal."""

    function: str
    """The function that the user calls."""
    root: str
    """Name of the structure, the first part of paths."""
    expected: str = "before the step"
    actual: str = "after"


TensorTypes = Sequence[tuple[Any, tuple[Any, ...]]]
"""Element type and shape of each leaf."""


def types_of(leaves: Sequence[Tensor]) -> TensorTypes:
    """Return the element type and the shape of each tensor."""
    return [(t.dtype, tuple(t.shape)) for t in leaves]


def matched(expected: Structure, tree: Any, sides: Sides) -> list[Tensor]:
    """Return the tensors of ``tree`` in the order of the leaves of ``expected``: dictionaries may list their keys in
    another order. Raises ArgumentError with the path of the first difference."""
    leaves, actual = flatten(tree)
    return leaves if actual == expected else _match(expected, actual, iter(leaves), sides.root, sides)


def matched_types(expected: Structure, types: TensorTypes, tree: Any, sides: Sides) -> list[Tensor]:
    """Return the tensors of ``tree`` as ``matched`` does. Raises ShapeError and DTypeError with the path of the first
    tensor of another shape or type."""
    leaves = matched(expected, tree, sides)
    for i, ((dtype, shape), leaf) in enumerate(zip(types, leaves, strict=True)):
        if leaf.dtype is not dtype:
            what = f"{dtype.name} {sides.expected} and {leaf.dtype.name} {sides.actual}"
            remedy = f"cast one of them, for example with .to({dtype!r})"
            raise DTypeError(f"{sides.function}: {paths(expected, sides.root)[i]}: {what}", remedy=remedy)
        if tuple(leaf.shape) != shape:
            what = f"shape {list(shape)} {sides.expected} and {list(leaf.shape)} {sides.actual}"
            remedy = "keep the shape; for a result that grows, fill slices of a tensor of the largest size"
            raise ShapeError(f"{sides.function}: {paths(expected, sides.root)[i]}: {what}", remedy=remedy)
    return leaves


def paths(structure: Structure, root: str) -> list[str]:
    """Return the Python expression of every leaf, such as ``carry["pos"][1]`` or ``state.velocity``."""
    if isinstance(structure, Leaf):
        return [root]
    if isinstance(structure, Static):
        return []
    pairs = zip(_keys(structure), structure.children, strict=True)
    return [path for key, child in pairs for path in paths(child, root + _access(structure, key))]


def _keys(structure: Branch) -> Sequence[Any]:
    return structure.keys or range(len(structure.children))


def _access(structure: Branch, key: Any) -> str:
    """Return the Python text that selects a child."""
    if not structure.keys or issubclass(structure.kind, dict):
        return f'["{key}"]' if isinstance(key, str) else f"[{key!r}]"
    return f".{key}"


def _match(expected: Structure, actual: Structure, leaves: Iterator[Tensor], path: str, sides: Sides) -> list[Tensor]:
    if isinstance(expected, Leaf) and isinstance(actual, Leaf):
        return [next(leaves)]
    if isinstance(expected, Static) and expected == actual:
        return []
    if not isinstance(expected, Branch) or not isinstance(actual, Branch) or expected.kind is not actual.kind:
        raise _difference(_described(expected), _described(actual), path, sides)
    if not expected.keys and len(expected.children) != len(actual.children):
        raise _difference(_described(expected), _described(actual), path, sides)
    children = dict(zip(_keys(expected), expected.children, strict=True))
    others = dict(zip(_keys(actual), actual.children, strict=True))
    for key in [*children, *others]:
        if key not in children or key not in others:
            here, there = (_described(side[key]) if key in side else "missing" for side in (children, others))
            raise _difference(here, there, path + _access(expected, key), sides)
    by_key = {k: _match(children[k], child, leaves, path + _access(expected, k), sides) for k, child in others.items()}
    return [leaf for key in children for leaf in by_key[key]]


def _difference(expected: str, actual: str, path: str, sides: Sides) -> ArgumentError:
    what = f"{sides.function}: {path}: {expected} {sides.expected} and {actual} {sides.actual}"
    is_number = expected != "a tensor" and actual == "a tensor"
    return ArgumentError(
        what,
        remedy=f"pass a tensor, such as graphc.tensor({expected})" if is_number else "return the same nesting",
    )


def _described(structure: Structure) -> str:
    if isinstance(structure, Leaf):
        return "a tensor"
    if isinstance(structure, Static):
        text = repr(structure.value)
        return text if len(text) < 40 else f"a {type(structure.value).__name__}"
    count = f" of {len(structure.children)}" if not structure.keys or issubclass(structure.kind, dict) else ""
    return f"a {structure.kind.__name__}{count}"
