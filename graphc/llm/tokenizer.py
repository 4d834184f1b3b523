"""Tokenizers from files, by the package ``tokenizers`` (extra ``llm``)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, UnsupportedError
from graphc.base.installation import install_command
from graphc.llm.chat_template import render
from graphc.llm.gguf_file import GgufFile, read_gguf
from graphc.llm.sentence_pieces import CONTROL, CONVERT_AGAIN, USER_DEFINED, SentencePieces

__all__ = ["Tokenizer", "load_tokenizer"]

_JSON, _CONFIG, _TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
_GENERATION, _ENDS = ("generation_config.json", "config.json"), "eos_token_id"
_NAMED = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
"""Tokens with a role, which templates know as ``bos_token`` and so on, and their names in GGUF files."""
_CUT = "\ufffd"
"""Last character of a text whose last token ends inside of a character."""
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{DIGITS}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3_NAMES = ("llama-bpe", "llama-v3", "llama3")
"""Vocabularies whose words are single tokens where they can be, and whose texts begin with a token of their own."""
_SPLITS = {
    **dict.fromkeys(("default", "gpt-2"), (_GPT2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r"), (r"\p{N}", _GPT2)),
    **dict.fromkeys((*_LLAMA3_NAMES, "smaug-bpe"), (_LLAMA3.replace("{DIGITS}", "{1,3}"),)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), (_LLAMA3.replace("{DIGITS}", ""),)),
}
"""Expressions whose matches, one expression after the other, are the words of a text, by ``tokenizer.ggml.pre``."""


class Tokenizer:
    """Texts to tokens and back.

    Args:
        core: a ``tokenizers.Tokenizer``, or ``SentencePieces``.
        stops: tokens that end a text.
        template: Jinja template of chats; None without one.
        named: variables of the template, such as ``bos_token``, the text of the token that begins texts.
        begin: tokens that the model expects before a text.
    """

    def __init__(
        self,
        core: Any,
        stops: frozenset[int] = frozenset(),
        template: str | None = None,
        named: Mapping[str, str] | None = None,
        begin: Sequence[int] = (),
    ):
        self.core, self.stops, self.template, self.named = core, stops, template, dict(named or {})
        self.begin = tuple(begin)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; control tokens in it, such as ``<|im_start|>``, are recognized."""
        return self.core.encode(text, add_special_tokens=False).ids

    def prompt(self, text: str) -> list[int]:
        """Return the tokens of a text from its beginning: ``begin``, and those of ``encode``."""
        return [*self.begin, *self.encode(text)]

    def chat(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True) -> list[int]:
        """Return the tokens of messages, formatted by the file's chat template.

        Args:
            messages: dictionaries with ``role`` (``"system"``, ``"user"`` or ``"assistant"``) and ``content``.
            add_generation_prompt: end with the beginning of an answer.

        Raises ArgumentError for a file without a template, for messages that the template refuses, and without the
        package ``jinja2``; ArtifactError for a damaged template.

        Example:
            >>> import graphc as gc
            >>> tokenizer = gc.llm.load_tokenizer("SmolLM2-135M-Instruct.Q4_1.gguf")  # doctest: +SKIP
            >>> tokenizer.chat([{"role": "user", "content": "Hi!"}])[:3]  # doctest: +SKIP
            [1, 9690, 198]
        """
        if self.template is None:
            raise ArgumentError("the model's file has no chat template", remedy="pass the whole text to prompt(text)")
        values = {**self.named, "add_generation_prompt": add_generation_prompt}
        return self.encode(render(self.template, messages, values))

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
    """Return the tokenizer of a model that ``load`` reads: byte-level BPE or SentencePiece of a GGUF file, or
    ``tokenizer.json``.

    Raises ArgumentError without the package ``tokenizers``, which SentencePiece does not need; ArtifactError for
    damaged vocabularies, UnsupportedError for other kinds of vocabularies; OSError.

    Example:
        >>> import graphc as gc
        >>> tokenizer = gc.llm.load_tokenizer("SmolLM2-135M-Instruct.Q4_1.gguf")  # doctest: +SKIP
        >>> tokenizer.encode("The capital of France is")  # doctest: +SKIP
        [504, 3575, 282, 4649, 314]
    """
    source, folder = os.fspath(path), Path(path).is_dir()
    if folder and not Path(path, _JSON).is_file():
        raise ArtifactError(f"{source}: the folder has no {_JSON}", remedy="pass tokens instead of text")
    try:
        return _of_folder(Path(path)) if folder else _of_metadata(read_gguf(path))
    except (ArgumentError, ArtifactError, UnsupportedError, OSError):
        raise
    except Exception as error:  # NOTE: the package raises plain exceptions for bad vocabularies.
        raise ArtifactError(f"{source}: the vocabulary is damaged: {error}") from None


