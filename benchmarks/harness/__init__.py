"""Shared parts of all benchmarks: processes, measuring in turns, comparing, tables."""
