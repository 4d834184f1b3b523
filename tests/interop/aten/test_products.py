"""Rules of sums of products."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.interop.aten.table import TABLE
from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
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
