"""Perplexity equals its formula on eager logits, over whole and cut windows."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError
from tools.damage.language_models import CONFIG

TOKENS = np.random.default_rng(0).integers(0, 64, 24).tolist()


@pytest.fixture(scope="module")
def model() -> llm.Decoder:
    gc.manual_seed(0)
    return llm.Decoder(llm.decoder_config({**CONFIG, "num_hidden_layers": 1, "layer_types": None})).eval()


@pytest.mark.parametrize("window", [23, 10])
def test_windows_predict_each_token_but_the_first(model: llm.Decoder, window: int):
    total = 0.0
    for start in range(0, 23, window):
        part = TOKENS[start : start + window + 1]
        with gc.no_grad():
            logits = model(gc.tensor([part[:-1]]))[0].numpy().astype(np.float64)
        probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        total -= np.log(probabilities[np.arange(len(part) - 1), part[1:]]).sum()
    assert llm.perplexity(model, TOKENS, window) == pytest.approx(np.exp(total / 23), rel=1e-5)


def test_wrong_arguments(model: llm.Decoder):
    for tokens, window, message in (
        ([1], 8, "two or more integers from 0 to 63"),
        ([1, 64], 8, "two or more integers from 0 to 63"),
        ([1, 2], 0, "window is 0"),
        ([1, 2], 513, "window is 513.*\n.*pass 1 to 512"),
    ):
        with pytest.raises(ArgumentError, match=message):
            llm.perplexity(model, tokens, window)
