"""Functions on tensors under ``graphc.`` that are the method of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.ops.define import Scalar
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


def _as_tensor(value: Any, name: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Scalar):
        return front().constant(np.asarray(value, np.float32 if isinstance(value, float) else None))
    raise ArgumentError(f"{name} takes a tensor, got {type(value).__name__}", remedy="graphc.tensor(...)")


def _method(name: str) -> Callable[..., Any]:
    """The function ``f(tensor, *args)`` that calls a method."""

    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            raise ArgumentError(f"{name} has no out=", remedy=f"x.copy_(graphc.{name}(...)), or the method {name}_")
        return getattr(_as_tensor(input, name), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(Tensor, name).__doc__
    function.__wrapped__ = getattr(Tensor, name)  # type: ignore[attr-defined]  # its signature is shown
    return function


abs = _method("abs")
absolute = _method("absolute")
acos = _method("acos")
acosh = _method("acosh")
add = _method("add")
addbmm = _method("addbmm")
addcdiv = _method("addcdiv")
addcmul = _method("addcmul")
addmm = _method("addmm")
addmv = _method("addmv")
addr = _method("addr")
all = _method("all")
allclose = _method("allclose")
amax = _method("amax")
amin = _method("amin")
aminmax = _method("aminmax")
any = _method("any")
arccos = _method("arccos")
arccosh = _method("arccosh")
arcsin = _method("arcsin")
arcsinh = _method("arcsinh")
arctan = _method("arctan")
arctan2 = _method("arctan2")
arctanh = _method("arctanh")
argmax = _method("argmax")
argmin = _method("argmin")
argsort = _method("argsort")
argwhere = _method("argwhere")
as_strided = _method("as_strided")
asin = _method("asin")
asinh = _method("asinh")
atan = _method("atan")
atan2 = _method("atan2")
atanh = _method("atanh")
baddbmm = _method("baddbmm")
bincount = _method("bincount")
bitwise_and = _method("bitwise_and")
bitwise_left_shift = _method("bitwise_left_shift")
bitwise_not = _method("bitwise_not")
bitwise_or = _method("bitwise_or")
bitwise_right_shift = _method("bitwise_right_shift")
bitwise_xor = _method("bitwise_xor")
bmm = _method("bmm")
broadcast_to = _method("broadcast_to")
ceil = _method("ceil")
chunk = _method("chunk")
clamp = _method("clamp")
clamp_max = _method("clamp_max")
clamp_min = _method("clamp_min")
clip = _method("clip")
clone = _method("clone")
copysign = _method("copysign")
corrcoef = _method("corrcoef")
cos = _method("cos")
cosh = _method("cosh")
count_nonzero = _method("count_nonzero")
cov = _method("cov")
cross = _method("cross")
cummax = _method("cummax")
cummin = _method("cummin")
cumprod = _method("cumprod")
cumsum = _method("cumsum")
deg2rad = _method("deg2rad")
diag = _method("diag")
diag_embed = _method("diag_embed")
diagflat = _method("diagflat")
diagonal = _method("diagonal")
diff = _method("diff")
digamma = _method("digamma")
dist = _method("dist")
div = _method("div")
divide = _method("divide")
dot = _method("dot")
dsplit = _method("dsplit")
eq = _method("eq")
equal = _method("equal")
erf = _method("erf")
erfc = _method("erfc")
erfinv = _method("erfinv")
exp = _method("exp")
exp2 = _method("exp2")
expm1 = _method("expm1")
fix = _method("fix")
flatten = _method("flatten")
flip = _method("flip")
fliplr = _method("fliplr")
flipud = _method("flipud")
float_power = _method("float_power")
floor = _method("floor")
floor_divide = _method("floor_divide")
fmax = _method("fmax")
fmin = _method("fmin")
fmod = _method("fmod")
frac = _method("frac")
gather = _method("gather")
ge = _method("ge")
ger = _method("ger")
greater = _method("greater")
greater_equal = _method("greater_equal")
gt = _method("gt")
heaviside = _method("heaviside")
histc = _method("histc")
hsplit = _method("hsplit")
hypot = _method("hypot")
index_add = _method("index_add")
index_copy = _method("index_copy")
index_fill = _method("index_fill")
index_put = _method("index_put")
index_select = _method("index_select")
inner = _method("inner")
isclose = _method("isclose")
isfinite = _method("isfinite")
isin = _method("isin")
isinf = _method("isinf")
isnan = _method("isnan")
isneginf = _method("isneginf")
isposinf = _method("isposinf")
kron = _method("kron")
kthvalue = _method("kthvalue")
le = _method("le")
lerp = _method("lerp")
less = _method("less")
less_equal = _method("less_equal")
lgamma = _method("lgamma")
log = _method("log")
log10 = _method("log10")
log1p = _method("log1p")
log2 = _method("log2")
log_softmax = _method("log_softmax")
logaddexp = _method("logaddexp")
logaddexp2 = _method("logaddexp2")
logcumsumexp = _method("logcumsumexp")
logical_and = _method("logical_and")
logical_not = _method("logical_not")
logical_or = _method("logical_or")
logical_xor = _method("logical_xor")
logit = _method("logit")
logsumexp = _method("logsumexp")
lt = _method("lt")
masked_fill = _method("masked_fill")
masked_scatter = _method("masked_scatter")
masked_select = _method("masked_select")
max = _method("max")
maximum = _method("maximum")
mean = _method("mean")
median = _method("median")
min = _method("min")
minimum = _method("minimum")
mm = _method("mm")
mode = _method("mode")
moveaxis = _method("moveaxis")
movedim = _method("movedim")
msort = _method("msort")
mul = _method("mul")
multiply = _method("multiply")
mv = _method("mv")
mvlgamma = _method("mvlgamma")
nan_to_num = _method("nan_to_num")
nanmean = _method("nanmean")
nanmedian = _method("nanmedian")
nansum = _method("nansum")
narrow = _method("narrow")
ne = _method("ne")
neg = _method("neg")
negative = _method("negative")
nonzero = _method("nonzero")
norm = _method("norm")
not_equal = _method("not_equal")
outer = _method("outer")
permute = _method("permute")
positive = _method("positive")
pow = _method("pow")
prod = _method("prod")
quantile = _method("quantile")
rad2deg = _method("rad2deg")
ravel = _method("ravel")
reciprocal = _method("reciprocal")
relu = _method("relu")
remainder = _method("remainder")
renorm = _method("renorm")
repeat_interleave = _method("repeat_interleave")
reshape = _method("reshape")
roll = _method("roll")
rot90 = _method("rot90")
round = _method("round")
rsqrt = _method("rsqrt")
rsub = _method("rsub")
scatter = _method("scatter")
scatter_add = _method("scatter_add")
scatter_reduce = _method("scatter_reduce")
select = _method("select")
select_scatter = _method("select_scatter")
sgn = _method("sgn")
sigmoid = _method("sigmoid")
sign = _method("sign")
signbit = _method("signbit")
sin = _method("sin")
sinc = _method("sinc")
sinh = _method("sinh")
slice_scatter = _method("slice_scatter")
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
swapdims = _method("swapdims")
t = _method("t")
take = _method("take")
take_along_dim = _method("take_along_dim")
tan = _method("tan")
tanh = _method("tanh")
tensor_split = _method("tensor_split")
tile = _method("tile")
topk = _method("topk")
transpose = _method("transpose")
trapezoid = _method("trapezoid")
tril = _method("tril")
triu = _method("triu")
true_divide = _method("true_divide")
trunc = _method("trunc")
unbind = _method("unbind")
unflatten = _method("unflatten")
unique = _method("unique")
unsqueeze = _method("unsqueeze")
var = _method("var")
vdot = _method("vdot")
vsplit = _method("vsplit")
xlogy = _method("xlogy")

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_strided",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "baddbmm",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bmm",
    "broadcast_to",
    "ceil",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "deg2rad",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diff",
    "digamma",
    "dist",
    "div",
    "divide",
    "dot",
    "dsplit",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "gather",
    "ge",
    "ger",
    "greater",
    "greater_equal",
    "gt",
    "heaviside",
    "histc",
    "hsplit",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "inner",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kron",
    "kthvalue",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logsumexp",
    "lt",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "max",
    "maximum",
    "mean",
    "median",
    "min",
    "minimum",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "msort",
    "mul",
    "multiply",
    "mv",
    "mvlgamma",
    "nan_to_num",
    "nanmean",
    "nanmedian",
    "nansum",
    "narrow",
    "ne",
    "neg",
    "negative",
    "nonzero",
    "norm",
    "not_equal",
    "outer",
    "permute",
    "positive",
    "pow",
    "prod",
    "quantile",
    "rad2deg",
    "ravel",
    "reciprocal",
    "relu",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reshape",
    "roll",
    "rot90",
    "round",
    "rsqrt",
    "rsub",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select",
    "select_scatter",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "slice_scatter",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor_split",
    "tile",
    "topk",
    "transpose",
    "trapezoid",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "unbind",
    "unflatten",
    "unique",
    "unsqueeze",
    "var",
    "vdot",
    "vsplit",
    "xlogy",
]
