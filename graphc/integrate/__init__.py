"""Solvers of differential equations: initial value problems, events, and stochastic equations."""

from graphc.integrate.event import EventPoint, odeint_event
from graphc.integrate.odeint import StepCounts, odeint
from graphc.integrate.sdeint import sdeint

__all__ = ["EventPoint", "StepCounts", "odeint", "odeint_event", "sdeint"]
