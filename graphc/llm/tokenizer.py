"""Tokenizers from files, by the package ``tokenizers`` (extra ``llm``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, UnsupportedError
from graphc.base.installation import install_command
from graphc.llm.gguf_file import read_gguf

__all__ = ["Tokenizer", "load_tokenizer"]

_JSON = "tokenizer.json"
_CONTROL, _USER_DEFINED = 3, 4
"""Types of tokens that are found before the text is split."""
_CUT = "\ufffd"
"""Last character of a text whose last token ends inside of a character."""
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{DIGITS}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPLITS = {
    **dict.fromkeys(("default", "gpt-2"), (_GPT2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r"), (r"\p{N}", _GPT2)),
    **dict.fromkeys(("llama-bpe", "llama-v3", "llama3", "smaug-bpe"), (_LLAMA3.replace("{DIGITS}", "{1,3}"),)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), (_LLAMA3.replace("{DIGITS}", ""),)),
}
"""Expressions whose matches, one expression after the other, are the words of a text, by ``tokenizer.ggml.pre``."""


class Tokenizer:
    """Texts to tokens and back.

    Args:
        core: a ``tokenizers.Tokenizer``.
        stops: tokens that end a text.
    """

    def __init__(self, core: Any, stops: frozenset[int] = frozenset()):
        self.core, self.stops = core, stops

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; control tokens in it, such as ``<|im_start|>``, are recognized."""
        return self.core.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without control tokens."""
        return self.core.decode(list(tokens), skip_special_tokens=True)

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        """Yield the text that each token adds. Where a token ends inside of a character, later ones complete it."""
        before: list[int] = []  # the tokens of the last text, before which a decoder may leave out a space
        new: list[int] = []
        printed = added = ""
        for token in tokens:
            new.append(token)
            added = self.decode([*before, *new])[len(printed) :]
            if not added.endswith(_CUT):
                yield added
                before, new, printed, added = new, [], self.decode(new), ""
        if added:
            yield added


def until(texts: Iterable[str], stops: Sequence[str]) -> Iterator[str]:
    """Yield the pieces of a text before the first of ``stops`` in it, which may begin in one piece and end in another.

    The end of a piece that may begin a stop is yielded with a later piece.

    Example:
        >>> from graphc.llm.tokenizer import until
        >>> list(until(["one\\nU", "s", "er: two"], ["\\nUser:"]))
        ['one']
    """
    held = ""
    for text in texts:
        held += text
        ends = [held.find(stop) for stop in stops if stop in held]
        cut = min(ends) if ends else len(held) - max((_overlap(held, stop) for stop in stops), default=0)
        if cut:
            yield held[:cut]
        if ends:
            return
        held = held[cut:]
    if held:
        yield held


def _overlap(text: str, stop: str) -> int:
    """Return how many characters at the end of a text begin ``stop``."""
    return next((n for n in range(min(len(stop), len(text)), 0, -1) if text.endswith(stop[:n])), 0)


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Return the tokenizer of a model that ``load`` reads: byte-level BPE of a GGUF file, or ``tokenizer.json``.

    Raises ArgumentError without the package ``tokenizers``, ArtifactError for damaged vocabularies, UnsupportedError
    for other kinds of vocabularies; OSError.

    Example:
        >>> import graphc as gc
        >>> tokenizer = gc.llm.load_tokenizer("SmolLM2-135M-Instruct.Q4_1.gguf")  # doctest: +SKIP
        >>> tokenizer.encode("The capital of France is")  # doctest: +SKIP
        [504, 3575, 282, 4649, 314]
    """
    package, source = _package(), os.fspath(path)
    folder = Path(path).is_dir()
    if folder and not Path(path, _JSON).is_file():
        raise ArtifactError(f"{source}: the folder has no {_JSON}", remedy="pass tokens instead of text")
    try:
        return Tokenizer(package.Tokenizer.from_file(str(Path(path, _JSON)))) if folder else _of_metadata(package, path)
    except (ArgumentError, ArtifactError, UnsupportedError, OSError):
        raise
    except Exception as error:  # NOTE: the package raises plain exceptions for bad vocabularies.
        raise ArtifactError(f"{source}: the vocabulary is damaged: {error}") from None


def _of_metadata(package: Any, path: str | os.PathLike[str]) -> Tokenizer:
    """Build byte-level BPE from the metadata of a GGUF file."""
    file = read_gguf(path)
    kind, split = (
        file.metadata.get(f"tokenizer.ggml.{key}", default) for key, default in (("model", None), ("pre", "default"))
    )
    if kind != "gpt2" or split not in _SPLITS:
        raise UnsupportedError(
            f"{file.path}: vocabulary of kind {kind!r}, split by {split!r}", remedy="pass tokens instead of text"
        )
    tokens, merges, types = (file.metadata.get(f"tokenizer.ggml.{key}") for key in ("tokens", "merges", "token_type"))
    if not isinstance(tokens, list) or not isinstance(merges, list) or len(set(tokens)) != len(tokens):
        raise ArtifactError(f"{file.path}: tokens and merges are not lists of different strings")
    if not isinstance(types, np.ndarray) or len(types) != len(tokens):
        raise ArtifactError(f"{file.path}: there is not a type for each of the {len(tokens)} tokens")
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    core = package.Tokenizer(package.models.BPE({t: i for i, t in enumerate(tokens)}, pairs))
    words = [package.pre_tokenizers.Split(package.Regex(pattern), "isolated") for pattern in _SPLITS[split]]
    byte_level = package.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.pre_tokenizer = package.pre_tokenizers.Sequence([*words, byte_level])
    core.decoder = package.decoders.ByteLevel()
    core.add_special_tokens([tokens[i] for i in np.flatnonzero(types == _CONTROL)])
    core.add_tokens([package.AddedToken(tokens[i], normalized=False) for i in np.flatnonzero(types == _USER_DEFINED)])
    ends = (file.metadata.get(f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot"))
    return Tokenizer(core, frozenset(end for end in ends if isinstance(end, int)))


def _package() -> Any:
    try:
        import tokenizers  # pyright: ignore[reportMissingImports]
    except ImportError:
        remedy = f"install tokenizers: {install_command('llm')}"
        raise ArgumentError("tokenizers of models need the package tokenizers", remedy=remedy) from None
    return tokenizers
