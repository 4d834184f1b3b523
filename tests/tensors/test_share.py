"""Random numbers of the rows that a process has: those that these rows have in the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from graphc.tensors.repeated import REPEATS
from graphc.tensors.share import sharing

DRAWS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "dropout": (lambda x: F.dropout(x, 0.5), (12, 7)),
    "dropout1d": (lambda x: F.dropout1d(x, 0.5), (12, 5, 3)),
    "dropout2d": (lambda x: F.dropout2d(x, 0.5), (12, 5, 3, 2)),
    "dropout3d": (lambda x: F.dropout3d(x, 0.5), (12, 5, 3, 2, 2)),
    "alpha_dropout": (lambda x: F.alpha_dropout(x, 0.5, True), (12, 70)),
    "feature_alpha_dropout": (lambda x: F.feature_alpha_dropout(x, 0.5, True), (12, 70, 2)),
    "rrelu": (lambda x: F.rrelu(-x, training=True), (12, 7)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5), (12, 2, 3, 4)),
}


def drawn(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    gc.manual_seed(5)
    function(gc.tensor(x))
    return function(gc.tensor(x)).numpy()


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("size", [2, 3])
def test_rows_have_the_numbers_that_they_have_in_the_whole_batch(name: str, size: int):
    function, shape = DRAWS[name]
    x = np.random.default_rng(0).uniform(1, 2, shape).astype(np.float32)
    whole = drawn(function, x)
    for rank in range(size):
        with sharing(rank, size):
            np.testing.assert_array_equal(drawn(function, x[rank::size]), whole[rank::size])


@pytest.mark.parametrize("name", ["dropout", "dropout2d"])
def test_compiled_code_draws_the_same_and_sees_another_share(name: str):
    function, shape = DRAWS[name]
    x = np.random.default_rng(0).uniform(1, 2, shape).astype(np.float32)
    fast = gc.compile(function)
    whole = drawn(fast, x)
    np.testing.assert_array_equal(whole, drawn(function, x))
    for rank in range(2):
        with sharing(rank, 2):
            np.testing.assert_array_equal(drawn(fast, x[rank::2]), whole[rank::2])
    half = drawn(fast, x[:6])
    np.testing.assert_array_equal(half, drawn(function, x[:6]))
    assert (half != whole[::2]).any()


def test_a_compiled_module_within_another_draws_the_rows_of_its_share():
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner: Any = nn.Dropout(0.5)

        def forward(self, x: Any, share: Any = None) -> Any:
            with sharing(*share or (0, 1)):
                return self.inner(x)

    net, x = Around(), gc.ones(12, 7)
    gc.manual_seed(1)
    whole = net(x).numpy()
    net.inner = gc.compile(net.inner)
    for share in (None, (0, 2), (1, 2), None):
        rank, size = share or (0, 1)
        gc.manual_seed(1)
        np.testing.assert_array_equal(net(x[rank::size], share).numpy(), whole[rank::size])


def test_draws_that_come_again_and_again_stay_what_they_are():
    x = np.ones((12, 5), np.float32)
    for _ in range(REPEATS + 2):
        whole = drawn(DRAWS["dropout"][0], x)
        with sharing(1, 3):
            np.testing.assert_array_equal(drawn(DRAWS["dropout"][0], x[1::3]), whole[1::3])


def test_programs_compute_no_more_than_their_rows():
    def planned(size: int) -> int:
        fast = gc.compile(lambda x: F.dropout(x, 0.5))
        with sharing(0, size):
            return fast.plan(gc.ones(64, 100)).arena

    assert planned(8) == planned(1)


def test_weights_are_drawn_whole():
    gc.manual_seed(2)
    expected = [gc.rand(4, 3).tolist(), nn.Linear(3, 4).weight.tolist()]
    gc.manual_seed(2)
    with sharing(1, 2):
        assert [gc.rand(4, 3).tolist(), nn.Linear(3, 4).weight.tolist()] == expected
