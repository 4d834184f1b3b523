"""Functions on tensors under ``graphc.``; most are the method of the same name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.errors import ArgumentError
from graphc.methods.arithmetic import product
from graphc.methods.shaping import concatenate, stacked
from graphc.ops import elementwise as ew
from graphc.ops.define import Scalar
from graphc.tensor import Tensor
from graphc.tensor_base import front


def _as_tensor(value: Any, name: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Scalar):
        return front().constant(np.asarray(value, np.float32 if isinstance(value, float) else None))
    raise ArgumentError(f"{name} takes a tensor, got {type(value).__name__}", remedy="graphc.tensor(...)")


def _method(name: str) -> Callable[..., Any]:
    """The function ``f(tensor, *args)`` that calls a method."""

    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(_as_tensor(input, name), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(Tensor, name).__doc__
    return function


abs = _method("abs")
add = _method("add")
addcdiv = _method("addcdiv")
addcmul = _method("addcmul")
addmm = _method("addmm")
all = _method("all")
allclose = _method("allclose")
amax = _method("amax")
amin = _method("amin")
any = _method("any")
argmax = _method("argmax")
argmin = _method("argmin")
argsort = _method("argsort")
bitwise_and = _method("bitwise_and")
bitwise_not = _method("bitwise_not")
bitwise_or = _method("bitwise_or")
bitwise_xor = _method("bitwise_xor")
bmm = _method("bmm")
broadcast_to = _method("broadcast_to")
ceil = _method("ceil")
chunk = _method("chunk")
clamp = _method("clamp")
clip = _method("clip")
clone = _method("clone")
cos = _method("cos")
count_nonzero = _method("count_nonzero")
cumsum = _method("cumsum")
diagonal = _method("diagonal")
div = _method("div")
divide = _method("divide")
dot = _method("dot")
eq = _method("eq")
equal = _method("equal")
erf = _method("erf")
exp = _method("exp")
expm1 = _method("expm1")
flatten = _method("flatten")
flip = _method("flip")
floor = _method("floor")
floor_divide = _method("floor_divide")
gather = _method("gather")
ge = _method("ge")
gt = _method("gt")
index_select = _method("index_select")
isclose = _method("isclose")
isfinite = _method("isfinite")
isinf = _method("isinf")
isnan = _method("isnan")
le = _method("le")
lerp = _method("lerp")
log = _method("log")
log1p = _method("log1p")
log_softmax = _method("log_softmax")
logical_and = _method("logical_and")
logical_not = _method("logical_not")
logical_or = _method("logical_or")
logical_xor = _method("logical_xor")
logsumexp = _method("logsumexp")
lt = _method("lt")
masked_fill = _method("masked_fill")
masked_select = _method("masked_select")
max = _method("max")
maximum = _method("maximum")
mean = _method("mean")
min = _method("min")
minimum = _method("minimum")
mm = _method("mm")
movedim = _method("movedim")
mul = _method("mul")
multiply = _method("multiply")
mv = _method("mv")
narrow = _method("narrow")
ne = _method("ne")
neg = _method("neg")
nonzero = _method("nonzero")
norm = _method("norm")
outer = _method("outer")
permute = _method("permute")
pow = _method("pow")
prod = _method("prod")
ravel = _method("ravel")
reciprocal = _method("reciprocal")
relu = _method("relu")
remainder = _method("remainder")
repeat_interleave = _method("repeat_interleave")
reshape = _method("reshape")
roll = _method("roll")
round = _method("round")
rsqrt = _method("rsqrt")
rsub = _method("rsub")
scatter = _method("scatter")
scatter_add = _method("scatter_add")
select = _method("select")
sigmoid = _method("sigmoid")
sign = _method("sign")
sin = _method("sin")
softmax = _method("softmax")
sort = _method("sort")
split = _method("split")
sqrt = _method("sqrt")
square = _method("square")
squeeze = _method("squeeze")
std = _method("std")
sub = _method("sub")
subtract = _method("subtract")
sum = _method("sum")
swapaxes = _method("swapaxes")
t = _method("t")
tanh = _method("tanh")
tile = _method("tile")
topk = _method("topk")
transpose = _method("transpose")
tril = _method("tril")
triu = _method("triu")
true_divide = _method("true_divide")
trunc = _method("trunc")
unbind = _method("unbind")
unflatten = _method("unflatten")
unsqueeze = _method("unsqueeze")
var = _method("var")


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product: vectors are rows on the left and columns on the right; batches broadcast."""
    return product(input, other)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Joins tensors along a dimension."""
    return concatenate(tensors, dim)


concat = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Joins tensors of one shape along a new dimension."""
    return stacked(tensors, dim)


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """``input`` where the condition holds, else ``other``; alone, the indices where it holds (which needs values)."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return ew.where(condition, input, other)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    extents = np.broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t.expand(*extents) for t in tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors; ``ij`` puts the first vector along the first dimension, ``xy`` along the second."""
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"indexing must be 'ij' or 'xy', got {indexing!r}")
    swap = indexing == "xy" and len(given) > 1
    ordered = [given[1], given[0], *given[2:]] if swap else given
    count = len(ordered)
    extents = [t.numel() for t in ordered]
    grids = [t.reshape(*(-1 if d == i else 1 for d in range(count))).expand(*extents) for i, t in enumerate(ordered)]
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


def numel(input: Tensor) -> int:
    """Number of elements."""
    return input.numel()


def is_floating_point(input: Tensor) -> bool:
    """True for f32 and f64."""
    return input.is_floating_point()


def typename(value: Any) -> str:
    """The name of a tensor's element type, or of any other object's class."""
    if isinstance(value, Tensor):
        return value.type()
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


__all__ = [
    "abs",
    "add",
    "addcdiv",
    "addcmul",
    "addmm",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bmm",
    "broadcast_tensors",
    "broadcast_to",
    "cat",
    "ceil",
    "chunk",
    "clamp",
    "clip",
    "clone",
    "concat",
    "cos",
    "count_nonzero",
    "cumsum",
    "diagonal",
    "div",
    "divide",
    "dot",
    "eq",
    "equal",
    "erf",
    "exp",
    "expm1",
    "flatten",
    "flip",
    "floor",
    "floor_divide",
    "gather",
    "ge",
    "gt",
    "index_select",
    "is_floating_point",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "lerp",
    "log",
    "log1p",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "lt",
    "masked_fill",
    "masked_select",
    "matmul",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "movedim",
    "mul",
    "multiply",
    "mv",
    "narrow",
    "ne",
    "neg",
    "nonzero",
    "norm",
    "numel",
    "outer",
    "permute",
    "pow",
    "prod",
    "ravel",
    "reciprocal",
    "relu",
    "remainder",
    "repeat_interleave",
    "reshape",
    "roll",
    "round",
    "rsqrt",
    "rsub",
    "scatter",
    "scatter_add",
    "select",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "t",
    "tanh",
    "tile",
    "topk",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "typename",
    "unbind",
    "unflatten",
    "unsqueeze",
    "var",
    "where",
]
