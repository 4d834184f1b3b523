"""Joins passes, code generation and runtime: from a graph to something that can be called."""
