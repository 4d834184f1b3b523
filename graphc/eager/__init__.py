"""Eager mode: compute ops at once, record them, and differentiate them in reverse and forward mode."""
