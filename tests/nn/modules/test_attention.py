"""Multi-head attention: against PyTorch with every option, by its definition, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import floats, modules_agree, tensor

QKV = (floats(4, 2, 6), floats(5, 2, 6, seed=1), floats(5, 2, 6, seed=2))
HIDDEN = np.array([[False, True, False, False, True], [False] * 5])


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ({}, {}),
        ({"bias": False}, {"average_attn_weights": False}),
        ({"add_bias_kv": True, "add_zero_attn": True}, {"attn_mask": floats(4, 5, seed=3)}),
        ({}, {"attn_mask": floats(4, 5, seed=3) > 1, "key_padding_mask": HIDDEN}),
        ({}, {"attn_mask": floats(6, 4, 5, seed=3), "key_padding_mask": floats(2, 5, seed=4)}),
        ({}, {"need_weights": False}),
    ],
)
def test_as_torch(torch, options: dict, call: dict):
    ours, theirs = nn.MultiheadAttention(6, 3, **options), torch.nn.MultiheadAttention(6, 3, **options)
    if call.get("need_weights") is False:
        modules_agree(First(ours), FirstOf(torch)(theirs), *QKV, rtol=1e-7, **call)
    else:
        modules_agree(ours, theirs, *QKV, rtol=1e-7, **call)


class First(nn.Module):
    """Gives the first of two results."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs, **options):
        first, second = self.inner(*inputs, **options)
        assert second is None
        return first


def FirstOf(torch):
    """The same for PyTorch."""

    class TorchFirst(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, *inputs, **options):
            return self.inner(*inputs, **options)[0]

    return TorchFirst


@pytest.mark.parametrize("batch_first", [False, True])
def test_other_sizes_and_layouts_as_torch(torch, batch_first: bool):
    options = {"kdim": 3, "vdim": 5, "batch_first": batch_first}
    ours, theirs = nn.MultiheadAttention(6, 2, **options), torch.nn.MultiheadAttention(6, 2, **options)
    lead = ((2, 4), (2, 5)) if batch_first else ((4, 2), (5, 2))
    modules_agree(
        ours, theirs, floats(*lead[0], 6), floats(*lead[1], 3, seed=1), floats(*lead[1], 5, seed=2), rtol=1e-7
    )
    ours, theirs = nn.MultiheadAttention(6, 2), torch.nn.MultiheadAttention(6, 2)
    modules_agree(ours, theirs, floats(4, 6), floats(5, 6, seed=1), floats(5, 6, seed=2), rtol=1e-7)


def test_by_definition():
    """One head that projects nothing: softmax(q k^T / sqrt(d)) v."""
    layer = nn.MultiheadAttention(6, 1, bias=False).double()
    eye = np.eye(6)
    layer.load_state_dict({"in_proj_weight": np.concatenate([eye] * 3), "out_proj.weight": eye})
    output, weights = layer(*map(tensor, QKV))
    for n in range(2):
        scores = QKV[0][:, n] @ QKV[1][:, n].T / np.sqrt(6)
        wanted = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        np.testing.assert_allclose(weights.detach().numpy()[n], wanted, rtol=1e-10)
        np.testing.assert_allclose(output.detach().numpy()[:, n], wanted @ QKV[2][:, n], rtol=1e-10)


def test_hidden_keys_have_no_weight():
    layer = nn.MultiheadAttention(6, 2).double()
    _, weights = layer(*map(tensor, QKV), key_padding_mask=tensor(HIDDEN))
    assert weights[0, :, 1].tolist() == [0] * 4
    np.testing.assert_allclose(weights.detach().numpy().sum(-1), 1)


def test_dropout_is_for_training():
    graphc.manual_seed(0)
    layer = nn.MultiheadAttention(6, 2, dropout=0.5).double()
    inputs = [tensor(a) for a in QKV]
    first, second = layer(*inputs)[0].detach().numpy(), layer(*inputs)[0].detach().numpy()
    assert np.any(first != second)
    layer.eval()
    np.testing.assert_array_equal(layer(*inputs)[0].detach().numpy(), layer(*inputs)[0].detach().numpy())


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m, q: nn.MultiheadAttention(6, 4), AttributeValueError, "not divisible by num_heads 4"),
        (lambda m, q: m(q, q, q, is_causal=True), AttributeValueError, "is_causal needs attn_mask"),
        (lambda m, q: m(q[..., :5], q, q), ShapeError, "do not fit embed_dim 6"),
        (lambda m, q: m(q, q, q[:3]), ShapeError, "do not fit"),
        (lambda m, q: m(q, q, q, attn_mask=graphc.zeros(3, 4)), ShapeError, "attn_mask is"),
        (lambda m, q: m(q, q, q, key_padding_mask=graphc.zeros(4, 2)), ShapeError, "key_padding_mask is"),
    ],
)
def test_what_is_refused(call, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        call(nn.MultiheadAttention(6, 2), graphc.zeros(4, 2, 6))
