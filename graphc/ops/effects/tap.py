"""The tap: a value of a graph observed from outside, such as a module's output with a hook on it."""

from __future__ import annotations

from graphc.base.dtypes import float32
from graphc.ir.op import Attr, ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.batch import leading
from graphc.ops.define import define
from graphc.ops.samples import booleans, floats, integers, plain


def _infer(x: TensorType, name: str) -> TensorType:
    return x


tap = define(
    "tap",
    "x, reported under a name to observers of the graph. Observers may be absent and cannot change the value.",
    "x",
    _infer,
    attrs=[Attr("name", "str", "its name for observers, e.g. the path of a module")],
    reference=lambda x, name: x.copy(),
    vjp=(lambda g, result, x, name: g,),
    lower=lambda c, index, x, name: c.load(x, index),
    traits=Trait.EFFECT | Trait.MATERIALIZE,
    batch=leading,
    samples=lambda: [
        Sample((floats((2, 3)),), {"name": "fc1"}),
        Sample((floats((), "float32"),), {"name": "loss"}),
        Sample((floats((0, 2)),), {"name": ""}),
        plain(integers((3,), "int8"), name="counts"),
        plain(booleans((3,)), name="mask"),
    ],
    error_samples=(
        ErrorSample((TensorType(float32, (2,)),), "attribute 'name' is missing"),
        ErrorSample((TensorType(float32, (2,)),), "attribute name must be str, got 3", {"name": 3}),
    ),
)
