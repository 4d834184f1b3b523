"""Padding, resizing, and rearranging of pixels and channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import int64, uint8
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.records import dataclass
from graphc.base.sizes.size import always, bounds, is_size
from graphc.nn.functional.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d
from graphc.nn.functional.resampling import ignores_scale, nearest, weighted
from graphc.nn.functional.spatial import Ints, batched, per_dimension, unbatched
from graphc.nn.functional.volume import adaptive_avg_pool3d
from graphc.ops.movement import shape
from graphc.ops.movement import shape as shapes
from graphc.ops.selection import index
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.spectra.frames import PAD_SOURCES, overlapped, pad_along
from graphc.tensors.tensor import Tensor

__all__ = ["channel_shuffle", "fold", "interpolate", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold", "upsample"]
__all__ += ["upsample_bilinear", "upsample_nearest"]


@dataclass(frozen=True)
class _Windows:
    """Windows of an image in one dimension."""

    kernel: int
    stride: int
    dilation: int
    padding: int
    size: int
    """Elements of the image."""

    @property
    def padded(self) -> int:
        """Elements of the padded image."""
        return self.size + 2 * self.padding

    @property
    def reach(self) -> int:
        """Elements from the first one of a window to its last one."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def count(self) -> int:
        """Number of windows."""
        return (self.padded - self.reach) // self.stride + 1

    def positions(self) -> Any:
        """Return positions [kernel, count] in the padded image."""
        size = (self.kernel, self.count)
        element, window = (index.iota(shape=size, axis=axis, dtype=int64) for axis in (0, 1))
        return element * self.dilation + window * self.stride


