"""Windows that slide over spatial dimensions, as ONNX's convolutions and poolings describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphc.base.errors import AttributeValueError
from graphc.nn.functional.spatial import Ints, Pairs
from graphc.ops import shape
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Window:
    """A window of ``kernel`` elements and its way over the spatial dimensions of an input."""

    sizes: Ints
    """Of the input."""
    kernel: Ints
    stride: Ints
    padding: Pairs
    dilation: Ints
    behind: Ints = ()
    """Elements after the padding that a last window covers with ``ceil_mode``."""

    @property
    def extent(self) -> Ints:
        """Elements that the window spans."""
        return tuple([d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)])

    @property
    def covered(self) -> Pairs:
        """The padding with what a last window covers behind it."""
        return tuple([(low, high + b) for (low, high), b in zip(self.padding, self.behind, strict=True)])

    @property
    def counts(self) -> Ints:
        """How many windows there are in each dimension."""
        pads = self.covered if self.behind else self.padding
        spans = zip(self.sizes, pads, self.extent, self.stride, strict=True)
        return tuple([(n + low + high - e) // s + 1 for n, (low, high), e, s in spans])


def window_of(
    sizes: Sequence[Any],
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    pads: Sequence[int] | None,
    dilations: Sequence[int] | None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Window:
    """The window that attributes of an operator mean for an input of these spatial sizes. Raises AttributeValueError
    for a mode of padding that ONNX does not know."""
    one = (1,) * len(kernel)
    stride, dilation = tuple(strides or one), tuple(dilations or one)
    bare = Window(tuple(sizes), tuple(kernel), stride, ((0, 0),) * len(kernel), dilation)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        counts = [(n + s - 1) // s for n, s in zip(sizes, stride, strict=True)]
        spans = zip(sizes, counts, stride, bare.extent, strict=True)
        totals = [_least((c - 1) * s + e - n) for n, c, s, e in spans]
        padding = tuple([split(t, auto_pad) for t in totals])
    elif auto_pad in ("NOTSET", "", "VALID"):
        padding = pairs(pads, len(kernel)) if auto_pad != "VALID" else bare.padding
    else:
        raise AttributeValueError(f"auto_pad {auto_pad[:40]!r} is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    behind = [
        _behind(n, e, s, low, high) if ceil_mode else 0
        for n, e, s, (low, high) in zip(sizes, bare.extent, stride, padding, strict=True)
    ]
    return Window(bare.sizes, bare.kernel, stride, padding, dilation, tuple(behind))


def pairs(pads: Sequence[int] | None, rank: int) -> Pairs:
    """ONNX's padding (all that is before, then all behind) by dimension. Raises AttributeValueError."""
    if not pads:
        return ((0, 0),) * rank
    if len(pads) != 2 * rank:
        raise AttributeValueError(f"pads {tuple(pads)[:20]} for {rank} spatial dimensions")
    return tuple(zip(pads[:rank], pads[rank:], strict=True))


def split(total: int, auto_pad: str) -> tuple[int, int]:
    """Padding before and behind: of an odd number the larger part is behind for SAME_UPPER, else before."""
    small, large = total // 2, total - total // 2
    return (small, large) if auto_pad == "SAME_UPPER" else (large, small)


def padded(x: Tensor, padding: Pairs, value: Any = 0) -> Tensor:
    """The last dimensions with these elements around them; negative numbers cut off."""
    if not any(low or high for low, high in padding):
        return x
    lead = len(x.shape) - len(padding)
    low, high = zip(*((0, 0),) * lead, *padding, strict=True)
    filling = float(value) if x.dtype.is_floating_point else value
    return shape.pad(x, low=low, high=high, interior=(0,) * len(low), value=filling)


def _least(total: Any) -> Any:
    return max(total, 0)


def _behind(size: Any, extent: int, stride: int, low: int, high: int) -> Any:
    """What a last window needs behind the padding; it must start before that."""
    span = size + low + high - extent
    count = (span + stride - 1) // stride + 1
    if (count - 1) * stride >= size + low:
        count -= 1
    extra = (count - 1) * stride - span
    # A stride less than nothing: the last of the windows that fit starts in the padding, and is left out.
    return extra if type(extra) is int and extra <= -stride else _least(extra)
