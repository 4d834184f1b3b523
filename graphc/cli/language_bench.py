"""``graphc bench`` for language models: tokens a second of prompts and of generation."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from graphc.base.lazy import deferred
from graphc.cli import console
from graphc.cli.fields import Field
from graphc.cli.token_times import Timed
from graphc.runtime.threads import get_num_threads

# Most files are no language models.
open_generator = deferred("graphc.cli.language:open_generator")
PROMPT, TOKENS, LEAST_ROUNDS = 128, 64, 3
_REFUSED = {
    **dict.fromkeys(("fill", "entry", "rate", "block", "breakdown", "device")),
    **{name: [] for name in ("input", "shape", "assert", "compare")},
    **{"streams": 1, "train": False, "trust": False, "target": "host"},
}
"""Options of ``graphc bench`` that do not apply to language models, and their defaults."""
_STORED = {"assert": "asserts", "target": "machine"}
"""Names under which options are stored, where they differ."""
JSON = (
    Field("prompt.tokens", "integer", "language models: random tokens that are read", optional=True),
    Field("prompt.seconds", "number", "time until the first token: median of the rounds", "s", True),
    Field("prompt.throughput", "number", "tokens read per second", "tokens/s", True),
    Field("generation.tokens", "integer", "language models: tokens that are generated", optional=True),
    Field("generation.seconds", "number", "time of a token after the first: median of the rounds", "s", True),
    Field("generation.throughput", "number", "tokens generated per second, without the first", "tokens/s", True),
)


def run(options: argparse.Namespace) -> int:
    """Generate in rounds, after one that compiles: at least 3 and then for about ``--duration``."""
    wrong = next((o for o, default in _REFUSED.items() if getattr(options, _STORED.get(o, o)) != default), None)
    if wrong is not None:
        raise console.UsageError(
            f"--{wrong} does not apply to language models",
            remedy="choose by --prompt, --tokens, --duration, --rounds and --threads",
        )
    prompt_tokens, count = options.prompt or PROMPT, options.tokens or TOKENS
    if count < 2:
        raise console.UsageError("the time of a token needs two of them", remedy="pass --tokens 2 or more")
    start = time.perf_counter()
    generator = open_generator(options.model, options.trust, prompt_tokens + count)
    load_seconds = time.perf_counter() - start
    vocabulary = generator.programs.vocabulary
    prompt = np.random.default_rng(0).integers(0, vocabulary, prompt_tokens).tolist()
    _round(generator, prompt, count)  # compiles
    rounds, start = [], time.perf_counter()
    most = max(LEAST_ROUNDS, options.rounds)
    while len(rounds) < LEAST_ROUNDS or (len(rounds) < most and time.perf_counter() - start < options.seconds):
        rounds.append(_round(generator, prompt, count))
    first, each = (median(times) for times in zip(*rounds, strict=True))
    read = {"tokens": prompt_tokens, "seconds": first, "throughput": prompt_tokens / first}
    generated = {"tokens": count, "seconds": each, "throughput": 1 / each}
    if options.json:
        facts = {"rounds": len(rounds), "threads": get_num_threads(), "load": load_seconds}
        console.emit_json({"model": Path(options.model).stem, "prompt": read, "generation": generated, **facts})
        return console.OK
    rows = [
        ["", "tokens", "tokens/s", ""],
        ["prompt", f"{prompt_tokens}", f"{prompt_tokens / first:.4g}", f"{console.seconds_text(first)} to the first"],
        ["generation", f"{count}", f"{1 / each:.4g}", f"{console.seconds_text(each)} a token"],
    ]
    console.emit(console.table(rows))
    return console.OK


def _round(generator: Any, prompt: list[int], count: int) -> tuple[float, float]:
    """Return the seconds until the first token, and of each token after it."""
    generator.reset()
    return Timed(generator.greedy(prompt, count)).measure()
