"""Functions whose path pickles contain."""

from graphc.base.public import call, new

__all__ = ["call", "new"]
