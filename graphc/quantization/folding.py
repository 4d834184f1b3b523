"""Batch normalization after a convolution or linear layer, moved into its weights before quantization."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from graphc.nn.module import Module
from graphc.nn.modules.linear import Identity, Linear
from graphc.nn.modules.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from graphc.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights
from graphc.quantization.batches import Batch, attached, input_of, run
from graphc.quantization.layers import QUANTIZED_LAYERS
from graphc.quantization.rewrites import Undo, apply_changes
from graphc.tensors.tensor import Tensor

_NORMS = (BatchNorm1d, BatchNorm2d, BatchNorm3d)


class _Pair(NamedTuple):
    layer: Any
    norm: Any
    parent: Module
    name: str
    """Name of the normalization in its parent."""


def fold_batch_norms(model: Module, batch: Batch) -> list[Any]:
    """Fold batch normalizations of a model in evaluation mode, in place; return the layers that took one up.

    A normalization is folded if in a call with ``batch`` it is the one that gets a layer's result, each is called once,
    and the results of the model stay the same. The last condition fails if the layer's result has other readers.
    """
    pairs = _pairs(model, batch)
    return [pairs[i].layer for i in apply_changes(model, batch, [partial(_fold, pair) for pair in pairs])]


def _fold(pair: _Pair) -> Undo:
    """Fold one normalization; return a function that undoes it."""
    layer, norm, parent, name = pair
    old = layer.weight, layer.bias
    terms = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    fuse = fuse_linear_bn_weights if type(layer) is Linear else fuse_conv_bn_weights
    layer.weight, layer.bias = fuse(layer.weight, layer.bias, *terms)
    setattr(parent, name, Identity().eval())

    def undo() -> None:
        layer.weight, layer.bias = old
        setattr(parent, name, norm)

    return undo


def _pairs(model: Module, batch: Batch) -> list[_Pair]:
    """Return layers and normalizations that are called once each, the second one with the result of the first."""
    owners: dict[Any, list[tuple[Module, str]]] = {}
    for parent in model.modules():
        for name, child in parent._modules.items():
            if child is not None:
                owners.setdefault(child, []).append((parent, name))
    results: dict[Any, list[Tensor]] = {}
    inputs: dict[Any, list[Tensor]] = {}

    def produced(module: Any, args: Any, result: Tensor) -> None:
        results.setdefault(module, []).append(result)

    def consumed(module: Any, args: Any, kwargs: Any) -> None:
        inputs.setdefault(module, []).append(input_of(args, kwargs))

    handles = []
    for module in model.modules():
        if type(module) in QUANTIZED_LAYERS:
            handles.append(module.register_forward_hook(produced))
        elif type(module) in _NORMS and module.running_mean is not None:
            handles.append(module.register_forward_pre_hook(consumed, with_kwargs=True))
    with attached(handles):
        run(model, batch)
    layer_of = {id(r[0]): layer for layer, r in results.items() if len(r) == 1 and _takes_norm(layer, r[0])}
    return [
        _Pair(layer_of[id(x[0])], norm, *owners[norm][0])
        for norm, x in inputs.items()
        if len(x) == 1 and id(x[0]) in layer_of and len(owners.get(norm, ())) == 1
    ]


def _takes_norm(layer: Any, result: Tensor) -> bool:
    """Check whether the channels of a result are the output channels of the layer."""
    return len(result.shape) == (2 if type(layer) is Linear else layer.rank + 2)
