"""Sliding windows over spatial dimensions, as attributes of ONNX's convolutions and poolings describe them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.base.errors import AttributeValueError
from graphc.base.records import dataclass

if TYPE_CHECKING:
    from graphc.nn.functional.spatial import Ints, Pairs


@dataclass(frozen=True)
class Window:
    """Window of ``kernel`` elements and its movement over the spatial dimensions of an input."""

    sizes: Ints
    """Spatial sizes of the input."""
    kernel: Ints
    stride: Ints
    padding: Pairs
    dilation: Ints
    overhang: Ints = ()
    """Elements after the padding under a last partial window, with ``ceil_mode``."""

    @property
    def extent(self) -> Ints:
        """Return the number of elements from the first to the last tap."""
        return tuple([d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)])

    @property
    def covered(self) -> Pairs:
        """Return the padding plus the overhang of the last window."""
        return tuple([(low, high + b) for (low, high), b in zip(self.padding, self.overhang, strict=True)])

    @property
    def counts(self) -> Ints:
        """Return the number of windows in each dimension."""
        pads = self.covered if self.overhang else self.padding
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
    """Return the window that attributes describe for an input of these spatial sizes.

    Raises AttributeValueError for a mode of padding that ONNX does not define.
    """
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
        raise AttributeValueError(f"auto_pad {auto_pad[:40]!r} is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    overhang = [
        _overhang(n, e, s, low, high) if ceil_mode else 0
        for n, e, s, (low, high) in zip(sizes, bare.extent, stride, padding, strict=True)
    ]
    return Window(bare.sizes, bare.kernel, stride, padding, dilation, tuple(overhang))


def pairs(pads: Sequence[int] | None, rank: int) -> Pairs:
    """Return ONNX's padding (starts of all dimensions, then ends) by dimension. Raises AttributeValueError."""
    if not pads:
        return ((0, 0),) * rank
    if len(pads) != 2 * rank:
        raise AttributeValueError(f"pads {tuple(pads)[:20]} do not fit {rank} spatial dimensions")
    return tuple(zip(pads[:rank], pads[rank:], strict=True))


def split(total: int, auto_pad: str) -> tuple[int, int]:
    """Divide padding between both sides. Of an odd number the larger half comes last for SAME_UPPER, else first."""
    small, large = total // 2, total - total // 2
    return (small, large) if auto_pad == "SAME_UPPER" else (large, small)


def _least(total: Any) -> Any:
    return max(total, 0)


def _overhang(size: Any, extent: int, stride: int, low: int, high: int) -> Any:
    """Return the number of elements after the padding under a last partial window, which starts before them."""
    span = size + low + high - extent
    count = (span + stride - 1) // stride + 1
    if (count - 1) * stride >= size + low:
        count -= 1
    extra = (count - 1) * stride - span
    # At least a stride below zero: the last window that fits starts in the padding and is left out.
    return extra if type(extra) is int and extra <= -stride else _least(extra)
