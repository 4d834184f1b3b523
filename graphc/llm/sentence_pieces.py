"""SentencePiece vocabularies of GGUF files: pieces with scores, merged by highest score, and bytes for the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from graphc.base.errors import ArtifactError

__all__ = ["SentencePieces"]

_NORMAL, _UNKNOWN, CONTROL, USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
"""Types of pieces in GGUF files."""
_SPECIAL = (CONTROL, USER_DEFINED)
"""Types of pieces that are found before the text is split."""
_SPACE = "\u2581"
"""Character of pieces for a space."""
CONVERT_AGAIN = "download or convert the file again"
"""Remedy for damaged vocabularies."""


class Encoding(NamedTuple):
    """Tokens of a text."""

    ids: list[int]


class SentencePieces:
    """Byte-pair encoding of SentencePiece (Kudo and Richardson 2018), with the methods of ``tokenizers.Tokenizer`` that
    ``Tokenizer`` calls.

    Control and user-defined pieces in a text are recognized first, the longest one at each character. The text between
    them begins as single characters; the two neighbours whose text together is the piece with the highest score become
    one, the first two of equal ones, until no two are a piece. A character without a piece becomes its UTF-8 bytes, or
    the unknown piece in a vocabulary without pieces for bytes.

    Args:
        pieces: text of each token; all differ.
        scores: f32[tokens], higher for pieces that are merged first.
        types: integers [tokens]: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 a byte such as ``<0x0A>``.
        space: put a space before each text, at its beginning and after a control or user-defined piece.
        source: name of the file, for errors.

    Raises ArtifactError for scores that are missing or not finite, for pieces of bytes without a byte, and for a
    vocabulary with neither all bytes nor an unknown piece.
    """

    def __init__(self, pieces: Sequence[str], scores: np.ndarray, types: np.ndarray, space: bool, source: str):
        kinds = types.tolist()
        if len(scores) != len(pieces) or not np.isfinite(scores).all():
            raise ArtifactError(
                f"{source}: there is not a score, a number, for each of the {len(pieces)} tokens", remedy=CONVERT_AGAIN
            )
        self._pieces, self._scores, self._types, self._space = pieces, scores.tolist(), kinds, space
        self._ids = {piece: i for i, piece in enumerate(pieces) if kinds[i] in (_NORMAL, USER_DEFINED, _UNUSED)}
        self._bytes = self._byte_pieces(source)
        self._unknown = kinds.index(_UNKNOWN) if _UNKNOWN in kinds else None
        if len(self._bytes) < 256 and self._unknown is None:
            raise ArtifactError(
                f"{source}: the vocabulary has {len(self._bytes)} of 256 bytes, and no unknown token",
                remedy=CONVERT_AGAIN,
            )
        self._special = {piece: i for i, piece in enumerate(pieces) if kinds[i] in _SPECIAL and piece}
        longest_first = sorted(self._special, key=len, reverse=True)
        self._split = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None

    def _byte_pieces(self, source: str) -> dict[int, int]:
        """Return the tokens of bytes."""
        tokens = {}
        for i in (i for i, kind in enumerate(self._types) if kind == _BYTE):
            match = re.fullmatch("<0x([0-9A-Fa-f]{2})>", self._pieces[i])
            if match is None:
                raise ArtifactError(
                    f"{source}: token {i} is {self._pieces[i]!r}, not a byte such as <0x0A>",
                    remedy=CONVERT_AGAIN,
                )
            tokens[int(match[1], 16)] = i
        return tokens

    def encode(self, text: str, add_special_tokens: bool = False) -> Encoding:
        """Return the tokens of a text; it may hold control pieces, none is added."""
        ids: list[int] = []
        # The pieces between brackets of the expression stand at odd indices.
        for i, part in enumerate([text] if self._split is None else self._split.split(text)):
            if i % 2:
                ids.append(self._special[part])
            elif part:
                ids += self._merge((" " * self._space + part).replace(" ", _SPACE))
        return Encoding(ids)

    def _merge(self, text: str) -> list[int]:
        symbols, after, before = list(text), [*range(1, len(text)), -1], [*range(-1, len(text) - 1)]
        candidates: list[tuple[float, int, str]] = []

        def propose(left: int, right: int) -> None:
            if left >= 0 and right >= 0:
                piece = symbols[left] + symbols[right]
                if piece in self._ids:
                    heappush(candidates, (-self._scores[self._ids[piece]], left, piece))

        for i in range(len(text) - 1):
            propose(i, i + 1)
        while candidates:
            _, left, piece = heappop(candidates)
            right = after[left]
            # Merges leave candidates behind whose symbols are gone or longer now.
            if symbols[left] and right >= 0 and symbols[left] + symbols[right] == piece:
                symbols[left], symbols[right], after[left] = piece, "", after[right]
                if after[left] >= 0:
                    before[after[left]] = left
                propose(left, after[left])
                propose(before[left], left)
        return [token for symbol in symbols if symbol for token in self._tokens(symbol)]

    def _tokens(self, symbol: str) -> list[int]:
        token = self._ids.get(symbol)
        if token is not None:
            return [token]
        values = [self._bytes.get(byte) for byte in symbol.encode("utf-8")]
        known = [token for token in values if token is not None]
        if len(known) == len(values) or self._unknown is None:
            return known
        return [self._unknown]

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of tokens. Control pieces are left out by default; bytes that are not UTF-8 become U+FFFD."""
        data, first = bytearray(), self._space
        for token in tokens:
            kind, piece = (self._types[token], self._pieces[token]) if token < len(self._types) else (CONTROL, "")
            if kind == _BYTE:
                data.append(int(piece[3:5], 16))
            elif kind in (_NORMAL, _UNUSED):
                text = piece.replace(_SPACE, " ")
                data += (text[1:] if first and text.startswith(" ") else text).encode("utf-8")
            elif kind == USER_DEFINED or not skip_special_tokens:
                data += piece.encode("utf-8")
            first = self._space and kind in _SPECIAL
        return data.decode("utf-8", "replace")
