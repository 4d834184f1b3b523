"""Sampling: filters equal those of a NumPy reference, draws follow the kept probabilities and depend on the seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError
from graphc.llm.sampling import candidates, choose, penalized

LOGITS = np.random.default_rng(0).standard_normal((1, 50)).astype(np.float32) * 2
HISTORY = np.array([[3, 7, 3, 20]])
CASES: list[dict[str, Any]] = [
    {"temperature": 1.0},
    {"temperature": 0.7, "repetition_penalty": 1.5},
    {"temperature": 1.3, "top_k": 5},
    {"temperature": 1.0, "top_p": 0.6},
    {"temperature": 2.0, "min_p": 0.1},
    {"temperature": 0.9, "top_k": 20, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.2},
    {"temperature": 0.01, "top_p": 1e-6},
    {"temperature": 1.0, "top_k": 1000},
]


def softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def probabilities(sampling: llm.Sampling) -> np.ndarray:
    """Return the probability of each token by one full pass per filter, each over all tokens, in f64."""
    x = LOGITS[0].astype(np.float64)
    for token in set(HISTORY[0].tolist()):
        x[token] *= 1 / sampling.repetition_penalty if x[token] > 0 else sampling.repetition_penalty
    x /= sampling.temperature
    if sampling.top_k:
        x[x < np.sort(x)[-min(sampling.top_k, x.size)]] = -np.inf
    order = np.argsort(x)
    x[order[:-1][np.cumsum(softmax(x)[order])[:-1] <= 1 - sampling.top_p]] = -np.inf
    x[softmax(x) < sampling.min_p * softmax(x).max()] = -np.inf
    return softmax(x)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kept_probabilities(case: dict[str, Any]):
    sampling = llm.Sampling(**case)
    settings = sampling.settings
    cumulative, tokens = candidates(penalized(gc.tensor(LOGITS), gc.tensor(HISTORY), settings[0]), settings)
    totals = cumulative.numpy()[0]
    steps = np.diff(totals, prepend=0) * (totals > 0)
    actual = np.zeros(LOGITS.size)
    actual[tokens.numpy()[0]] = steps / steps.sum()
    np.testing.assert_allclose(actual, probabilities(sampling), atol=1e-5)


def test_frequencies_are_the_probabilities():
    sampling = llm.Sampling(temperature=1.0, top_k=8, repetition_penalty=1.2, seed=5)
    program, count = gc.compile(choose), 2000
    inputs = gc.tensor(LOGITS), gc.tensor(HISTORY), True, sampling.settings
    draws = [program(*inputs, sampling.random_state(i)) for i in range(count)]
    expected = probabilities(sampling)
    frequencies = np.bincount([int(d) for d in draws], minlength=LOGITS.size) / count
    assert np.all(frequencies[expected == 0] == 0)
    deviation = np.sqrt(expected * (1 - expected) / count)
    assert np.all(np.abs(frequencies - expected) <= 4 * deviation)


def test_temperature_0_takes_the_most_likely_token_after_the_penalty():
    favourite = gc.tensor([[int(LOGITS.argmax())]])
    for penalty, same in ((1.0, True), (100.0, False)):
        sampling = llm.Sampling(repetition_penalty=penalty, top_k=3)
        token = choose(gc.tensor(LOGITS), favourite, False, sampling.settings, sampling.random_state(0))
        assert (int(token) == int(favourite)) == same


@pytest.mark.parametrize(
    "case",
    [
        {"repetition_penalty": 0.0},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": -1},
        {"top_k": 1.5},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": 2.0},
        {"seed": -1},
        {"top_p": "0.9"},
        {"top_k": True},
    ],
    ids=str,
)
def test_errors_name_the_field(case: dict[str, Any]):
    with pytest.raises(ArgumentError, match=next(iter(case))):
        llm.Sampling(**case)
