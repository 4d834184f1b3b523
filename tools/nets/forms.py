"""Calls of every public function and method of tensors: one or more lists of arguments for each name."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphc as gc
from graphc.nn import functional
from tools.nets.operands import ANY, BOOL, FLOAT, INTEGER, POSITIVE, a, b, f, i, n, p

Form = tuple[Any, ...]
"""Operands and plain values; a dictionary at the end holds keyword arguments."""
FORMS: dict[str, list[Form]] = {}
"""Argument lists by name; a method takes the first argument as itself."""


def _each(names: str, *forms: Form) -> None:
    for name in names.split():
        FORMS.setdefault(name, []).extend(forms)


_each(
    "abs absolute acosh arccosh arcsinh arctan asinh atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 fix floor frac "
    "i0 isreal isfinite isinf isnan isneginf isposinf lgamma digamma logical_not nan_to_num neg negative positive "
    "rad2deg relu round sgn sigmoid sign signbit sin sinc sinh square tan tanh trunc celu elu gelu hardshrink "
    "hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus softshrink softsign tanhshrink "
    "acos arccos asin arcsin arctanh atanh erfinv log log10 log1p log2 logit reciprocal rsqrt sqrt",
    (FLOAT,),
    (ANY,),
)
_each("acos arccos asin arcsin arctanh atanh erfinv log log10 log1p log2 logit rsqrt sqrt", (POSITIVE,))
_each(
    "clone contiguous ravel flatten argwhere nonzero unique atleast_1d atleast_2d atleast_3d numel is_nonzero", (ANY,)
)
_each("bitwise_not", (INTEGER,), (BOOL,))
_each(
    "add sub subtract mul multiply div divide true_divide maximum minimum fmax fmin eq ne not_equal lt less le "
    "less_equal gt greater ge greater_equal logical_and logical_or logical_xor floor_divide remainder fmod",
    (ANY, ANY),
    (FLOAT, FLOAT),
    (ANY, 2),
    (FLOAT, 0.5),
    (a(2, 3), a(3)),
    (f(4, 3), f(4, 1)),
    (FLOAT, ANY),
)
_each("isclose rsub", (ANY, ANY), (FLOAT, FLOAT), (f(2, 3), f(3)))
_each("atan2 arctan2 hypot logaddexp logaddexp2 copysign xlogy float_power heaviside", (FLOAT, FLOAT), (f(2, 3), f(3)))
_each("xlogy float_power pow", (FLOAT, 2.0), (FLOAT, -1), (POSITIVE, FLOAT))
_each("float_power pow", (INTEGER, 3))
_each("float_power_", (FLOAT, FLOAT), (FLOAT, 2.0))
_each("pow", (FLOAT, 0), (FLOAT, 0.5), (FLOAT, 1))
_each("rsub", (FLOAT, 2.0))
_each("bitwise_and bitwise_or bitwise_xor", (INTEGER, INTEGER), (BOOL, BOOL), (INTEGER, 3))
_each("bitwise_left_shift bitwise_right_shift", (INTEGER, 2), (i(2, 3), n(5, 3)))
_each(
    "div",
    (ANY, ANY, {"rounding_mode": "floor"}),
    (ANY, ANY, {"rounding_mode": "trunc"}),
    (INTEGER, 3, {"rounding_mode": "trunc"}),
)
_each("add sub", (FLOAT, FLOAT, {"alpha": 2}))
_each("round", (FLOAT, {"decimals": 2}))
_each("nan_to_num", (FLOAT, 1.0, 2.0, -3.0))
_each("clamp clip", (FLOAT, -0.5, 0.5), (ANY, 1, 3), (FLOAT, {"max": 0.1}), (FLOAT, FLOAT, FLOAT), (f(2, 3), f(3)))
_each("clamp_min clamp_max", (ANY, 1), (FLOAT, 0.25), (FLOAT, FLOAT))
_each("addcmul addcdiv", (FLOAT, FLOAT, FLOAT), (FLOAT, FLOAT, FLOAT, {"value": 0.5}), (f(2, 3), f(3), f(2, 1)))
_each("lerp", (FLOAT, FLOAT, 0.3), (FLOAT, FLOAT, FLOAT))
_each("where.graphc", (BOOL, ANY, ANY), (b(2, 1), f(3), f(2, 3)), (BOOL, FLOAT, 0.0))
_each("where.Tensor", (FLOAT, BOOL, FLOAT), (f(2, 3), b(3), f(2, 3)))
_each("igamma igammac", (POSITIVE, POSITIVE))
_each("polygamma.graphc", (1, POSITIVE), (2, POSITIVE))
_each("polygamma.Tensor", (POSITIVE, 1), (POSITIVE, 2))
_each("mvlgamma multigammaln", (f(3), 2), (p(2, 3), 1))
_each("bessel_j0 bessel_j1 entr erfcx i0e i1 i1e log_ndtr modified_bessel_i0 modified_bessel_i1 ndtr ndtri", (FLOAT,))
_each("expit gammaln psi", (FLOAT,), (ANY,))
_each("entr ndtri", (POSITIVE,))
_each("xlog1py", (FLOAT, FLOAT), (f(2, 3), f(3)), (FLOAT, 2.0))
_each("zeta", (FLOAT, FLOAT), (p(2, 3), p(3)))
_each("gammainc gammaincc", (POSITIVE, POSITIVE), (FLOAT, FLOAT))
_each("polygamma.special", (1, POSITIVE), (2, POSITIVE))
_each("threshold", (FLOAT, 0.1, -9.0))
_each("prelu", (f(2, 3), f(3)), (f(2, 3, 4), f(1)))
_each("rrelu rrelu_ dropout alpha_dropout", (FLOAT, {"training": False}))
_each("dropout1d", (f(2, 3, 4), {"training": False}))
_each("dropout2d feature_alpha_dropout", (f(2, 3, 4, 4), {"training": False}))
_each("dropout3d", (f(2, 3, 2, 2, 2), {"training": False}))

_each(
    "sum mean prod amax amin max min any all nansum nanmean",
    (ANY,), (FLOAT,), (a(2, 3), 1), (f(4, 3, 2), 1), (a(2, 3), 0, True), (f(3, 33), -1), (a(0, 3), 1),
)  # fmt: skip
_each("sum mean amax amin any all nansum nanmean", (f(4, 3, 2), (0, 2)), (a(2, 3), (0, 1), True))
_each("count_nonzero", (ANY,), (a(2, 3), 1), (a(0, 3), 1))
_each("argmax argmin median nanmedian mode", (FLOAT,), (a(2, 3), 1), (f(2, 33), 1))
_each("std var std_mean var_mean", (FLOAT,), (f(4, 3), 1), (f(4, 3), 0, {"correction": 0}), (f(3, 4, 2), (0, 2)))
_each("logsumexp", (f(3, 4), 1), (f(3, 4), (0, 1)), (f(2, 33), 1, True))
_each("softmax log_softmax softmin", (f(3, 4), 1), (f(2, 3, 5), 1), (f(4, 33), -1))
_each("cumsum cumprod cummax cummin", (a(2, 5), 1), (f(3, 4), 0), (f(2, 33), 1))
_each("logcumsumexp", (f(3, 4), 1))
_each("aminmax", (ANY,), (f(3, 4), {"dim": 1}))
_each("norm", (f(3, 4),), (f(3, 4), 1), (f(3, 4), 2, 1), (f(3, 4), float("inf"), 0))
_each("dist", (f(3, 4), f(3, 4)), (f(3, 4), f(3, 4), 1))
_each("quantile", (f(7), 0.3), (f(3, 5), 0.5, 1))
_each("sort argsort msort", (a(7),), (f(3, 5),))
_each("sort argsort", (f(3, 5), 0), (a(3, 5), 1, True))
_each("topk", (f(7), 3), (f(3, 5), 2, 1), (a(5), 2, {"largest": False}))
_each("kthvalue", (f(7), 3), (f(3, 5), 2, 1))
_each("histc", (f(9), 4), (f(9), 4, -1.0, 1.0))
_each("bincount", (n(5, 7),), (n(5, 7), p(7)))
_each("cov corrcoef", (f(3, 5),))
_each("renorm", (f(3, 4), 2, 0, 1.0))
_each("normalize", (f(3, 4),), (f(3, 4), 1.0, 0))
_each("equal allclose is_same_size", (ANY, ANY))
_each("isin", (a(5), a(3)))

_each("reshape view", (a(2, 6), (3, 4)), (f(2, 0, 3), (0, 6)), (a(2, 3), -1))
_each("reshape_as view_as expand_as", (a(2, 3), a(2, 3)))
_each("permute", (a(2, 3, 4), (2, 0, 1)))
_each("transpose swapaxes swapdims", (a(2, 3, 4), 0, 2))
_each("movedim moveaxis", (a(2, 3, 4), 0, 2), (a(2, 3, 4), (0, 1), (1, 2)))
_each("t", (a(2, 3),), (a(4),))
_each("adjoint", (f(2, 3),))
_each("unsqueeze", (ANY, 0), (a(2, 3), -1))
_each("squeeze", (a(2, 1, 3),), (a(2, 1, 3), 1))
_each("flatten", (a(2, 3, 4), 1))
_each("unflatten", (a(2, 6), 1, (2, 3)))
_each("broadcast_to expand", (a(3), (2, 3)), (a(2, 1), (2, 0)))
_each("sum_to_size", (f(2, 3), (1, 3)))
_each("narrow", (a(5, 3), 0, 1, 2))
_each("select", (a(5, 3), 0, 1), (a(5, 3), -1, 0))
_each("split", (a(5, 3), 2), (a(5, 3), [1, 4]))
_each("split_with_sizes", (a(5, 3), [1, 4]))
_each("chunk tensor_split", (a(5, 3), 2), (a(3, 5), 3, 1))
_each("hsplit vsplit dsplit", (a(4, 4, 4), 2))
_each("unbind", (a(3, 2),), (a(3, 2), 1))
_each("flip", (a(3, 4), (0,)), (a(3, 4), (0, 1)))
_each("fliplr flipud", (a(3, 4),))
_each("roll", (a(7), 2), (a(3, 4), (1, -1), (0, 1)))
_each("rot90", (a(3, 4),), (a(3, 4), 3, (1, 0)))
_each("repeat tile", (a(2, 3), (2, 1)), (a(3), (2, 2)))
_each("repeat_interleave", (a(3), 2), (a(2, 3), 2, 1))
_each("tril triu", (a(3, 4),), (a(3, 4), 1), (f(2, 3, 3), -1))
_each("diag diagflat diag_embed", (a(4),), (a(4), 1))
_each("diag", (a(3, 4),))
_each("diagonal", (a(3, 4),), (a(3, 4), 1), (f(2, 3, 4), 0, 1, 2))
_each("trace", (a(3, 3),))
_each("diff", (a(5),), (f(3, 5), 2), (f(3, 5), 1, 0))
_each("trapezoid", (f(5),), (f(3, 5), f(5)))
_each("as_strided", (f(12), (3, 2), (4, 2)), (a(12), (2, 3), (1, 1)))
_each("unfold", (f(9), 0, 4, 2))
_each("cat concat concatenate", ([a(2, 3), a(1, 3)],), ([f(2, 3), f(2, 0)], 1))
_each("stack column_stack dstack hstack row_stack vstack", ([a(2, 3), a(2, 3)],))
_each("block_diag broadcast_tensors cartesian_prod meshgrid", (a(3), a(3)))
_each("combinations vander", (a(4),))

_each("gather", (f(4, 3), 0, n(4, 2, 3)), (a(4, 3), 1, n(3, 4, 5)))
_each("take_along_dim", (f(4, 3), n(4, 2, 3), 0), (a(4, 3), n(3, 4, 5), 1))
_each("scatter", (f(5), 0, n(5, 4), 3.0), (f(5), 0, n(5, 4), f(4)), (f(4, 3), 0, n(4, 6, 3), f(6, 3)))
_each("scatter_add", (f(5), 0, n(5, 4), f(4)), (a(4, 3), 1, n(3, 4, 5), a(4, 5)))
_each("scatter_reduce", *((f(5), 0, n(5, 9), f(9), how) for how in ("sum", "prod", "mean", "amax", "amin")))
_each("scatter_reduce", (f(5), 0, n(5, 9), f(9), "amax", {"include_self": False}))
_each("index_select", (a(4, 3), 0, n(4, 6)), (f(4, 3), 1, n(3, 2)))
_each("index_add", (f(4, 3), 0, n(4, 6), f(6, 3)), (f(4, 3), 1, n(3, 5), f(4, 5), {"alpha": 2}))
_each("index_copy", (f(4, 3), 0, n(4, 6), f(6, 3)))
_each("index_fill", (f(4, 3), 0, n(4, 6), 2.0))
_each("index_put", (f(4, 3), (n(4, 6),), f(6, 3)), (f(4, 3), (n(4, 6), n(3, 6)), f(6), {"accumulate": True}))
_each("take", (a(4, 3), n(12, 5)))
_each("masked_fill", (a(3, 4), b(3, 4), 1), (f(3, 4), b(4), 2.5))
_each("masked_select", (a(3, 4), b(3, 4)))
_each("masked_scatter", (f(3, 4), b(3, 4), f(12)))
_each("select_scatter", (f(4, 3), f(3), 0, 1))
_each("slice_scatter", (f(5, 3), f(2, 3), 0, 1, 5, 2))
_each("searchsorted", (p(5), f(3)))
_each("bucketize", (f(3), p(5)))
_each("embedding", (n(5, 3, 4), f(5, 2)))
_each("embedding_bag", (n(5, 3, 4), f(5, 2)))
_each("one_hot", (n(5, 3, 4), 5))

_each(
    "matmul",
    (f(3, 4), f(4, 5)),
    (f(4), f(4)),
    (f(2, 3, 4), f(4, 5)),
    (a(3, 4), a(4, 2)),
    (f(3, 0), f(0, 2)),
    (f(33, 17), f(17, 9)),
)
_each("mm", (a(3, 4), a(4, 5)), (f(0, 4), f(4, 5)))
_each("bmm", (a(2, 3, 4), a(2, 4, 5)))
_each("mv", (a(3, 4), a(4)))
_each("dot vdot inner", (a(5), a(5)), (f(0), f(0)))
_each("inner", (f(2, 3), f(4, 3)))
_each("outer ger", (a(3), a(4)))
_each("kron", (a(2, 3), a(3, 2)))
_each("cross", (a(2, 3), a(2, 3)))
_each("addmm", (f(3, 5), f(3, 4), f(4, 5)), (f(3, 5), f(3, 4), f(4, 5), {"beta": 0.5, "alpha": 2.0}))
_each("addmv", (f(3), f(3, 4), f(4)))
_each("addr", (f(3, 4), f(3), f(4)))
_each("addbmm", (f(3, 5), f(2, 3, 4), f(2, 4, 5)))
_each("baddbmm", (f(2, 3, 5), f(2, 3, 4), f(2, 4, 5)))
_each("chain_matmul", (f(2, 3), f(3, 4), f(4, 2)))
_each("det slogdet logdet matrix_exp qr svd lu pinverse", (f(3, 3),), (f(2, 3, 3),))
_each("inverse", (f(3, 3),))
_each("matrix_power", (f(3, 3), 3), (f(2, 3, 3), 0))
_each("cholesky", (gc.eye(3) * 2,))
_each("cholesky_inverse", (f(3, 3),))
_each("cholesky_solve triangular_solve", (f(3, 2), f(3, 3)))
_each("orgqr", (f(4, 3), f(3)))
_each("ormqr", (f(4, 3), f(3), f(4, 2)), (f(4, 3), f(2), f(2, 4), False, True))
_each("geqrf", (f(3, 3),), (f(2, 4, 2),))
_LU = tuple(gc.linalg.lu_factor(gc.eye(3) * 2 + 0.5))
_each("lu_solve", (f(3, 2), *_LU))
_each("lu_unpack", _LU)
_each("einsum", ("ij,jk->ik", f(2, 3), f(3, 4)), ("bij,bjk->bik", a(2, 2, 3), a(2, 3, 2)))
_each("tensordot", (f(2, 3, 4), f(4, 3, 5), 1), (f(2, 3, 4), f(4, 3, 5), ([1, 2], [1, 0])))
_each("cdist", (f(3, 4), f(5, 4)))
_each("linear", (f(3, 4), f(5, 4), f(5)), (f(4), f(5, 4)))
_each("bilinear", (f(3, 4), f(3, 5), f(2, 4, 5), f(2)))

_each("conv1d", (f(2, 3, 9), f(4, 3, 3), f(4), {"stride": 2, "padding": 1}))
_each(
    "conv2d", (f(2, 4, 7, 6), f(4, 2, 3, 3), f(4), {"padding": 1, "groups": 2}), (f(1, 2, 6, 6), f(3, 2, 2, 2), None, 2)
)
_each("conv3d", (f(1, 2, 4, 4, 4), f(2, 2, 2, 2, 2)))
_each("conv_transpose1d", (f(2, 3, 5), f(3, 2, 3), f(2), 2))
_each("conv_transpose2d", (f(1, 3, 4, 5), f(3, 2, 3, 3), f(2), 2, 1, 1))
_each("conv_transpose3d", (f(1, 2, 3, 3, 3), f(2, 2, 2, 2, 2)))
for _d, _shape in ((1, (2, 2, 9)), (2, (2, 2, 7, 6)), (3, (1, 2, 4, 5, 4))):
    _each(f"avg_pool{_d}d", (f(*_shape), 2), (f(*_shape), 3, 2, 1))
    _each(f"max_pool{_d}d", (f(*_shape), 2), (f(*_shape), 3, 2, 1), (f(*_shape), 2, {"return_indices": True}))
    _each(f"lp_pool{_d}d", (p(*_shape), 2.0, 2))
    _each(f"adaptive_avg_pool{_d}d adaptive_max_pool{_d}d", (f(*_shape), 3), (f(*_shape), 1))
_each("max_unpool1d", (f(1, 2, 3), np.array([[[0, 3, 5], [1, 2, 4]]]), 2))
_each("max_unpool2d", (f(1, 1, 2, 2), np.array([[[[0, 3], [9, 14]]]]), 2))
_each("max_unpool3d", (f(1, 1, 1, 2, 2), np.array([[[[[0, 3], [9, 14]]]]]), 2))
_each("fractional_max_pool2d", (f(1, 2, 6, 6), 2, 3, {"_random_samples": p(1, 2, 2)}))
_each("fractional_max_pool3d", (f(1, 2, 6, 6, 6), 2, 3, {"_random_samples": p(1, 2, 3)}))
_each(
    "pad",
    (a(2, 3, 4), (1, 2)),
    (f(2, 3, 4), (1, 2), "reflect"),
    (f(2, 3, 4), (1, 2), "replicate"),
    (f(2, 3, 4), (2, 1), "circular"),
)
_each("interpolate upsample", (f(1, 2, 4, 5), (7, 3)), (f(1, 2, 4, 5), None, 2.0, "bilinear"))
_each("upsample_bilinear upsample_nearest", (f(1, 2, 4, 5), (7, 3)))
_each("pixel_shuffle", (f(2, 8, 3, 2), 2))
_each("pixel_unshuffle", (f(2, 2, 4, 6), 2))
_each("channel_shuffle", (f(2, 6, 3, 2), 3))
_each("fold", (f(2, 8, 6), (3, 4), 2))
_each("unfold.functional", (f(2, 3, 4, 5), 2))
_each("affine_grid", (f(2, 2, 3), (2, 3, 4, 5), False))
_each("grid_sample", (f(1, 2, 4, 5), p(1, 3, 3, 2), {"align_corners": False}))
_each("batch_norm", (f(4, 3), f(3), p(3), f(3), f(3)), (f(4, 3, 5), None, None, None, None, True))
_each("instance_norm", (f(2, 3, 5),))
_each("layer_norm", (f(3, 4), (4,), f(4), f(4)), (f(2, 33), (33,)))
_each("rms_norm", (f(3, 4), (4,), f(4)))
_each("group_norm", (f(2, 4, 3), 2, f(4), f(4)))
_each("local_response_norm", (f(2, 4, 3), 2))
_each("glu", (f(3, 4),), (f(4, 3), 0))
_each("scaled_dot_product_attention", (f(2, 3, 4), f(2, 5, 4), f(2, 5, 4)), (f(3, 4), f(5, 4), f(5, 4), b(3, 5)))
_each("scaled_dot_product_attention", (f(2, 3, 4), f(2, 3, 4), f(2, 3, 4), {"is_causal": True}))
_each("cosine_similarity pairwise_distance", (f(3, 4), f(3, 4)))
_each("pdist", (f(4, 3),))

_each("mse_loss l1_loss smooth_l1_loss huber_loss", (f(3, 4), f(3, 4)), (f(3, 4), f(3, 4), {"reduction": "none"}))
_each("soft_margin_loss hinge_embedding_loss", (f(3, 4), np.where(np.arange(12).reshape(3, 4) % 2, 1.0, -1.0)))
_each("cross_entropy", (f(4, 5), n(5, 4)), (f(4, 5), p(4, 5)), (f(2, 5, 3), n(5, 2, 3), {"reduction": "sum"}))
_each("linear_cross_entropy", (f(4, 3), f(5, 3), n(5, 4)), (f(4, 3), f(5, 2, 3), p(4, 5, 2)))
_each("nll_loss", (f(4, 5), n(5, 4)), (f(4, 5), n(5, 4), p(5)))
_each("binary_cross_entropy", (p(3, 4), p(3, 4)))
_each("binary_cross_entropy_with_logits", (f(3, 4), p(3, 4)), (f(3, 4), p(3, 4), p(4)))
_each("kl_div poisson_nll_loss", (f(3, 4), p(3, 4)))
_each("gaussian_nll_loss", (f(3, 4), f(3, 4), p(3, 4)))
_each("margin_ranking_loss", (f(4), f(4), np.array([1.0, -1.0, 1.0, -1.0])))
_each("cosine_embedding_loss", (f(4, 3), f(4, 3), np.array([1.0, -1.0, 1.0, -1.0])))
_each("triplet_margin_loss triplet_margin_with_distance_loss", (f(4, 3), f(4, 3), f(4, 3)))
_each("multi_margin_loss", (f(4, 5), n(5, 4)))
_each("multilabel_margin_loss", (f(2, 4), np.array([[3, 0, -1, 1], [2, 1, 0, 3]])))
_each("multilabel_soft_margin_loss", (f(3, 4), p(3, 4)))
_each("ctc_loss", (f(6, 2, 4), np.array([[1, 2], [3, 1]]), np.array([6, 6]), np.array([2, 2])))

_each("zeros_like ones_like zero_", (ANY,))
_each("copy_", (ANY, ANY), (a(2, 3), f(3)))
_each("fill_", (ANY, 2))
_each("fill_diagonal_", (a(3, 3), 2))
_each("full_like", (ANY, 3))
_each("new_zeros new_ones", (ANY, (2, 3)))
_each("new_full", (ANY, (2, 3), 2))
_each("type_as", (ANY, FLOAT))
_each("float double int long bool byte char detach cpu H T mT mH".replace(" H T mT mH", ""), (a(2, 3),))
_each("to_dtype", (ANY, gc.float64), (ANY, gc.int32))
_each("to type", (ANY, gc.float64))
_each("dim ndimension nelement size element_size is_floating_point is_signed is_complex", (a(2, 3),))
_each("result_type", (a(2, 3), f(2)))

_each("gcd lcm", (INTEGER, INTEGER), (i(2, 3), i(3)))
_each("ldexp", (FLOAT, n(5, 2, 3)), (f(2, 3), f(3)))
_each("frexp", (FLOAT,))
_each("nextafter", (FLOAT, FLOAT), (f(2, 3), f(3)))
_each("index_reduce", *((f(5, 3), 0, n(5, 4), f(4, 3), how) for how in ("prod", "mean", "amax", "amin")))
_each("put", (a(4, 3), n(12, 5), a(5)), (f(4, 3), n(12, 5), f(5), True))
_each("diagonal_scatter", (f(4, 5), f(3), 2), (f(3, 3), f(3)))
_each("as_strided_scatter", (f(3, 4), f(2, 2), (2, 2), (4, 1), 1))
_each("nonzero_static", (a(3, 4), {"size": 5}))
_each("histogram", (p(20), 5), (p(20), 5, {"range": (0.0, 1.0), "density": True}))
_each("histogramdd", (p(20, 2), [3, 2], {"range": [0.0, 1.0, 0.0, 1.0]}))
_each("nanquantile", (f(9), 0.3), (f(4, 5), 0.5, 1, True))
_each("cumulative_trapezoid trapz", (f(5),), (f(3, 5), f(5)))
_each("gradient", (f(5, 4),), (f(5, 4), {"spacing": 2.0, "edge_order": 2}))
_each("unique_consecutive", (a(9),))
_each("unravel_index", (n(12, 5), (3, 4)))
_each("fill", (ANY, 2))
_each("detach t", (a(2, 3),))
_each("to_dense is_distributed is_pinned pin_memory dim_order", (a(2, 3),))
_each("dropout.graphc dropout_.graphc alpha_dropout.graphc alpha_dropout_.graphc", (FLOAT, {"train": False}))
_each("feature_alpha_dropout.graphc", (f(2, 3, 4, 4), {"train": False}))
_each("affine_grid_generator", (f(2, 2, 3), (2, 3, 4, 5), False))
_each("grid_sampler grid_sampler_2d", (f(1, 2, 4, 5), p(1, 3, 3, 2), 0, 0, False))
_each("batch_norm.graphc", (f(4, 3), f(3), f(3), f(3), p(3), False, 0.1, 1e-5, False))
_each("instance_norm.graphc", (f(2, 3, 5), f(3), f(3), None, None, True, 0.1, 1e-5, False))
_each("embedding.graphc", (f(5, 2), n(5, 3, 4)))
_each("constant_pad_nd", (a(3, 4), (1, 2), 3))
_each("lstm_cell", (f(2, 3), (f(2, 4), f(2, 4)), f(16, 3), f(16, 4), f(16), f(16)))
_each("gru_cell", (f(2, 3), f(2, 4), f(12, 3), f(12, 4), f(12), f(12)))
_each("rnn_tanh_cell rnn_relu_cell", (f(2, 3), f(2, 4), f(4, 3), f(4, 4)))

NOT_CALLED = {
    # Draw random numbers: equal bits are shown by the tests of sampling.
    "bernoulli", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal", "normal_", "poisson",
    "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "random_", "randperm", "uniform_", "bernoulli_",
    "gumbel_softmax", "pca_lowrank", "svd_lowrank",
    # Make tensors of no operands.
    "arange", "as_tensor", "empty", "empty_like", "eye", "from_dlpack", "from_numpy", "full", "linspace", "logspace",
    "new_empty", "new_tensor", "ones", "tensor", "tril_indices", "triu_indices", "zeros", "broadcast_shapes",
    "asarray", "empty_permuted", "empty_strided", "frombuffer", "new", "new_empty_strided", "scalar_tensor",
    # Of complex numbers and of signals, which the net has no operands of, and conversions to narrow types.
    "angle", "bartlett_window", "bfloat16", "blackman_window", "cdouble", "cfloat", "conj", "conj_physical", "half",
    "hamming_window", "hann_window", "imag", "is_conj", "is_neg", "istft", "kaiser_window", "polar", "real",
    "resolve_conj", "resolve_neg", "short", "stft", "view_as_complex", "view_as_real",
    # Call Python functions on elements, or ask for names and the like.
    "apply_", "as_subclass", "can_cast", "is_set_to", "map2_", "map_",
    # Switches and questions of the process.
    "are_deterministic_algorithms_enabled", "get_autocast_dtype", "get_default_device", "is_autocast_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_printoptions", "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "printoptions",
    "set_anomaly_enabled", "set_default_device", "set_default_tensor_type", "set_deterministic_debug_mode",
    "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads", "set_printoptions",
    "set_warn_always", "use_deterministic_algorithms",
    # About memory, history, types and modes, not values. The memory layout of operands is not in a signature.
    "cuda", "is_contiguous", "stride",
    "backward", "data_ptr", "detach_", "get_default_dtype", "get_device", "is_inference", "is_shared", "is_tensor",
    "item", "numpy", "promote_types", "register_gradient_edge", "register_hook", "register_post_accumulate_grad_hook",
    "requires_grad_", "retain_grad", "set_default_dtype", "share_memory_", "storage_offset", "tolist", "typename",
    # Whole programs: compiling, exporting, transforming functions.
    "check", "check_op", "compile", "compile_step", "define_op", "export", "fit", "get_num_threads", "get_rng_state",
    "grad", "from_jax", "from_onnx", "from_pt2", "from_stablehlo", "from_torch", "hessian", "initial_seed",
    "is_grad_enabled", "is_inference_mode_enabled", "is_tracing", "jacfwd", "jacrev", "jvp", "load", "load_state",
    "load_weights", "manual_seed", "picture", "save", "save_state", "scan", "seed", "set_num_threads", "set_rng_state",
    "summary", "graphc.trace", "quantize", "quantization_report",
    "Dim", "assert_true", "opaque", "checkpoint", "checkpoint_sequential",
    "compare", "cond", "load_case", "replay", "switch", "while_loop", "fori_loop", "associative_scan",
    "build_library", "selftest", "stream",
    "value_and_grad", "vjp", "vmap", "multi_head_attention_forward",
}  # fmt: skip
"""Public names that this net does not call, with the reason."""


def public() -> list[str]:
    """Return every public function and method, as ``graphc.f``, ``nn.functional.f``, ``special.f`` or
    ``Tensor.f``."""
    names = [f"graphc.{x}" for x in gc.__all__ if callable(getattr(gc, x)) and not isinstance(getattr(gc, x), type)]
    names += [f"nn.functional.{x}" for x in functional.__all__]
    names += [f"special.{x}" for x in vars(gc.special)["__all__"]]
    names += [f"Tensor.{x}" for x in dir(gc.Tensor) if not x.startswith("_") and callable(getattr(gc.Tensor, x))]
    return sorted(x for x in set(names) if not {x, x.rpartition(".")[2]} & NOT_CALLED)


def forms_of(name: str) -> list[Form]:
    """Return the calls of a public name; functions that write in place, copy a view or also return positions take those
    of the plain one."""
    owner, _, short = name.rpartition(".")
    plain = short.removesuffix("_").removesuffix("_copy").removesuffix("_with_indices").removeprefix("unsafe_")
    for candidate in (short, short.removesuffix("_"), plain):
        forms = FORMS.get(f"{candidate}.{owner.rpartition('.')[2]}") or FORMS.get(candidate)
        if forms:
            return forms
    return []
