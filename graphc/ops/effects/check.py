"""Checks: stop a call, before it writes any state, where an index is out of range or a condition is false."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, float32, int32, int64
from graphc.base.errors import AttributeValueError, ConditionError, DTypeError, IndexRangeError
from graphc.base.sizes.size import is_size
from graphc.base.sizes.size_relations import at_most
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, Attrs, ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.batch import leading
from graphc.ops.define import define
from graphc.ops.rules import check_kind, show
from graphc.ops.samples import array, booleans, integers, plain

NOT_FINITE = "a number is not finite"
"""Message of the check of ``first_nan``."""
_I = TensorType(int64, (4,))


def _infer(x: TensorType, low: int, high: int, allowed: tuple[int, ...], what: str) -> TensorType:
    check_kind("check_index", 0, x.dtype, "iu")
    if high < low - 1:
        raise AttributeValueError(f"check_index: the range {low} to {high} is not valid", remedy="pass low <= high + 1")
    return TensorType(bool_, ())


def check_range(x: np.ndarray, low: int, high: int, allowed: tuple[int, ...] = (), what: str = "index") -> None:
    """Raise IndexRangeError, naming ``what``, for the first element outside of ``low``..``high`` and ``allowed``."""
    if not holds(x, low, high, allowed):
        position = np.argwhere(_wrong(x, low, high, allowed))[0].tolist()
        valid = f"{low} to {high}" + "".join(f", {value}" for value in allowed)
        raise IndexRangeError(
            f"{what} {x[tuple(position)]} (at {show(position)}) is out of range", remedy=f"pass values from {valid}"
        )


def holds(x: np.ndarray, low: int, high: int, allowed: tuple[int, ...] = ()) -> bool:
    """Check whether every element is in ``low``..``high`` or in ``allowed``."""
    if not x.size or (low <= int(x.min()) and int(x.max()) <= high):
        return True
    return not _wrong(x, low, high, allowed).any()


def _wrong(x: np.ndarray, low: int, high: int, allowed: tuple[int, ...]) -> np.ndarray:
    wrong = (x < low) | (x > high)
    for value in allowed:
        wrong &= x != value
    return wrong


def _reference(x: np.ndarray, low: int, high: int, allowed: tuple[int, ...], what: str) -> np.ndarray:
    check_range(x, low, high, allowed, what)
    return np.zeros((), np.bool_)


def _nest(c: LowerContext, x: OperandRef, low: int, high: int, allowed: tuple[int, ...], what: str) -> None:
    """Set the result where an element is wrong, and never reset it."""
    limits = np.iinfo(x.dtype.numpy)
    wrong = c.nest.accumulator(bool_, "or", False)
    with c.nest.loops(x.shape, "reduce") as index:
        c.nest.update(wrong, _outside(c.load(x, index), low, high, allowed, limits))
    c.store((), c.nest.read(wrong, bool_), combine="or")


def _outside(value: Scalar, low: int, high: int, allowed: tuple[int, ...], limits: Any) -> Scalar:
    sides = [] if at_most(low, limits.min) else [_beyond("lt", value, low, limits)]
    if not at_most(limits.max, high):
        sides.append(_beyond("gt", value, high, limits))
    wrong = functools.reduce(operator.or_, sides) if sides else value.nest.const(False, bool_)
    for other in allowed:
        if limits.min <= other <= limits.max:
            wrong = wrong & value.ne(other)
    return wrong


def _beyond(relation: str, value: Scalar, limit: int, limits: Any) -> Scalar:
    """Check whether an element exceeds a limit that its type may not be able to represent."""
    nest = value.nest
    if is_size(limit):
        return nest.op(relation, value.cast(int64), nest.const(limit, int64))
    inside = limits.min <= limit <= limits.max
    return nest.op(relation, value, nest.const(limit, value.dtype)) if inside else nest.const(True, bool_)


check_index = define(
    "check_index",
    "Returns false. Elements outside of low..high and allowed stop the call with an IndexRangeError that names them; "
    "params and states are unchanged then.",
    "x",
    _infer,
    attrs=[
        Attr("low", "int", "the smallest valid element"),
        Attr("high", "int", "the largest valid element"),
        Attr("allowed", "ints", "other valid elements", (), False),
        Attr("what", "str", "what an element is, for the error", "index", False),
    ],
    reference=_reference,
    lower_nest=_nest,
    traits=Trait.EFFECT | Trait.CHECK | Trait.MATERIALIZE,
    batch=leading,
    samples=lambda: [
        plain(integers((4,), "int64", 0, 4), low=0, high=4),
        plain(integers((3, 40), "int32", -3, 3), low=-3, high=2**40, what="embedding: index"),
        plain(array([5, -100, 0], "int64"), low=0, high=5, allowed=(-100, 300)),
        plain(integers((2, 70), "uint8", 0, 200), low=-5, high=200, allowed=(-100,)),
        plain(integers((200,), "int8", -100, 100), low=-1000, high=1000),
        plain(array(3, "int64"), low=3, high=3),
        Sample((integers((0, 2), "int64"),), {"low": 0, "high": -1}, False),
    ],
    error_samples=[
        ErrorSample((TensorType(float32, (4,)),), "floating-point (f32)", {"low": 0, "high": 3}, DTypeError),
        ErrorSample((_I,), "range 4 to 2 is not valid", {"low": 4, "high": 2}, AttributeValueError),
        ErrorSample((TensorType(int32, (2,)),), "attribute 'high' is missing", {"low": 0}),
    ],
)


# ---- conditions


def _infer_condition(x: TensorType, message: str) -> TensorType:
    check_kind("check_true", 0, x.dtype, "b")
    return TensorType(bool_, ())


def require_true(x: np.ndarray, message: str) -> None:
    """Raise ConditionError with the message unless all elements are true."""
    if not x.all():
        position = np.argwhere(~x)[0].tolist()
        raise ConditionError(message or "a condition is false", where=f"element {show(position)}" if position else None)


def _reference_condition(x: np.ndarray, message: str) -> np.ndarray:
    require_true(x, message)
    return np.zeros((), np.bool_)


def _condition_nest(c: LowerContext, x: OperandRef, message: str) -> None:
    """Set the result where an element is false, and never reset it."""
    wrong = c.nest.accumulator(bool_, "or", False)
    with c.nest.loops(x.shape, "reduce") as index:
        c.nest.update(wrong, c.load(x, index).eq(False))
    c.store((), c.nest.read(wrong, bool_), combine="or")


def limits_of(attrs: Attrs) -> tuple[int, int, tuple[int, ...]]:
    """Return the smallest and the largest element that passes a check, and further valid ones; true counts as 1."""
    return (attrs["low"], attrs["high"], attrs["allowed"]) if "low" in attrs else (1, 1, ())


check_true = define(
    "check_true",
    "Returns false. Elements that are false stop the call with a ConditionError with the message; params and states "
    "are unchanged then.",
    "x",
    _infer_condition,
    attrs=[Attr("message", "str", "the text of the error", "", False)],
    reference=_reference_condition,
    lower_nest=_condition_nest,
    traits=Trait.EFFECT | Trait.CHECK | Trait.MATERIALIZE,
    batch=leading,
    samples=lambda: [
        Sample((array(True, "bool"),), {"message": "the sum is not positive"}, False),
        Sample((array([[True] * 40] * 3, "bool"),), {}, False),
        Sample((booleans((0, 2)),), {"message": "none"}, False),
    ],
    error_samples=[ErrorSample((TensorType(float32, (4,)),), "floating-point (f32)", {}, DTypeError)],
)
