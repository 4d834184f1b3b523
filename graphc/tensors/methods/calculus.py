"""Tensor methods for integrals and derivatives along dimensions, from values at points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.base.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError
from graphc.base.sizes.dims import common_shape, dim_of, dims_of
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import composite
from graphc.tensors.methods.ordering import Ordering
from graphc.tensors.tensor_base import TensorBase

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


class Calculus(TensorBase):
    """Integrals and derivatives of sampled functions."""

    def trapezoid(self, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
        """Integrate along ``dim`` by the trapezoidal rule, with positions ``x`` or steps ``dx``."""
        at, areas = _areas("trapezoid", self, x, dx, dim)
        return ew.mul(composite.total(areas, at), 0.5)

    trapz = trapezoid

    def cumulative_trapezoid(self, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
        """Integrate along ``dim`` from the first point to each other one, by the trapezoidal rule."""
        at, areas = _areas("cumulative_trapezoid", self, x, dx, dim)
        return ew.mul(Ordering.cumsum(areas, at), 0.5)

    def gradient(self, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
        """Compute the derivative along each dimension of ``dim`` (all for None).

        Inner points use central differences of second order, weighted for unequal distances; edges use differences of
        order ``edge_order`` (1 or 2). ``spacing`` is the distance of points: a number, one for each dimension, or for
        each a vector of positions. Raises AttributeValueError, ShapeError for dimensions with too few points,
        ArgumentError.
        """
        axes = dims_of(dim, self.ndim)
        if edge_order not in (1, 2):
            raise AttributeValueError(f"gradient: edge_order is {edge_order!r}", remedy="pass 1 or 2")
        spacing = 1 if spacing is None else spacing
        several = isinstance(spacing, (tuple, list))
        spacings = list(spacing) if several else [spacing] * len(axes)
        if len(spacings) != len(axes):
            raise ArgumentError(
                f"gradient: {len(spacings)} spacings for {len(axes)} dimensions", remedy="pass one for each dimension"
            )
        return tuple(_derivative(self, at, space, edge_order) for at, space in zip(axes, spacings, strict=True))


def _areas(name: str, y: Any, x: Any, dx: float, dim: int) -> tuple[int, Any]:
    """Return the dimension, and twice the areas between neighbouring points along it, integers for integer ``y`` and
    ``x``."""
    at = dim_of(dim, y.ndim)
    if not y.shape:
        raise IndexRangeError(f"{name} needs at least one dimension", remedy="call tensor.reshape(1)")
    n = y.shape[at]
    if x is not None and (x.shape[-1] if x.ndim == 1 else common_shape(x.shape, y.shape)[at]) != n:
        raise ShapeError(f"{name}: x has shape {list(x.shape)} for {n} values along dimension {dim}")
    if n < 2:
        return at, ew.mul(y.narrow(at, 0, 0), 0.0)
    pairs = ew.add(y.narrow(at, 1, n - 1), y.narrow(at, 0, n - 1))
    if x is None:
        return at, ew.mul(pairs, float(dx))
    if x.ndim == 1:
        return at, ew.mul(pairs, x.diff().reshape(n - 1, *(1,) * (y.ndim - at - 1)))
    along = at - y.ndim  # A single position along the dimension broadcasts, with steps of 0.
    return at, ew.mul(pairs, x.diff(dim=along) if x.shape[along] > 1 else ew.sub(x, x))


def _derivative(f: Any, at: int, spacing: Any, edge_order: int) -> Any:
    n = f.shape[at]
    if n < edge_order + 1:
        raise ShapeError(f"gradient: dimension {at} has {n} points", remedy=f"pass at least {edge_order + 1} points")
    steps: Any = [spacing] * 4  # first, second, last but one, last
    middle = []
    if isinstance(spacing, TensorBase) and spacing.shape:
        if spacing.shape != (n,):
            raise ShapeError(
                f"gradient: spacing has shape {list(spacing.shape)} for {n} points",
                remedy="pass a vector with one position per point",
            )
        widths = spacing.diff().reshape(n - 1, *(1,) * (f.ndim - at - 1))  # type: ignore[attr-defined]
        steps = [widths[i] for i in (0, min(1, n - 2), max(n - 3, 0), n - 2)]
        if n > 2:
            middle = [_weighed(_three(f, at, 0, n - 2), widths[:-1], widths[1:])]
    elif n > 2:
        before, _, after = _three(f, at, 0, n - 2)
        middle = [ew.div(ew.sub(after, before), ew.mul(2.0, spacing))]
    if edge_order == 1:
        first, last = (_slope(f, at, i, h) for i, h in ((0, steps[0]), (n - 2, steps[3])))
    else:
        first = _edge(_three(f, at, 0, 1), steps[0], steps[1])
        last = ew.neg(_edge(_three(f, at, n - 3, 1)[::-1], steps[3], steps[2]))
    return shape.concat(first, *middle, last, axis=at)


def _three(f: Any, at: int, start: int, count: int) -> Sequence[Any]:
    """Return ``count`` entries of a dimension from ``start`` on, and the same shifted by 1 and by 2."""
    return [f.narrow(at, start + i, count) for i in range(3)]


def _slope(f: Any, at: int, start: int, width: Any) -> Any:
    return ew.div(ew.sub(f.narrow(at, start + 1, 1), f.narrow(at, start, 1)), width)


def _weighed(points: Sequence[Any], left_width: Any, right_width: Any) -> Any:
    """Compute the derivative at the middle one of three points, from their interpolating parabola (Fornberg 1988,
    section 3)."""
    before, here, after = points
    both = ew.add(left_width, right_width)
    rising = ew.mul(ew.div(left_width, ew.mul(right_width, both)), after)
    falling = ew.mul(ew.div(right_width, ew.mul(left_width, both)), before)
    return ew.add(
        ew.sub(rising, falling), ew.mul(ew.div(ew.sub(right_width, left_width), ew.mul(left_width, right_width)), here)
    )


def _edge(points: Sequence[Any], near: Any, far: Any) -> Any:
    """Compute the derivative at the first of three points, from their interpolating parabola."""
    first, second, third = points
    both = ew.add(near, far)
    a = ew.div(ew.add(ew.mul(2.0, near), far), ew.mul(near, both))
    b, c = ew.div(both, ew.mul(near, far)), ew.div(near, ew.mul(far, both))
    return ew.sub(ew.sub(ew.mul(b, second), ew.mul(a, first)), ew.mul(c, third))
