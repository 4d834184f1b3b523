"""Rules that make tensors."""

from __future__ import annotations

import pytest

import graphc
from graphc.interop.aten.table import TABLE
from tests.interop.aten.compare import Sample, check, check_kind, check_moments, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    ("one_hot", PLACES, 4),
    ("one_hot", PLACES, 3),
    ("dropout", X, 0.5, False),
    ("feature_dropout", X, 0.5, False),
    ("alpha_dropout", X, 0.5, False),
    ("feature_alpha_dropout", X, 0.5, False),
    ("native_dropout", X, 0.5, False),
    ("native_dropout", X, 1.0, True),
    ("native_dropout", X, 1.0, None),
    ("scalar_tensor", 3),
    ("scalar_tensor", True),
    ("scalar_tensor", 3, {"dtype": torch.int64}),
    ("rrelu", X, 0.1, 0.3, False),
    ("full", [2, 3], 1.5),
    ("arange.start_step", 1, 9, 2),
    ("new_zeros", X, [2]),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


MANY, LIKELY = torch.linspace(-1, 1, 20000).reshape(100, 50, 4), torch.full((100, 200), 0.3)
KINDS: list[Sample] = [
    ("empty.memory_format", [2, 3], {"dtype": torch.int64}),
    ("empty_permuted", [2, 3], [1, 0]),
    ("empty_strided", [2, 3], [1, 2]),
    ("empty_like", PLACES),
    ("new_empty", PLACES, [4], {"dtype": torch.float64}),
    ("new_empty_strided", PLACES, [2, 3], [3, 1]),
]
RANDOM: list[Sample] = [
    ("rand", [100, 200]),
    ("randn", [100, 200], {"dtype": torch.float64}),
    ("rand_like", MANY),
    ("randn_like", MANY),
    ("randint", 10, [100, 200]),
    ("randint.low", -3, 5, [20000], {"dtype": torch.int32}),
    ("randperm", 500),
    ("bernoulli", LIKELY),
    ("bernoulli.p", LIKELY, 0.7),
    ("dropout", MANY, 0.3, True),
    ("native_dropout", MANY, 0.3, True),
    ("feature_dropout", MANY, 0.3, True),
    ("alpha_dropout", MANY, 0.3, True),
    ("feature_alpha_dropout", MANY, 0.3, True),
    ("rrelu", MANY, 0.1, 0.5, True),
]


@pytest.mark.parametrize("sample", KINDS, ids=lambda sample: sample[0])
def test_what_holds_anything_has_the_shape_and_the_type_that_pytorch_gives(sample: Sample):
    check_kind(sample)


@pytest.mark.parametrize("sample", RANDOM, ids=lambda sample: sample[0])
def test_numbers_are_drawn_from_the_distribution_that_pytorch_draws_from(sample: Sample):
    torch.manual_seed(0)
    graphc.manual_seed(0)
    check_moments(sample)


def test_whole_channels_are_dropped_together():
    function = TABLE["aten.feature_dropout.default"]
    kept = function(graphc.ones(20, 10, 6), 0.5, True).numpy()
    assert (kept == kept[:, :, :1]).all() and 0 < (kept == 0).mean() < 1
