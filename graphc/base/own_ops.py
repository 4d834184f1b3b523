"""Names of the ops that files of the user define in this process: a model file names them, and lacks their rules."""

from __future__ import annotations

NAMES: set[str] = set()
