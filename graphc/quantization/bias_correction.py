"""Bias correction: biases of quantized layers plus the mean error of each output channel.

Source: M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019; here with
errors measured on calibration data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.nn.module import Module
from graphc.nn.modules.linear import Linear
from graphc.quantization.batches import Batch, attached, input_of, run
from graphc.quantization.layers import Quantized
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import tensor


def correct_biases(model: Module, batches: Sequence[Batch]) -> None:
    """Give all quantized layers a ``corrected_bias``, by their mean errors for the inputs that they get."""
    layers = [module for module in model.modules() if isinstance(module, Quantized)]
    sums: dict[Any, tuple[np.ndarray, int]] = {}

    def compare(module: Any, args: Any, kwargs: Any, result: Any) -> None:
        x = input_of(args, kwargs)
        with no_grad():
            error = np.subtract(module.float_forward(x)._values(force=True), result._values(force=True), dtype=float)
        channel = error.ndim - 1 if isinstance(module, Linear) else error.ndim - 1 - module.rank
        others = tuple(axis for axis in range(error.ndim) if axis != channel)
        total, count = sums.get(module, (np.zeros(error.shape[channel]), 0))
        sums[module] = total + error.sum(others), count + error.size // max(error.shape[channel], 1)

    handles = [layer.register_forward_hook(compare, with_kwargs=True) for layer in layers]
    with attached(handles):
        for batch in batches:
            run(model, batch)
    for module, (total, count) in sums.items():
        shift = tensor((total / max(count, 1)).astype(np.float32))
        module.corrected_bias = shift if module.bias is None else module.bias.detach() + shift
