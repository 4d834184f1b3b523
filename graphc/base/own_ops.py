"""Names of the ops that user code defines in this process; model files contain the names, but not the rules."""

from __future__ import annotations

NAMES: set[str] = set()
