"""Files of the examples of ``graphc compile``."""

from __future__ import annotations

from pathlib import Path

from tools.gguf_files import write_random_decoder


def example_files(folder: Path, line: str) -> None:
    if "model.gguf" in line:
        write_random_decoder(folder / "model.gguf")
