"""Interpolation of values at points of one dimension: piecewise linear, and cubic splines."""

from graphc.interpolate.spline import CubicSpline, interp

__all__ = ["CubicSpline", "interp"]
