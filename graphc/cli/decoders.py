"""``graphc compile`` for a language model: its entries ``prefill`` and ``step``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from graphc.base.lazy import deferred
from graphc.cli import console

load = deferred("graphc.llm.loading:load")
_OF_TARGETS = ("input", "weights", "weights_entry", "no_strict", "train", "shape", "opset", "device", "golden")


def add_argument(parser: argparse.ArgumentParser, kind: Any) -> None:
    """Add ``--places``."""
    parser.add_argument(
        "--places",
        type=kind,
        metavar="N",
        help="TARGET is a language model, in a GGUF file or a folder with config.json and safetensors files: tokens "
        "that its caches hold (default: as many as the model allows, at most 2048)",
    )


def is_language_model(text: str) -> bool:
    """Check whether a path is a GGUF file, or a folder with ``config.json``."""
    return Path(text).suffix == ".gguf" or Path(text, "config.json").is_file()


def is_decoder(options: argparse.Namespace) -> bool:
    """Check whether the target is a language model. Raise UsageError for ``--places`` of another one."""
    is_language = is_language_model(options.target)
    if options.places is not None and not is_language:
        raise console.UsageError(
            f"--places applies only to language models, and {options.target} is none",
            remedy="pass a GGUF file, or a folder with config.json and safetensors files",
        )
    return is_language


def entries(options: argparse.Namespace) -> dict[str, Any]:
    """Return the entries of the language model. Raises UsageError for options of Python models and for an ONNX file,
    and the errors of ``gc.llm.load``."""
    if Path(options.output).suffix == ".onnx":
        raise console.UsageError(
            "a language model has several entries, and an ONNX file one", remedy="pass -o net.gcm or -o net.so"
        )
    wrong = next((name for name in _OF_TARGETS if getattr(options, name)), None)
    if wrong is not None:
        raise console.UsageError(f"--{wrong.replace('_', '-')} does not apply to language models")
    return load(options.target, places=options.places).entries()
