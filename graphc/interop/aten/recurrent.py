"""ATen operators of recurrent networks: whole layers, and single steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.interop.aten.registry import rule
from graphc.nn import functional as F
from graphc.nn.functional.recurrent import recurrent_cell, recurrent_layer, stacked
from graphc.tensors.free_functions import cat
from graphc.tensors.tensor import Tensor


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
    """Hidden states of the last layer, and the last states, each [layers * directions, batch, hidden]."""
    directions = 2 if bidirectional else 1
    count = len(params) // (num_layers * directions)
    projected = count - (4 if has_biases else 2)
    if projected not in (0, 1):
        raise UnsupportedError(f"{count} parameters for each layer of {kind}")
    x = x.transpose(0, 1) if batch_first else x
    last: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        if layer and dropout and train:
            x = F.dropout(x, dropout)
        outputs = []
        for reverse in (False, True)[:directions]:
            number = layer * directions + reverse
            given = list(params[number * count : (number + 1) * count])
            narrow = given.pop() if projected else None
            first = tuple([s.select(0, number) for s in states])
            found, after = recurrent_layer(kind, x, first, *given, reverse=reverse, weight_hr=narrow)
            outputs.append(found)
            last.append(after)
        x = cat(outputs, 2) if bidirectional else outputs[0]
    return (x.transpose(0, 1) if batch_first else x), *[stacked(parts) for parts in zip(*last, strict=True)]


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
