"""Recomputation: which values of a graph are computed again instead of kept, so that a memory limit holds."""
