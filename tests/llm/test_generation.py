"""Greedy generation by compiled programs equals eager logits of the whole text."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError
from tools.gguf_files import write_random_decoder

PROMPT = np.random.default_rng(0).integers(0, 300, 70).tolist()
"""Longer than a block."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> llm.Decoder:
    return llm.load(write_random_decoder(tmp_path_factory.mktemp("llm") / "model.gguf"), places=128)


@pytest.fixture(scope="module")
def generator(model: llm.Decoder) -> llm.Generator:
    return llm.Generator(model)


def eager(model: llm.Decoder, prompt: list[int], count: int) -> list[int]:
    tokens = list(prompt)
    with gc.no_grad():
        for _ in range(count):
            tokens.append(int(model(gc.tensor([tokens]))[0, -1].argmax()))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("length", [1, 64, 70])
def test_tokens_are_the_most_likely_ones(model: llm.Decoder, generator: llm.Generator, length: int):
    expected = eager(model, PROMPT[:length], 5)
    assert list(generator.greedy(PROMPT[:length], 5)) == expected
    assert list(generator.greedy(PROMPT[:length], 5)) == expected, "a call leaves nothing that another one reads"


def test_a_stop_token_ends_the_text(model: llm.Decoder, generator: llm.Generator):
    first, second, *_ = eager(model, PROMPT[:7], 3)
    assert first != second
    assert list(generator.greedy(PROMPT[:7], 3, stops={second})) == [first]


def test_prompts_that_do_not_fit(generator: llm.Generator):
    for prompt, count, message in (
        ([], 1, "one or more"),
        ([300], 1, "from 0 to 299"),
        ([1] * 100, 29, "exceed the 128"),
    ):
        with pytest.raises(ArgumentError, match=message):
            generator.greedy(prompt, count)
