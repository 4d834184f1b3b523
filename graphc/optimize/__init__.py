"""Solvers of equations and minimization in native loops, with implicit derivatives."""

from graphc.optimize.minimize import bfgs, gauss_newton, lbfgs, levenberg_marquardt
from graphc.optimize.root_scalar import root_scalar
from graphc.optimize.roots import fixed_point, newton
from graphc.optimize.solution import SolverReport

__all__ = [
    "SolverReport",
    "bfgs",
    "fixed_point",
    "gauss_newton",
    "lbfgs",
    "levenberg_marquardt",
    "newton",
    "root_scalar",
]
