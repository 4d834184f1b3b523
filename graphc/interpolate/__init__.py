"""Interpolation of values at points of one dimension: piecewise linear, and cubic splines."""

from graphc.interpolate.spline import CubicSpline, interp, interp1d

__all__ = ["CubicSpline", "interp", "interp1d"]
