"""A language model beside llama.cpp: ``python -m benchmarks.language_models FILE [--threads N] [--json]``.

FILE is a GGUF file. Both read a prompt of random tokens and generate the most likely tokens, in alternating rounds;
``llama-cpp-python`` is called through its Python methods. Then both continue ten texts, and the number of equal tokens
of each is compared. Without llama-cpp-python graphc runs alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

import graphc as gc
from benchmarks.harness.results import format_table
from benchmarks.harness.timing import find_library
from graphc.cli.token_times import Timed

TEXTS = (
    *(
        "The capital of France is",
        "Once upon a time",
        "def fibonacci(n):",
        "Water boils at",
        "The three laws of motion",
    ),
    *("Dear Sir or Madam,", "In 1969, people", "The opposite of hot is", "A recipe for bread:", "1, 2, 3, 4,"),
)
Generate = Callable[[Sequence[int], int], Iterator[int]]
"""Yields tokens after a prompt, of the given number."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language_models", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens to generate")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    gc.set_num_threads(options.threads)
    decoder = gc.llm.load(options.file, places=options.prompt + options.tokens)
    contenders: dict[str, Generate] = {"graphc": _afresh(gc.llm.Generator(decoder))}
    if (peer := find_library("llama_cpp")) is not None:
        contenders["llama.cpp"] = _llama_cpp(peer, options)
    prompt = np.random.default_rng(0).integers(0, decoder.config.vocabulary, options.prompt).tolist()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for number in range(options.rounds + 1):
        for name, generate in contenders.items():
            found = Timed(generate(prompt, options.tokens)).measure()
            times[name] += [found] if number else []  # the first round compiles
    medians = {name: np.median(rows, axis=0).tolist() for name, rows in times.items()}
    equal = _equal_tokens(contenders, options.file, options.tokens)
    rows = [{"engine": n, "prompt ms": 1e3 * first, "token ms": 1e3 * rest} for n, (first, rest) in medians.items()]
    if options.json:
        print(json.dumps({"threads": options.threads, "times": rows, "equal tokens": equal}, indent=2))
        return 0
    print(format_table([*rows[0]], [[v if type(v) is str else f"{v:.2f}" for v in row.values()] for row in rows]))
    for text, count in equal.items():
        print(f"{count} of {options.tokens} tokens are equal after {text!r}")
    return 0


def _afresh(generator: gc.llm.Generator) -> Generate:
    def generate(prompt: Sequence[int], count: int) -> Iterator[int]:
        generator.reset()
        return generator.greedy(prompt, count)

    return generate


def _llama_cpp(peer: Any, options: argparse.Namespace) -> Generate:
    threads = {"n_threads": options.threads, "n_threads_batch": options.threads}
    model = peer.Llama(options.file, n_ctx=options.prompt + options.tokens, verbose=False, **threads)

    def generate(prompt: Sequence[int], count: int) -> Iterator[int]:
        model.reset()
        tokens = list(prompt)
        for _ in range(count):
            model.eval(tokens)
            tokens = [model.sample(temp=0)]
            yield tokens[0]

    return generate


def _equal_tokens(contenders: dict[str, Generate], file: str, count: int) -> dict[str, int]:
    """Return, by text, how many tokens after it are the same until the first that differs."""
    if len(contenders) == 1:
        return {}
    tokenizer, equal = gc.llm.load_tokenizer(file), {}
    for text in TEXTS:
        one, other = (list(generate(tokenizer.encode(text), count)) for generate in contenders.values())
        equal[text] = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=True)))
    return equal


if __name__ == "__main__":
    sys.exit(main())
