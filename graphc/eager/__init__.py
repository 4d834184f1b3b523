"""Eager mode: the dispatcher that computes ops at once and records them for gradients."""
