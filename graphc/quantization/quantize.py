"""``quantize``: replace linear layers and convolutions of a trained model by 8-bit ones, from calibration data."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from itertools import chain, islice
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np

from graphc.base.dtypes import float32
from graphc.base.errors import ArgumentError, AttributeValueError, NonFiniteError
from graphc.base.progress import TerminalLine
from graphc.nn.functional.byte_products import BYTE, SIGNED, holds_sums
from graphc.nn.module import Module, no_module
from graphc.nn.parameter import is_uninitialized
from graphc.quantization.batches import Batch, attached, batches_of, input_of, run
from graphc.quantization.bias_correction import correct_biases
from graphc.quantization.equalization import equalize_layers
from graphc.quantization.folding import fold_batch_norms
from graphc.quantization.layers import QUANTIZED_LAYERS, Quantized
from graphc.quantization.observers import RangeObserver, observer_of
from graphc.quantization.report import Sums, measured, report_of
from graphc.quantization.smoothing import smooth_norms
from graphc.tape.grad_mode import no_grad

__all__ = ["quantize"]

_Model = TypeVar("_Model", bound=Module)
_MEASURED = 4
"""Batches on which layers are compared with their f32 form."""
_NAMES = ", ".join(f"nn.{kind.__name__}" for kind in QUANTIZED_LAYERS)


def quantize(
    model: _Model,
    calibration: Iterable[Any],
    *,
    precision: str = "int8",
    per_channel: bool = True,
    method: str = "minmax",
    skip: Iterable[Any] | str | type | Callable[..., bool] = (),
    accuracy: Callable[[Module], Any] | None = None,
    drop: float = 0.01,
    smooth: float | None = None,
    equalize: bool = False,
    correct_bias: bool = False,
    trainable: bool = True,
) -> _Model:
    """Return a copy of a trained model whose linear layers and convolutions compute with 8-bit integers.

    Weights become i8 codes, inputs of the layers u8 codes with a zero point; sums are exact. Batch normalization that
    follows such a layer is folded into it. ``train()`` switches the copy to training with rounded floats, ``eval()``
    back to codes. The copy's attribute ``quantization`` is a report for each layer.

    Args:
        model: a Module with f32 parameters. It is not changed.
        calibration: an iterable of typical inputs: tensors, tuples of arguments, or dictionaries of named
            arguments. Those that ``forward`` does not take, such as labels, are left out.
        precision: "int8".
        per_channel: use a scale for each output channel of a weight, or one for all.
        method: choice of the input ranges: "minmax" takes the extremes, "percentile" leaves 0.01% of the inputs out,
            "entropy" minimizes the loss of information.
        skip: names, module types, or functions of (name, module) that select layers and all layers inside of them to
            stay f32.
        accuracy: function of a model that returns a number, larger is better. While the copy is more than ``drop``
            worse than the model, the layer with the lowest signal-to-noise ratio becomes f32 again.
        drop: allowed loss of accuracy, in the units of ``accuracy``.
        smooth: exponent, such as 0.5, with which large channels of a LayerNorm or RMSNorm move into the linear layers
            that follow it (SmoothQuant).
        equalize: balance channels between consecutive layers (cross-layer equalization).
        correct_bias: add the mean error of each output channel to the biases.
        trainable: keep the f32 weights, which training needs.

    Returns:
        The quantized copy, in evaluation mode.

    Raises:
        ArgumentError: no calibration data, no layer to quantize, or none that gets an input.
        AttributeValueError: an unknown precision, method, or name in ``skip``.
        NonFiniteError: NaN or infinity in a parameter or an input of a layer.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Sequential(gc.nn.Linear(4, 8), gc.nn.ReLU(), gc.nn.Linear(8, 2))
        >>> small = gc.quantize(model, [gc.randn(16, 4) for _ in range(4)])
        >>> small[0].weight_codes.dtype, small(gc.randn(3, 4)).shape
        (graphc.int8, (3, 2))
    """
    _check(model, precision, smooth)
    options = _Options(per_channel, observer_of(method), smooth, equalize, correct_bias, trainable)
    return _quantized(model, calibration, skip, options, accuracy, drop)


class _Options(NamedTuple):
    """Options of the conversion."""

    per_channel: bool
    observer: type[RangeObserver]
    smooth: float | None
    equalize: bool
    correct_bias: bool
    trainable: bool


class _Changed(NamedTuple):
    """Names of modules whose parameters were changed before quantization."""

    folded: list[str]
    smoothed: list[str]
    equalized: list[tuple[str, str]]


def _quantized(
    model: _Model,
    data: Iterable[Any],
    skip: Any,
    options: _Options,
    accuracy: Callable[[Module], Any] | None,
    drop: float,
) -> _Model:
    result = copy.deepcopy(model).eval()
    line = TerminalLine()
    try:
        batches, sums, reasons, changed = _convert(result, data, skip, options, line)
        if accuracy is not None:
            _restore_accuracy(model, result, accuracy, drop, sums, reasons, line)
        report: Any = report_of(result, batches, sums, reasons, *changed)
    finally:
        line.clear()
    result.quantization = report
    for layer in result.modules() if not options.trainable else ():
        if isinstance(layer, Quantized):
            layer.drop_weight()
    return result


def _convert(
    model: Module, data: Iterable[Any], skip: Any, options: _Options, line: TerminalLine
) -> tuple[list[Batch], dict[str, Sums], dict[str, str], _Changed]:
    """Quantize layers in place. Return the first batches, what was measured on them, reasons why layers stay f32, and
    changes before."""
    layers, reasons = _chosen(model, skip)
    _check_finite(layers)
    calls = batches_of(model, data)
    first = list(islice(calls, _MEASURED))
    if not first:
        raise ArgumentError("quantize: the calibration data has no inputs", remedy="pass at least one typical input")
    names = {module: name for name, module in model.named_modules()}
    folded = [names[layer] for layer in fold_batch_norms(model, first[0])]
    norms = [] if options.smooth is None else smooth_norms(model, first, options.smooth)
    pairs = equalize_layers(model, first[0]) if options.equalize else []
    changed = _Changed(folded, [names[norm] for norm in norms], [(names[a], names[b]) for a, b in pairs])
    observers = _calibrate(model, chain(first, calls), layers, options.observer, line)
    if all(observer.is_empty for observer in observers.values()):
        raise ArgumentError(
            "quantize: no layer got an input in the calibration data",
            remedy=f"pass inputs that are not empty, for which the model calls {', '.join(list(layers.values())[:5])}",
        )
    for layer, name in layers.items():
        if observers[layer].is_empty:
            reasons[name] = "no call in the calibration data"
        else:
            kind = QUANTIZED_LAYERS[type(layer)]
            kind.convert(layer, *observers[layer].range(), per_channel=options.per_channel)
    if options.correct_bias:
        correct_biases(model, first)
    return first, measured(model, first), reasons, changed


def _check(model: Any, precision: Any, smooth: Any) -> None:
    if not isinstance(model, Module):
        raise no_module("quantize", model)
    if precision != "int8":
        raise AttributeValueError(
            f"quantize: precision {precision!r} is not known",
            remedy='pass "int8"; precision= of gc.compile and gc.export has forms that narrow weights alone',
        )
    if smooth is not None and not 0 <= smooth <= 1:
        raise AttributeValueError(f"quantize: smooth is {smooth}", remedy="pass a number from 0 to 1, or None")


def _chosen(model: Module, skip: Any) -> tuple[dict[Any, str], dict[str, str]]:
    """Return the layers to quantize with their names, and the names of the others with the reason."""
    reasons = _skipped(model, skip)
    layers: dict[Any, str] = {}
    for name, layer in model.named_modules():
        if type(layer) in QUANTIZED_LAYERS and name not in reasons:
            if reason := _unfit(layer):
                reasons[name] = reason
            else:
                layers[layer] = name
    if not layers:
        raise ArgumentError(
            f"quantize: {type(model).__name__} has no layer to quantize", remedy=f"pass a model with {_NAMES} in f32"
        )
    return layers, reasons


def _check_finite(layers: dict[Any, str]) -> None:
    """Raise NonFiniteError for a parameter with NaN or infinity."""
    for layer, path in layers.items():
        for name, parameter in layer.named_parameters(path, recurse=False):
            if not np.isfinite(parameter._values(force=True)).all():
                raise NonFiniteError(
                    f"quantize: the model's parameter {name} holds NaN or infinity",
                    remedy="load or train finite parameters" + (f", or pass skip=[{path!r}]" if path else ""),
                )


def _unfit(layer: Any) -> str:
    """Return the reason why a layer cannot be quantized, or an empty text."""
    if is_uninitialized(layer.weight):
        return "no weight before the first call"
    if layer.weight.dtype is not float32:
        return f"weight of type {layer.weight.dtype!r}"
    fits = holds_sums(prod(layer.weight.shape[1:]), BYTE * SIGNED)
    return "" if fits else "sums of more products than i32 holds"


def _skipped(model: Module, skip: Any) -> dict[str, str]:
    """Return the names of layers that ``skip`` selects, with the reason for the report."""
    selectors = [skip] if isinstance(skip, str) or callable(skip) else list(skip)
    roots: set[str] = set()
    for selector in selectors:
        matches = [name for name, module in model.named_modules() if _selects(selector, name, module)]
        if isinstance(selector, str) and not matches:
            known = [name for name, module in model.named_modules() if type(module) in QUANTIZED_LAYERS]
            raise AttributeValueError(
                f"quantize: skip names {selector!r}, which the model does not have",
                remedy=f"pass names of modules, such as {known[:5]}",
            )
        roots.update(matches)
    return {
        name: "skipped"
        for name, module in model.named_modules()
        if type(module) in QUANTIZED_LAYERS and any(name == r or not r or name.startswith(f"{r}.") for r in roots)
    }


def _selects(selector: Any, name: str, module: Module) -> bool:
    if isinstance(selector, str):
        return name == selector
    if isinstance(selector, type):
        return isinstance(module, selector)
    if not callable(selector):
        raise ArgumentError(
            f"quantize: skip holds {type(selector).__name__}",
            remedy="pass names, module types, or functions of (name, module)",
        )
    return bool(selector(name, module))


def _calibrate(
    model: Module, calls: Iterable[Batch], layers: dict[Any, str], kind: type[RangeObserver], line: TerminalLine
) -> dict[Any, RangeObserver]:
    """Run the model on the calls, and observe the inputs of layers."""
    observers: dict[Any, RangeObserver] = {layer: kind() for layer in layers}

    def observe(module: Any, args: Any, kwargs: Any) -> None:
        x = input_of(args, kwargs)
        observers[module].observe(layers[module], x._values(force=True))

    handles = [layer.register_forward_pre_hook(observe, with_kwargs=True) for layer in layers]
    with attached(handles):
        for count, batch in enumerate(calls, 1):
            line.write(f"quantize: calibrating, batch {count}")
            run(model, batch)
    return observers


def _restore_accuracy(
    model: Module,
    quantized: Module,
    accuracy: Callable[[Module], Any],
    drop: float,
    sums: dict[str, Sums],
    reasons: dict[str, str],
    line: TerminalLine,
) -> None:
    """Turn layers back to f32, those of lowest signal-to-noise ratio first, until the accuracy suffices."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with no_grad():
            target = float(accuracy(model)) - drop
    finally:
        for module, mode in modes:
            module.training = mode
    modules = dict(quantized.named_modules())
    worst_first = sorted(sums, key=lambda name: sums[name].snr, reverse=True)
    with no_grad():
        while worst_first and (reached := float(accuracy(quantized))) < target:
            name = worst_first.pop()
            layer = modules[name]
            assert isinstance(layer, Quantized)
            layer.revert()
            reasons[name] = f"accuracy {reached:.6g} is below {target:.6g}, {sums[name].snr:.1f} dB"
            line.write(f"quantize: {name} stays f32")
