"""Files of the examples of ``graphc generate``."""

from __future__ import annotations

from pathlib import Path

import graphc as gc
from tools.gguf_files import write_random_decoder


def example_files(folder: Path, line: str) -> None:
    path = write_random_decoder(folder / "model.gguf")
    if "model.gcm" in line:
        gc.export(gc.llm.load(path).entries(), path=folder / "model.gcm")
