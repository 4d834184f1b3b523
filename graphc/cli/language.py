"""Options that the commands of language models share: the model, sampling, stops, and the number of tokens."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from graphc.base.errors import ArgumentError
from graphc.cli import arguments, console
from graphc.files.container import is_container
from graphc.llm.generation import Generator
from graphc.llm.sampling import Sampling
from graphc.llm.tokenizer import Tokenizer, load_tokenizer

_LEAST_PLACES = 512
"""Least capacity of the caches in tokens."""

_OPTIONS = (
    ("--temperature", arguments.tolerance, "T", "divide logits by T before drawing (default: 0, the likeliest token)"),
    ("--top-k", arguments.natural, "K", "draw from the K most likely tokens (default: 0, all)"),
    ("--top-p", arguments.positive, "P", "draw from the most likely tokens whose probabilities add up to P"),
    ("--min-p", arguments.tolerance, "P", "draw from tokens with at least P times the largest probability"),
    ("--repetition-penalty", arguments.positive, "R", "divide logits above 0 of earlier tokens by R, multiply others"),
    ("--seed", arguments.natural, "N", "start of the random numbers (default: 0)"),
)


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a GGUF file, a folder with config.json and safetensors files, or a .gcm file of graphc compile",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="FILE",
        help="GGUF file or folder with the tokenizer; needed for .gcm files, which have none",
    )
    parser.add_argument(
        "--trust", action="store_true", help="run object code from a .gcm file (only if you trust its author)"
    )


def tokenizer_of(options: argparse.Namespace) -> Tokenizer:
    """Return the tokenizer of the model. Raise UsageError for a file without one."""
    if options.tokenizer is None and is_container(options.file):
        raise console.UsageError(
            f"{options.file} has no tokenizer", remedy="pass the file that it was compiled from: --tokenizer model.gguf"
        )
    return load_tokenizer(options.tokenizer or options.file)


def open_generator(file: str, trust: bool, places: int | None) -> Generator:
    """Return a generator whose caches hold at least ``places`` tokens; those of a .gcm file hold what it was compiled
    for."""
    return Generator.open(file, trust=trust) if is_container(file) else Generator.open(file, places)


def rounded(places: int) -> int:
    """Return a capacity of the caches for at least this many tokens.

    Few different ones are used, since each takes a program of its own.
    """
    return max(_LEAST_PLACES, 1 << (places - 1).bit_length())


def collect(pieces: Iterator[str], silent: bool) -> tuple[str, bool]:
    """Return the text of pieces, and whether it was not interrupted. Unless ``silent``, print it as it comes, and end
    its line."""
    texts: list[str] = []
    complete = False
    try:
        for piece in pieces:
            texts.append(piece)
            if not silent:
                sys.stdout.write(piece)
                sys.stdout.flush()
        complete = True
    except KeyboardInterrupt:
        pass
    if not silent:
        console.emit("")
        sys.stdout.flush()
    return "".join(texts), complete


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
