"""The functions of which pickles hold the path."""

from graphc.base.public import call, new

__all__ = ["call", "new"]
