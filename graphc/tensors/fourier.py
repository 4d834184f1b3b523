"""Discrete Fourier transforms as users call them: cut or padded to a length, along dimensions, scaled by ``norm``.

``norm`` says what is divided by the number n of points: the inverse (``backward``, also None), the transform
(``forward``), or both by its root (``ortho``). Real tensors are f32 or f64 (whole numbers become the default type),
complex ones complex64 or complex128; results are of the same precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, IndexRangeError
from graphc.base.sizes.dims import dim_of
from graphc.ops import elementwise as ew
from graphc.ops import shape
from graphc.ops.fourier import bins_of, dft, irdft, rdft
from graphc.ops.parts_of_complex import conjugate
from graphc.tensors import creation
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor

Dims = int | Sequence[int] | None
_NORMS = ("backward", "forward", "ortho")


def _factor(name: str, count: int, norm: str | None, inverse: bool) -> float:
    """What a transform that is not scaled is multiplied by."""
    norm = norm or "backward"
    if norm not in _NORMS:
        raise AttributeValueError(f"{name}: norm {norm!r} is not known", remedy=f"one of {', '.join(_NORMS)}")
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (norm == "backward") == inverse else 1.0


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1 else ew.mul(x, factor)


def _real(name: str, x: Any) -> Any:
    """A real tensor of a type that is transformed; raises DTypeError for a complex one."""
    need_tensor(name, x)
    if x.dtype.is_complex:
        raise DTypeError(f"{name} takes a real tensor, got {x.dtype.name}", remedy=f"graphc.fft.{name.lstrip('rih')}")
    return x if x.dtype.is_floating_point else ew.cast(x, dtype=creation.get_default_dtype())


def _complex(name: str, x: Any) -> Any:
    """A tensor as complex numbers."""
    need_tensor(name, x)
    if x.dtype.is_complex:
        return x
    real = _real(name, x)
    return ew.cast(real, dtype=real.dtype.complex)


def _fitted(name: str, x: Any, count: int | None, dim: int) -> Any:
    """A dimension cut to so many elements, or with zeros behind them."""
    have = x.shape[dim]
    if count is None or count == have:
        return x
    if count < 1:
        raise AttributeValueError(f"{name}: {count} points", remedy="at least one")
    none = [0] * x.ndim
    high = list(none)
    high[dim] = count - have
    return shape.pad(x, low=none, high=high, interior=none, value=0)


def _axis(name: str, x: Any, dim: int) -> int:
    if not x.shape:
        raise IndexRangeError(f"{name} takes a tensor with dimensions", remedy="x.reshape(1)")
    return dim_of(dim, x.ndim)


# ---- one dimension


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of ``n`` points along ``dim``: sums of x(j) exp(-2 pi i j k / n)."""
    return _to_complex("fft", input, n, dim, norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``fft``."""
    return _to_complex("ifft", input, n, dim, norm, True)


def _to_complex(name: str, input: Any, n: int | None, dim: int, norm: str | None, inverse: bool) -> Any:
    x = _complex(name, input)
    at = _axis(name, x, dim)
    x = _fitted(name, x, n, at)
    return _scaled(dft(x, axis=at, inverse=inverse), _factor(name, x.shape[at], norm, inverse))


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first ``n // 2 + 1`` numbers of the transform of a real tensor, which tell the others."""
    return _half("rfft", input, n, dim, norm, False)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``hfft``: the first half of the inverse transform of a real tensor."""
    return conjugate(_half("ihfft", input, n, dim, norm, True))


def _half(name: str, input: Any, n: int | None, dim: int, norm: str | None, inverse: bool) -> Any:
    x = _real(name, input)
    at = _axis(name, x, dim)
    x = _fitted(name, x, n, at)
    return _scaled(rdft(x, axis=at), _factor(name, x.shape[at], norm, inverse))


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``rfft``: ``n`` real numbers, by default ``2 * (input.shape[dim] - 1)``."""
    return _to_real("irfft", _complex("irfft", input), n, dim, norm, True)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform, which is real, of a tensor of which the first half is given and the rest is its conjugate."""
    return _to_real("hfft", conjugate(_complex("hfft", input)), n, dim, norm, False)


def _to_real(name: str, x: Any, n: int | None, dim: int, norm: str | None, inverse: bool) -> Any:
    at = _axis(name, x, dim)
    count = 2 * (x.shape[at] - 1) if n is None else n
    if count < 1:
        raise AttributeValueError(f"{name}: {count} points", remedy="at least one: pass n")
    x = _fitted(name, x, bins_of(count), at)
    return _scaled(irdft(x, axis=at, count=count), _factor(name, count, norm, inverse))


# ---- several dimensions


def _sizes(name: str, x: Any, s: Dims, dim: Dims) -> list[tuple[int, int | None]]:
    """Dimensions, each with the number of points that is asked for."""
    s = [s] if isinstance(s, int) else s
    if dim is None:
        dims = list(range(x.ndim)) if s is None else list(range(max(x.ndim - len(s), 0), x.ndim))
    else:
        dims = [dim_of(d, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) != len(dims):
        raise AttributeValueError(f"{name}: a dimension is listed twice in {dim}", remedy="list each once")
    counts = [None] * len(dims) if s is None else [None if n == -1 else n for n in s]
    if len(counts) != len(dims):
        raise ArgumentError(f"{name}: {len(counts)} sizes for {len(dims)} dimensions", remedy="a size for each")
    return list(zip(dims, counts, strict=True))


def fftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """``fft`` along several dimensions (None: all, or the last ``len(s)``); ``s`` are their numbers of points."""
    x = _complex("fftn", input)
    for at, count in _sizes("fftn", x, s, dim):
        x = _to_complex("fftn", x, count, at, norm, False)
    return x


def ifftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of ``fftn``."""
    x = _complex("ifftn", input)
    for at, count in _sizes("ifftn", x, s, dim):
        x = _to_complex("ifftn", x, count, at, norm, True)
    return x


def rfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """``rfft`` along the last one of several dimensions and ``fft`` along the others."""
    x = _real("rfftn", input)
    sizes = _sizes("rfftn", x, s, dim)
    _check_some("rfftn", sizes)
    x = _half("rfftn", x, sizes[-1][1], sizes[-1][0], norm, False)
    for at, count in sizes[:-1]:
        x = _to_complex("rfftn", x, count, at, norm, False)
    return x


def irfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of ``rfftn``."""
    x = _complex("irfftn", input)
    sizes = _sizes("irfftn", x, s, dim)
    _check_some("irfftn", sizes)
    for at, count in sizes[:-1]:
        x = _to_complex("irfftn", x, count, at, norm, True)
    return _to_real("irfftn", x, sizes[-1][1], sizes[-1][0], norm, True)


def ihfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of ``hfftn``: ``ihfft`` along the last one of several dimensions and ``ifft`` along the others."""
    x = _real("ihfftn", input)
    sizes = _sizes("ihfftn", x, s, dim)
    _check_some("ihfftn", sizes)
    x = conjugate(_half("ihfftn", x, sizes[-1][1], sizes[-1][0], norm, True))
    for at, count in sizes[:-1]:
        x = _to_complex("ihfftn", x, count, at, norm, True)
    return x


def hfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """``fft`` along several dimensions but the last one, and ``hfft`` along that; real numbers."""
    x = _complex("hfftn", input)
    sizes = _sizes("hfftn", x, s, dim)
    _check_some("hfftn", sizes)
    for at, count in sizes[:-1]:
        x = _to_complex("hfftn", x, count, at, norm, False)
    return _to_real("hfftn", conjugate(x), sizes[-1][1], sizes[-1][0], norm, False)


def _check_some(name: str, sizes: Sequence[Any]) -> None:
    if not sizes:
        raise ArgumentError(f"{name} needs at least one dimension", remedy="dim=(-1,)")


def fft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """``fftn`` along the last two dimensions."""
    return fftn(input, s, dim, norm)


def ifft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """``ifftn`` along the last two dimensions."""
    return ifftn(input, s, dim, norm)


def rfft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """``rfftn`` along the last two dimensions."""
    return rfftn(input, s, dim, norm)


def irfft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """``irfftn`` along the last two dimensions."""
    return irfftn(input, s, dim, norm)


def hfft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """``hfftn`` along the last two dimensions."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
    """``ihfftn`` along the last two dimensions."""
    return ihfftn(input, s, dim, norm)


# ---- frequencies, and where zero stands


def fftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The frequencies of a transform of ``n`` points at distances ``d``: 0, 1, ..., -2, -1, divided by ``n * d``."""
    return _frequencies(np.fft.fftfreq, n, d, dtype, device, requires_grad)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The frequencies of ``rfft`` of ``n`` points at distances ``d``: 0 to ``n // 2``, divided by ``n * d``."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device, requires_grad)


def _frequencies(made: Any, n: int, d: float, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    if n < 1:
        raise AttributeValueError(f"{made.__name__}: {n} points", remedy="at least one")
    with np.errstate(divide="ignore", invalid="ignore"):  # distances of 0 give what is not finite, as in PyTorch
        found = made(n, np.float64(d))
    return creation.tensor(
        found, dtype=dtype or creation.get_default_dtype(), device=device, requires_grad=requires_grad
    )


def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The elements rolled so that frequency 0 stands in the middle of ``dim`` (None: of all dimensions)."""
    return _rolled("fftshift", input, dim, lambda count: count // 2)


def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of ``fftshift``."""
    return _rolled("ifftshift", input, dim, lambda count: -(count // 2))


def _rolled(name: str, input: Any, dim: Dims, by: Any) -> Any:
    need_tensor(name, input)
    dims = (
        list(range(input.ndim))
        if dim is None
        else [dim_of(d, input.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    )
    return input.roll([by(input.shape[d]) for d in dims], dims) if dims else input
