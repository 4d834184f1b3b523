"""Output of an example: its folder is tried before training, and lines appear before those of the commands it runs."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from tempfile import TemporaryFile


def prepare(folder: Path) -> None:
    """Create a folder and, for a moment, a file in it; raise OSError where this is not allowed. Print line by line."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder):
        pass
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
