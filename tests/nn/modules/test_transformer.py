"""Transformer layers and stacks: against PyTorch, in both orders of norm and residual, with masks."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, ShapeError
from graphc.nn import functional as F
from tests.nn.compare import floats, modules_agree, tensor

SOURCE, TARGET = floats(5, 2, 4), floats(3, 2, 4, seed=1)
CAUSAL = np.triu(np.full((3, 3), -np.inf), 1)
HIDDEN = np.array([[False, True, False, False, True], [False] * 5])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_as_torch(torch, norm_first: bool, activation: str):
    options = {"dim_feedforward": 6, "dropout": 0.0, "activation": activation, "norm_first": norm_first}
    modules_agree(
        nn.TransformerEncoderLayer(4, 2, **options),
        torch.nn.TransformerEncoderLayer(4, 2, **options),
        SOURCE,
        rtol=1e-6,
        src_key_padding_mask=HIDDEN,
    )
    modules_agree(
        nn.TransformerDecoderLayer(4, 2, **options),
        torch.nn.TransformerDecoderLayer(4, 2, **options),
        TARGET,
        SOURCE,
        rtol=1e-6,
        tgt_mask=CAUSAL,
        memory_key_padding_mask=HIDDEN,
    )


@pytest.mark.parametrize("batch_first", [False, True])
def test_the_whole_as_torch(torch, batch_first: bool):
    options = {"dim_feedforward": 6, "dropout": 0.0, "batch_first": batch_first}
    sizes = (4, 2, 2, 1)
    inputs = [np.swapaxes(a, 0, 1).copy() if batch_first else a for a in (SOURCE, TARGET)]
    ours, theirs = nn.Transformer(*sizes, **options), torch.nn.Transformer(*sizes, **options)
    modules_agree(ours, theirs, *inputs, rtol=1e-6, tgt_mask=CAUSAL)


def test_a_position_does_not_see_later_ones():
    layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0).double()
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=graphc.float64)
    changed = SOURCE.copy()
    changed[3:] += 1
    before, after = (layer(tensor(x), src_mask=mask).detach().numpy() for x in (SOURCE, changed))
    np.testing.assert_array_equal(before[:3], after[:3])
    assert np.all(before[3:] != after[3:])


def test_the_mask_of_later_positions():
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.dtype is graphc.float32
    np.testing.assert_array_equal(mask.numpy(), CAUSAL)


def test_stacks_hold_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 6)
    stack = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4))
    first, second = stack.layers
    assert first is not layer
    assert first.linear1.weight is not second.linear1.weight
    np.testing.assert_array_equal(first.linear1.weight.detach().numpy(), second.linear1.weight.detach().numpy())
    names = {name.split(".")[0] for name, _ in stack.named_parameters()}
    assert names == {"layers", "norm"}


def test_stacks_run_layer_after_layer():
    layer = nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0).double()
    stack = nn.TransformerDecoder(layer, 2)
    x, memory = tensor(TARGET), tensor(SOURCE)
    wanted = layer(layer(x, memory), memory).detach().numpy()
    np.testing.assert_allclose(stack(x, memory).detach().numpy(), wanted, rtol=1e-12)


def test_any_function_is_an_activation():
    layer = nn.TransformerEncoderLayer(4, 2, 6, activation=F.silu)
    assert layer.activation is F.silu
    with pytest.raises(AttributeValueError, match="'tanh' is not known"):
        nn.TransformerEncoderLayer(4, 2, 6, activation="tanh")


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ((5, 2, 3), (3, 2, 4), "do not fit 4"),
        ((5, 2, 4), (3, 4), "do not fit 4"),
        ((5, 1, 4), (3, 2, 4), "source and target differ in batch size: 1 and 2"),
    ],
)
def test_what_does_not_fit(source: tuple[int, ...], target: tuple[int, ...], text: str):
    with pytest.raises(ShapeError, match=text):
        nn.Transformer(4, 2, 1, 1, 6)(graphc.zeros(*source), graphc.zeros(*target))
