"""Short-time Fourier transforms: spectra of overlapping windows of signals, and signals from such spectra."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from graphc.ops.contraction.fourier import bins_of
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.complex import view_as_real
from graphc.tensors.creation import ones
from graphc.tensors.spectra import fourier
from graphc.tensors.spectra.frames import PAD_SOURCES, overlapped, pad_along
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, need_tensor

_LEAST_WEIGHT = 1e-11
"""Smallest sum of squared windows to divide by, as in PyTorch."""


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Compute spectra [..., bins, frames] of signals [length] or [batch, length].

    Each spectrum is the transform of ``n_fft`` points, every ``hop_length`` (a quarter of ``n_fft``) points, times
    ``window`` (ones) of ``win_length`` (``n_fft``) points, centred in the ``n_fft`` points.

    ``center`` pads both ends by ``n_fft // 2`` with ``pad_mode``; ``normalized`` divides by the root of ``n_fft``;
    ``onesided`` (for real signals and windows) omits the conjugate half. With ``return_complex=False`` real and
    imaginary parts are a last dimension of 2. Raises ShapeError, ArgumentError.

    Example:
        >>> import graphc as gc
        >>> gc.stft(gc.zeros(100), n_fft=16, window=gc.hann_window(16), return_complex=True).shape
        (9, 26)
    """
    need_tensor("stft", input)
    hop, width = _lengths("stft", n_fft, hop_length, win_length, window)
    if input.ndim not in (1, 2):
        raise ShapeError(
            f"stft takes [length] or [batch, length], got {list(input.shape)}", remedy="call x.flatten(0, -2)"
        )
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not is_complex:
            raise ArgumentError("stft: return_complex is missing", remedy="pass return_complex=True")
        return_complex = True
    one_sided = not is_complex if onesided is None else onesided
    if one_sided and is_complex:
        raise ArgumentError("stft: spectra of complex signals have no conjugate halves", remedy="pass onesided=False")
    x = input.reshape(1, -1) if input.ndim == 1 else input
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    if not 0 < n_fft <= x.shape[-1]:
        raise ShapeError(
            f"stft: n_fft is {n_fft} for signals of {x.shape[-1]} points", remedy="use a smaller n_fft, or center=True"
        )
    frames = x.unfold(1, n_fft, hop)
    if window is not None or width < n_fft:
        frames = ew.mul(frames, _centred(_window(window, width, input), n_fft))
    norm = "ortho" if normalized else None
    transform = fourier.rfft if one_sided else fourier.fft
    spectra = transform(frames, norm=norm).transpose(1, 2)
    spectra = spectra[0] if input.ndim == 1 else spectra
    return spectra if return_complex else view_as_real(spectra)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Reconstruct signals from the spectra ``input`` of ``stft`` with the same arguments.

    The result is the sum of overlapping frames times the window, divided by the sum of its squares: the least-squares
    signal if none matches exactly (Griffin and Lim, 1984). ``length`` cuts the signals or appends zeros. Raises
    ArgumentError if the windows leave a position without weight.
    """
    need_tensor("istft", input)
    hop, width = _lengths("istft", n_fft, hop_length, win_length, window)
    if not input.dtype.is_complex or input.ndim not in (2, 3):
        raise ShapeError(f"istft takes complex [..., bins, frames], got {input.dtype.name}{list(input.shape)}")
    one_sided = onesided if onesided is not None else input.shape[-2] != n_fft
    if input.shape[-2] != (bins_of(n_fft) if one_sided else n_fft):
        raise ShapeError(
            f"istft: the input has {input.shape[-2]} bins for n_fft {n_fft}",
            remedy="pass the n_fft and onesided of stft",
        )
    if one_sided and return_complex:
        raise ArgumentError("istft: signals of one-sided spectra are real", remedy="pass return_complex=False")
    spectra = (input.unsqueeze(0) if input.ndim == 2 else input).transpose(1, 2)
    norm = "ortho" if normalized else None
    frames = fourier.irfft(spectra, n_fft, norm=norm) if one_sided else fourier.ifft(spectra, norm=norm)
    if not one_sided and not return_complex:
        frames = frames.real
    weights = _centred(_window(window, width, frames), n_fft)
    signal = overlapped(ew.mul(frames, weights), hop)
    count = frames.shape[1]
    squares = overlapped(ew.mul(weights, weights).expand(1, count, n_fft), hop)
    return _cut(signal, squares, n_fft, center, length, input.ndim == 2)


def _cut(signal: Any, squares: Any, n_fft: int, center: bool, length: int | None, single: bool) -> Any:
    """Remove the padding and divide by the weights."""
    first = n_fft // 2 if center else 0
    last = signal.shape[-1] - (n_fft // 2 if center and length is None else 0)
    last = last if length is None else min(last, first + length)
    signal, squares = (x.narrow(-1, first, last - first) for x in (signal, squares))
    weights = front().known(squares)
    if weights is not None and weights.size and weights.min() < _LEAST_WEIGHT:
        raise ArgumentError(
            "istft: the windows leave a position without weight", remedy="pass center=True, or a shorter hop_length"
        )
    result = ew.div(signal, squares)
    if length is not None and last - first < length:
        none, rest = (0, 0), (0, length - (last - first))
        result = shape.pad(result, low=none, high=rest, interior=none, value=0)
    return result[0] if single else result


def _lengths(name: str, n_fft: int, hop: int | None, width: int | None, window: Any) -> tuple[int, int]:
    hop = n_fft // 4 if hop is None else hop
    width = n_fft if width is None else width
    if hop < 1:
        raise AttributeValueError(f"{name}: hop_length is {hop}", remedy="use 1 or more")
    if not 0 < width <= n_fft:
        raise AttributeValueError(f"{name}: win_length is {width}", remedy=f"use 1 to n_fft = {n_fft}")
    if window is not None and tuple(window.shape) != (width,):
        raise ShapeError(
            f"{name}: the window has shape {list(window.shape)}, not [{width}]",
            remedy="pass win_length, or another n_fft",
        )
    return hop, width


def _padded(x: Any, count: int, mode: str) -> Any:
    """Pad signals [batch, length] by ``count`` elements at both ends."""
    if mode == "constant":
        return shape.pad(x, low=(0, count), high=(0, count), interior=(0, 0), value=0)
    if mode not in PAD_SOURCES:
        raise AttributeValueError(
            f"stft: unknown pad_mode {mode!r}", remedy="use reflect, replicate, circular or constant"
        )
    if mode == "reflect" and count >= x.shape[-1]:
        raise ShapeError(f"stft: cannot reflect {count} of {x.shape[-1]} points", remedy="use a smaller n_fft")
    return pad_along(x, 1, count, count, mode)


def _window(window: Any, width: int, like: Any) -> Any:
    if window is None:
        return ones(width, dtype=like.dtype.real, device=like.device)
    if not window.dtype.is_differentiable:
        raise DTypeError(f"the window is {window.dtype.name}, not floating point", remedy="call window.float()")
    return window


def _centred(window: Any, count: int) -> Any:
    """Center a window in ``count`` elements by zeros at both ends."""
    missing = count - window.shape[0]
    before = missing // 2
    return shape.pad(window, low=(before,), high=(missing - before,), interior=(0,), value=0) if missing else window


__all__ = ["istft", "stft"]
