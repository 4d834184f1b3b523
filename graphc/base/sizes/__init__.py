"""Symbolic sizes: named dimensions, their polynomials and ranges, and what a trace assumed of them."""
