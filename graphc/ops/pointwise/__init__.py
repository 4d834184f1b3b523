"""Ops of single elements: arithmetic, mathematics, complex numbers, bits."""
