"""From calls of modules to a graph: the tracing dispatcher, and what a trace has seen of the world outside."""
