"""Rules that move elements."""

from __future__ import annotations

import pytest

import graphc
from graphc.interop.aten.table import TABLE
from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    ("view", X, [4, 6]),
    ("slice.Tensor", X, 1, 0, 9223372036854775807, 2),
    ("_to_copy", X, {"dtype": torch.int64}),
    ("diff", X, 1, -1, X[..., :1] - 1),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


def test_elements_are_converted_by_the_primitive_of_sizes_that_are_tensors():
    found = TABLE["prims.convert_element_type.default"](graphc.tensor([1.5]), graphc.int64)
    assert found.dtype == graphc.int64 and found.tolist() == [1]


def test_what_pytorch_copies_is_a_copy():
    for name, *args in (("contiguous",), ("to.dtype", graphc.float32, False, True)):
        x, target = graphc.zeros(2, 3), name if "." in name else f"{name}.default"
        TABLE[f"aten.{target}"](x.t(), *args).add_(1)
        assert x.sum().item() == 0
    x = graphc.zeros(2)
    TABLE["aten.contiguous.default"](x).add_(1)
    assert x.sum().item() == 2
