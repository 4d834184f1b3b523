"""Rules of reductions over whole dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.graph import Block
from graphc.interop.stablehlo.ops.regions import kinds_of
from graphc.interop.stablehlo.registry import rule
from graphc.ops.movement import shape as moves
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.reduction import reduce as reductions
from graphc.tensors.tensor import Tensor

_NATIVE: Mapping[str, Any] = {
    "add": reductions.sum,
    "multiply": reductions.prod,
    "maximum": reductions.max,
    "minimum": reductions.min,
}
_LOGICAL: Mapping[str, Any] = {
    **dict.fromkeys(("add", "maximum", "or"), reductions.any),
    **dict.fromkeys(("multiply", "minimum", "and"), reductions.all),
}


def identity(kind: str, dtype: DType) -> Any:
    """Return the number that a function leaves every other one unchanged with; None where it has none."""
    if dtype is bool_:
        return kind in ("multiply", "minimum", "and")
    if kind in ("add", "multiply", "or"):
        return int(kind == "multiply")
    if dtype.is_complex or kind not in ("maximum", "minimum", "and"):
        return None
    if dtype.is_floating_point:
        return -math.inf if kind == "maximum" else math.inf
    if kind == "and":
        return -1 if dtype.kind == "i" else (1 << dtype.bits) - 1
    limits = np.iinfo(dtype.numpy)
    return int(limits.min if kind == "maximum" else limits.max)


def is_identity(call: OperationCall, kind: str, initial: Tensor) -> bool:
    """Check whether an initial value is known to change no result."""
    known = call.known(initial)
    if known is None or initial.dtype.kind == "h":
        return False
    return bool(known.reshape(-1)[0] == identity(kind, initial.dtype))


@rule("reduce")
def reduce(call: OperationCall, *operands: Tensor) -> tuple[Tensor, ...]:
    """Reduce dimensions by the region: by a reduction of graphc where it is one, else by pairs of neighbours."""
    count = len(operands) // 2
    tensors, initials = operands[:count], operands[count:]
    axes, block = call.ints("dimensions"), call.block()
    kinds = kinds_of(block)
    sizes = [tensors[0].shape[a] for a in axes]
    if not prod(sizes):
        shapes = [t.shape for t in call.operation.types]
        return tuple([moves.broadcast_to(v, shape=shape) for v, shape in zip(initials, shapes, strict=True)])
    if kinds is not None and all(_native(k, x.dtype) for k, x in zip(kinds, tensors, strict=True)):
        return tuple([_reduced(call, k, x, v, axes) for k, x, v in zip(kinds, tensors, initials, strict=True)])
    kept = [d for d in range(tensors[0].ndim) if d not in axes]
    shape = [tensors[0].shape[d] for d in kept]
    moved = [moves.transpose(x, permutation=(*kept, *axes)) for x in tensors]
    last = [moves.reshape(x, shape=(*shape, prod(sizes))) for x in moved]
    results = [moves.reshape(x, shape=shape) for x in _by_pairs(call, block, last)]
    if kinds is not None and all(is_identity(call, k, v) for k, v in zip(kinds, initials, strict=True)):
        return tuple(results)
    return tuple(call.over_elements(block, *initials, *results))


def _native(kind: str, dtype: DType) -> bool:
    return kind in (_LOGICAL if dtype is bool_ else _NATIVE)


def _reduced(call: OperationCall, kind: str, x: Tensor, initial: Tensor, axes: Sequence[int]) -> Tensor:
    function = (_LOGICAL if x.dtype is bool_ else _NATIVE)[kind]
    result = ew.cast(function(x, axes=axes), dtype=x.dtype) if axes else x
    return result if is_identity(call, kind, initial) else combine(kind, initial, result)


def combine(kind: str, x: Tensor, y: Tensor) -> Tensor:
    """Apply a binary operation by its name in StableHLO."""
    logical = x.dtype is bool_
    function = {
        "add": ew.logical_or if logical else ew.add,
        "multiply": ew.logical_and if logical else ew.mul,
        "maximum": ew.logical_or if logical else ew.maximum,
        "minimum": ew.logical_and if logical else ew.minimum,
        "and": ew.logical_and if logical else ew.bit_and,
        "or": ew.logical_or if logical else ew.bit_or,
    }
    return function[kind](x, y)


def _by_pairs(call: OperationCall, block: Block, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Reduce the last dimension by combining neighbours until one element is left, which keeps their order."""
    while (count := tensors[0].shape[-1]) > 1:
        pairs = [(_every_second(x, 0, count // 2), _every_second(x, 1, count // 2)) for x in tensors]
        combined = call.over_elements(block, *[a for a, _ in pairs], *[b for _, b in pairs])
        if count % 2:
            rest = [_every_second(x, count - 1, 1) for x in tensors]
            combined = [moves.concat(c, r, axis=c.ndim - 1) for c, r in zip(combined, rest, strict=True)]
        tensors = combined
    return tensors


def _every_second(x: Tensor, first: int, count: int) -> Tensor:
    """Return every second element along the last dimension."""
    lead = tuple(x.shape[:-1])
    starts, stops = (*(0,) * len(lead), first), (*lead, first + 2 * count - 1)
    return moves.slice(x, starts=starts, stops=stops, steps=(*(1,) * len(lead), 2))
