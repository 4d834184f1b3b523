"""The import path that users know for handles of hooks, and for the mode in which a hook may only look."""

from graphc.tape.hooks import RemovableHandle, strict

__all__ = ["RemovableHandle", "strict"]
