"""Functions under ``graphc.`` that call the tensor method of the same name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graphc.base.dtypes import scalar_type
from graphc.base.errors import ArgumentError
from graphc.ops.define import Scalar, element
from graphc.tensors.out import into
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


def _as_tensor(value: Any, name: str, others: Iterable[Any]) -> Tensor:
    """Convert a number in place of the first tensor operand, with the type implied by the other operand
    implies."""
    beside = next((other for other in others if isinstance(other, Tensor)), None)
    if isinstance(value, Scalar) and beside is not None:
        dtype = scalar_type(value, beside.dtype)
        return front().scalar(element(value, dtype), dtype)
    raise ArgumentError(f"{name} takes a tensor, got {type(value).__name__}", remedy="pass graphc.tensor(...)")


def _method(name: str) -> Callable[..., Any]:
    """Return the function ``f(tensor, *args)`` that calls a method."""

    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None) if kwargs else None
        if not isinstance(input, Tensor):
            input = _as_tensor(input, name, (*args, *kwargs.values()))
        result = getattr(input, name)(*args, **kwargs)
        return result if out is None else into(out, result, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(Tensor, name).__doc__
    function.__wrapped__ = getattr(Tensor, name)  # type: ignore[attr-defined]  # inspect.signature shows that of the method
    return function


_METHOD = _method("abs")
"""In place of the functions below, of methods with their names."""
abs = abs_ = absolute = acos = acos_ = acosh = acosh_ = add = addbmm = addcdiv = addcmul = addmm = addmv = _METHOD
addmv_ = addr = adjoint = all = allclose = amax = amin = aminmax = any = arccos = arccos_ = arccosh = arccosh_ = _METHOD
arcsin = arcsin_ = arcsinh = arcsinh_ = arctan = arctan2 = arctan_ = arctanh = arctanh_ = argmax = argmin = _METHOD
argsort = argwhere = as_strided = as_strided_ = as_strided_scatter = asin = asin_ = asinh = asinh_ = atan = _METHOD
atan2 = atan_ = atanh = atanh_ = baddbmm = bincount = bitwise_and = bitwise_left_shift = bitwise_not = _METHOD
bitwise_or = bitwise_right_shift = bitwise_xor = bmm = broadcast_to = ceil = ceil_ = cholesky = _METHOD
cholesky_inverse = cholesky_solve = chunk = clamp = clamp_ = clamp_max = clamp_max_ = clamp_min = clamp_min_ = _METHOD
clip = clip_ = clone = copysign = corrcoef = cos = cos_ = cosh = cosh_ = count_nonzero = cov = cross = cummax = _METHOD
cummin = cumprod = cumsum = cumulative_trapezoid = deg2rad = deg2rad_ = det = detach = detach_ = diag = _METHOD
diag_embed = diagflat = diagonal = diagonal_scatter = diff = digamma = dist = div = divide = dot = dsplit = eq = _METHOD
equal = erf = erf_ = erfc = erfc_ = erfinv = exp = exp2 = exp2_ = exp_ = expm1 = expm1_ = fill_ = fix = fix_ = _METHOD
flatten = flip = fliplr = flipud = float_power = floor = floor_ = floor_divide = fmax = fmin = fmod = frac = _METHOD
frac_ = frexp = gather = gcd = gcd_ = ge = geqrf = ger = get_device = gradient = greater = greater_equal = gt = _METHOD
heaviside = histc = histogram = histogramdd = hsplit = hypot = i0 = i0_ = igamma = igammac = index_add = _METHOD
index_copy = index_fill = index_put = index_put_ = index_reduce = index_select = inner = inverse = is_complex = _METHOD
is_inference = is_same_size = is_signed = isclose = isfinite = isin = isinf = isnan = isneginf = isposinf = _METHOD
isreal = kron = kthvalue = lcm = lcm_ = ldexp = ldexp_ = le = lerp = less = less_equal = lgamma = log = log10 = _METHOD
log10_ = log1p = log1p_ = log2 = log2_ = log_ = log_softmax = logaddexp = logaddexp2 = logcumsumexp = logdet = _METHOD
logical_and = logical_not = logical_or = logical_xor = logit = logit_ = logsumexp = lt = lu = lu_solve = _METHOD
masked_fill = masked_scatter = masked_select = matrix_exp = matrix_power = max = maximum = mean = median = min = _METHOD
minimum = mm = mode = moveaxis = movedim = msort = mul = multiply = mv = mvlgamma = nan_to_num = nan_to_num_ = _METHOD
nanmean = nanmedian = nanquantile = nansum = narrow = ne = neg = neg_ = negative = negative_ = nextafter = _METHOD
nonzero = nonzero_static = norm = not_equal = orgqr = ormqr = outer = permute = pinverse = positive = pow = _METHOD
prod = put = qr = quantile = rad2deg = rad2deg_ = ravel = reciprocal = reciprocal_ = relu = relu_ = remainder = _METHOD
renorm = repeat_interleave = reshape = roll = rot90 = round = round_ = rsqrt = rsqrt_ = rsub = scatter = _METHOD
scatter_add = scatter_reduce = select = select_scatter = sgn = sigmoid = sigmoid_ = sign = signbit = sin = _METHOD
sin_ = sinc = sinc_ = sinh = sinh_ = slice_scatter = slogdet = softmax = sort = split = split_with_sizes = _METHOD
sqrt = sqrt_ = square = square_ = squeeze = std = sub = subtract = sum = svd = swapaxes = swapdims = t = take = _METHOD
take_along_dim = tan = tan_ = tanh = tanh_ = tensor_split = tile = topk = transpose = trapezoid = trapz = _METHOD
triangular_solve = tril = triu = true_divide = trunc = trunc_ = unbind = unflatten = unique = _METHOD
unique_consecutive = unsafe_chunk = unsafe_split = unsafe_split_with_sizes = unsqueeze = var = vdot = vsplit = _METHOD
xlogy = xlogy_ = zero_ = _METHOD

_ALL = tuple(vars().items())
__all__ = [n for n, value in _ALL if value is _METHOD and n != "_METHOD"]  # pyright: ignore[reportUnsupportedDunderAll]
"""The functions above."""
globals().update({_name: _method(_name) for _name in __all__})
