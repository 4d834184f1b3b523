"""Generation by compiled programs: greedy tokens equal eager logits of the whole text; seeds; the caches' contents."""

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
    generator.reset()
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


def drawn(generator: llm.Generator, seed: int) -> list[int]:
    generator.reset()
    return list(generator.generate(PROMPT[:7], 20, sampling=llm.Sampling(temperature=1.0, seed=seed)))


def test_a_seed_decides_the_text(generator: llm.Generator):
    first = drawn(generator, 1)
    assert drawn(generator, 1) == first != drawn(generator, 2)


def test_a_prompt_reads_the_tokens_after_the_common_beginning(model: llm.Decoder, generator: llm.Generator):
    generator.reset()
    first = list(generator.greedy(PROMPT[:20], 4))
    assert generator.held() == PROMPT[:20] + first[:3]
    for prompt in ([*PROMPT[:20], *first, 5, 6], PROMPT[:20], [*PROMPT[:10], 9], PROMPT, [*PROMPT, *PROMPT[:50]]):
        assert list(generator.greedy(prompt, 3)) == eager(model, prompt, 3)


def test_only_new_tokens_are_read(generator: llm.Generator, monkeypatch: pytest.MonkeyPatch):
    counts, read = [], generator._read

    def counted(tokens: gc.Tensor, *rest: object) -> gc.Tensor:
        counts.append(tokens.shape[1])
        return read(tokens, *rest)

    monkeypatch.setattr(generator, "_read", counted)
    generator.reset()
    for prompt in (PROMPT[:30], [*PROMPT[:30], 1, 2], PROMPT[:30], [*PROMPT[:5], *PROMPT[:50]]):
        list(generator.greedy(prompt, 1))
    assert counts == [30, 2, 1, 50]


def test_writes_to_the_caches_by_others_are_noticed(model: llm.Decoder, generator: llm.Generator):
    expected = eager(model, PROMPT[:7], 3)
    assert list(generator.greedy(PROMPT[:7], 3)) == expected
    with gc.no_grad():
        model.step(gc.tensor([[1, 2, 3]]), 0)
    assert generator.held() == [] and list(generator.greedy(PROMPT[:7], 3)) == expected
    older = generator.greedy(PROMPT[:7], 3)
    next(older)
    assert list(generator.greedy(PROMPT[:6], 3)) == eager(model, PROMPT[:6], 3)
    with pytest.raises(ArgumentError, match="another text"):
        next(older)
