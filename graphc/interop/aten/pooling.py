"""Rules of ATen's pooling and resampling operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.interop.aten.registry import rule, same
from graphc.nn import functional as F
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

same("avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d")
same("adaptive_avg_pool3d")
rule("_adaptive_avg_pool2d")(F.adaptive_avg_pool2d)
rule("_adaptive_avg_pool3d")(F.adaptive_avg_pool3d)


def _with_indices(function: Any) -> Any:
    def pool(
        self: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> tuple[Tensor, Tensor]:
        return function(self, kernel_size, stride or None, padding, dilation, ceil_mode, True)

    return pool


rule("max_pool1d_with_indices")(_with_indices(F.max_pool1d))
rule("max_pool2d_with_indices")(_with_indices(F.max_pool2d))
rule("max_pool3d_with_indices")(_with_indices(F.max_pool3d))


@rule("adaptive_max_pool2d")
def adaptive_max_pool2d(self: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool2d(self, output_size, True)


@rule("adaptive_max_pool3d")
def adaptive_max_pool3d(self: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool3d(self, output_size, True)


@rule("max_unpool2d", "max_unpool3d")
def max_unpool(self: Tensor, indices: Tensor, output_size: Sequence[int], *_: Any) -> Tensor:
    """Scatter elements to their indices in the flattened plane or volume of zeros. Of equal indices the last one
    wins."""
    outer = self.shape[: self.dim() - len(output_size)]
    zeros = self.new_zeros((*outer, prod(output_size)))
    result = functions.scatter(zeros, -1, indices.reshape(*outer, -1), self.reshape(*outer, -1))
    return result.reshape(*outer, *output_size)


@rule("adaptive_max_pool1d")
def adaptive_max_pool1d(self: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool1d(self, output_size, True)


def _resample(self: Tensor, size: Any, scales: Sequence[Any] | None, mode: str, **corners: Any) -> Tensor:
    """Resize to ``size``. Given scales also determine the coordinates of elements."""
    if scales and any(s is not None for s in scales):
        if None in scales:
            ratios = [to / n for to, n in zip(size, self.shape[2:], strict=True)]
            scales = [ratio if s is None else s for s, ratio in zip(scales, ratios, strict=True)]
        lengths = [int(n * s) for n, s in zip(self.shape[2:], scales, strict=True)]
        if size is not None and lengths != list(size):
            raise UnsupportedError(f"the size {list(size)} is not {list(self.shape[2:])} times {list(scales)}")
        return F.interpolate(self, None, tuple(scales), mode, recompute_scale_factor=False, **corners)
    return F.interpolate(self, tuple(size), None, mode, **corners)


def _in_order(scales: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Return the scales ``scales_d``, ``scales_h``, ``scales_w`` by dimension. The last ones may be keyword
    arguments."""
    return [*scales, *[named[name] for name in sorted(named)]]


def _nearest(mode: str) -> tuple[Any, Any]:
    """Return the two forms of an operator: with a number for the scale of each dimension, or with all scales in a
    list."""

    def plain(self: Tensor, output_size: Any, *scales: Any, **named: Any) -> Tensor:
        return _resample(self, output_size, _in_order(scales, named), mode)

    def listed(input: Tensor, output_size: Any, scale_factors: Any = None) -> Tensor:
        return _resample(input, output_size, scale_factors, mode)

    return plain, listed


def _linear(mode: str) -> tuple[Any, Any]:
    def plain(self: Tensor, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Tensor:
        return _resample(self, output_size, _in_order(scales, named), mode, align_corners=align_corners)

    def listed(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any = None) -> Tensor:
        return _resample(input, output_size, scale_factors, mode, align_corners=align_corners)

    return plain, listed


RESAMPLING: dict[str, tuple[Any, Any]] = {
    "upsample_nearest1d": _nearest("nearest"),
    "upsample_nearest2d": _nearest("nearest"),
    "upsample_nearest3d": _nearest("nearest"),
    "_upsample_nearest_exact1d": _nearest("nearest-exact"),
    "_upsample_nearest_exact2d": _nearest("nearest-exact"),
    "upsample_linear1d": _linear("linear"),
    "upsample_bilinear2d": _linear("bilinear"),
    "upsample_trilinear3d": _linear("trilinear"),
    "upsample_bicubic2d": _linear("bicubic"),
}
"""The two forms of operators, by name."""
for _name, (_plain, _listed) in RESAMPLING.items():
    rule(_name)(_plain)
    rule(f"{_name}.vec")(_listed)


@rule("grid_sampler", "grid_sampler_2d")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    return F.grid_sample(input, grid, mode, ("zeros", "border", "reflection")[padding_mode], align_corners)
