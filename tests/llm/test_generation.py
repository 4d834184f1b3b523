"""Generation by compiled programs: greedy tokens equal eager logits of the whole text; seeds; the caches' contents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError, ArtifactError
from tools.gguf_files import write_random_decoder

PROMPT = np.random.default_rng(0).integers(0, 300, 70).tolist()
"""Longer than a block."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> llm.Decoder:
    return llm.load(write_random_decoder(tmp_path_factory.mktemp("llm") / "model.gguf"), places=128)


@pytest.fixture(scope="module")
def generator(model: llm.Decoder) -> llm.Generator:
    return llm.Generator(model)


@pytest.fixture
def uncompiled(model: llm.Decoder, monkeypatch: pytest.MonkeyPatch) -> llm.Generator:
    """A generator whose steps run in eager mode, which saves the time of the compiler."""
    monkeypatch.setattr("graphc.llm.compiled_programs.compile", lambda step, dims: step)
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


def test_only_new_tokens_are_read(uncompiled: llm.Generator, monkeypatch: pytest.MonkeyPatch):
    counts, next_token = [], uncompiled.programs.next_token

    def counted(tokens: list[int], *rest: Any) -> int:
        counts.append(len(tokens))
        return next_token(tokens, *rest)

    monkeypatch.setattr(uncompiled.programs, "next_token", counted)
    uncompiled.reset()
    for prompt in (PROMPT[:30], [*PROMPT[:30], 1, 2], PROMPT[:30], [*PROMPT[:5], *PROMPT[:50]]):
        list(uncompiled.greedy(prompt, 1))
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


def test_caches_of_a_file_continue_its_text(model: llm.Decoder, uncompiled: llm.Generator, tmp_path: Path):
    uncompiled.reset()
    text = [*PROMPT[:20], *uncompiled.greedy(PROMPT[:20], 4)]
    uncompiled.save(tmp_path / "text.npz")
    list(uncompiled.greedy(PROMPT[30:], 2))
    uncompiled.restore(tmp_path / "text.npz")
    assert uncompiled.held() == text[:-1]
    assert list(uncompiled.greedy(text, 3)) == eager(model, text, 3)


def test_the_penalty_counts_restored_tokens(uncompiled: llm.Generator, tmp_path: Path):
    penalized = llm.Sampling(repetition_penalty=1.5)
    uncompiled.reset()
    text = list(uncompiled.generate(PROMPT[:20], 6, sampling=penalized))
    uncompiled.reset()
    list(uncompiled.greedy(PROMPT[:20], 1))
    uncompiled.save(tmp_path / "text.npz")
    list(uncompiled.greedy([1] * 20, 1))
    uncompiled.restore(tmp_path / "text.npz")
    assert list(uncompiled.generate(PROMPT[:20], 6, sampling=penalized)) == text


def change(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda state: state.update({name: value})


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (dict.clear, "not a file of Generator"),
        (change("model", "0"), "another model"),
        (change("tokens", gc.tensor([1.0])), "vector of i64"),
        (change("tokens", gc.tensor([[1]])), "vector of i64"),
        (change("tokens", gc.tensor([300] * 5)), "damaged"),
        (change("tokens", gc.tensor([1] * 6)), "damaged"),
        (change("caches", {}), "damaged"),
        (lambda state: state["caches"].update({"0.keys": gc.zeros(1, 2, 5, 63)}), "damaged"),
        (lambda state: state["caches"].update({"0.keys": None}), "damaged"),
    ],
)
def test_foreign_and_damaged_caches(
    edit: Callable[[dict[str, Any]], object], message: str, uncompiled: llm.Generator, tmp_path: Path
):
    list(uncompiled.greedy(PROMPT[:5], 1))
    uncompiled.save(tmp_path / "a.npz")
    tree = gc.load_state(tmp_path / "a.npz")
    edit(tree["graphc prompt cache"])
    gc.save_state(tree, tmp_path / "a.npz")
    with pytest.raises(ArtifactError, match=message):
        uncompiled.restore(tmp_path / "a.npz")
    assert uncompiled.held() == PROMPT[:5]


def test_caches_of_another_model_and_of_a_longer_text(model: llm.Decoder, uncompiled: llm.Generator, tmp_path: Path):
    list(uncompiled.greedy(PROMPT, 1))
    uncompiled.save(tmp_path / "a.npz")
    small = llm.Decoder(model.config, places=64)
    with pytest.raises(ArtifactError, match="another model"):
        llm.Generator(small).restore(tmp_path / "a.npz")
    llm.Generator(small).save(tmp_path / "small.npz")
    tree, other = gc.load_state(tmp_path / "a.npz"), gc.load_state(tmp_path / "small.npz")
    tree["graphc prompt cache"]["model"] = other["graphc prompt cache"]["model"]
    gc.save_state(tree, tmp_path / "a.npz")
    shorter = llm.Generator(small)
    shorter.restore(tmp_path / "a.npz")
    assert shorter.held() == PROMPT[:64]