def _of_metadata(file: GgufFile) -> Tokenizer:
    """Build byte-level BPE or SentencePiece from the metadata of a GGUF file."""
    kind, tokens, types = (file.metadata.get(f"tokenizer.ggml.{key}") for key in ("model", "tokens", "token_type"))
    if kind not in ("gpt2", "llama"):
        raise UnsupportedError(f"{file.path}: vocabulary of kind {kind!r}", remedy="pass tokens instead of text")
    if not isinstance(tokens, list) or len(set(tokens)) != len(tokens):
        raise ArtifactError(f"{file.path}: the tokens are not a list of different strings", remedy=CONVERT_AGAIN)
    if not isinstance(types, np.ndarray) or len(types) != len(tokens):
        raise ArtifactError(
            f"{file.path}: there is not a type for each of the {len(tokens)} tokens", remedy=CONVERT_AGAIN
        )
    core = (_byte_level if kind == "gpt2" else _sentence_pieces)(file, tokens, types)
    ends = (file.metadata.get(f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot", "eom"))
    ids = {name: file.metadata.get(f"tokenizer.ggml.{stored}_token_id") for name, stored in _NAMED.items()}
    named = {f"{name}_token": tokens[i] for name, i in ids.items() if isinstance(i, int) and 0 <= i < len(tokens)}
    template = _template(file.metadata.get("tokenizer.chat_template"))
    stops = frozenset(end for end in ends if isinstance(end, int))
    return Tokenizer(core, stops, template, named, _begin(file, ids["bos"]))


def _begin(file: GgufFile, begin: Any) -> tuple[int, ...]:
    """Return the token of the beginning, where the file says that texts have it. If it says nothing, texts have it with
    vocabularies of SentencePiece and of Llama 3, as in llama.cpp."""
    kind, split = (file.metadata.get(f"tokenizer.ggml.{key}") for key in ("model", "pre"))
    has_begin = file.metadata.get("tokenizer.ggml.add_bos_token", kind == "llama" or split in _LLAMA3_NAMES)
    return (begin,) if has_begin and isinstance(begin, int) else ()


def _byte_level(file: GgufFile, tokens: list[str], types: np.ndarray) -> Any:
    package, split = _package(), file.metadata.get("tokenizer.ggml.pre", "default")
    merges = file.metadata.get("tokenizer.ggml.merges")
    if split not in _SPLITS:
        raise UnsupportedError(
            f"{file.path}: vocabulary of kind 'gpt2', split by {split!r}", remedy="pass tokens instead of text"
        )
    if not isinstance(merges, list):
        raise ArtifactError(f"{file.path}: the merges are not a list of strings", remedy=CONVERT_AGAIN)
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    whole = split in _LLAMA3_NAMES
    core = package.Tokenizer(package.models.BPE({t: i for i, t in enumerate(tokens)}, pairs, ignore_merges=whole))
    words = [package.pre_tokenizers.Split(package.Regex(pattern), "isolated") for pattern in _SPLITS[split]]
    byte_level = package.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.pre_tokenizer = package.pre_tokenizers.Sequence([*words, byte_level])
    core.decoder = package.decoders.ByteLevel()
    core.add_special_tokens([tokens[i] for i in np.flatnonzero(types == CONTROL)])
    core.add_tokens([package.AddedToken(tokens[i], normalized=False) for i in np.flatnonzero(types == USER_DEFINED)])
    return core


def _sentence_pieces(file: GgufFile, tokens: list[str], types: np.ndarray) -> SentencePieces:
    scores, space = (file.metadata.get(f"tokenizer.ggml.{key}") for key in ("scores", "add_space_prefix"))
    if not isinstance(scores, np.ndarray) or scores.dtype.kind != "f" or types.dtype.kind not in "iu":
        raise ArtifactError(
            f"{file.path}: scores or types of the tokens are not lists of numbers", remedy=CONVERT_AGAIN
        )
    return SentencePieces(tokens, scores, types, True if space is None else bool(space), file.path)


def _of_folder(path: Path) -> Tokenizer:
    """Read ``tokenizer.json``, and template and named tokens from the files beside it."""
    core = _package().Tokenizer.from_file(str(path / _JSON))
    config = _object(path / _CONFIG)
    tokens = {f"{name}_token": config.get(f"{name}_token") for name in _NAMED}
    texts = {name: token.get("content") if isinstance(token, dict) else token for name, token in tokens.items()}
    named = {name: text for name, text in texts.items() if isinstance(text, str)}
    end = core.token_to_id(named.get("eos_token", ""))
    file = path / _TEMPLATE
    template = file.read_text(encoding="utf-8") if file.is_file() else _template(config.get("chat_template"))
    full, bare = (core.encode("a", add_special_tokens=special).ids for special in (True, False))
    begin = full[: full.index(bare[0])] if bare and bare[0] in full else []
    return Tokenizer(core, _stops(path) | (frozenset() if end is None else {end}), template, named, begin)


def _stops(path: Path) -> frozenset[int]:
    """Return ``eos_token_id``, a number or a list, of ``generation_config.json``, or else of ``config.json``."""
    objects = ((file, _object(file)) for file in (path / name for name in _GENERATION))
    file, ends = next(((file, o[_ENDS]) for file, o in objects if o.get(_ENDS) is not None), (path, []))
    stops = ends if isinstance(ends, list) else [ends]
    if not all(isinstance(stop, int) and not isinstance(stop, bool) and stop >= 0 for stop in stops):
        raise ArtifactError(
            f"{file}: {_ENDS} is {ends!r}, not a token or a list of tokens", remedy="write the number of each token"
        )
    return frozenset(stops)


def _object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, an empty one without the file."""
    value = json.loads(path.read_bytes()) if path.is_file() else {}
    if not isinstance(value, dict):
        raise ArtifactError(f"{path}: it holds {type(value).__name__}, not an object", remedy=CONVERT_AGAIN)
    return value


def _template(value: Any) -> str | None:
    """Return a template as it is or, of a list of named ones, the one named ``default``; None without one."""
    if isinstance(value, list):
        named = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
        value = named.get("default")
    return value if isinstance(value, str) else None


def _package() -> Any:
    try:
        import tokenizers  # pyright: ignore[reportMissingImports]
    except ImportError:
        remedy = f"install tokenizers: {install_command('llm')}"
        raise ArgumentError("tokenizers of models need the package tokenizers", remedy=remedy) from None
    return tokenizers
