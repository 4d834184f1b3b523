"""Models of other frameworks among those that commands take: ``.pt2`` files of PyTorch, and ``.onnx`` files."""

from __future__ import annotations

import argparse
from pathlib import PurePath
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred
from graphc.cli import console, targets
from graphc.files.model_content import Artifact
from graphc.models.model_file import LoadedModel, load

READERS = {
    ".pt2": deferred("graphc.interop.pt2.program:from_pt2"),
    ".onnx": deferred("graphc.interop.onnx.module:from_onnx"),
}
"""By suffix; imported with their first call, as most commands read no such file."""
in_memory = deferred("graphc.models.model_export:in_memory")
load_traced = deferred("graphc.models.model_export:load_traced")
snapshot = deferred("graphc.models.model_trace:snapshot")


def is_exported(text: str) -> bool:
    """Whether an argument names a file of another framework."""
    return PurePath(text).suffix in READERS


def prepare(text: str, options: argparse.Namespace) -> tuple[Any, list[Any], Any]:
    """The model in a file with its weights, example arguments, and the dimensions that the file leaves open (None
    where there are none). Raises UsageError for types of inputs that the file has, or where it has none and none are
    given, and for another mode."""
    with targets.compiling():
        model = READERS[PurePath(text).suffix](text)
    if getattr(options, "weights", None):
        targets.load_weights(model, options)
    if getattr(options, "train", False):
        with targets.compiling():
            model.train()
    return model, *_examples(text, model, getattr(options, "input", None))


def _examples(text: str, model: Any, types: Any) -> tuple[list[Any], Any]:
    """Example arguments and named dimensions: those of the file, or of ``types`` where it does not say them."""
    try:
        found = model.examples()
    except ArgumentError as error:
        if types:
            return targets.examples(model, types)
        raise console.UsageError(f"{text}: {error.what}", remedy="--input NAME:f32[2,3] for each input") from None
    if types:
        raise console.UsageError(f"--input gives types, which {text!r} has", remedy="without --input")
    return found, model.dims


def trace(text: str, options: argparse.Namespace | None = None) -> Any:
    """The trace of the model in a file."""
    model, examples, dims = prepare(text, options or argparse.Namespace())
    return targets.guarded(lambda: snapshot(model, examples, dims=dims), f"tracing {text}")


def stored(text: str) -> Artifact:
    """What a model file made of such a file would hold."""
    return in_memory(trace(text))


def load_model(
    text: str, trust: bool, target: str, device: str | None = None, weights: str | None = None
) -> LoadedModel:
    """A model file, or the model in a file of another framework, that can be called, with other weights where there is
    a file of such."""
    if is_exported(text):
        found = trace(text, argparse.Namespace(weights=weights, weights_entry=None, no_strict=False))
        return load_traced(found, target=target, device=device)
    return load(text, trust=trust, target=target, device=device, weights=weights)
