"""Tensor methods that integrate and differentiate along dimensions, by values at points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.base.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError
from graphc.base.sizes.dims import common_shape, dim_of, dims_of
from graphc.ops import elementwise as ew
from graphc.ops import shape
from graphc.tensors import composite
from graphc.tensors.methods.ordering import Ordering
from graphc.tensors.tensor_base import TensorBase

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


class Calculus(TensorBase):
    """Integrals and derivatives of what is known at points."""

    def trapezoid(self, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
        """The integral along ``dim`` by the trapezoidal rule, with positions ``x`` or steps ``dx``."""
        at, areas = _areas("trapezoid", self, x, dx, dim)
        return ew.mul(composite.total(areas, at), 0.5)

    trapz = trapezoid

    def cumulative_trapezoid(self, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
        """The integrals along ``dim`` from the first point to each other one, by the trapezoidal rule."""
        at, areas = _areas("cumulative_trapezoid", self, x, dx, dim)
        return ew.mul(Ordering.cumsum(areas, at), 0.5)

    def gradient(self, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
        """The derivative along each dimension of ``dim`` (all for None), by central differences of second order, which
        weigh both sides where points are not equally far; at edges by differences of order ``edge_order`` (1 or 2).

        ``spacing`` is the distance of points: a number, one for each dimension, or for each a vector of positions.
        Raises AttributeValueError, ShapeError where a dimension has too few points, ArgumentError.
        """
        axes = dims_of(dim, self.ndim)
        if edge_order not in (1, 2):
            raise AttributeValueError(f"gradient: edge_order is {edge_order!r}", remedy="1 or 2")
        spacing = 1 if spacing is None else spacing
        several = isinstance(spacing, (tuple, list))
        given = list(spacing) if several else [spacing] * len(axes)
        if len(given) != len(axes):
            raise ArgumentError(f"gradient: {len(given)} spacings for {len(axes)} dimensions", remedy="one for each")
        return tuple(_derivative(self, at, space, edge_order) for at, space in zip(axes, given, strict=True))


def _areas(name: str, y: Any, x: Any, dx: float, dim: int) -> tuple[int, Any]:
    """The dimension, and along it twice the areas between neighbouring points, which are whole numbers for whole ``y``
    and ``x``."""
    at = dim_of(dim, y.ndim)
    if not y.shape:
        raise IndexRangeError(f"{name} needs at least one dimension", remedy="tensor.reshape(1)")
    n = y.shape[at]
    if x is not None and (x.shape[-1] if x.ndim == 1 else common_shape(x.shape, y.shape)[at]) != n:
        raise ShapeError(f"{name}: positions {list(x.shape)} for {n} values along dimension {dim}")
    if n < 2:
        return at, ew.mul(y.narrow(at, 0, 0), 0.0)
    pairs = ew.add(y.narrow(at, 1, n - 1), y.narrow(at, 0, n - 1))
    if x is None:
        return at, ew.mul(pairs, float(dx))
    if x.ndim == 1:
        return at, ew.mul(pairs, x.diff().reshape(n - 1, *(1,) * (y.ndim - at - 1)))
    along = at - y.ndim  # One position along the dimension stands for all, with steps of 0.
    return at, ew.mul(pairs, x.diff(dim=along) if x.shape[along] > 1 else ew.sub(x, x))


def _derivative(f: Any, at: int, spacing: Any, edge_order: int) -> Any:
    n = f.shape[at]
    if n < edge_order + 1:
        raise ShapeError(f"gradient: dimension {at} has {n} points", remedy=f"at least {edge_order + 1}")
    steps: Any = [spacing] * 4  # first, second, last but one, last
    middle = []
    if isinstance(spacing, TensorBase) and spacing.shape:
        if spacing.shape != (n,):
            raise ShapeError(f"gradient: {list(spacing.shape)} positions for {n} points", remedy="a vector")
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
    """``count`` entries of a dimension from ``start`` on, those behind, and those behind these."""
    return [f.narrow(at, start + i, count) for i in range(3)]


def _slope(f: Any, at: int, start: int, width: Any) -> Any:
    return ew.div(ew.sub(f.narrow(at, start + 1, 1), f.narrow(at, start, 1)), width)


def _weighed(points: Sequence[Any], left: Any, right: Any) -> Any:
    """The derivative at the middle one of three points, from the parabola through them (Fornberg 1988, section 3)."""
    before, here, after = points
    both = ew.add(left, right)
    rising = ew.mul(ew.div(left, ew.mul(right, both)), after)
    falling = ew.mul(ew.div(right, ew.mul(left, both)), before)
    return ew.add(ew.sub(rising, falling), ew.mul(ew.div(ew.sub(right, left), ew.mul(left, right)), here))


def _edge(points: Sequence[Any], near: Any, far: Any) -> Any:
    """The derivative at the first of three points, from the parabola through them."""
    first, second, third = points
    both = ew.add(near, far)
    a = ew.div(ew.add(ew.mul(2.0, near), far), ew.mul(near, both))
    b, c = ew.div(both, ew.mul(near, far)), ew.div(near, ew.mul(far, both))
    return ew.sub(ew.sub(ew.mul(b, second), ew.mul(a, first)), ew.mul(c, third))
