"""Convolution over one or more spatial dimensions and its two gradients; the gradients of each are the other two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.size import always, is_one
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, Attrs, Dims, ErrorSample, ImageRule, OnParts, OpDef, Sample, Trait, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import BatchedOperand, move, spread
from graphc.ops.contraction.matrix_product import of_halves, one_product, product_of, summed_type
from graphc.ops.define import define
from graphc.ops.movement import shape
from graphc.ops.pointwise.parts_of_complex import holomorphic
from graphc.ops.reduction.sliding import DILATION, KERNEL, PADDING, SIZE, STRIDE, Pairs, Sliding, inside

Ints = tuple[int, ...]
GROUPS = Attr("groups", "int", "number of independent slices of the channels", 1, False)


def _check_types(op: str, a: TensorType, b: TensorType, groups: int) -> None:
    if a.dtype is not b.dtype or a.dtype.kind not in ("fiuc" if op == "conv_grad_input" else "fiupc"):
        raise DTypeError(f"{op}: operands must have one numeric element type, got {a.dtype} and {b.dtype}")
    if a.rank < 3 or a.rank != b.rank:
        raise ShapeError(f"{op}: operands need the same number of dimensions, at least 3, got {a} and {b}")
    if groups < 1:
        raise AttributeValueError(f"{op}: groups must be positive, got {groups}")


def _infer_conv(
    x: TensorType, weight: TensorType, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> TensorType:
    _check_types("conv", x, weight, groups)
    channels, (out, per_group) = x.shape[1], weight.shape[:2]
    if channels != per_group * groups:
        raise ShapeError(
            f"conv: weight takes {per_group} x {groups} groups = {per_group * groups} channels (operand 1, dim 1), "
            f"the input has {channels} (operand 0, dim 1)"
        )
    if out % groups:
        raise ShapeError(f"conv: {out} output channels (operand 1, dim 0) are not a multiple of {groups} groups")
    sizes = Sliding(weight.shape[2:], stride, padding, dilation).output("conv", x.shape[2:])
    return TensorType(summed_type(x.dtype), (x.shape[0], out, *sizes))


def _infer_grad_input(
    g: TensorType, weight: TensorType, size: Ints, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> TensorType:
    _check_types("conv_grad_input", g, weight, groups)
    if any(n < 0 for n in size):
        raise AttributeValueError(f"conv_grad_input: size must not be negative, got {size}")
    x = TensorType(g.dtype, (g.shape[0], weight.shape[1] * groups, *size))
    _check_result("conv_grad_input", g, x, weight, stride, padding, dilation, groups)
    return x


def _infer_grad_weight(
    x: TensorType, g: TensorType, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> TensorType:
    _check_types("conv_grad_weight", x, g, groups)
    weight = TensorType(g.dtype, (g.shape[1], x.shape[1] // groups, *kernel))
    _check_result("conv_grad_weight", g, x, weight, stride, padding, dilation, groups)
    return TensorType(summed_type(g.dtype), weight.shape)


def _check_result(op: str, g: TensorType, x: TensorType, weight: TensorType, *attrs: Any) -> None:
    if x.rank != g.rank or weight.rank != g.rank:
        raise AttributeValueError(f"{op}: size and kernel need {g.rank - 2} entries for {g}")
    expected = _infer_conv(x, weight, *attrs)
    if expected.shape != g.shape:
        raise ShapeError(f"{op}: the gradient has shape {g.shape}, the convolution gives {expected.shape}")


# ---- references: windows as columns or rows of a matrix, one product per group


_MOST_COLUMNS = 1 << 18
"""Elements of windows that a reference copies at a time, unless one row of windows has more."""


def _columns(x: np.ndarray, slide: Sliding, groups: int) -> Iterator[np.ndarray]:
    """Yield rows of windows as columns: [batch, groups, channels per group * kernel, windows], ordered by the first
    spatial dimension of the windows. The next block overwrites a block.

    NOTE: copies run along neighbouring windows, which are neighbours in memory too, and the product has the order of
    the result. Rows take up to three times as long. The columns of all windows would leave the cache, and in a new
    process the kernel maps their pages, which takes as long as the product.
    """
    view, d = slide.windows(x), slide.rank
    taps_first = view.transpose(0, 1, *range(2 + d, 2 + 2 * d), *range(2, 2 + d))
    lead, (rows, *others) = taps_first.shape[: 2 + d], taps_first.shape[2 + d :]
    shape = (x.shape[0], groups, x.shape[1] // groups * prod(slide.kernel))
    if taps_first.flags.c_contiguous:
        yield taps_first.reshape(*shape, rows * prod(others))
        return
    step = min(rows, max(1, _MOST_COLUMNS // (prod(lead) * prod(others))))
    memory = np.empty(prod(lead) * step * prod(others), x.dtype)
    for at in range(0, rows, step):
        block = taps_first[(slice(None),) * (2 + d) + (slice(at, at + step),)]
        columns = memory[: block.size].reshape(block.shape)
        np.copyto(columns, block)
        yield columns.reshape(*shape, block.shape[2 + d] * prod(others))


def _rows(x: np.ndarray, slide: Sliding, groups: int) -> np.ndarray:
    """Rearrange windows as rows: [groups, batch * windows, channels per group * kernel]."""
    n, channels = x.shape[:2]
    view = slide.windows(x)
    split = view.reshape(n, groups, channels // groups, *view.shape[2:])
    d = slide.rank
    order = (1, 0, *range(3, 3 + d), 2, *range(3 + d, 3 + 2 * d))
    taps = channels // groups * prod(slide.kernel)
    return split.transpose(order).reshape(groups, n * prod(view.shape[2 : 2 + d]), taps)


def _gradient_rows(g: np.ndarray, groups: int) -> np.ndarray:
    """Rearrange a gradient as rows: [groups, batch * windows, output channels per group]."""
    n, out = g.shape[:2]
    split = g.reshape(n, groups, out // groups, -1) if g.size else np.zeros((n, groups, out // groups, 0), g.dtype)
    return split.transpose(1, 0, 3, 2).reshape(groups, -1 if g.size else 0, out // groups)


def _matrix(weight: np.ndarray, groups: int) -> np.ndarray:
    """Rearrange weights as [groups, output channels per group, channels per group * kernel]."""
    return weight.reshape(groups, weight.shape[0] // groups, prod(weight.shape[1:]))


@of_halves
def conv_reference(
    x: np.ndarray, weight: np.ndarray, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> np.ndarray:
    """Convolve arrays."""
    slide = Sliding(weight.shape[2:], stride, padding, dilation)
    sizes = slide.output("conv", x.shape[2:])
    matrix = _matrix(weight, groups)
    product = np.empty((x.shape[0], *matrix.shape[:2], prod(sizes)), np.result_type(x, weight))
    done = 0
    for columns in _columns(x, slide, groups):
        done += (count := columns.shape[-1])
        np.matmul(matrix, columns, out=product[..., done - count : done])
    return product.reshape(x.shape[0], weight.shape[0], *sizes)


def _grad_input_reference(
    g: np.ndarray, weight: np.ndarray, size: Ints, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> np.ndarray:
    slide = Sliding(weight.shape[2:], stride, padding, dilation)
    d, n, per_group = slide.rank, g.shape[0], weight.shape[1]
    taps = np.matmul(_gradient_rows(g, groups), _matrix(weight, groups))
    taps = taps.reshape(groups, n, *g.shape[2:], per_group, *slide.kernel)
    order = (1, 0, 2 + d, *range(2, 2 + d), *range(3 + d, 3 + 2 * d))
    values = taps.transpose(order).reshape(n, groups * per_group, *g.shape[2:], *slide.kernel)
    return np.ascontiguousarray(slide.add_windows(values, size))


@of_halves
def _grad_weight_reference(
    x: np.ndarray, g: np.ndarray, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> np.ndarray:
    slide = Sliding(kernel, stride, padding, dilation)
    rows = _rows(_crop(x, g.shape[2:], slide), Sliding(kernel, stride, ((0, 0),) * slide.rank, dilation), groups)
    product = np.matmul(_gradient_rows(g, groups).swapaxes(1, 2), rows)
    return product.reshape(g.shape[1], x.shape[1] // groups, *kernel)


def _crop(x: np.ndarray, counts: Ints, slide: Sliding) -> np.ndarray:
    """Return the section of the padded ``x`` that ``counts`` windows cover."""
    padded = slide.pad(x, 0)
    spans = zip(counts, slide.stride, slide.extent, strict=True)
    return padded[(..., *(slice(0, (n - 1) * s + e) for n, s, e in spans))]


# ---- gradients


def _conv_vjp_x(g: Any, result: Any, x: Any, weight: Any, **attrs: Any) -> Any:
    return conv_grad_input(g, weight, size=x.shape[2:], **attrs)


def _conv_vjp_weight(g: Any, result: Any, x: Any, weight: Any, **attrs: Any) -> Any:
    return conv_grad_weight(x, g, kernel=weight.shape[2:], **attrs)


def _grad_input_vjp_g(h: Any, result: Any, g: Any, weight: Any, size: Ints, **attrs: Any) -> Any:
    return conv(h, weight, **attrs)


def _grad_input_vjp_weight(h: Any, result: Any, g: Any, weight: Any, size: Ints, **attrs: Any) -> Any:
    return conv_grad_weight(h, g, kernel=weight.shape[2:], **attrs)


def _grad_weight_vjp_x(h: Any, result: Any, x: Any, g: Any, kernel: Ints, **attrs: Any) -> Any:
    return conv_grad_input(g, h, size=x.shape[2:], **attrs)


def _grad_weight_vjp_g(h: Any, result: Any, x: Any, g: Any, kernel: Ints, **attrs: Any) -> Any:
    return conv(x, h, **attrs)


# ---- decompositions: padding by its own op, so that the contraction itself has no guards


def _pad_spatial(x: Any, padding: Pairs, interior: Ints | None = None) -> Any:
    """Pad ``x`` with zeros; negative padding crops."""
    low, high = zip((0, 0), (0, 0), *padding, strict=True)
    between = (0, 0, *(interior or (0,) * len(padding)))
    return shape.pad(x, low=low, high=high, interior=between, value=0)


def _decompose_conv(x: Any, weight: Any, padding: Pairs, **attrs: Any) -> Any:
    if not any(low or high for low, high in padding):
        if any(n != 1 for n in (*weight.shape[1:], *attrs["stride"], attrs["groups"])):
            return None
        return one_product(x, shape.reshape(weight, shape=(1, *weight.shape[:1], *weight.shape[2:])))
    return conv(_pad_spatial(x, padding), weight, padding=((0, 0),) * len(padding), **attrs)


def _decompose_grad_weight(x: Any, g: Any, padding: Pairs, **attrs: Any) -> Any:
    if not any(low or high for low, high in padding):
        return None
    return conv_grad_weight(_pad_spatial(x, padding), g, padding=((0, 0),) * len(padding), **attrs)


def _decompose_grad_input(
    g: Any, weight: Any, size: Ints, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> Any:
    """Return a convolution of the gradient with reversed weights, their channels exchanged.

    With a stride, ``stride`` neighbouring results per dimension read the same elements of the gradient through
    different taps: a polyphase decomposition makes them channels of one smaller convolution, and interleaves its
    results. Kernels of one tap reach only every ``stride``-th result. All other cases convolve the gradient dilated by
    the stride. Degenerate dimensions with one window are taken out first. An empty result needs no convolution.

    NOTE: zeros between and after elements are multiplied too; docs/reliability.md says where infinity then makes NaN.
    """
    if 0 in size:
        return shape.filled(0, g.dtype, (g.shape[0], weight.shape[1] * groups, *size))
    if any(_is_degenerate(x, n) for x, n in zip(g.shape[2:], size, strict=True)):
        return _without_degenerate_dimensions(g, weight, size, stride, padding, dilation, groups)
    kernel = weight.shape[2:]
    strided = any(s > 1 for s in stride) and all(d == 1 for d in dilation)
    if strided and all(k >= s for k, s in zip(kernel, stride, strict=True)):
        return _polyphase(g, weight, size, stride, padding, groups)
    ones, zeros = (1,) * len(size), ((0, 0),) * len(size)
    attrs = {"stride": ones, "padding": zeros, "dilation": dilation, "groups": groups}
    spread = [(n - 1) * s + 1 for n, s in zip(g.shape[2:], stride, strict=True)]
    before = [d * (k - 1) - low for d, k, (low, _) in zip(dilation, kernel, padding, strict=True)]
    if strided and all(k == 1 for k in kernel):
        product = conv(g, _exchange(weight, groups), **attrs)
        pairs = [(b, n - b - x) for b, n, x in zip(before, size, spread, strict=True)]
        return _pad_spatial(product, tuple(pairs), tuple(s - 1 for s in stride))
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    pairs = [(b, n + r - b - x) for b, n, r, x in zip(before, size, reach, spread, strict=True)]
    spread_g = _pad_spatial(g, tuple(pairs), tuple(s - 1 for s in stride))
    return conv(spread_g, _exchange(weight, groups), **attrs)


def _is_degenerate(windows: int, size: int) -> bool:
    """Check for a dimension with one window and, as far as is known, more than one element."""
    return is_one(windows) and not is_one(size)


def _without_degenerate_dimensions(
    g: Any, weight: Any, size: Ints, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> Any:
    """Remove dimensions with one window. Every result along them has one tap, so they become further channels, and no
    zeros around the gradient are summed."""
    rank, (out, inner) = len(size), weight.shape[:2]
    degenerate = [_is_degenerate(x, n) for x, n in zip(g.shape[2:], size, strict=True)]

    def where_one(chosen: Sequence[Any], otherwise: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(a if i else b for i, a, b in zip(degenerate, chosen, otherwise, strict=True))

    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    pairs = where_one(
        [(-low, n + low - r) for n, r, (low, _) in zip(size, reach, padding, strict=True)], [(0, 0)] * rank
    )
    taps = _pad_spatial(weight, pairs, where_one([d - 1 for d in dilation], [0] * rank))
    channels, spatial = [i for i in range(rank) if degenerate[i]], [i for i in range(rank) if not degenerate[i]]
    taps = shape.transpose(taps, permutation=(0, 1, *(2 + i for i in channels), *(2 + i for i in spatial)))
    results = [size[i] for i in channels]
    taps = shape.reshape(taps, shape=(out, inner * prod(results), *where_one([1] * rank, weight.shape[2:])))
    y = _decompose_grad_input(
        g,
        taps,
        size=where_one([1] * rank, size),
        stride=where_one([1] * rank, stride),
        padding=where_one([(0, 0)] * rank, padding),
        dilation=where_one([1] * rank, dilation),
        groups=groups,
    )
    y = shape.reshape(y, shape=(y.shape[0], groups * inner, *results, *(size[i] for i in spatial)))
    order = [*channels, *spatial]
    return shape.transpose(y, permutation=(0, 1, *(2 + order.index(i) for i in range(rank))))


def _polyphase(g: Any, weight: Any, size: Ints, stride: Ints, padding: Pairs, groups: int) -> Any:
    """Decompose a strided gradient into phases. With ``o + low = stride * i + p``, result ``o`` is the sum over ``a``
    of ``g[i - a] * weight[p + stride * a]``: one convolution over ``a`` for each phase ``p``, all computed as one."""
    rank, (out, inner, *kernel) = len(size), weight.shape
    taps = [-(-k // s) for k, s in zip(kernel, stride, strict=True)]
    first = [low // s for s, (low, _) in zip(stride, padding, strict=True)]
    last = [(low + n - 1) // s for n, s, (low, _) in zip(size, stride, padding, strict=True)]
    pairs = [(t - 1 - f, x - (n - 1)) for t, f, x, n in zip(taps, first, last, g.shape[2:], strict=True)]
    padded = _pad_spatial(weight, tuple((0, t * s - k) for t, s, k in zip(taps, stride, kernel, strict=True)))
    split = [n for t, s in zip(taps, stride, strict=True) for n in (t, s)]
    phases = shape.reshape(padded, shape=(groups, out // groups, inner, *split))
    near, far = range(4, 4 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    phases = shape.transpose(phases, permutation=(0, *near, 2, 1, *far))
    phases = shape.reshape(phases, shape=(groups * prod(stride) * inner, out // groups, *taps))
    phases = shape.flip(phases, axes=tuple(range(2, 2 + rank)))
    ones, zeros = (1,) * rank, ((0, 0),) * rank
    y = conv(_pad_spatial(g, tuple(pairs)), phases, stride=ones, padding=zeros, dilation=ones, groups=groups)
    y = shape.reshape(y, shape=(y.shape[0], groups, *stride, inner, *y.shape[2:]))
    permutation = [axis for i in range(rank) for axis in (3 + rank + i, 2 + i)]
    y = shape.transpose(y, permutation=(0, 1, 2 + rank, *permutation))
    counts = [(x - f + 1) * s for x, f, s in zip(last, first, stride, strict=True)]
    y = shape.reshape(y, shape=(y.shape[0], groups * inner, *counts))
    starts = [low - s * f for s, f, (low, _) in zip(stride, first, padding, strict=True)]
    stops = [start + n for start, n in zip(starts, size, strict=True)]
    return shape.slice(y, starts=(0, 0, *starts), stops=(*y.shape[:2], *stops), steps=(1,) * (2 + rank))


def _exchange(weight: Any, groups: int) -> Any:
    """Rearrange [groups * out, in, *kernel] as [groups * in, out, *reversed kernel]."""
    out, per_group, *kernel = weight.shape
    axes = tuple(range(2, len(weight.shape)))
    if groups > 1:
        split = shape.reshape(weight, shape=(groups, out // groups, per_group, *kernel))
        exchanged = shape.transpose(split, permutation=(0, 2, 1, *(a + 1 for a in axes)))
        weight = shape.reshape(exchanged, shape=(groups * per_group, out // groups, *kernel))
    else:
        weight = shape.transpose(weight, permutation=(1, 0, *axes))
    return shape.flip(weight, axes=axes)


# ---- kernels


def _lower_conv(
    c: LowerContext,
    index: tuple[Index, ...],
    x: OperandRef,
    weight: OperandRef,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    groups: int,
) -> Scalar:
    slide = Sliding(weight.shape[2:], stride, padding, dilation)
    n, out, *window = index
    per_group = weight.shape[1]
    # A division by 0 filters must be avoided; a single group needs no division.
    first = 0 if groups == 1 or always("==", weight.shape[0], 0) else out // (weight.shape[0] // groups) * per_group

    def product(channel: Index, *at: Index) -> Scalar:
        position = slide.position(window, at)
        value = c.load(x, (n, first + channel, *position), guard=inside(position, x.shape[2:]))
        return product_of(c.nest, value, c.load(weight, (out, channel, *at)))

    return c.nest.reduce("add", 0, summed_type(x.dtype), [per_group, *slide.kernel], product)


def _lower_grad_weight(
    c: LowerContext,
    index: tuple[Index, ...],
    x: OperandRef,
    g: OperandRef,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    groups: int,
) -> Scalar:
    slide = Sliding(kernel, stride, padding, dilation)
    out, channel, *at = index
    first = out // (g.shape[1] // groups) * (x.shape[1] // groups)

    def product(n: Index, *window: Index) -> Scalar:
        position = slide.position(window, at)
        value = c.load(x, (n, first + channel, *position), guard=inside(position, x.shape[2:]))
        return product_of(c.nest, value, c.load(g, (n, out, *window)))

    return c.nest.reduce("add", 0, summed_type(x.dtype), [g.shape[0], *g.shape[2:]], product)


# ---- samples: input shape, weight shape, stride, padding, dilation, groups

_CASES: list[tuple[Ints, Ints, Ints, Pairs, Ints, int, Any]] = [
    ((2, 3, 7, 6), (4, 3, 3, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1, np.float32),
    ((1, 2, 9, 8), (3, 2, 3, 3), (2, 3), ((1, 1), (2, 0)), (1, 1), 1, np.float32),
    ((2, 4, 8, 9), (6, 2, 2, 3), (1, 2), ((0, 1), (1, 1)), (2, 2), 2, np.float64),
    ((1, 3, 5, 5), (6, 1, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 3, np.float32),
    ((2, 3, 11), (4, 3, 4), (2,), ((2, 1),), (2,), 1, np.float64),
    ((1, 1, 1), (1, 1, 1), (1,), ((0, 0),), (1,), 1, np.float32),
    ((2, 2, 4, 4), (5, 2, 1, 1), (1, 1), ((2, 2), (0, 3)), (1, 1), 1, np.float32),
    ((2, 4, 5, 6), (6, 2, 2, 6), (1, 3), ((0, 0), (0, 2)), (1, 1), 2, np.float32),
    ((2, 3, 4, 5), (2, 3, 3, 2), (2, 5), ((1, 0), (2, 1)), (2, 3), 1, np.float64),
    ((2, 4, 0, 3), (6, 2, 2, 2), (2, 1), ((1, 2), (0, 1)), (1, 2), 2, np.float64),
]


def _conv_samples() -> list[Sample]:
    return [Sample((x, w), attrs) for x, w, _, attrs in _arrays()]


def _grad_input_samples() -> list[Sample]:
    return [Sample((g, w), {"size": x.shape[2:], **attrs}) for x, w, g, attrs in _arrays()]


def _grad_weight_samples() -> list[Sample]:
    return [Sample((x, g), {"kernel": w.shape[2:], **attrs}) for x, w, g, attrs in _arrays()]


def _arrays() -> list[tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]]:
    random = np.random.default_rng(7)
    result = []
    for x_shape, w_shape, stride, padding, dilation, groups, dtype in _CASES:
        attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        sizes = Sliding(w_shape[2:], stride, padding, dilation).output("conv", x_shape[2:])
        shapes = (x_shape, w_shape, (x_shape[0], w_shape[0], *sizes))
        x, w, g = (random.standard_normal(s).astype(dtype) for s in shapes)
        result.append((x, w, g, attrs))
    return result


def _f32(*dims: int) -> TensorType:
    return TensorType(float32, dims)


_PLAIN = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}
_ATTRS = [STRIDE, PADDING, DILATION, GROUPS]
_TRAITS = Trait.PURE | Trait.CONTRACTION


def _into_images(value: Any) -> Any:
    """Merge [batch, images, ...] into [batch * images, ...]."""
    return shape.reshape(value, shape=(value.shape[0] * value.shape[1], *value.shape[2:]))


def _into_channels(value: Any) -> Any:
    """Rearrange [batch, images, channels, ...] as [images, batch * channels, ...]."""
    moved = move(value, 0, 1, 1)
    return shape.reshape(moved, shape=(moved.shape[0], moved.shape[1] * moved.shape[2], *moved.shape[3:]))


def _from_channels(value: Any, size: int) -> Any:
    """Invert ``_into_channels``."""
    images, channels, *rest = value.shape
    return move(shape.reshape(value, shape=(images, size, channels // size, *rest)), 1, 1, 0)


def _batched_convolution(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    """Batch ``conv`` or ``conv_grad_input``: more images for one weight, or one group of channels per weight."""
    x, weight = operands
    if not weight.batched:
        result = dispatch.apply(op, (_into_images(x.value), weight.value), attrs)
        return shape.reshape(result, shape=(size, result.shape[0] // size, *result.shape[1:]))
    grouped = {**attrs, "groups": attrs["groups"] * size}
    result = dispatch.apply(op, (_into_channels(spread(x, size)), _into_images(weight.value)), grouped)
    return _from_channels(result, size)


def _batched_conv_grad_weight(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    x, g = (_into_channels(spread(e, size)) for e in operands)
    result = conv_grad_weight(x, g, **{**attrs, "groups": attrs["groups"] * size})
    return shape.reshape(result, shape=(size, result.shape[0] // size, *result.shape[1:]))


conv = define(
    "conv",
    "Convolution (cross-correlation) of x [batch, channels, *size] with weight [out, channels / groups, *kernel].",
    "x weight",
    _infer_conv,
    attrs=_ATTRS,
    reference=conv_reference,
    vjp=(holomorphic(_conv_vjp_x), holomorphic(_conv_vjp_weight)),
    complex=OnParts.BILINEAR,
    lower=_lower_conv,
    decompose=_decompose_conv,
    traits=_TRAITS,
    zero_sign=ZeroSign.KEPT,
    image=ImageRule((Dims.IMAGE, Dims.WINDOW), Dims.IMAGE),
    multiply_adds=lambda types, results, attrs: results[0].size * prod(types[1].shape[1:]),
    pairs=lambda types, attrs: None if attrs["groups"] > 1 and types[1].shape[1] % 2 else (1, 1),
    batch=_batched_convolution,
    samples=_conv_samples,
    error_samples=[
        ErrorSample((_f32(1, 3, 5, 5), _f32(4, 2, 3, 3)), "2 x 1 groups = 2 channels", _PLAIN),
        ErrorSample((_f32(1, 2, 2, 2), _f32(4, 2, 3, 3)), "a window of 3 elements does not fit", _PLAIN),
        ErrorSample((_f32(1, 4, 5, 5), _f32(3, 2, 3, 3)), "not a multiple of 2 groups", {**_PLAIN, "groups": 2}),
        ErrorSample((_f32(1, 4, 5, 5), _f32(3, 4, 3, 3)), "groups must be positive", {**_PLAIN, "groups": 0}),
        ErrorSample((_f32(1, 4, 5, 5), _f32(3, 4, 3)), "same number of dimensions", _PLAIN),
        ErrorSample((_f32(1, 4, 5, 5), _f32(3, 4, 3, 3)), "stride has 1 entries", {**_PLAIN, "stride": (1,)}),
        ErrorSample((_f32(1, 4, 5, 5), _f32(3, 4, 3, 3)), "stride must be positive", {**_PLAIN, "stride": (1, 0)}),
        ErrorSample(
            (_f32(1, 4, 5, 5), _f32(3, 4, 3, 3)), "padding must be pairs", {**_PLAIN, "padding": ((0, -1), (0, 0))}
        ),
        ErrorSample((_f32(1, 4, 5), TensorType(float64, (3, 4, 3))), "one numeric element type", _PLAIN),
    ],
    promotes=(0, 1),
)

conv_grad_input = define(
    "conv_grad_input",
    "Gradient of conv with respect to x [batch, channels, *size], from the gradient g of its result and the weight.",
    "g weight",
    _infer_grad_input,
    attrs=[SIZE, *_ATTRS],
    reference=_grad_input_reference,
    vjp=(holomorphic(_grad_input_vjp_g), holomorphic(_grad_input_vjp_weight)),
    complex=OnParts.BILINEAR,
    decompose=_decompose_grad_input,
    traits=_TRAITS,
    image=ImageRule((Dims.IMAGE, Dims.WINDOW), Dims.IMAGE),
    multiply_adds=lambda types, results, attrs: types[0].size * prod(types[1].shape[1:]),
    batch=_batched_convolution,
    samples=_grad_input_samples,
    error_samples=[
        ErrorSample((_f32(1, 4, 3, 3), _f32(4, 2, 3, 3)), "the convolution gives", {**_PLAIN, "size": (6, 5)}),
        ErrorSample((_f32(1, 4, 3, 3), _f32(4, 2, 3, 3)), "size and kernel need 2 entries", {**_PLAIN, "size": (5,)}),
        ErrorSample((_f32(1, 4, 3, 3), _f32(4, 2, 3, 3)), "must not be negative", {**_PLAIN, "size": (5, -1)}),
    ],
)

conv_grad_weight = define(
    "conv_grad_weight",
    "Gradient of conv with respect to weight [out, channels / groups, *kernel], from x and its result's gradient g.",
    "x g",
    _infer_grad_weight,
    attrs=[KERNEL, *_ATTRS],
    reference=_grad_weight_reference,
    vjp=(holomorphic(_grad_weight_vjp_x), holomorphic(_grad_weight_vjp_g)),
    complex=OnParts.BILINEAR,
    lower=_lower_grad_weight,
    decompose=_decompose_grad_weight,
    traits=_TRAITS,
    image=ImageRule((Dims.IMAGE, Dims.IMAGE), Dims.WINDOW),
    multiply_adds=lambda types, results, attrs: types[1].size * prod(results[0].shape[1:]),
    pairs=lambda types, attrs: (0, 0),
    batch=_batched_conv_grad_weight,
    samples=_grad_weight_samples,
    error_samples=[
        ErrorSample((_f32(1, 2, 5, 5), _f32(1, 4, 3, 3)), "the convolution gives", {**_PLAIN, "kernel": (2, 3)}),
        ErrorSample((_f32(1, 2, 5, 5), _f32(1, 4, 3, 3)), "size and kernel need 2", {**_PLAIN, "kernel": (3,)}),
        ErrorSample((_f32(2, 2, 5, 5), _f32(1, 4, 3, 3)), "the convolution gives", {**_PLAIN, "kernel": (3, 3)}),
    ],
)
