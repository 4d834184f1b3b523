"""Discrete Fourier transforms for users: cut or padded to a length, along dimensions, scaled by ``norm``.

``norm`` selects the transform to divide by the number n of points: the inverse (``backward``, also None), the forward
one (``forward``), or both by its root (``ortho``). Real tensors are f32 or f64 (integers become the default type),
complex ones complex64 or complex128; results have the same precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, IndexRangeError
from graphc.base.sizes.dims import dim_of
from graphc.ops.contraction.fourier import bins_of, dft, irdft, rdft
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.parts_of_complex import conjugate
from graphc.tensors import creation
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn"]
__all__ += ["ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

Dims = int | Sequence[int] | None
_NORMS = ("backward", "forward", "ortho")


def _factor(name: str, count: int, norm: str | None, inverse: bool) -> float:
    """Return the factor for an unscaled transform."""
    norm = norm or "backward"
    if norm not in _NORMS:
        raise AttributeValueError(f"{name}: unknown norm {norm!r}", remedy=f"use one of {', '.join(_NORMS)}")
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (norm == "backward") == inverse else 1.0


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1 else ew.mul(x, factor)


def _real(name: str, x: Any) -> Any:
    """Return a real floating-point tensor; raise DTypeError for a complex one."""
    need_tensor(name, x)
    if x.dtype.is_complex:
        raise DTypeError(
            f"{name} takes a real tensor, got {x.dtype.name}", remedy=f"call graphc.fft.{name.lstrip('rih')}"
        )
    return x if x.dtype.is_floating_point else ew.cast(x, dtype=creation.get_default_dtype())


def _complex(name: str, x: Any) -> Any:
    """Convert a tensor to complex numbers."""
    need_tensor(name, x)
    if x.dtype.is_complex:
        return x
    real = _real(name, x)
    return ew.cast(real, dtype=real.dtype.complex)


def _fitted(name: str, x: Any, count: int | None, dim: int) -> Any:
    """Cut a dimension to ``count`` elements, or append zeros."""
    have = x.shape[dim]
    if count is None or count == have:
        return x
    if count < 1:
        raise AttributeValueError(f"{name}: cannot transform {count} points", remedy="use at least one point")
    none = [0] * x.ndim
    high = list(none)
    high[dim] = count - have
    return shape.pad(x, low=none, high=high, interior=none, value=0)


def _axis(name: str, x: Any, dim: int) -> int:
    if not x.shape:
        raise IndexRangeError(f"{name} takes a tensor with dimensions", remedy="call x.reshape(1)")
    return dim_of(dim, x.ndim)


# ---- one dimension


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the transform of ``n`` points along ``dim``: sums of x(j) exp(-2 pi i j k / n).

    Example:
        >>> import graphc as gc
        >>> gc.fft.fft(gc.tensor([1.0, 0.0, 0.0, 0.0])).real
        tensor([1., 1., 1., 1.])
    """
    return _to_complex("fft", input, n, dim, norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the inverse of ``fft``."""
    return _to_complex("ifft", input, n, dim, norm, True)


def _to_complex(name: str, input: Any, n: int | None, dim: int, norm: str | None, inverse: bool) -> Any:
    x = _complex(name, input)
    axis = _axis(name, x, dim)
    x = _fitted(name, x, n, axis)
    return _scaled(dft(x, axis=axis, inverse=inverse), _factor(name, x.shape[axis], norm, inverse))


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the first ``n // 2 + 1`` points of the transform of a real tensor; symmetry determines the others."""
    return _half("rfft", input, n, dim, norm, False)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the inverse of ``hfft``: the first half of the inverse transform of a real tensor."""
    return conjugate(_half("ihfft", input, n, dim, norm, True))


def _half(name: str, input: Any, n: int | None, dim: int, norm: str | None, inverse: bool) -> Any:
    x = _real(name, input)
    axis = _axis(name, x, dim)
    x = _fitted(name, x, n, axis)
    return _scaled(rdft(x, axis=axis), _factor(name, x.shape[axis], norm, inverse))


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the inverse of ``rfft``: ``n`` real numbers, by default ``2 * (input.shape[dim] - 1)``."""
    return _to_real("irfft", _complex("irfft", input), n, dim, norm, True)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Compute the real transform of a Hermitian-symmetric tensor from its first half."""
    return _to_real("hfft", conjugate(_complex("hfft", input)), n, dim, norm, False)


def _to_real(name: str, x: Any, n: int | None, dim: int, norm: str | None, inverse: bool) -> Any:
    axis = _axis(name, x, dim)
    count = 2 * (x.shape[axis] - 1) if n is None else n
    if count < 1:
        raise AttributeValueError(f"{name}: cannot return {count} points", remedy="pass n of at least 1")
    x = _fitted(name, x, bins_of(count), axis)
    return _scaled(irdft(x, axis=axis, count=count), _factor(name, count, norm, inverse))


# ---- several dimensions


def _sizes(name: str, x: Any, s: Dims, dim: Dims) -> list[tuple[int, int | None]]:
    """Return the dimensions, each with the requested number of points."""
    s = [s] if isinstance(s, int) else s
    if dim is None:
        dims = list(range(x.ndim)) if s is None else list(range(max(x.ndim - len(s), 0), x.ndim))
    else:
        dims = [dim_of(d, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) != len(dims):
        raise AttributeValueError(f"{name}: a dimension is listed twice in {dim}", remedy="list each dimension once")
    counts = [None] * len(dims) if s is None else [None if n == -1 else n for n in s]
    if len(counts) != len(dims):
        raise ArgumentError(
            f"{name}: {len(counts)} sizes for {len(dims)} dimensions", remedy="pass a size for each dimension"
        )
    return list(zip(dims, counts, strict=True))


def fftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Compute ``fft`` along several dimensions (None: all, or the last ``len(s)``); ``s`` are their numbers of
    points."""
    x = _complex("fftn", input)
    for axis, count in _sizes("fftn", x, s, dim):
        x = _to_complex("fftn", x, count, axis, norm, False)
    return x


def ifftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Compute the inverse of ``fftn``."""
    x = _complex("ifftn", input)
    for axis, count in _sizes("ifftn", x, s, dim):
        x = _to_complex("ifftn", x, count, axis, norm, True)
    return x


def rfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Compute ``rfft`` along the last of several dimensions and ``fft`` along the others."""
    x = _real("rfftn", input)
    sizes = _sizes("rfftn", x, s, dim)
    _check_some("rfftn", sizes)
    x = _half("rfftn", x, sizes[-1][1], sizes[-1][0], norm, False)
    for axis, count in sizes[:-1]:
        x = _to_complex("rfftn", x, count, axis, norm, False)
    return x


def irfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Compute the inverse of ``rfftn``."""
    x = _complex("irfftn", input)
    sizes = _sizes("irfftn", x, s, dim)
    _check_some("irfftn", sizes)
    for axis, count in sizes[:-1]:
        x = _to_complex("irfftn", x, count, axis, norm, True)
    return _to_real("irfftn", x, sizes[-1][1], sizes[-1][0], norm, True)


def ihfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Compute the inverse of ``hfftn``: ``ihfft`` along the last of several dimensions and ``ifft`` along the
    others."""
    x = _real("ihfftn", input)
    sizes = _sizes("ihfftn", x, s, dim)
    _check_some("ihfftn", sizes)
    x = conjugate(_half("ihfftn", x, sizes[-1][1], sizes[-1][0], norm, True))
    for axis, count in sizes[:-1]:
        x = _to_complex("ihfftn", x, count, axis, norm, True)
    return x


def hfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """Compute ``fft`` along all but the last of several dimensions, and ``hfft`` along the last; the results are
    real."""
    x = _complex("hfftn", input)
    sizes = _sizes("hfftn", x, s, dim)
    _check_some("hfftn", sizes)
    for axis, count in sizes[:-1]:
        x = _to_complex("hfftn", x, count, axis, norm, False)
    return _to_real("hfftn", conjugate(x), sizes[-1][1], sizes[-1][0], norm, False)


def _check_some(name: str, sizes: Sequence[Any]) -> None:
    if not sizes:
        raise ArgumentError(f"{name} needs at least one dimension", remedy="pass dim=(-1,)")


def fft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute ``fftn`` along the last two dimensions."""
    return fftn(input, s, dim, norm)


def ifft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute ``ifftn`` along the last two dimensions."""
    return ifftn(input, s, dim, norm)


def rfft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute ``rfftn`` along the last two dimensions."""
    return rfftn(input, s, dim, norm)


def irfft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute ``irfftn`` along the last two dimensions."""
    return irfftn(input, s, dim, norm)


def hfft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute ``hfftn`` along the last two dimensions."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """Compute ``ihfftn`` along the last two dimensions."""
    return ihfftn(input, s, dim, norm)


# ---- frequencies and shifts


def fftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of a transform of ``n`` points spaced ``d`` apart: 0, 1, ..., -2, -1, divided by
    ``n * d``."""
    return _frequencies(np.fft.fftfreq, n, d, dtype, device, requires_grad)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of ``rfft`` of ``n`` points spaced ``d`` apart: 0 to ``n // 2``, divided by ``n * d``."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device, requires_grad)


def _frequencies(function: Any, n: int, d: float, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    if n < 1:
        raise AttributeValueError(f"{function.__name__}: n is {n}", remedy="use at least one point")
    with np.errstate(divide="ignore", invalid="ignore"):  # d = 0 gives non-finite values, as in PyTorch
        frequencies = function(n, np.float64(d))
    return creation.tensor(
        frequencies, dtype=dtype or creation.get_default_dtype(), device=device, requires_grad=requires_grad
    )


def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Roll the elements so that frequency 0 is in the middle of ``dim`` (None: of all dimensions)."""
    return _rolled("fftshift", input, dim, lambda count: count // 2)


def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Undo ``fftshift``."""
    return _rolled("ifftshift", input, dim, lambda count: -(count // 2))


def _rolled(name: str, input: Any, dim: Dims, by: Any) -> Any:
    need_tensor(name, input)
    dims = (
        list(range(input.ndim))
        if dim is None
        else [dim_of(d, input.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    )
    return input.roll([by(input.shape[d]) for d in dims], dims) if dims else input
