"""Options of language models: sampling of the options given, defaults of the others, and errors."""

from __future__ import annotations

import argparse

import pytest

from graphc.cli import console, language
from graphc.llm.sampling import Sampling


def sampling(*words: str) -> Sampling:
    parser = argparse.ArgumentParser()
    language.add_text(parser, 7, "most tokens")
    return language.sampling_of(parser.parse_args(words))


def test_options_become_fields():
    assert sampling() == Sampling()
    assert sampling("--temperature", "0.5", "--top-k", "3", "--seed", "2") == Sampling(temperature=0.5, top_k=3, seed=2)


def test_errors_name_the_field():
    with pytest.raises(console.UsageError, match="min_p"):
        sampling("--min-p", "2")
