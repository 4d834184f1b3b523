"""State of a graph: read and write parameters and buffers; stop a gradient, or redirect it."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import DTypeError, ShapeError
from graphc.base.sizes.dims import same_sizes
from graphc.ir.op import ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops import bounds
from graphc.ops.batch import leading
from graphc.ops.define import define
from graphc.ops.movement.shape import broadcast_to
from graphc.ops.pointwise.elementwise import ELEMENTWISE, lowered
from graphc.ops.rules import broadcast, check_one_dtype, elementwise, show
from graphc.ops.samples import binary, booleans, floats, integers, plain

_F = TensorType(float32, (2, 3))


def _infer_write(s: TensorType, value: TensorType) -> TensorType:
    check_one_dtype("state_write", (s, value))
    if s.shape != value.shape:
        what = f"state_write: the state is {show(s.shape)} and the value {show(value.shape)}"
        raise ShapeError(what, remedy="broadcast_to or reshape the value to the shape of the state")
    return s


def _infer_same(x: TensorType) -> TensorType:
    return x


def _identity_samples() -> list[Sample]:
    return [
        Sample((floats((2, 3)),)),
        Sample((floats((), "float32"),)),
        Sample((floats((0, 2), "float32"),)),
        plain(integers((5,), "int8")),
        plain(booleans((3,))),
    ]


state_read = define(
    "state_read",
    "The content of a param or state argument at entry.",
    "s",
    _infer_same,
    reference=lambda s: s,
    vjp=(lambda g, result, s: g,),
    lower=lambda c, index, s: c.load(s, index),
    traits=Trait.PURE | Trait.VIEW | Trait.IDENTITY | Trait.STATE_READ,
    samples=_identity_samples,
    error_samples=(ErrorSample((_F, _F), "takes 1 operands, got 2"),),
)

state_write = define(
    "state_write",
    "Makes value the content of the param or state argument s after the call, and returns it; once per argument.",
    "s value",
    _infer_write,
    reference=lambda s, value: value.copy(),
    vjp=(None, lambda g, result, s, value: g),
    lower=lambda c, index, s, value: c.load(value, index),
    traits=Trait.EFFECT | Trait.STATE_WRITE,
    samples=lambda: [
        Sample((floats((2, 3)), floats((2, 3), seed=1)), {}),
        Sample((floats((), "float32"), floats((), "float32", seed=1))),
        Sample((floats((0, 2)), floats((0, 2)))),
        plain(integers((5,), "int64"), integers((5,), "int64", seed=1)),
        plain(booleans((3,)), booleans((3,), 1)),
    ],
    error_samples=(
        ErrorSample((_F, TensorType(float32, (3,))), "the state is [2,3] and the value [3]", {}, ShapeError),
        ErrorSample((_F, TensorType(float64, (2, 3))), "f32 (operand 0) and f64 (operand 1)", {}, DTypeError),
    ),
)

stop_gradient = define(
    "stop_gradient",
    "x, through which no gradient flows.",
    "x",
    _infer_same,
    reference=lambda x: x,
    lower=lambda c, index, x: c.load(x, index),
    traits=Trait.PURE | Trait.VIEW | Trait.IDENTITY,
    bounds=bounds.of_first,
    batch=leading,
    alias=lambda content, value: value,
    samples=lambda: [plain(*s.operands) for s in _identity_samples()],
    error_samples=(ErrorSample((), "takes 1 operands, got 0"),),
)


untracked = define(
    "untracked",
    "x, as code without gradient recording reads it: no gradient flows through it, but tangents do.",
    "x",
    _infer_same,
    reference=lambda x: x,
    jvp=lambda tangents, result, x: tangents[0],
    lower=lambda c, index, x: c.load(x, index),
    traits=Trait.PURE | Trait.VIEW | Trait.IDENTITY,
    bounds=bounds.of_first,
    batch=leading,
    alias=lambda content, value: value,
    samples=lambda: [plain(*s.operands) for s in _identity_samples()],
    error_samples=(ErrorSample((), "takes 1 operands, got 0"),),
)


def _decompose_straight_through(x: Any, value: Any) -> Any:
    shape = broadcast("straight_through", (x.type, value.type))
    return value if same_sizes(value.shape, shape) else broadcast_to(value, shape=shape)


straight_through = define(
    "straight_through",
    "value, whose gradient goes to x unchanged: the straight-through estimator of Bengio et al. 2013, section 4.",
    "x value",
    elementwise("straight_through", "fc"),
    reference=lambda x, value: np.broadcast_to(value, np.broadcast_shapes(x.shape, value.shape)).copy(),
    vjp=(lambda g, result, x, value: g, None),
    lower=lowered(lambda nest, x, value: value),
    decompose=_decompose_straight_through,
    traits=ELEMENTWISE,
    samples=binary(kinds="f", differentiable=False),
    error_samples=(
        ErrorSample((_F, TensorType(float32, (4,))), "do not broadcast: 3 and 4", {}, ShapeError),
        ErrorSample((_F, TensorType(float64, (2, 3))), "f32 (operand 0) and f64 (operand 1)", {}, DTypeError),
    ),
)
