"""Rules that read and write at places."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    ("repeat_interleave.self_int", X, 2, 1),
    ("repeat_interleave.self_int", X, 1, 0),
    ("take_along_dim", X[:, :, 0].clone(), PLACES, 1),
    ("take_along_dim", X[0], PLACES),
    ("searchsorted.Scalar", X[0, 0], -1.5),
    ("searchsorted.Scalar", X[0, 0], float(X[0, 0, 1]), {"right": True, "out_int32": True}),
    ("bucketize.Scalar", -1.5, X[0, 0]),
    ("_unsafe_index.Tensor", X, [None, PLACES]),
    ("_unsafe_index_put", X, [PLACES[:, 0]], X[:1], True),
    ("_unsafe_index_put", X, [None, PLACES[:, :1], PLACES[0]], X[:, :2, :3], True),
    ("index.Tensor", X, [None, PLACES]),
    ("index_put", X, [PLACES[:, 0]], X[:1]),
    ("index_put", X, [None, PLACES[0]], X[:, :1], True),
    ("index_put", X, [None, None, PLACES[0]], X[:1, :1, :3], True),
    ("index_put", X[0, :, :3], [None, PLACES[0, [0, 0, 1]]], X[1, :, :3], True),
    ("index_put", X, [PLACES[0, [0, 0]] // 2, None, PLACES[0, :2]], X[0, 0, :3], True),
    ("index_put", X, [None, PLACES[0]], X + 1),
    ("embedding", X[0], PLACES),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


EAGER: list[Sample] = [
    ("repeat_interleave.self_Tensor", X, torch.tensor([1, 0]), 0),
    ("repeat_interleave.self_Tensor", X, torch.tensor([2, 1, 3]), 1),
]
FIRST: list[Sample] = [
    ("embedding_bag", X[0], PLACES.reshape(-1), torch.tensor([0, 2])),
    ("embedding_bag.padding_idx", X[0], PLACES.reshape(-1), torch.tensor([0, 2]), False, 1, False, None, False, 1),
]


@pytest.mark.parametrize("sample", EAGER, ids=lambda sample: sample[0])
def test_an_operator_whose_result_has_a_size_that_depends_on_values(sample: Sample):
    check(sample, compiled=False)


@pytest.mark.parametrize("sample", FIRST, ids=lambda sample: sample[0])
def test_the_first_result_is_that_of_pytorch(sample: Sample):
    check(sample, results=1)
