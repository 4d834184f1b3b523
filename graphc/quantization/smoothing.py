"""Smoothing: move large channels of normalized inputs into the weights of the linear layers that read them.

Source: G. Xiao et al., "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models",
ICML 2023. Channel ``j`` of the normalization's result is divided by ``max|x_j|**a / max|w_j|**(1 - a)``, and column
``j`` of the weights multiplied by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.nn.module import Module
from graphc.nn.modules.linear import Linear
from graphc.nn.modules.normalization import LayerNorm, RMSNorm
from graphc.nn.parameter import Parameter
from graphc.quantization.batches import Batch, attached, input_of, run
from graphc.quantization.rewrites import Undo, apply_changes, parameter_uses
from graphc.tensors.creation import tensor
from graphc.tensors.tensor import Tensor

_SMALLEST = 1e-5
"""Smallest magnitude of a channel or column that counts."""


@dataclass
class _Norm:
    """Linear layers that read the result of a normalization, and the magnitude of each of its channels."""

    readers: list[Any] = field(default_factory=list)
    magnitude: np.ndarray | float = 0.0


def smooth_norms(model: Module, batches: Sequence[Batch], strength: float) -> list[Module]:
    """Smooth the inputs of linear layers after a LayerNorm or RMSNorm, in place; return the normalizations.

    ``strength`` is ``a`` above, from 0 to 1. A normalization whose result has other readers stays as it is: the results
    of the model would change.
    """
    norms = _observed(model, batches)
    uses = parameter_uses(model)
    chosen = [
        (norm, entry)
        for norm, entry in norms.items()
        if entry.readers and all(uses[id(m.weight)] == 1 for m in (norm, *entry.readers))
    ]
    changes = [partial(_smooth, norm, entry, strength) for norm, entry in chosen]
    return [chosen[i][0] for i in apply_changes(model, batches[0], changes)]


def _observed(model: Module, batches: Sequence[Batch]) -> dict[Any, _Norm]:
    """Run the model. Return its normalizations with the linear layers that read what these returned."""
    norms: dict[Any, _Norm] = {}
    results: dict[int, tuple[Any, Tensor]] = {}

    def produced(module: Any, args: Any, result: Tensor) -> None:
        entry = norms.setdefault(module, _Norm())
        rows = np.abs(result._values(force=True)).reshape(-1, result.shape[-1])
        entry.magnitude = np.maximum(entry.magnitude, rows.max(0, initial=0.0))
        results[id(result)] = module, result

    def consumed(module: Any, args: Any, kwargs: Any) -> None:
        x = input_of(args, kwargs)
        norm = results.get(id(x))
        if norm is not None and module not in norms[norm[0]].readers:
            norms[norm[0]].readers.append(module)

    handles: list[Any] = []
    for module in model.modules():
        if type(module) in (LayerNorm, RMSNorm) and module.weight is not None and len(module.normalized_shape) == 1:
            handles.append(module.register_forward_hook(produced))
        elif type(module) is Linear:
            handles.append(module.register_forward_pre_hook(consumed, with_kwargs=True))
    with attached(handles):
        for batch in batches:
            run(model, batch)
            results.clear()
    return norms


def _smooth(norm: Any, entry: _Norm, strength: float) -> Undo:
    """Divide the channels of a normalization, and multiply the columns of its readers."""
    columns = np.max([np.abs(layer.weight._values(force=True)).max(0) for layer in entry.readers], axis=0)
    inputs = np.maximum(entry.magnitude, _SMALLEST)
    factor = (inputs**strength / np.maximum(columns, _SMALLEST) ** (1 - strength)).astype(np.float32)
    owners = [(norm, "weight", 1 / factor), (norm, "bias", 1 / factor)]
    owners += [(layer, "weight", factor) for layer in entry.readers]
    old = [(module, name, module._parameters.get(name)) for module, name, _ in owners]
    for module, name, scale in owners:
        parameter = module._parameters.get(name)
        if parameter is not None:
            setattr(module, name, Parameter(parameter.detach() * tensor(scale), parameter.requires_grad))

    def undo() -> None:
        for module, name, parameter in old:
            if parameter is not None:
                setattr(module, name, parameter)

    return undo
