"""Generation of several texts at a time: each is the text that its prompt gives alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError
from tools.gguf_files import write_random_decoder

RANDOM = np.random.default_rng(0)
PROMPTS = [RANDOM.integers(0, 300, count).tolist() for count in (5, 70, 1, 20, 110, 64, 9)]
"""Of different lengths, some longer than a block, one that reaches the last block; more than there are rows."""
DRAWN = [llm.Sampling(temperature=1.0, top_p=0.9, seed=seed) for seed in range(6)]
DRAWN += [llm.Sampling(repetition_penalty=1.3)]
COUNT = 12


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_decoder(tmp_path_factory.mktemp("llm") / "model.gguf")


@pytest.fixture(scope="module")
def batch(path: Path) -> llm.Generator:
    return llm.Generator(llm.load(path, places=128, rows=3))


@pytest.fixture(scope="module")
def single(path: Path) -> llm.Generator:
    return llm.Generator(llm.load(path, places=128))


def alone(generator: llm.Generator, prompt: list[int], sampling: llm.Sampling, stops: set[int]) -> list[int]:
    generator.reset()
    return list(generator.generate(prompt, COUNT, stops, sampling))


@pytest.mark.parametrize("samplings", [[llm.Sampling()] * 7, [llm.Sampling(repetition_penalty=2.0)] * 7, DRAWN])
def test_texts_are_those_of_each_prompt_alone(
    samplings: list[llm.Sampling], batch: llm.Generator, single: llm.Generator
):
    whole = [alone(single, *pair, set()) for pair in zip(PROMPTS, samplings, strict=True)]
    assert batch.generate_batch(PROMPTS, COUNT, sampling=samplings) == whole
    stops = {whole[0][3], whole[1][0], whole[3][7]}
    expected = [alone(single, *pair, stops) for pair in zip(PROMPTS, samplings, strict=True)]
    assert batch.generate_batch(PROMPTS, COUNT, stops, samplings) == expected
    assert len({len(text) for text in expected}) > 2, "texts end at different times"


def test_logits_of_rows_at_different_positions():
    gc.manual_seed(0)
    sizes = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 64, "head_dim": 8}
    layers = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 4}
    names = frozenset({"layers.0.self_attn.q_norm.weight"})
    model = llm.Decoder(llm.decoder_config({"model_type": "gemma2", **sizes, **layers}, names), rows=3, places=64)
    texts = [RANDOM.integers(0, 96, count) for count in (9, 3, 6)]
    with gc.no_grad():
        for row, text in enumerate(texts):
            model.step(gc.tensor(text[None, :-1]), 0, row)
        last = gc.tensor(np.array([text[-1:] for text in texts]))
        logits = model.step_rows(last, gc.tensor([8, 2, 5]), 9).numpy()
        for row, text in enumerate(texts):
            np.testing.assert_allclose(logits[row], model(gc.tensor(text[None]))[0, -1].numpy(), atol=1e-5)


def test_one_sampling_for_all(batch: llm.Generator, single: llm.Generator):
    sampling = llm.Sampling(temperature=0.9, seed=3)
    expected = [alone(single, prompt, sampling, set()) for prompt in PROMPTS[:2]]
    assert batch.generate_batch(PROMPTS[:2], COUNT, sampling=sampling) == expected


def test_no_texts(batch: llm.Generator):
    assert batch.generate_batch([], 4) == []
    assert batch.generate_batch(PROMPTS[:2], 0) == [[], []]


def test_a_model_with_one_row(single: llm.Generator):
    expected = [alone(single, prompt, llm.Sampling(), set()) for prompt in PROMPTS[:3]]
    assert single.generate_batch(PROMPTS[:3], COUNT) == expected
    assert not single.programs._next_rows.variants, "the programs of one text suffice"


def test_single_texts_between_batches(batch: llm.Generator, single: llm.Generator):
    expected = alone(single, PROMPTS[3], llm.Sampling(), set())
    text = batch.generate(PROMPTS[3], COUNT)
    assert next(text) == expected[0]
    batch.generate_batch(PROMPTS[:1], 2)
    assert batch.held() == []
    with pytest.raises(ArgumentError, match="another text"):
        next(text)
    assert list(batch.greedy(PROMPTS[3], COUNT)) == expected


def test_wrong_arguments(batch: llm.Generator):
    with pytest.raises(ArgumentError, match="1 samplings for 2 prompts"):
        batch.generate_batch(PROMPTS[:2], 1, sampling=DRAWN[:1])
    with pytest.raises(ArgumentError, match="exceed the 128"):
        batch.generate_batch([PROMPTS[0], PROMPTS[4]], 19)
