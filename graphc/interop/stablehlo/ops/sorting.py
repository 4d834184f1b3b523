"""Rules of sort and top_k: comparators are read as lists of keys, each of which is sorted by stably."""

from __future__ import annotations

from collections.abc import Mapping

from graphc.base.records import dataclass
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.graph import Block, Operation
from graphc.interop.stablehlo.registry import rule
from graphc.ops.movement import shape as moves
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection import index
from graphc.ops.selection.sorting import argsort
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class Key:
    """Values to sort by: ``value`` of the comparator, computed from first arguments only, for all elements."""

    value: str
    descending: bool


class Comparator:
    """Reader of a region that compares elements of one or several tensors in lexicographic order.

    A region ``lt(f(a), f(b))`` has the key ``f``. A region ``select(eq(f(a), f(b)), rest, lt(f(a), f(b)))``, or
    ``or(lt(f(a), f(b)), and(eq(f(a), f(b)), rest))``, has ``f`` as its first key, and the keys of ``rest``.
    """

    def __init__(self, block: Block):
        self.block = block
        self.makers: Mapping[str, Operation] = {name: op for op in block.operations for name in op.results}
        pairs = [(block.arguments[i], block.arguments[i + 1]) for i in range(0, len(block.arguments) - 1, 2)]
        self.mirror = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
        self.firsts = {a for a, _ in pairs}

    def keys(self) -> list[Key] | None:
        """Return the keys, the most important one first; None for another region."""
        return self._keys(self.block.returned[0]) if len(self.block.returned) == 1 else None

    def _keys(self, name: str) -> list[Key] | None:
        operation = self.makers.get(name)
        if operation is None:
            return None
        if operation.name == "stablehlo.compare":
            key = self._key(operation)
            return None if key is None else [key]
        operands = operation.operands
        if operation.name == "stablehlo.select":
            return self._lexicographic(operands[0], operands[2], operands[1])
        if operation.name == "stablehlo.or":
            for first, other in (operands, operands[::-1]):
                both = self.makers.get(other)
                if both is not None and both.name == "stablehlo.and":
                    for equal, rest in (both.operands, both.operands[::-1]):
                        keys = self._lexicographic(equal, first, rest)
                        if keys is not None:
                            return keys
        return None

    def _lexicographic(self, equal: str, less: str, rest: str) -> list[Key] | None:
        operation, first = self.makers.get(equal), self._keys(less)
        if operation is None or first is None or len(first) != 1 or operation.name != "stablehlo.compare":
            return None
        if operation.attributes.get("comparison_direction") != "EQ" or not self._same_key(operation, first[0]):
            return None
        others = self._keys(rest)
        return None if others is None else [*first, *others]

    def _same_key(self, operation: Operation, key: Key) -> bool:
        a, b = operation.operands
        return self._mirrored(a, b) and (self._equal(a, key.value) or self._equal(b, key.value))

    def _key(self, operation: Operation) -> Key | None:
        direction = operation.attributes.get("comparison_direction")
        a, b = operation.operands
        if direction not in ("LT", "GT") or not self._mirrored(a, b):
            return None
        first = self._arguments(a)
        if first <= self.firsts:
            return Key(a, direction == "GT")
        return Key(b, direction == "LT") if self._arguments(b) <= self.firsts else None

    def _arguments(self, name: str) -> set[str]:
        """Return the arguments that a value depends on."""
        if name in self.mirror:
            return {name}
        operation = self.makers.get(name)
        return set() if operation is None else {a for o in operation.operands for a in self._arguments(o)}

    def _mirrored(self, a: str, b: str) -> bool:
        """Check whether ``b`` is the same expression as ``a`` for the other elements."""
        return self._equal(a, b, exchanged=True)

    def _equal(self, a: str, b: str, exchanged: bool = False) -> bool:
        if a in self.mirror or b in self.mirror:
            return self.mirror.get(a) == b if exchanged else a == b
        left, right = self.makers.get(a), self.makers.get(b)
        if left is None or right is None:
            return a == b
        if left is right and not left.operands:
            return True
        same = left.name == right.name and _attributes(left) == _attributes(right) and not left.blocks
        if not same or len(left.operands) != len(right.operands):
            return False
        pairs = zip(left.operands, right.operands, strict=True)
        return all(self._equal(x, y, exchanged) for x, y in pairs)


def _attributes(operation: Operation) -> str:
    return str(sorted((k, str(v)) for k, v in operation.attributes.items() if k != "compare_type"))


@rule("sort")
def sort(call: OperationCall, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Sort tensors along a dimension by the keys of the comparator. Always stable; NaN comes last."""
    axis = call.int("dimension", tensors[0].ndim - 1) % max(tensors[0].ndim, 1)
    block = call.block()
    keys = Comparator(block).keys()
    if keys is None:
        raise call.unsupported("this comparator", remedy="compare keys with < or >, one after the other")
    if not tensors[0].ndim or tensors[0].shape[axis] < 2:
        return tensors
    places: Tensor | None = None
    for key in reversed(keys):
        values = _values(call, block, key, tensors)
        if places is not None:
            values = _along(values, places, axis)
        order = argsort(values, axis=axis, descending=key.descending)
        places = order if places is None else _along(places, order, axis)
    assert places is not None
    return tuple([_along(x, places, axis) for x in tensors])


def _values(call: OperationCall, block: Block, key: Key, tensors: tuple[Tensor, ...]) -> Tensor:
    """Compute a key for all elements."""
    arguments = [x for x in tensors for _ in range(2)]
    region = Block(block.arguments, block.types, block.operations, (key.value,), block.captured)
    (values,) = call.over_elements(region, *arguments)
    values = moves.broadcast_to(values, shape=tuple(tensors[0].shape))
    return values.to("uint8") if values.dtype.kind == "b" else values


def _along(x: Tensor, places: Tensor, axis: int) -> Tensor:
    """Return the elements of ``x`` at places along an axis, of its shape or with fewer places."""
    if x.ndim == 1:
        return index.gather(x, places, axis=0)
    offsets = index.row_major_places(places, axis, tuple(x.shape))
    return index.gather(moves.reshape(x, shape=(x.numel(),)), offsets, axis=0)


@rule("chlo.top_k")
def top_k(call: OperationCall, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest elements along the last dimension, the first of equal ones first, and their positions."""
    inner = call.attributes.get("composite_attributes")
    count = inner.get("k") if isinstance(inner, Mapping) else call.int("k")
    if not isinstance(count, int):
        raise call.unsupported("this attribute k")
    axis = x.ndim - 1
    places = argsort(x, axis=axis, descending=True, count=count)
    return _along(x, places, axis), ew.cast(places, dtype=call.operation.types[1].dtype)
