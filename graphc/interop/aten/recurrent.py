"""Rules of ATen's recurrent networks: complete layers, and single steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.autograd.transforms import vjp
from graphc.base.dtypes import uint8
from graphc.base.errors import UnsupportedError
from graphc.interop.aten.registry import rule
from graphc.nn import functional as F
from graphc.nn.functional.recurrent import recurrent_cell, recurrent_layer, stacked
from graphc.tape.grad_mode import no_grad
from graphc.tensors import creation
from graphc.tensors.free_functions import cat
from graphc.tensors.tensor import Tensor

_LSTM = 2
"""PyTorch's code for LSTM layers."""


def _layers(
    kind: str,
    x: Tensor,
    states: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Return the hidden states of the last layer, and the last states, each [layers * directions, batch, hidden]."""
    directions = 2 if bidirectional else 1
    count = len(params) // (num_layers * directions)
    projected = count - (4 if has_biases else 2)
    if projected not in (0, 1):
        raise UnsupportedError(f"{kind} cannot have {count} parameters per layer")
    x = x.transpose(0, 1) if batch_first else x
    last: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        if layer and dropout and train:
            x = F.dropout(x, dropout)
        outputs = []
        for reverse in (False, True)[:directions]:
            number = layer * directions + reverse
            weights = list(params[number * count : (number + 1) * count])
            narrow = weights.pop() if projected else None
            first = tuple([s.select(0, number) for s in states])
            output, after = recurrent_layer(kind, x, first, *weights, reverse=reverse, weight_hr=narrow)
            outputs.append(output)
            last.append(after)
        x = cat(outputs, 2) if bidirectional else outputs[0]
    return (x.transpose(0, 1) if batch_first else x), *[
        stacked(layer_states) for layer_states in zip(*last, strict=True)
    ]


@rule("lstm.input")
def lstm(input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    return _layers("LSTM", input, hx, params, *rest)


def _plain(kind: str) -> Any:
    def layers(input: Tensor, hx: Tensor, params: Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
        return _layers(kind, input, (hx,), params, *rest)

    return layers


def _cell(kind: str) -> Any:
    def cell(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Tensor:
        return recurrent_cell(kind, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]

    return cell


for _name, _kind in {"gru": "GRU", "rnn_tanh": "RNN_TANH", "rnn_relu": "RNN_RELU"}.items():
    rule(f"{_name}.input")(_plain(_kind))
    rule(f"{_name}_cell")(_cell(_kind))


@rule("lstm_cell")
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, ...]:
    return recurrent_cell("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


@rule("mkldnn_rnn_layer")
def mkldnn_rnn_layer(
    input: Tensor,
    weight0: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    weight3: Tensor,
    hx_: Tensor,
    cx_: Tensor,
    reverse: bool,
    batch_sizes: Sequence[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    *rest: Any,
) -> tuple[Tensor, ...]:
    """Compute one direction of one layer, steps first. The last result serves PyTorch's own backward pass."""
    if mode != _LSTM or batch_sizes or num_layers != 1 or any(rest[:2]):
        raise UnsupportedError("graphc computes only LSTM layers on unpacked sequences, steps first, by this operator")
    params = (weight0, weight1, weight2, weight3, hx_, cx_)
    return *_one_layer(input, params, reverse, has_biases), creation.zeros(0, dtype=uint8)


def _one_layer(
    x: Tensor, params: Sequence[Tensor], reverse: bool, has_biases: bool, outputs: Sequence[bool] = (True,) * 3
) -> tuple[Tensor, ...]:
    """Return the requested ones of the outputs, the last hidden state and the last cell state."""
    *weights, hidden, cell = params
    first = tuple([s.reshape(x.shape[1], hidden.shape[-1]) for s in (hidden, cell)])
    weights = weights if has_biases else weights[:2]
    sequence, last = recurrent_layer("LSTM", x, first, *weights, reverse=reverse)
    results = (sequence, *[s.reshape(hidden.shape) for s in last])
    return tuple([r for r, requested in zip(results, outputs, strict=True) if requested])


@rule("mkldnn_rnn_layer_backward")
def mkldnn_rnn_layer_backward(
    input: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    weight3: Tensor,
    weight4: Tensor,
    hx_: Tensor,
    cx_tmp: Tensor,
    output: Tensor,
    hy_: Tensor,
    cy_: Tensor,
    grad_output: Tensor | None,
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    reverse: bool,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    *rest: Any,
) -> tuple[Tensor, ...]:
    """Return the gradients of the first seven arguments. Computes the layer again."""
    if mode != _LSTM or num_layers != 1 or any(rest[1:4]):
        raise UnsupportedError("graphc computes only LSTM layers on unpacked sequences, steps first, by this operator")
    gradients = (grad_output, grad_hy, grad_cy)
    outputs = [g is not None for g in gradients]

    def layer(x: Tensor, *params: Tensor) -> tuple[Tensor, ...]:
        return _one_layer(x, params, reverse, has_biases, outputs)

    primals = (input, weight1, weight2, weight3, weight4, hx_, cx_tmp)
    with no_grad():
        return tuple(vjp(layer, *primals)[1](tuple([g for g in gradients if g is not None])))
