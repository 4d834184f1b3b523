"""``define``: register an op from its rules and return the function that applies it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from graphc.base.autocast_state import USED
from graphc.base.dtypes import BY_NAME, DType, float32, promote, python_scalar_type, scalar_type, uint64
from graphc.base.errors import ArgumentError, DTypeError, ShapeError, VerifyError
from graphc.base.sizes.symbolic import is_symbolic
from graphc.ir.op import (
    REGISTRY,
    Attr,
    Attrs,
    ErrorSample,
    Halo,
    ImageRule,
    OnParts,
    OpDef,
    Sample,
    Trait,
    Types,
    ZeroSign,
    register,
)
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import BatchRule
from graphc.ops.bounds import BoundsRule
from graphc.ops.dispatch import active, default
from graphc.ops.narrow import Promotion, answers, is_narrow, promote_narrow, rounded_factors
from graphc.ops.rules import show
from graphc.ops.size_numbers import depends_on_sizes, number_of_sizes

Scalar = (bool, int, float, complex, np.bool_, np.number)


class OpFunction:
    """Function that applies an op: ``f(*operands, **attrs)``. Python scalars become constants; types are promoted as
    declared."""

    def __init__(self, op: OpDef, promotes: tuple[int, ...], to_float: bool):
        self.op = op
        self.promotes = promotes
        self.to_float = to_float
        self.contracts = op.has(Trait.CONTRACTION)
        self.__name__ = op.name
        self.__doc__ = op.doc

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        if self.contracts and USED[0] and dispatch.is_front():
            operands = rounded_factors(dispatch.apply, operands)
        if active() is None:
            return default().call(self, operands, attrs)
        return self.applied(operands, attrs)

    def applied(self, operands: Sequence[Any], attrs: Attrs) -> Any:
        """Return the result, computed by op applications of the active dispatcher."""
        promotion = self.promotion(operands, attrs)
        for casts in promotion.stages:
            operands = tuple([t if d is None else as_type(t, d) for t, d in zip(operands, casts, strict=True)])
        results = dispatch.apply(self.op, operands, promotion.attrs)
        narrow = promotion.result
        if narrow is None:
            return results
        if isinstance(results, tuple):
            return tuple([as_type(t, narrow) if t.dtype is float32 else t for t in results])
        return as_type(results, narrow) if results.dtype is float32 else results

    def promotion(self, operands: Sequence[Any], attrs: Attrs) -> Promotion:
        """Return the conversions that give operands, tensors or types and Python scalars, types that the op takes."""
        is_any_narrow = is_narrow(operands, attrs)
        if not self.promotes and not is_any_narrow:
            return Promotion((), attrs)
        casts: list[DType | None] = [None] * len(operands)
        common = None
        if self.promotes:
            indices, common = self._common(operands)
            # Python scalars keep full precision next to narrow floats, except in comparisons, as in PyTorch.
            is_wide = is_any_narrow and common.kind == "h" and not answers(self.op, len(operands), attrs)
            for i in indices:
                if isinstance(operands[i], Scalar):
                    casts[i] = float32 if is_wide else common
                elif operands[i].dtype is not common:
                    casts[i] = common
        if not is_any_narrow or (common is not None and common.kind != "h"):
            return Promotion((casts,), attrs)
        types = [self._type(t, after) for t, after in zip(operands, casts, strict=True)]
        return promote_narrow(self.op, types, casts, attrs, common)

    def _type(self, operand: Any, cast: DType | None) -> TensorType:
        if not isinstance(operand, Scalar):
            return TensorType(cast or operand.dtype, operand.shape)
        if cast is None:
            raise no_tensor(self.op.name, operand)
        return TensorType(cast)

    def _common(self, operands: Sequence[Any]) -> tuple[Sequence[int], DType]:
        indices = range(len(operands)) if self.promotes == EVERY else self.promotes
        dtype = common_type([operands[i] for i in indices], self.op.name)
        return indices, float32 if self.to_float and not dtype.is_differentiable else dtype

    def __repr__(self) -> str:
        return f"<op {self.op.name}>"


EVERY = (-1,)
"""Value of ``define(promotes=...)`` for all operands."""


def common_type(operands: Sequence[Any], name: str = "op") -> DType:
    """Return the promoted type of tensors, values and Python scalars, as PyTorch does. Tensors with dimensions take
    precedence over 0-dimensional ones, and those over Python scalars; a lower class only counts when its category is
    higher."""
    classes: list[DType | None] = [None, None]
    scalars = []
    for operand in operands:
        if isinstance(operand, Scalar):
            scalars.append(operand)
            continue
        if not isinstance(getattr(operand, "dtype", None), DType):
            raise no_tensor(name, operand)
        rank = 0 if operand.shape else 1
        current = classes[rank]
        classes[rank] = operand.dtype if current is None else promote(current, operand.dtype)
    dims, zero = classes
    result = dims or zero
    if dims is not None and zero is not None and _category(zero) > _category(dims):
        result = scalar_type(1j, dims) if zero.is_complex and dims.is_floating_point else zero
    for value in scalars:
        result = python_scalar_type(value) if result is None else scalar_type(value, result)
    assert result is not None
    return result


def no_tensor(name: str, operand: Any) -> ArgumentError:
    """Build the error for an operand of op ``name`` that is neither a tensor nor a number."""
    kind = type(operand)
    type_name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return ArgumentError(f"{name}: {type_name} is no tensor", remedy="pass a tensor, such as graphc.tensor(...)")


def _category(dtype: DType) -> int:
    return {"b": 0, "u": 1, "i": 1, "f": 2, "h": 2, "c": 3}[dtype.kind]


def as_type(operand: Any, dtype: DType) -> Any:
    """Convert ``operand`` to ``dtype``: scalars become constants, others are cast when they differ."""
    if isinstance(operand, Scalar):
        value = operand.item() if isinstance(operand, np.generic) else operand
        if depends_on_sizes(value):
            return number_of_sizes(value, dtype)
        return dispatch.current().scalar(element(value, dtype), dtype)
    return operand if operand.dtype is dtype else dispatch.apply(REGISTRY["cast"], (operand,), {"dtype": dtype})


def element(value: Any, dtype: DType) -> Any:
    """Convert a Python number to an element of a type, modulo the range of an integer type. A symbolic number stays as
    it is until its value is known.

    Raises ArgumentError for an integer beyond i64.
    """
    if dtype.kind not in "iu" or is_symbolic(value):
        return value
    if not -(2**63) <= value < 2 ** (64 if dtype is uint64 else 63):
        widest = "u64" if dtype is uint64 else "i64"
        raise ArgumentError(f"{value} is outside of the range of {widest}", remedy="pass a float")
    low = 0 if dtype.kind == "u" else -(1 << dtype.bits - 1)
    return (int(value) - low) % (1 << dtype.bits) + low


class Rules(TypedDict, total=False):
    """Fields of OpDef that ``define`` passes on unchanged."""

    reference: Callable[..., Any] | None
    vjp: tuple[Callable[..., Any] | None, ...] | Callable[..., Any] | None
    jvp: Callable[..., Any] | None
    lower: Callable[..., Any] | None
    lower_nest: Callable[..., None] | None
    updates: int | None
    complex: OnParts | Callable[..., Any] | None
    decompose: Callable[..., Any] | None
    alias: Callable[..., Any] | None
    batch: BatchRule | None
    cost: int | None
    zero_sign: ZeroSign | tuple[ZeroSign, ...]
    bounds: BoundsRule | None
    image: ImageRule | None
    permutes: Callable[[Attrs], tuple[int, ...]] | None
    halo: Callable[[Attrs], Halo | None] | None
    parts: Callable[[Types, Attrs], tuple[tuple[int, ...], ...]] | None
    multiply_adds: Callable[[Types, Types, Attrs], int] | None
    pairs: Callable[[Types, Attrs], tuple[int, int] | None] | None
    runs: Callable[[Attrs], tuple[Any, int]] | None
    samples: Callable[[], Sequence[Sample]] | None
    module: str


def define(
    name: str,
    doc: str,
    operands: str,
    infer: Callable[..., Any],
    *,
    attrs: Sequence[Attr] = (),
    traits: Trait = Trait.PURE,
    error_samples: Sequence[ErrorSample] = (),
    promotes: tuple[int, ...] = (),
    to_float: bool = False,
    **rules: Unpack[Rules],
) -> OpFunction:
    """Register an op and return the function that applies it.

    ``operands`` are the operand names separated by blanks (a last ``*name`` is variadic). ``promotes`` lists the
    indices of operands to promote to their common type before the op is applied (``EVERY`` for all); ``to_float`` makes
    this type f32 when it is not floating point. The other arguments are the fields of OpDef.
    """
    op = OpDef(
        name=name,
        doc=doc,
        operands=tuple(operands.split()),
        attrs=tuple(attrs),
        infer=infer,
        traits=traits,
        error_samples=tuple(error_samples),
        **rules,
    )
    if Trait.REDUCTION in op.traits:
        _check_reduction(op)
    if op.module and Trait.ELEMENTWISE in op.traits:
        _check_elementwise(op)
    return OpFunction(register(op), promotes, to_float)


def _check_elementwise(op: OpDef) -> None:
    """Raise VerifyError for a user's ELEMENTWISE op whose type rule rejects operands that broadcast. Passes remove
    explicit broadcasts of the operands of such ops."""
    count = len(op.operands)
    if count < 2 or op.variadic or any(a.required for a in op.attrs):
        return
    attrs = {a.name: a.default for a in op.attrs}
    remedy = "use graphc.ops.rules.elementwise as the type rule, or leave out Trait.ELEMENTWISE"
    for dtype in (float32, BY_NAME["bool"]):
        types = [TensorType(dtype, shape) for shape in ((2, 3), *[(3,)] * (count - 1))]
        try:
            results = op.result_types(tuple(types), attrs)
        except DTypeError:
            continue
        except ShapeError as error:
            what = f"{op.name}: an elementwise op takes [2,3] and [3], and its type rule refuses them: {error.what}"
            raise VerifyError(what, remedy=remedy) from None
        if any(t.shape != (2, 3) for t in results):
            what = f"{op.name}: an elementwise op of [2,3] and [3] is [2,3], not {', '.join(map(str, results))}"
            raise VerifyError(what, remedy=remedy)


def _check_reduction(op: OpDef) -> None:
    """Raise VerifyError for an op with a wrong trait REDUCTION. Fusion assumes a single operand, reduced along the
    dimensions in its attribute, with the other dimensions left over."""
    names = {a.name for a in op.attrs}
    attrs = {"axes": (1,)} if "axes" in names else {"axis": 1}
    remedy = "leave out Trait.REDUCTION"
    if len(op.operands) != 1 or not attrs.keys() <= names:
        raise VerifyError(f"{op.name}: a reduction has one operand and an attribute axes or axis", remedy=remedy)
    arguments = {a.name: a.default for a in op.attrs if not a.required} | attrs
    for dtype in (float32, BY_NAME["bool"]):
        try:
            result = op.infer(TensorType(dtype, (2, 3)), **arguments)
        except DTypeError:
            continue
        shapes = [t.shape for t in (result if isinstance(result, tuple) else (result,))]
        if shapes not in ([(2,)], [(2, 1)]):
            what = f"{op.name}: reducing axis 1 of [2,3] gives {', '.join(map(show, shapes))}, not [2] or [2,1]"
            raise VerifyError(what, remedy=remedy)
