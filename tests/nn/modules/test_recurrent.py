"""Recurrent layers and cells: states, dropout, initial values, text, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import agree, floats, load


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_given_states_and_no_batch_as_torch(torch, kind: str):
    options = {"num_layers": 2, "bidirectional": True}
    ours, theirs = getattr(nn, kind)(3, 4, **options).double(), getattr(torch.nn, kind)(3, 4, **options).double()
    load(ours, theirs)

    def call(module):
        return (lambda x, h, c: module(x, (h, c))) if kind == "LSTM" else module

    for x, batch in ((floats(5, 2, 3), (2,)), (floats(5, 3), ())):
        states = [floats(4, *batch, 4, seed=i) for i in range(1, 3 if kind == "LSTM" else 2)]
        agree(call(ours), call(theirs), x, *states, rtol=1e-7)


def test_a_sequence_in_two_parts():
    layer = nn.GRU(3, 4)
    x = graphc.randn(6, 2, 3)
    whole, last = layer(x)
    _, state = layer(x[:4])
    second, end = layer(x[4:], state)
    np.testing.assert_allclose(second.detach().numpy(), whole[4:].detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(end.detach().numpy(), last.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_dropout_between_layers_only_in_training():
    graphc.manual_seed(0)
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    x = graphc.randn(5, 2, 3)
    a, b = layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy()
    assert (a != b).any()
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].detach().numpy(), layer(x)[0].detach().numpy())


def test_initial_values():
    layer = nn.LSTM(10, 100)
    for parameter in layer.parameters():
        assert 0.095 < np.abs(parameter.detach().numpy()).max() <= 0.1
    layer.flatten_parameters()


def test_text():
    assert repr(nn.LSTM(3, 4, batch_first=True)) == "LSTM(3, 4, batch_first=True)"
    assert repr(nn.GRU(3, 4, 2, dropout=0.5, bidirectional=True)) == (
        "GRU(3, 4, num_layers=2, dropout=0.5, bidirectional=True)"
    )
    assert repr(nn.LSTMCell(3, 4, bias=False)) == "LSTMCell(3, 4, bias=False)"


def test_errors():
    layer = nn.LSTM(3, 4)
    with pytest.raises(ShapeError, match=r"LSTM: the input \[5, 2, 7\] is not \[time, batch, 3\]"):
        layer(graphc.zeros(5, 2, 7))
    with pytest.raises(ShapeError, match="the sequence has no steps"):
        layer(graphc.zeros(0, 2, 3))
    with pytest.raises(ShapeError, match=r"a state has shape \[1, 3, 4\], expected \[1, 2, 4\]"):
        layer(graphc.zeros(5, 2, 3), (graphc.zeros(1, 3, 4), graphc.zeros(1, 3, 4)))
    with pytest.raises(ShapeError, match="expected 2 states, got 1"):
        layer(graphc.zeros(5, 2, 3), (graphc.zeros(1, 2, 4),))
    with pytest.raises(ShapeError, match=r"GRUCell: the input \[2, 2\]"):
        nn.GRUCell(3, 4)(graphc.zeros(2, 2))
    with pytest.raises(AttributeValueError, match="nonlinearity 'gelu'"):
        nn.RNN(3, 4, nonlinearity="gelu")
    with pytest.raises(AttributeValueError, match="mode 'XYZ' is not known"):
        nn.RNNBase("XYZ", 3, 4)
    for make in (lambda: nn.LSTM(3, 4, proj_size=4), lambda: nn.GRU(3, 4, proj_size=2)):
        with pytest.raises(AttributeValueError, match="needs an LSTM, and must be below hidden_size 4"):
            make()
    with pytest.raises(AttributeValueError, match="dropout must be a probability"):
        nn.LSTM(3, 4, dropout=2)
    with pytest.raises(AttributeValueError, match="num_layers 0"):
        nn.LSTM(3, 4, 0)
