"""Rules of sums of products."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.interop.aten.table import TABLE
from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
QUERY, KEY, VALUE = (torch.linspace(-2, a, 32).reshape(1, 2, 4, 4) for a in (1, 2, 3))
MASK = torch.tensor([[True, False, True, True]]).expand(1, 1, 4, 4).clone()
NOTHING = torch.tensor([0.0, 0.0, -torch.inf, 0.0]).reshape(4, 1) + torch.zeros(4, 4)
"""A mask of whose third row nothing is left."""
SAMPLES: list[Sample] = [
    ("matmul", X, X[0].T.clone()),
    ("matmul", X[0, 0], X.mT.clone()),
    ("outer", X[0, 0], X[0, :, 0].clone()),
    ("linear", X, X[0], X[0, :, 1].clone()),
    ("linear", X, X[1], None),
    ("bilinear", X[0], X[1], torch.linspace(-1, 1, 32).reshape(2, 4, 4), torch.ones(2)),
    ("_trilinear", X[0], torch.linspace(-1, 1, 32).reshape(2, 4, 4), X[1], [1, 3], [0], [1, 2], [2, 3]),
    ("_trilinear", X[0], X[0], X[0], [], [], [], [0]),
    ("cross", X, X.flip(0), 1),
    ("kron", X[0], PLACES.float()),
    ("einsum", "bij,bkj->bik", [X, X]),
    ("einsum", "ii->i", [X[0, :, :3].clone()]),
    ("scaled_dot_product_attention", QUERY, KEY, VALUE, None, 0.0, True),
    ("scaled_dot_product_attention", QUERY, KEY, VALUE, MASK, {"scale": 0.3}),
    ("_scaled_dot_product_attention_math", QUERY, KEY, VALUE, MASK),
    ("_scaled_dot_product_attention_math", QUERY, KEY[:, :1], VALUE[:, :1], None, 0.0, True, {"enable_gqa": True}),
    ("_scaled_dot_product_flash_attention_for_cpu", QUERY, KEY, VALUE, {"attn_mask": NOTHING}),
    ("addmm", X[0, 0], X[0, :, :3].clone(), X[1], {"beta": 2}),
    ("bmm", X, X.mT.clone()),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


def test_heads_of_a_query_share_those_of_key_and_value():
    q, k = torch.rand(1, 4, 3, 2), torch.rand(1, 2, 5, 2)
    expected, _ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, k)
    given = [graphc.tensor(t.numpy()) for t in (q, k, k)]
    found, _ = TABLE["aten._scaled_dot_product_flash_attention_for_cpu.default"](*given)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)


FIRST: list[Sample] = [
    ("_scaled_dot_product_flash_attention_for_cpu", QUERY, KEY, VALUE, 0.0, True),
    ("_scaled_dot_product_flash_attention_for_cpu", QUERY, KEY, VALUE, {"scale": 0.7}),
]


@pytest.mark.parametrize("sample", FIRST, ids=lambda sample: sample[0])
def test_the_first_result_is_that_of_pytorch(sample: Sample):
    check(sample, results=1)
