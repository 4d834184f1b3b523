"""Rules for ops that treat each sample by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import IndexRangeError, StreamError
from tests.streams.cases import FRAMES, Case
from tests.streams.compare import expect_all_steps


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 + x.sin(),
        lambda x: x.sum(-1),
        lambda x: x.sum(0, keepdim=True),
        lambda x: x.argmax(-1),
        lambda x: x.softmax(-1),
        lambda x: x.flip(-1).cumsum(-1),
        lambda x: gc.where(x > 0, x, gc.tensor([1.0, 2.0, 3.0, 4.0])),
        lambda x: x @ gc.ones(4, 3),
        lambda x: gc.ones(3, 4) @ x.transpose(1, 2),
        lambda x: x.unsqueeze(2).transpose(2, 3) @ x.unsqueeze(2),
        lambda x: gc.fft.rfft(x).abs(),
        lambda x: x[..., gc.tensor([3, 1])],
    ],
)
def test_each_sample_is_treated_by_itself(function: Any):
    stream = gc.stream(function, gc.zeros(2, 16, 4), dim=1)
    assert (stream.tick, stream.delay, stream.state) == (1, 0, {})
    expect_all_steps(Case(function, FRAMES))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.sum(1), "sum needs the whole sequence: it is a sum over all samples"),
        (lambda x: x.transpose(1, 2) @ x, "matmul needs the whole sequence: it adds products of all samples"),
        (lambda x: x.argsort(1), "argsort needs the whole sequence: argsort goes over all samples"),
        (lambda x: x + x[:, -1:], "add cannot be streamed: the last sample together with all samples"),
    ],
)
def test_ops_along_time_are_refused(function: Any, message: str):
    with pytest.raises(StreamError, match=message):
        gc.stream(function, gc.zeros(16, 16, 4), dims={0: (None, gc.Dim("time"), None)})


def test_a_value_of_the_last_sample_stays_one():
    stream = gc.stream(lambda x: (x[:, -1] * 2).relu().sum(-1), gc.zeros(2, 16, 4), dim=1)
    x = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)
    assert stream.axes == (None,)
    assert np.allclose(stream(x).numpy(), np.maximum(2 * x[:, -1], 0).sum(-1))


def test_known_samples_go_through_ops():
    stream = gc.stream(
        lambda x: (gc.nn.functional.pad(x, (2, 0), value=1.5) * 2 + 1).exp()[..., 1:], gc.zeros(1, 1, 8), dim=2
    )
    x = np.zeros((1, 1, 3), np.float32)
    assert stream.delay == 0
    assert np.allclose(stream(x).numpy(), [[[np.exp(4), np.e, np.e]]])


@pytest.mark.parametrize(
    ("model", "first", "wrong"),
    [
        (lambda table: lambda words: table(words), [3, 10], [3, 11]),
        (lambda table: lambda words: table(words[:, 2:] - 5), [7, 8, 9, 15], [4, 9]),
        (lambda table: lambda words: table(words.reshape(-1)).cumsum(0), [1, 2], [-1, 0]),
        (lambda table: lambda words: table(gc.arange(words.shape[1])) * words[..., None], [0] * 10, [0, 0]),
    ],
)
def test_ticks_check_their_numbers(model: Any, first: list[int], wrong: list[int]):
    stream = gc.stream(model(nn.Embedding(11, 4)), gc.zeros(1, 16).long(), dim=1, step=2)
    stream(np.array([first]))
    with pytest.raises(IndexRangeError, match=r"embedding: index -?[0-9]+ .* is out of range"):
        stream(np.array([wrong]))


def test_numbers_before_the_sequence_are_checked():
    table = nn.Embedding(11, 4)
    with pytest.raises(IndexRangeError, match="index -1"):
        gc.stream(lambda words: table(nn.functional.pad(words, (2, 0), value=-1)), gc.zeros(1, 16).long(), dim=1)
