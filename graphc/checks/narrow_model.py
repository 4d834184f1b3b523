"""Narrow weights of a whole model: the noise of its layers of ``gc.quantize``, and a measure of its task."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from math import nan
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.calls.function import compile
from graphc.checks.check import Report
from graphc.checks.weight_noise import WeightNoise
from graphc.nn.module import Module
from graphc.quantization.layers import Quantized, float_layers
from graphc.quantization.report import measured
from graphc.tape.grad_mode import no_grad
from graphc.tensors.structure import flatten, unflatten

Accuracy = Callable[[Any], Any]
"""Function of a model that returns a number."""


def with_model_figures(
    report: Report, model: Any, examples: Sequence[Any], precision: str, accuracy: Accuracy | None
) -> Report:
    """Return a report of narrow weights with the noise of layers of ``gc.quantize`` and with ``accuracy``.

    Both run a copy of a module in evaluation mode. Raise ArgumentError for an ``accuracy`` that does not fit.
    """
    assert report.precision is not None
    quantized = _quantized_layers(model)
    if accuracy is None and not quantized:
        return report
    if isinstance(model, Module):
        model = copy.deepcopy(model).eval()
        quantized = _quantized_layers(model)
    figures = report.precision
    if quantized:
        figures = replace(figures, layers=(*figures.layers, *_quantized_noise(model, quantized, examples)))
    if accuracy is not None:
        full, narrow = _accuracies(model, quantized, precision, accuracy)
        figures = replace(figures, full_accuracy=full, accuracy=narrow)
    return replace(report, precision=figures)


def _quantized_layers(model: Any) -> dict[str, Quantized]:
    modules = model.named_modules() if isinstance(model, Module) else ()
    return {name: module for name, module in modules if isinstance(module, Quantized)}


def _quantized_noise(model: Module, layers: dict[str, Quantized], examples: Sequence[Any]) -> list[WeightNoise]:
    """Return the noise of each layer that has its f32 weight."""
    tensors, structure = flatten((tuple(examples), {}))
    sums = measured(model, [unflatten(structure, tensors)])
    return [
        WeightNoise(f"{name}.weight" if name else "weight", type(layers[name]).__name__, total.snr)
        for name, total in sums.items()
    ]


def _accuracies(model: Any, quantized: dict[str, Quantized], precision: str, accuracy: Accuracy) -> tuple[float, float]:
    """Return the measure of a model with full weights, and of the same model compiled with narrow ones."""
    layers = list(quantized.values())
    full = nan
    if all(layer.has_weight for layer in layers):
        with float_layers(layers) if layers else nullcontext():
            full = _number(accuracy, model)
    compiled = compile(model, precision=precision)
    narrow = _number(accuracy, compiled)
    if not compiled.variants:
        raise ArgumentError(
            "check: accuracy= did not call the model with narrow weights",
            remedy="call the model that the function gets, as in model(x), not a module or method of it",
        )
    return full, narrow


def _number(accuracy: Accuracy, model: Any) -> float:
    with no_grad():
        value = accuracy(model)
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"check: accuracy= returned {type(value).__name__}", remedy="return a number, larger for better models"
        ) from error
