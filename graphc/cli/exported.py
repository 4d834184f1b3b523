"""``.pt2`` files of PyTorch among the models that commands take."""

from __future__ import annotations

import argparse
from typing import Any

from graphc.base.lazy import deferred
from graphc.cli import console, targets
from graphc.compiled.model_file import LoadedModel, in_memory, load, load_traced, snapshot
from graphc.files.manifest import Artifact

SUFFIX = ".pt2"
from_pt2 = deferred("graphc.interop.pt2.program:from_pt2")
"""Imported with its first call: most commands read no such file."""


def is_exported(text: str) -> bool:
    """Whether an argument names a ``.pt2`` file."""
    return text.endswith(SUFFIX)


def prepare(text: str, options: argparse.Namespace) -> tuple[Any, list[Any], Any]:
    """The model in a file with its weights, example arguments, and the dimensions that the export left open (None
    where there are none). Raises UsageError for types of inputs, which the file has, and for another mode."""
    if getattr(options, "input", None):
        raise console.UsageError(f"--input gives types, which {text!r} has", remedy="without --input")
    with targets.compiling():
        model = from_pt2(text)
    if getattr(options, "weights", None):
        targets.load_weights(model, options)
    if getattr(options, "train", False):
        with targets.compiling():
            model.train()
    return model, model.examples(), model.dims


def trace(text: str, options: argparse.Namespace | None = None) -> Any:
    """The trace of the model in a file."""
    model, examples, dims = prepare(text, options or argparse.Namespace())
    return targets.guarded(lambda: snapshot(model, examples, dims=dims), f"tracing {text}")


def stored(text: str) -> Artifact:
    """What a model file made of a ``.pt2`` file would hold."""
    return in_memory(trace(text))


def load_model(text: str, trust: bool, target: str, device: str | None = None) -> LoadedModel:
    """A model file, or the model in a ``.pt2`` file, that can be called."""
    if is_exported(text):
        return load_traced(trace(text), target=target, device=device)
    return load(text, trust=trust, target=target, device=device)
