"""Models of other frameworks as command arguments: ``.pt2`` of PyTorch, ``.onnx``, and StableHLO in ``.mlir`` files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
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
    ".mlir": deferred("graphc.interop.stablehlo.module:read_stablehlo"),
}
"""Reader for each suffix. They are imported at their first call, since most commands read no such file."""
in_memory = deferred("graphc.models.model_export:in_memory")
entry = deferred("graphc.models.model_entries:Entry")
host_parts_of = deferred("graphc.base.host_parts:host_parts_of")
load_entry = deferred("graphc.models.model_export:load_entry")
load_traced = deferred("graphc.models.model_export:load_traced")
snapshot = deferred("graphc.models.model_trace:snapshot")


def is_exported(text: str) -> bool:
    """Check whether an argument names a file of another framework."""
    return PurePath(text).suffix in READERS


def prepare(text: str, options: argparse.Namespace) -> tuple[Any, list[Any], Any]:
    """Return the model in a file with its weights, example arguments, and its named dimensions (None without any).

    Raises UsageError for ``--input`` types if the file has its own, for missing ones if it has none, and for an
    unsupported mode.
    """
    with targets.compiling():
        model = READERS[PurePath(text).suffix](text)
    if getattr(options, "weights", None):
        targets.load_weights(model, options)
    if getattr(options, "train", False):
        with targets.compiling():
            model.train()
    examples, dims = _examples(text, model, getattr(options, "input", None))
    return model, *targets.hinted(model, examples, dims, getattr(options, "shape", ()))


def _examples(text: str, model: Any, types: Any) -> tuple[list[Any], Any]:
    """Return example arguments and named dimensions from the file, or from ``types`` if the file has none."""
    try:
        inputs = model.examples()
    except ArgumentError as error:
        if types:
            return targets.examples(model, types)
        raise console.UsageError(f"{text}: {error.what}", remedy="pass --input NAME:f32[2,3] for each input") from None
    if types:
        raise console.UsageError(f"--input gives types, and {text!r} has its own", remedy="leave out --input")
    return inputs, model.dims


def trace(text: str, options: argparse.Namespace | None = None, reads_sizes: bool = False) -> Any:
    """Trace the model in a file; of a model with texts its program, which takes numbers. For ``reads_sizes`` see
    ``snapshot``."""
    model, examples, dims = prepare(text, options or argparse.Namespace())
    parts = host_parts_of(model)
    if parts is not None:
        model, examples, dims = parts.program, parts.arguments(examples, {}), parts.dims(dims)
    return _traced(text, model, examples, dims, reads_sizes)


def _traced(text: str, model: Any, examples: list[Any], dims: Any, reads_sizes: bool = True) -> Any:
    options = {"dims": dims, "by_hints": True, "reads_sizes": reads_sizes}
    return targets.guarded(lambda: snapshot(model, examples, **options), f"tracing {text}")


def stored(text: str) -> Artifact:
    """Return the contents of the model file that such a file would be compiled to, in memory."""
    return in_memory(trace(text, reads_sizes=True))


def load_model(
    text: str,
    trust: bool,
    target: str,
    device: str | None = None,
    weights: str | None = None,
    shapes: Iterable[tuple[str, int]] = (),
) -> LoadedModel:
    """Load a model file, or a file of another framework, as a callable model.

    ``weights`` names a file of other weights. ``shapes`` are expected sizes of dimensions, for which a file of another
    framework is traced.
    """
    if is_exported(text):
        options = argparse.Namespace(weights=weights, weights_entry=None, no_strict=False, shape=list(shapes))
        model, examples, dims = prepare(text, options)
        if host_parts_of(model) is not None:
            with targets.compiling():
                return load_entry(entry(model, *examples, dims=dims), target=target, device=device)
        return load_traced(_traced(text, model, examples, dims), target=target, device=device)
    return load(text, trust=trust, target=target, device=device, weights=weights)
