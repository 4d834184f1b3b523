"""Attention: what is hidden, dropout, long sequences, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import floats, tensor


def qkv(lead: tuple[int, ...] = (2, 3), length: int = 4, source: int = 5, size: int = 6, out: int = 7):
    return floats(*lead, length, size), floats(*lead, source, size, seed=1), floats(*lead, source, out, seed=2)


def test_causal_position_sees_only_the_past():
    q, k, v = (tensor(a) for a in qkv(source=4))
    before = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    k[..., 3, :] = 9.0
    v[..., 3, :] = 9.0
    after = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    np.testing.assert_array_equal(before[..., :3, :], after[..., :3, :])
    assert (before[..., 3, :] != after[..., 3, :]).any()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("hidden", [np.inf, np.nan])
def test_what_a_mask_of_booleans_hides_reaches_nothing(compiled: bool, hidden: float):
    q, k, v = (tensor(a, True) for a in qkv((), length=2, source=3))
    mask = graphc.tensor([[False, False, False], [True, False, True]])
    attend = graphc.compile(F.scaled_dot_product_attention) if compiled else F.scaled_dot_product_attention
    wanted = attend(q, k, v, mask)
    # An infinite gradient of the row that sees nothing reaches what it is multiplied with, and no scores.
    (wanted * graphc.tensor([[np.inf], [1.0]], dtype=graphc.float64)).sum().backward()
    assert np.all(q.grad.numpy()[0] == 0) and np.all(k.grad.numpy()[1] == 0)
    assert np.all(np.isfinite(k.grad.numpy())) and np.all(np.isnan(v.grad.numpy()))
    with graphc.no_grad():
        k[1] = hidden
    np.testing.assert_allclose(attend(q, k, v, mask).detach(), wanted.detach(), rtol=1e-12)


def test_dropout_changes_the_weights():
    graphc.manual_seed(0)
    q, k, v = (tensor(a) for a in qkv())
    plain = F.scaled_dot_product_attention(q, k, v).numpy()
    assert (F.scaled_dot_product_attention(q, k, v, dropout_p=0.5).numpy() != plain).any()


def test_errors():
    q, k, v = (tensor(a) for a in qkv())
    with pytest.raises(AttributeValueError, match="attn_mask and is_causal exclude each other"):
        F.scaled_dot_product_attention(q, k, v, attn_mask=graphc.ones(4, 5), is_causal=True)
    with pytest.raises(ShapeError, match="do not fit"):
        F.scaled_dot_product_attention(q, k[..., :3], v)
    with pytest.raises(ShapeError, match="3 query heads cannot share 2 heads"):
        F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)


@pytest.mark.parametrize(("queries", "keys"), [(520, 520), (513, 700), (600, 512)])
def test_long_causal_attention_in_stretches(queries: int, keys: int):
    q, k, v = (graphc.randn(2, n, 8) for n in (queries, keys, keys))
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    scores = q.numpy() @ k.numpy().transpose(0, 2, 1) / np.sqrt(8)
    weights = np.where(np.tri(queries, keys, dtype=bool), np.exp(scores - scores.max(-1, keepdims=True)), 0)
    expected = weights / weights.sum(-1, keepdims=True) @ v.numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
