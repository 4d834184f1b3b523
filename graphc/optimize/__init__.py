"""Solvers of equations and minimization in native loops, with implicit derivatives."""

from graphc.optimize.root_scalar import root_scalar

__all__ = ["root_scalar"]
