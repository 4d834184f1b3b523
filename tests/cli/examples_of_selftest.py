"""Files of the examples of ``graphc selftest``: a net with sample calls."""

from __future__ import annotations

from pathlib import Path

import graphc as gc
from graphc import nn


def example_files(folder: Path, line: str) -> None:
    """Writes what one example needs."""
    gc.export(nn.Linear(3, 2).eval(), gc.ones(2, 3), path=folder / "net.gcm", golden=2, native="--trust" in line)
