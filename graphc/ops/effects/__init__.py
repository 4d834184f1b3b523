"""Ops with effects or state: random numbers, writes, checks, taps, calls of Python functions."""
