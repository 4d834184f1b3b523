"""Statistics of tensors: what taps of compiled code ask for, and the two ops by which they see gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.ir.op import Attr, Attrs, ErrorSample, OpDef, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops import reduce
from graphc.ops.batch import Entry
from graphc.ops.check import check_true
from graphc.ops.define import as_type, define
from graphc.ops.host import FAILED, TOKEN, host_call
from graphc.ops.shape import concat, filled, reshape
from graphc.ops.shape import slice as part

KINDS = ("mean", "norm", "zeros", "range", "nan")
"""What can be asked for: mean and deviation, norm, zeros, smallest and largest element, how many are NaN."""
FIELDS = ("count", "finite", "nan", "zeros", "shift", "sum", "squares", "least", "most")
"""The numbers of a row: how many elements there are, are finite, NaN, and 0; an element, the sum of all differences from
it and of their squares; the smallest and the largest. All but the first three are those of finite elements."""
ROW = TensorType(float64, (len(FIELDS),))


def statistics(x: Any, kinds: Sequence[str]) -> Any:
    """The row of a tensor, f64[9], in one pass or two; what is not asked for is 0.

    Sums are of differences from the first element, so that little is lost where the mean is large against the
    deviation; where only the norm is asked for, of the elements. They are summed in the type of ``x``.
    """
    if x.dtype.kind != "f":
        x = as_type(x, float64)
    count = math.prod(x.shape)
    found: dict[str, Any] = {"count": count}
    if count:
        found |= _sums(x, kinds)
    given = [found.get(name, 0) for name in FIELDS]
    rows = [filled(v, float64, (1,)) if isinstance(v, int) else as_type(reshape(v, shape=(1,)), float64) for v in given]
    return concat(*rows, axis=0)


def _sums(x: Any, kinds: Sequence[str]) -> dict[str, Any]:
    axes = tuple(range(len(x.shape)))

    def total(value: Any) -> Any:
        return reduce.sum(value, axes=axes, keepdims=False)

    def number(condition: Any) -> Any:
        return total(as_type(condition, x.dtype))

    good = mathematics.isfinite(x)
    found = {"finite": number(good)}
    if "nan" in kinds:
        found["nan"] = number(ew.ne(x, x))
    if "zeros" in kinds:
        found["zeros"] = number(ew.eq(x, 0))
    if "mean" in kinds:
        one = (1,) * len(axes)
        first = reshape(part(x, starts=(0,) * len(axes), stops=one, steps=one), shape=())
        shift = ew.where(mathematics.isfinite(first), first, filled(0, x.dtype, ()))
        moved = ew.sub(ew.where(good, x, shift), shift)
        found |= {"shift": shift, "sum": total(moved), "squares": total(ew.mul(moved, moved))}
    elif "norm" in kinds:
        kept = ew.where(good, x, filled(0, x.dtype, ()))
        found["squares"] = total(ew.mul(kept, kept))
    if "range" in kinds:
        for name, fold, sign in (("least", reduce.min, 1), ("most", reduce.max, -1)):
            kept = ew.where(good, x, filled(sign * math.inf, x.dtype, ()))
            found[name] = fold(kept, axes=axes, keepdims=False)
    return found


def kinds_of(text: str) -> tuple[str, ...]:
    """The kinds in a text such as ``mean zeros``. Raises AttributeValueError for anything else."""
    kinds = tuple(text.split())
    for kind in kinds:
        if kind not in KINDS:
            raise AttributeValueError(f"there are no statistics {kind!r}", remedy=f"some of {', '.join(KINDS)}")
    return kinds


# ---- gradients


def _infer_slots(token: TensorType, x: TensorType, number: int, name: str, count: int) -> Types:
    if token != TOKEN or number < 0 or count < 1:
        raise AttributeValueError("gradient_slots takes a token, and is for 1 or more slots of a host function")
    return (TOKEN, *(ROW for _ in range(count)))


def _slots_gradient(g: Any, result: Any, token: Any, x: Any, number: int, name: str, count: int) -> tuple[Any, Any]:
    """Hands the gradients of the slots, which are rows, to the host function, those that are not there as zeros."""
    before, *rows = g
    if all(row is None for row in rows):
        return before, None
    table = concat(
        *(filled(0, ROW.dtype, (1, *ROW.shape)) if r is None else reshape(r, shape=(1, *ROW.shape)) for r in rows), axis=0
    )
    # NOTE: the first call of the backward pass waits for the last one of the forward pass.
    done = host_call(result[0] if before is None else before, table, number=number, name=name)
    check_true(ew.eq(done, 0.0), message=FAILED)
    return done, None


def _no_batch(op: OpDef, size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    raise ArgumentError("vmap: statistics are taken of what has no batch", remedy="take them outside of vmap")


gradient_slots = define(
    "gradient_slots",
    "A token, and slots whose gradients are rows of statistics: backward hands all of them to a Python function in one "
    "call. x only says on what the gradients depend.",
    "token x",
    _infer_slots,
    attrs=[
        Attr("number", "int", "which of the caller's functions"),
        Attr("name", "str", "what messages call it"),
        Attr("count", "int", "how many slots there are"),
    ],
    reference=lambda token, x, number, name, count: (token.copy(), *np.zeros((count, *ROW.shape))),
    vjp=_slots_gradient,
    decompose=lambda token, x, number, name, count: (token, *(filled(0, ROW.dtype, ROW.shape) for _ in range(count))),
    batch=_no_batch,
    samples=list,
    error_samples=(
        ErrorSample((TensorType(float32, (2,)),) * 2, "takes a token", {"number": 0, "name": "f", "count": 1}),
    ),
)


def _infer_tap(x: TensorType, slot: TensorType, kinds: str) -> TensorType:
    if slot != ROW:
        raise AttributeValueError("gradient_tap takes a slot of gradient_slots")
    kinds_of(kinds)
    return x


gradient_tap = define(
    "gradient_tap",
    "x, the statistics of whose gradient are the gradient of the slot.",
    "x slot",
    _infer_tap,
    attrs=[Attr("kinds", "str", "which statistics, such as 'mean zeros'")],
    reference=lambda x, slot, kinds: x.copy(),
    vjp=lambda g, result, x, slot, kinds: (g, statistics(g, kinds_of(kinds))),
    decompose=lambda x, slot, kinds: x,
    traits=Trait.PURE,
    batch=_no_batch,
    samples=list,
    error_samples=(
        ErrorSample((TensorType(float32, (2,)),) * 2, "takes a slot", {"kinds": "mean"}),
        ErrorSample((TensorType(float32, (2,)), ROW), "no statistics 'median'", {"kinds": "median"}),
    ),
)
