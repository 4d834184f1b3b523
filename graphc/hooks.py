"""The import path that users know for handles of hooks, strict hooks, and hooks that compiled code holds."""

from graphc.nn.compiled_hooks import traced_hook as traced
from graphc.tape.hooks import RemovableHandle, strict

__all__ = ["RemovableHandle", "strict", "traced"]
