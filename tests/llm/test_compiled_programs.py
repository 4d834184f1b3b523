"""Programs of a decoder: the next token of a row and of all rows, and the caches that they write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.llm.compiled_programs import CompiledPrograms
from tools.gguf_files import write_random_decoder

GREEDY = llm.Sampling()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompiledPrograms:
    """Programs that run in eager mode, which saves the time of the compiler."""
    monkeypatch.setattr("graphc.llm.compiled_programs.compile", lambda step, dims: step)
    return CompiledPrograms(llm.load(write_random_decoder(tmp_path / "model.gguf"), places=64, rows=2))


def likeliest(programs: CompiledPrograms, tokens: list[int]) -> int:
    with gc.no_grad():
        return int(programs.decoder(gc.tensor([tokens]))[0, -1].argmax())


def test_tokens_of_rows(programs: CompiledPrograms):
    first, second = [5, 8, 13], [21, 34]
    tokens = [programs.next_token(text, 0, row, GREEDY) for row, text in enumerate((first, second))]
    assert tokens == [likeliest(programs, first), likeliest(programs, second)]
    following = programs.next_tokens(tokens, [3, 2], [GREEDY, GREEDY])
    assert following == [likeliest(programs, [*first, tokens[0]]), likeliest(programs, [*second, tokens[1]])]
    drawn = programs.next_tokens(tokens, [3, 2], [GREEDY, llm.Sampling(temperature=1.0, top_k=1)])
    assert drawn == following, "a draw from one token is the most likely one"


def test_the_history_counts_for_penalties(programs: CompiledPrograms):
    text, penalized = [5, 8, 13], llm.Sampling(repetition_penalty=1e6)
    token = programs.next_token(text, 0, 0, GREEDY)
    programs.write_history(np.array([token, token, token]))
    assert programs.next_token(text[-1:], 2, 0, penalized) != token


def test_caches(programs: CompiledPrograms):
    assert [*programs.caches()] == ["0.keys", "0.values", "1.keys", "1.values"]
    programs.next_token([5, 8, 13], 0, 1, GREEDY)
    for cache in programs.caches().values():
        assert cache.abs().sum((1, 3)).bool().sum(-1).tolist() == [0, 3]
