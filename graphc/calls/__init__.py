"""Compiled functions: keys and guards of calls, bindings to live tensors, programs that are found again."""