def _windows(
    name: str, sizes: Ints, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[_Windows, _Windows]:
    """Return the windows of both dimensions."""
    kernel, steps = per_dimension(kernel_size, 2, "kernel_size"), per_dimension(stride, 2, "stride")
    pads, gaps = per_dimension(padding, 2, "padding"), per_dimension(dilation, 2, "dilation")
    if min(*kernel, *steps, *gaps) < 1 or min(pads) < 0:
        raise AttributeValueError(
            f"{name}: kernel {kernel}, stride {steps} and dilation {gaps} must be positive, padding {pads} 0 or more"
        )
    rows, columns = (_Windows(*each) for each in zip(kernel, steps, gaps, pads, sizes, strict=True))
    if rows.count < 1 or columns.count < 1:
        raise ShapeError(f"{name}: a window of {kernel} does not fit an image of {sizes}")
    return rows, columns


@compiled_when_repeated
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return every window of [batch, channels, height, width] as a column: [batch, channels * window, windows]."""
    x, added = batched(input, 2, "unfold")
    rows, columns = _windows("unfold", tuple(x.shape[2:]), kernel_size, dilation, padding, stride)
    low = (0, 0, rows.padding, columns.padding)
    padded = shape.pad(x, low=low, high=low, interior=(0,) * 4) if any(low) else x
    elements = index.gather(padded, columns.positions(), axis=3)
    elements = index.gather(elements, rows.positions(), axis=2)
    window, count = rows.kernel * columns.kernel, rows.count * columns.count
    elements = elements.permute(0, 1, 2, 4, 3, 5)
    return unbatched(elements.reshape(x.shape[0], x.shape[1] * window, count), added)


@compiled_when_repeated
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Sum columns [batch, channels * window, windows] up to [batch, channels, *output_size]: the transpose of
    ``unfold``.

    Raises ShapeError when the columns do not fit.
    """
    x, added = batched(input, 1, "fold")
    sizes = per_dimension(output_size, 2, "output_size")
    rows, columns = _windows("fold", sizes, kernel_size, dilation, padding, stride)
    window, count = rows.kernel * columns.kernel, rows.count * columns.count
    if x.shape[1] % window or x.shape[2] != count:
        raise ShapeError(
            f"fold: columns {list(x.shape)} do not fit {count} windows of {window} elements in an image {list(sizes)}"
        )
    channels = x.shape[1] // window
    frames = x.reshape(x.shape[0], channels, rows.kernel, columns.kernel, rows.count, columns.count)
    strips = _summed(frames.permute(0, 1, 2, 4, 5, 3), columns)
    return unbatched(_summed(strips.permute(0, 1, 4, 3, 2), rows).transpose(2, 3), added)


def _summed(frames: Any, windows: _Windows) -> Any:
    """Add up windows [..., count, kernel] to a dimension [..., size] of an image."""
    if windows.dilation > 1 and windows.kernel > 1:
        none, gaps = (0,) * len(frames.shape), (*(0,) * (len(frames.shape) - 1), windows.dilation - 1)
        frames = shape.pad(frames, low=none, high=none, interior=gaps, value=0)
    line = overlapped(frames, windows.stride)
    missing = windows.padded - line.shape[-1]
    return pad(line, (-windows.padding, missing - windows.padding))


@compiled_when_repeated
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions: ``pad`` is (before, after) of the last one, then of the one before it, and so on.

    Modes: ``constant`` (negative numbers crop), ``reflect`` (mirrored without the edge), ``replicate`` (the edge
    repeated) and ``circular``. Raises AttributeValueError for another mode, ShapeError when the input is too small to
    mirror.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.pad(gc.tensor([[1, 2]]), (1, 2), value=9)
        tensor([[9, 1, 2, 9, 9]])
    """
    pairs = list(zip(pad[::2], pad[1::2], strict=False))
    rank = len(input.shape)
    if len(pad) % 2 or len(pairs) > rank:
        raise AttributeValueError(f"pad: {tuple(pad)} does not fit an input with {rank} dimensions")
    if mode == "constant":
        low, high = [0] * rank, [0] * rank
        for i, (before, after) in enumerate(pairs):
            low[rank - 1 - i], high[rank - 1 - i] = before, after
        filling = _as_type(0.0 if value is None else value, input)
        return shapes.pad(input, low=low, high=high, interior=(0,) * rank, value=filling)
    if mode not in PAD_SOURCES:
        raise AttributeValueError(
            f"pad: mode {mode!r} is not known", remedy=f'pass "constant" or one of {sorted(PAD_SOURCES)}'
        )
    if value is not None and value != 0:
        raise AttributeValueError(f"pad: mode {mode!r} takes no value")
    for i, (before, after) in enumerate(pairs):
        input = pad_along(input, rank - 1 - i, before, after, mode)
    return input


def _as_type(value: float, x: Tensor) -> bool | int | float:
    return float(value) if x.dtype.is_floating_point else bool(value) if x.dtype.kind == "b" else int(value)


_RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
"""Number of spatial dimensions, by mode."""


@compiled_when_repeated
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Resize the spatial dimensions of [batch, channels, ...] to ``size``, or by ``scale_factor``.

    Modes: ``nearest``, ``nearest-exact`` and ``area`` (any number of dimensions), ``linear`` (one), ``bilinear`` and
    ``bicubic`` (two), ``trilinear`` (three). All but the first three accept ``align_corners``, which makes the corner
    points of both grids coincide.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.interpolate(gc.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    sizes, scales = _target(input, size, scale_factor, mode, align_corners, bool(recompute_scale_factor))
    if mode == "area":
        pools = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
        return pools[len(sizes)](input, sizes)
    axes = range(2, len(sizes) + 2)
    # uint8 results are rounded after each dimension; PyTorch starts with the last dimension.
    for axis in reversed(axes) if input.dtype is uint8 else axes:
        new_size, step = sizes[axis - 2], scales[axis - 2]
        same = always("==", new_size, input.shape[axis]) and step in (None, 1.0)
        step = input.shape[axis] / new_size if step is None else step
        if mode.startswith("nearest"):
            input = nearest(input, axis, new_size, step, offset=0.5 if mode == "nearest-exact" else 0.0)
        elif not same:
            input = weighted(input, axis, new_size, step, bool(align_corners), mode == "bicubic")
    return input


def _target(
    x: Tensor, size: Any, scale_factor: Any, mode: str, align_corners: bool | None, recompute: bool
) -> tuple[tuple[int, ...], list[float | None]]:
    """Return the sizes to which ``interpolate`` resizes ``x``, and the steps between positions if the sizes do not fix
    them."""
    rank = len(x.shape) - 2
    if not 1 <= rank <= 3:
        raise ShapeError(f"interpolate takes [batch, channels, ...] with 1 to 3 more dimensions, got {list(x.shape)}")
    if (size is None) == (scale_factor is None):
        raise AttributeValueError("interpolate: pass either size or scale_factor")
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        raise AttributeValueError(f"interpolate: mode {mode!r} does not take align_corners")
    if _RANKS.get(mode, rank) != rank or mode not in (*_RANKS, "nearest", "nearest-exact", "area"):
        raise AttributeValueError(f"interpolate: mode {mode!r} does not fit {rank} spatial dimensions")
    if size is not None:
        sizes, scales = per_dimension(size, rank, "size"), [None] * rank
    else:
        factors = [float(f) for f in _spread(scale_factor, rank)]
        sizes = tuple(_scaled(n, f) for n, f in zip(x.shape[2:], factors, strict=True))
        fixed = [recompute or ignores_scale(mode, x.dtype, x.shape[2:], sizes, i) for i in range(rank)]
        scales = [None if by_size else 1.0 / f for f, by_size in zip(factors, fixed, strict=True)]
    if any(s < 1 for s in ((*sizes, *x.shape[2:]) if mode != "area" else x.shape[2:])):
        raise ShapeError(f"interpolate: {list(x.shape[2:])} cannot be resized to {list(sizes)}")
    return sizes, scales  # type: ignore[return-value]


def _scaled(size: int, factor: float) -> int:
    """Return floor(size * factor)."""
    numerator, denominator = factor.as_integer_ratio()
    # NOTE: the product with such a factor is exact, so the integer quotient gives the same floor.
    exact = is_size(size) and abs(numerator) * bounds(size)[1] < 1 << 53
    return size * numerator // denominator if exact else math.floor(size * factor)


def _spread(value: Any, rank: int) -> tuple[float, ...]:
    spread = tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank
    if len(spread) != rank:
        raise AttributeValueError(f"interpolate: scale_factor {spread} does not fit {rank} spatial dimensions")
    return spread


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resize as ``interpolate`` does."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize by nearest neighbours; see ``interpolate``."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize bilinearly with the corner points fixed; see ``interpolate``."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def _image(name: str, x: Tensor) -> tuple[int, ...]:
    """Return the shape of [..., channels, height, width]; raise ShapeError for fewer dimensions."""
    if len(x.shape) < 3:
        raise ShapeError(f"{name} takes [..., channels, height, width], got {list(x.shape)}")
    return x.shape


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange [..., c r r, h, w] to [..., c, h r, w r]; raise ShapeError when r r does not divide the channels."""
    *lead, channels, height, width = _image("pixel_shuffle", input)
    r = upscale_factor
    if r < 1 or channels % (r * r):
        raise ShapeError(f"pixel_shuffle: factor {r} does not fit {channels} channels")
    count = len(lead)
    blocks = input.reshape(*lead, channels // (r * r), r, r, height, width)
    order = (*range(count), count, count + 3, count + 1, count + 4, count + 2)
    return blocks.permute(*order).reshape(*lead, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearrange [..., c, h r, w r] to [..., c r r, h, w]; raise ShapeError when r does not divide the size."""
    *lead, channels, height, width = _image("pixel_unshuffle", input)
    r = downscale_factor
    if r < 1 or height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: factor {r} does not divide {height} x {width}")
    count = len(lead)
    blocks = input.reshape(*lead, channels, height // r, r, width // r, r)
    order = (*range(count), count, count + 2, count + 4, count + 1, count + 3)
    return blocks.permute(*order).reshape(*lead, channels * r * r, height // r, width // r)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave the channels of all groups of [batch, groups * n, ...]."""
    batch, channels, *rest = input.shape
    if groups < 1 or channels % groups:
        raise ShapeError(f"channel_shuffle: {groups} groups do not divide {channels} channels")
    return input.reshape(batch, groups, channels // groups, *rest).transpose(1, 2).reshape(*input.shape)
