"""Functions of graphc by operator of PyTorch's table, and the operators left out, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import graphc as gc
import graphc.nn.functional as F

Function = Callable[..., Any]

WRITTEN: dict[str, Function] = {
    "where": lambda x, condition, other, **options: gc.where(condition, x, other, **options),
    "einsum": lambda tensors, equation: gc.einsum(equation, tensors),
    "polygamma": lambda x, n, **options: gc.polygamma(n, x, **options),
    "special.polygamma": lambda x, n, **options: gc.special.polygamma(n, x, **options),
    "nn.functional.embedding": lambda weight, indices, **options: F.embedding(indices, weight, **options),
    "nn.functional.embedding_bag": lambda weight, indices, **options: F.embedding_bag(indices, weight, **options),
    "normal/number_mean": lambda std, mean, *rest, **options: gc.normal(mean, std, *rest, **options),
    "normal/in_place": lambda x, *rest, **options: x.normal_(*rest, **options),
    "linalg.lstsq/grad_oriented": lambda a, b, driver: gc.linalg.lstsq(a, b, driver=driver)[:2],
    "linalg.pinv/singular": lambda a, b: gc.linalg.pinv(a @ b.mT),
    "svd_lowrank": lambda a, b, **options: gc.svd_lowrank(a @ b.mT, **options),
    "pca_lowrank": lambda a, b, **options: gc.pca_lowrank(a @ b.mT, **options),
    "trace": lambda x: x.trace(),
    "zero_": lambda x: x.clone().zero_(),
    "resize_": lambda x, shape: x.clone().resize_(shape),
    "resize_as_": lambda x, other: x.clone().resize_as_(other),
    "slice": lambda x, dim, start=None, end=None, step=1: x[(slice(None),) * dim + (slice(start, end, step),)],
    "cauchy": lambda x, *rest, **options: x.cauchy_(*rest, **options),
    "exponential": lambda x, *rest, **options: x.exponential_(*rest, **options),
    "geometric": lambda x, *rest, **options: x.geometric_(*rest, **options),
    "log_normal": lambda x, *rest, **options: x.log_normal_(*rest, **options),
    "uniform": lambda x, *rest, **options: x.uniform_(*rest, **options),
}
"""Operators that the table calls in another way than by their name: by name, or by name and variant."""

_METHODS = frozenset(
    {"item", "bool", "byte", "char", "double", "float", "half", "int", "long", "short", "bfloat16", "cfloat", "cdouble"}
)
"""Methods whose names at the top of the package are element types."""

RANDOM = frozenset(
    {"normal", "bernoulli", "multinomial", "cauchy", "exponential", "geometric", "log_normal", "uniform", "rand_like"}
    | {"randn", "randn_like", "randint", "randint_like", "rand", "randperm", "poisson", "empty", "empty_like"}
    | {"new_empty", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d"}
    | {"nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu"}
    | {"nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"}
    | {"empty_strided", "new_empty_strided", "empty_permuted", "resize_", "resize_as_"}
)
"""Operators with unpredictable elements: only shapes and element types are compared."""

UP_TO_SIGNS = frozenset({"svd", "linalg.svd", "linalg.eigh", "linalg.eig", "svd_lowrank", "pca_lowrank"})
"""Operators whose vectors have arbitrary signs: the comparison uses the table's function of the results."""

SIZED_BY_VALUES = frozenset(
    {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "item", "equal", "allclose", "is_nonzero"}
    | {"combinations", "bincount", "tensor_split", "repeat_interleave", "__getitem__", "index_put"}
)
"""Operators whose results have a size, or are a Python value, that depends on elements: a trace refuses them."""

_INTERNAL = "a step of PyTorch's own gradients or compiler, without a documented name"
_COPIES = "a variant that PyTorch's compiler makes of a view; users write the view and `clone`"
_LDL = "LAPACK's packed factors of indefinite symmetric matrices, without a gradient in PyTorch"
_MASKED = "`torch.masked`, a prototype"
_NO_GRADIENT = "functions of `torch.special` without a gradient in PyTorch"
_SPARSE = "sparse tensors"
_LAYOUT = "strides in memory, which the compiler chooses"
_REASONS = {
    _INTERNAL: (
        "_softmax_backward_data native_group_norm native_layer_norm native_batch_norm _native_batch_norm_legit "
        "_batch_norm_with_update _upsample_bilinear2d_aa max_pool2d_with_indices_backward "
        "torch.ops.aten._safe_softmax.default torch.ops.aten._flash_attention_forward "
        "torch.ops.aten._efficient_attention_forward _unsafe_masked_index _unsafe_masked_index_put_accumulate "
        "_chunk_cat _segment_reduce native_dropout_backward grid_sampler_3d hash_tensor"
    ),
    _COPIES: "alias_copy",
    _MASKED: (
        "masked.sum masked.prod masked.cumsum masked.cumprod masked.amax masked.amin masked.argmax masked.argmin "
        "masked.mean masked.median masked.norm masked.var masked.std masked.softmax masked.log_softmax masked.softmin "
        "masked.normalize masked.logaddexp masked.logsumexp"
    ),
    _LDL: "linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve",
    _SPARSE: "sparse.sampled_addmm sparse.mm to_sparse",
    _LAYOUT: "resize_ resize_as_",
    _NO_GRADIENT: (
        "special.airy_ai special.bessel_y0 special.bessel_y1 special.chebyshev_polynomial_t "
        "special.chebyshev_polynomial_u special.chebyshev_polynomial_v special.chebyshev_polynomial_w "
        "special.hermite_polynomial_h special.hermite_polynomial_he special.laguerre_polynomial_l "
        "special.legendre_polynomial_p special.modified_bessel_k0 special.modified_bessel_k1 "
        "special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.shifted_chebyshev_polynomial_t "
        "special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v "
        "special.shifted_chebyshev_polynomial_w special.spherical_bessel_j0"
    ),
    "complex numbers of twice 16 bits": "chalf",
    "elements of 8 bits with scales": "torch._scaled_mm torch._scaled_mm_v2",
    "kernels in the text of C++ for CUDA": (
        "jiterator_unary jiterator_binary jiterator_4inputs_with_extra_args jiterator_binary_return_by_ref "
        "jiterator_2inputs_2outputs"
    ),
}
EXCLUDED: dict[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Operators left out, with the reason. An operator that is neither here nor in graphc counts as missing."""


def find(name: str, variant: str = "") -> Function | None:
    """Return the function of graphc for the operator of that name, or None."""
    if name in EXCLUDED:
        return None
    named = _attribute(gc, name)
    if not callable(named):  # A package, such as `graphc.view`.
        named = None
    method = _attribute(gc.Tensor, name) if named is None or name in _METHODS else None
    for key in (f"{name}/{variant}", name):
        if key in WRITTEN:
            return WRITTEN[key] if named is not None or _can(name) else None
    if name in _METHODS or named is None:
        return _method(name, method)
    return named


def _can(name: str) -> bool:
    return any(_attribute(gc.Tensor, n) is not None for n in (name, f"{name}_")) or name == "slice"


def _attribute(owner: Any, path: str) -> Any:
    return reduce(lambda parent, name: getattr(parent, name, None), path.split("."), owner)


def _method(name: str, function: Any) -> Function | None:
    if function is None or callable(function):
        return function
    return lambda x: getattr(x, name)
