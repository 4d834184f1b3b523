"""Measured models, training loops and operator calls, each written once for any framework."""
