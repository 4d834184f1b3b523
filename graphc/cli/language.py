"""Options that the commands of language models share: sampling, stops, and the number of tokens."""

from __future__ import annotations

import argparse

from graphc.base.errors import ArgumentError
from graphc.cli import arguments, console
from graphc.llm.sampling import Sampling

_OPTIONS = (
    ("--temperature", arguments.tolerance, "T", "divide logits by T before drawing (default: 0, the likeliest token)"),
    ("--top-k", arguments.natural, "K", "draw from the K most likely tokens (default: 0, all)"),
    ("--top-p", arguments.positive, "P", "draw from the most likely tokens whose probabilities add up to P"),
    ("--min-p", arguments.tolerance, "P", "draw from tokens with at least P times the largest probability"),
    ("--repetition-penalty", arguments.positive, "R", "divide logits above 0 of earlier tokens by R, multiply others"),
    ("--seed", arguments.natural, "N", "start of the random numbers (default: 0)"),
)


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a GGUF file, or a folder with config.json and safetensors files")


def add_text(parser: argparse.ArgumentParser, tokens: int, help: str) -> None:
    """Add ``--tokens``, ``--stop`` and the options of sampling."""
    parser.add_argument(
        "--tokens", type=arguments.count, default=tokens, metavar="N", help=f"{help} (default: {tokens})"
    )
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text; may be given several times"
    )
    for name, kind, metavar, meaning in _OPTIONS:
        parser.add_argument(name, type=kind, metavar=metavar, help=meaning)


def sampling_of(options: argparse.Namespace) -> Sampling:
    """Return the sampling of the options that were given. Raises UsageError for values outside of their range."""
    names = [name[2:].replace("-", "_") for name, *_ in _OPTIONS]
    values = {name: getattr(options, name) for name in names}
    try:
        return Sampling(**{name: value for name, value in values.items() if value is not None})
    except ArgumentError as error:
        raise console.UsageError(error.what, remedy=error.remedy) from None
