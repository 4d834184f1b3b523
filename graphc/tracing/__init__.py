"""Tracing: from calls of modules to a graph, with a record of everything read from outside."""
