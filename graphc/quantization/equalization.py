"""Cross-layer equalization: balance the channels between two layers, so that one scale serves all of them.

Source: M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019. Output
channel ``i`` of the first layer is divided by ``sqrt(max|w1_i| / max|w2_i|)``, and input channel ``i`` of the second
one multiplied by it. That leaves the function alone where all between them scales with its input, as ReLU and pooling.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from graphc.nn.module import Module
from graphc.nn.modules.linear import Linear
from graphc.nn.parameter import Parameter
from graphc.quantization.batches import Batch, attached, input_of, run
from graphc.quantization.layers import QUANTIZED_LAYERS
from graphc.quantization.rewrites import Undo, apply_changes, parameter_uses
from graphc.tensors.creation import tensor

PROBE = 64.0
"""Factor of a probe, large enough to reach the limits of activations."""
_ROUNDS = 3
"""Passes over all pairs: a layer in the middle of a chain belongs to two of them."""
_RANGE = 1e-3, 1e3
"""Limits of a factor."""


def equalize_layers(model: Module, batch: Batch) -> list[tuple[Any, Any]]:
    """Equalize layers that are called one after the other, in place; return the pairs.

    A pair stays as it is where the inputs of the second layer do not scale with the results of the first one (ReLU6
    limits them), and where its change alters the results of a call of the model: the first layer has other readers.
    """
    uses = parameter_uses(model)
    called = _called(model, batch)
    pairs = [(a, b) for a, b in pairwise(called) if _fits(a, b) and uses[id(a.weight)] == uses[id(b.weight)] == 1]
    pairs = [pair for pair in pairs if _scales(model, batch, *pair)]
    for _ in range(_ROUNDS):
        kept = apply_changes(model, batch, [partial(_balance, *pair) for pair in pairs])
        pairs = [pairs[i] for i in kept]
    return pairs


def _called(model: Module, batch: Batch) -> list[Any]:
    """Return the layers that a call of the model calls once, in this order."""
    calls: list[Any] = []
    handles = [
        module.register_forward_pre_hook(lambda module, args: calls.append(module))
        for module in model.modules()
        if type(module) in QUANTIZED_LAYERS
    ]
    with attached(handles):
        run(model, batch)
    return [layer for layer in calls if calls.count(layer) == 1]


def _scales(model: Module, batch: Batch, first: Any, second: Any) -> bool:
    """Check that the inputs of the second layer are PROBE times as large where the results of the first one are."""
    plain, scaled = (_probed_input(model, batch, first, second, factor) for factor in (1.0, PROBE))
    if plain is None or scaled is None or plain.shape != scaled.shape:
        return False
    return bool(np.allclose(scaled, PROBE * plain, rtol=1e-4, atol=1e-4 * PROBE * np.abs(plain).max(initial=0.0)))


def _probed_input(model: Module, batch: Batch, first: Any, second: Any, factor: float) -> np.ndarray | None:
    """Return the input of the second layer where the results of the first one are ``factor`` times as large.

    None unless the model calls both layers once: its control flow may depend on the results.
    """
    results, inputs = list[Any](), list[np.ndarray]()

    def scale(module: Any, args: Any, result: Any) -> Any:
        results.append(result)
        return result * factor

    def read(module: Any, args: Any, kwargs: Any) -> None:
        inputs.append(input_of(args, kwargs)._values(force=True))

    with attached([first.register_forward_hook(scale), second.register_forward_pre_hook(read, with_kwargs=True)]):
        run(model, batch)
    return inputs[0] if len(results) == len(inputs) == 1 else None


def _fits(first: Any, second: Any) -> bool:
    """Check whether the inputs of the second layer are the channels of the first one, or several in a row for each."""
    channels = first.weight.shape[0]
    if type(second) is not Linear:
        return second.in_channels == channels
    return second.in_features == channels or (type(first) is not Linear and second.in_features % channels == 0)


def _columns(second: Any, channels: int) -> tuple[int, ...]:
    """Return the shape of the second weight in which dimensions 0 and 2 together are its input channels."""
    groups = 1 if type(second) is Linear else second.groups
    return groups, second.weight.shape[0] // groups, channels // groups, -1


def _balance(first: Any, second: Any) -> Undo:
    """Divide the output channels of the first layer, and multiply the input channels of the second one."""
    channels = first.weight.shape[0]
    w1, w2 = (np.abs(layer.weight._values(force=True)) for layer in (first, second))
    shape = _columns(second, channels)
    rows, columns = w1.reshape(channels, -1).max(1), w2.reshape(shape).max((1, 3)).reshape(-1)
    is_used = (rows > 0) & (columns > 0)
    factor = np.sqrt(np.where(is_used, rows, 1) / np.where(is_used, columns, 1)).clip(*_RANGE).astype(np.float32)
    scale, old = tensor(factor), (first.weight, first.bias, second.weight)
    wide = scale.reshape(-1, *(1,) * (first.weight.ndim - 1))
    first.weight = Parameter(first.weight.detach() / wide, old[0].requires_grad)
    if first.bias is not None:
        first.bias = Parameter(first.bias.detach() / scale, first.bias.requires_grad)
    weight = second.weight.detach()
    columns_scale = scale.reshape(shape[0], 1, shape[2], 1)
    second.weight = Parameter((weight.reshape(*shape) * columns_scale).reshape(weight.shape), old[2].requires_grad)

    def undo() -> None:
        first.weight, first.bias, second.weight = old

    return undo
