"""Solvers of differential equations: initial value problems."""

from graphc.integrate.odeint import Statistics, odeint

__all__ = ["Statistics", "odeint"]
