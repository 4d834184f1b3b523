"""Import path for hooks: handles, strict mode, hooks in compiled code, and taps."""

from graphc.nn.compiled_hooks import traced_hook as traced
from graphc.tape.hooks import RemovableHandle, strict
from graphc.tracing.taps import Statistics, tap, tap_gradient

__all__ = ["RemovableHandle", "Statistics", "strict", "tap", "tap_gradient", "traced"]
