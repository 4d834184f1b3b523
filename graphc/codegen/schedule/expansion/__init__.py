"""Transcendental operations as expressions of primitive ones."""
