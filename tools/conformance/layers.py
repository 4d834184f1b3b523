"""Judge layers by PyTorch's table of modules, in f64 and with PyTorch's weights: training, evaluation, compiled."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db

import graphc as gc
from tools.conformance.compare import USUAL, compare, weighted_gradients
from tools.conformance.samples import NotMappedError, call_of
from tools.conformance.tally import Row, UnequalError
from tools.trees import leaves

COLUMNS = {
    "training": "results, gradients of inputs and weights, buffers in training",
    "evaluation": "the same in evaluation",
    "compiled training": "the same by compiled code in training",
}
EXCLUDED: dict[str, str] = {}
"""Layers left out, with the reason."""
_OTHER_GRADIENTS = ("CTCLoss",)
"""Layers for which PyTorch returns the gradient of the logits before a log_softmax."""
_RANDOM = ("FractionalMaxPool2d", "FractionalMaxPool3d")


def standing() -> dict[str, str]:
    """Return ``mapped``, ``missing`` or the reason for leaving it out, for each layer."""
    states = {}
    for info in module_db:
        short = info.name.removeprefix("nn.")
        states[info.name] = EXCLUDED.get(info.name, "mapped" if hasattr(gc.nn, short) else "missing")
    return states


def rows(subject: str, column: str) -> list[Row]:
    """Return the samples of a layer in a column."""
    info = next(i for i in module_db if i.name == subject)
    training = "training" in column
    torch.manual_seed(0)
    samples = info.module_inputs_func(info, "cpu", torch.float64, True, training)
    return [_row(info, sample, training, "compiled" in column) for sample in samples]


def _row(info: Any, sample: Any, training: bool, compiled: bool) -> Row:
    constructor, call_input = sample.constructor_input, sample.forward_input
    label = f"{sample.desc} ({', '.join(map(str, constructor.args))}, {constructor.kwargs})"[:120].replace("\n", " ")
    return label, lambda: _judge(info.module_cls, constructor, call_input, training, compiled)


def _judge(cls: type, constructor: Any, call_input: Any, training: bool, compiled: bool) -> None:
    torch.manual_seed(0)
    theirs = cls(*copy.deepcopy(constructor.args), **constructor.kwargs).double().train(training)
    ours = _layer(cls, constructor).train(training)
    # A call has a first operand of its own; here all are among the others.
    call = call_of(SimpleNamespace(input=None, args=call_input.args, kwargs=call_input.kwargs))
    _share_weights(theirs, ours, call_input, call)
    expected = [t for t in leaves(theirs(*call_input.args, **call_input.kwargs)) if isinstance(t, torch.Tensor)]
    (_, *arguments), keywords = call.filled(call.tensors)
    if (
        compiled
        and cls.__name__ == "CTCLoss"
        and call_input.args[1].ndim == 1
        and isinstance(call_input.args[3], torch.Tensor)
    ):
        raise NotMappedError("targets behind one another whose lengths are a tensor: not in compiled code")
    run = gc.compile(ours) if compiled else ours
    results = [t for t in leaves(run(*arguments, **keywords)) if isinstance(t, gc.Tensor)]
    shapes_only = cls.__name__ in _RANDOM and constructor.kwargs.get("_random_samples") is None
    compare(results, expected, USUAL[torch.float64], shapes_only=shapes_only)
    if not shapes_only and cls.__name__ not in _OTHER_GRADIENTS:
        _compare_gradients(ours, theirs, results, expected, call.tensors, call.sources)
    names = dict(ours.named_buffers())
    theirs_named = {n: b for n, b in theirs.named_buffers() if n in names}
    compare([names[n] for n in theirs_named], list(theirs_named.values()), USUAL[torch.float64])


def _share_weights(theirs: Any, ours: Any, call_input: Any, call: Any) -> None:
    """Return ours the weights of theirs; lazy layers get theirs from a first call."""
    if any(torch.nn.parameter.is_lazy(p) for p in theirs.parameters()):
        (_, *arguments), keywords = call.filled(call.tensors)
        with torch.no_grad(), gc.no_grad():
            theirs(*call_input.args, **call_input.kwargs)
            ours(*arguments, **keywords)
        ours.double()
    ours.load_state_dict(theirs.state_dict())


def _layer(cls: type, constructor: Any) -> Any:
    own = getattr(gc.nn, cls.__name__)
    example = SimpleNamespace(
        input=None, args=[_argument(a) for a in constructor.args], kwargs=dict(constructor.kwargs)
    )
    call = call_of(SimpleNamespace(input=None, args=[None if _is_layer(a) else a for a in example.args], kwargs={}))
    arguments, _ = call.filled(call.tensors)
    arguments = [a if _is_layer(a) else b for a, b in zip(example.args, arguments[1:], strict=True)]
    named = call_of(SimpleNamespace(input=None, args=(), kwargs=example.kwargs))
    _, keywords = named.filled(named.tensors)
    return own(*arguments, **keywords).double()


def _is_layer(value: Any) -> bool:
    return isinstance(value, gc.nn.Module)


def _argument(value: Any) -> Any:
    """Return a layer that another one is made of: an encoder's."""
    if not isinstance(value, torch.nn.Module):
        return value
    if not isinstance(value, torch.nn.TransformerEncoderLayer):
        raise NotMappedError("layers of PyTorch as arguments")
    attention = value.self_attn
    layer = gc.nn.TransformerEncoderLayer(
        attention.embed_dim,
        attention.num_heads,
        value.linear1.out_features,
        value.dropout.p,
        activation={torch.nn.functional.relu: "relu", torch.nn.functional.gelu: "gelu"}[value.activation],
        layer_norm_eps=value.norm1.eps,
        batch_first=attention.batch_first,
        norm_first=value.norm_first,
        bias=value.linear1.bias is not None,
    )
    return layer.double()


def _compare_gradients(
    ours: Any,
    theirs: Any,
    results: Sequence[Any],
    expected: Sequence[Any],
    tensors: Sequence[Any],
    inputs: Sequence[Any],
) -> None:
    differentiable = [i for i, t in enumerate(inputs) if t.requires_grad]
    weights = {n: p for n, p in theirs.named_parameters() if p.requires_grad}
    own = dict(ours.named_parameters())
    if set(own) != set(weights):
        raise UnequalError(f"parameters {sorted(own)}, PyTorch {sorted(weights)}")
    if not any(t.requires_grad for t in expected):
        return
    ours_of = weighted_gradients(gc, results, [tensors[i] for i in differentiable] + [own[n] for n in weights])
    theirs_of = weighted_gradients(torch, expected, [inputs[i] for i in differentiable] + list(weights.values()))
    compare(ours_of, theirs_of, USUAL[torch.float64])
