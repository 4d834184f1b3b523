"""ATen operators of pooling and of resampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.interop.aten.registry import rule, same
from graphc.nn import functional as F
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


@rule("adaptive_max_pool1d")
def adaptive_max_pool1d(self: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    return F.adaptive_max_pool1d(self, output_size, True)


def _resample(mode: str, corners: bool, antialias: bool = False) -> Any:
    """The two forms of an operator: with scales for each dimension as numbers of their own, or all in one list."""

    def scaled(self: Tensor, size: Any, align: Any, scales: Sequence[Any] | None) -> Tensor:
        known = None if scales is None or any(s is None for s in scales) else tuple(scales)
        more: dict[str, Any] = {"align_corners": align} if corners else {}
        if antialias:
            more["antialias"] = True
        if size is None:
            return F.interpolate(self, None, known, mode, recompute_scale_factor=False, **more)
        return F.interpolate(self, tuple(size), None, mode, **more)

    def plain(self: Tensor, output_size: Any, *rest: Any, **named: Any) -> Tensor:
        align = (named.pop("align_corners") if "align_corners" in named else rest[0]) if corners else None
        return scaled(self, output_size, align, None)

    def vector(self: Tensor, output_size: Any, *rest: Any, **named: Any) -> Tensor:
        if corners:
            align = named.pop("align_corners") if "align_corners" in named else rest[0]
            rest = rest[1:]
        else:
            align = None
        scales = named.get("scale_factors", rest[0] if rest else None)
        return scaled(self, output_size, align, scales)

    return plain, vector


for _name, _kind in {
    "upsample_nearest1d": ("nearest", False),
    "upsample_nearest2d": ("nearest", False),
    "upsample_nearest3d": ("nearest", False),
    "_upsample_nearest_exact1d": ("nearest-exact", False),
    "_upsample_nearest_exact2d": ("nearest-exact", False),
    "upsample_linear1d": ("linear", True),
    "upsample_bilinear2d": ("bilinear", True),
    "upsample_trilinear3d": ("trilinear", True),
    "upsample_bicubic2d": ("bicubic", True),
    "_upsample_bilinear2d_aa": ("bilinear", True, True),
    "_upsample_bicubic2d_aa": ("bicubic", True, True),
}.items():
    _plain, _vector = _resample(*_kind)
    rule(_name)(_plain)
    rule(f"{_name}.vec")(_vector)


@rule("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    return F.grid_sample(input, grid, mode, ("zeros", "border", "reflection")[padding_mode], align_corners)
