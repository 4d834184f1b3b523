"""Solvers of differential equations: initial value problems, events, and stochastic equations."""

from graphc.integrate.event import Event, odeint_event
from graphc.integrate.odeint import Statistics, odeint
from graphc.integrate.sdeint import sdeint

__all__ = ["Event", "Statistics", "odeint", "odeint_event", "sdeint"]
