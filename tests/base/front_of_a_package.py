"""A module of which a package has all names, for the test of those."""

__all__ = ["answer"]
answer = 42
