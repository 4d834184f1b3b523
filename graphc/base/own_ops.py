"""Names of the ops that user code defines in this process. A model file names them, and lacks their rules."""

from __future__ import annotations

NAMES: set[str] = set()
