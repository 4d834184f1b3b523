"""Tokens of MLIR text, without comments and source locations."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from graphc.base.errors import ParseError
from graphc.base.records import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n]+|//[^\n]*)+)
  | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
  | (?P<tensor>tensor<(?:[^<>"]|<[^<>"]*>)*>)
  | (?P<value>%[\w$.]+(?:\#\d+)?)
  | (?P<block>\^[\w$.]+)
  | (?P<symbol>@(?:[\w$.-]+|"[^"\\]*(?:\\.[^"\\]*)*"))
  | (?P<alias>[#!][A-Za-z_][\w$.]*)
  | (?P<number>-?0x[0-9A-Fa-f]+|-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)
  | (?P<word>[A-Za-z_][\w$.]*)
  | (?P<mark>->|[()\[\]{}<>,:=?*+\-|/])
    """,
    re.VERBOSE,
)
_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_SHOWN = 40


class MlirToken(NamedTuple):
    """Piece of the text: ``kind`` is a group of the pattern, or ``end``."""

    kind: str
    text: str
    line: int


def tokens_of(text: str) -> list[MlirToken]:
    """Split a text into tokens. Drops ``loc(...)`` and the aliases of locations, which have no effect on results.

    Raises ParseError for a character that no token begins with.
    """
    tokens: list[MlirToken] = []
    offset, line = 0, 1
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise ParseError(f"line {line}: {text[offset : offset + 10]!r} is not a token of MLIR text")
        piece = match.group()
        if match.lastgroup != "space":
            tokens.append(MlirToken(str(match.lastgroup), piece, line))
        line += piece.count("\n")
        offset = match.end()
    return _without_locations(tokens, line)


def _without_locations(tokens: list[MlirToken], last_line: int) -> list[MlirToken]:
    result: list[MlirToken] = []
    i = 0
    while i < len(tokens):
        if tokens[i].text == "loc" and i + 1 < len(tokens) and tokens[i + 1].text == "(":
            i = _end_of_group(tokens, i + 1)
            if len(result) > 1 and result[-1].text == "=" and result[-2].kind == "alias":
                del result[-2:]
        else:
            result.append(tokens[i])
            i += 1
    return [*result, MlirToken("end", "", last_line)]


def _end_of_group(tokens: list[MlirToken], i: int) -> int:
    """Return the index after the bracket that closes the one at ``i``."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].text == "(") - (tokens[j].text == ")")
        if not depth:
            return j + 1
    raise ParseError(f"line {tokens[i].line}: the location has no closing bracket")


class Cursor:
    """Position in a list of tokens."""

    def __init__(self, text: str):
        self._tokens = tokens_of(text)
        self._index = 0

    @property
    def line(self) -> int:
        """Return the line of the next token, counted from 1."""
        return self._tokens[self._index].line

    def peek(self, ahead: int = 0) -> MlirToken:
        """Return a token without passing it; the last one where the text ends before it."""
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def next(self) -> MlirToken:
        """Return the next token and pass it."""
        token = self.peek()
        self._index = min(self._index + 1, len(self._tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Check whether the next token is one of these texts."""
        token = self.peek()
        return token.text in texts and token.kind != "string"

    def accept(self, text: str) -> bool:
        """Pass the next token if it is ``text``, and return whether it was."""
        if self.at(text):
            self.next()
            return True
        return False

    def expect(self, text: str) -> MlirToken:
        """Pass the next token. Raises ParseError if it is not ``text``."""
        if not self.at(text):
            self.fail(repr(text))
        return self.next()

    def kind(self, *kinds: str) -> str:
        """Pass the next token and return its text. Raises ParseError if it is of another kind."""
        if self.peek().kind not in kinds:
            self.fail(f"a {kinds[0]}")
        return self.next().text

    def fail(self, expected: str) -> NoReturn:
        """Raise the ParseError that says what is expected here."""
        token = self.peek()
        found = repr(token.text[:_SHOWN]) if token.kind != "end" else "the end of the text"
        raise ParseError(f"line {token.line}: expected {expected}, found {found}")

    def list_of(self, read: Any, opening: str, closing: str) -> list[Any]:
        """Read a list with commas between brackets; ``read`` reads an element."""
        self.expect(opening)
        elements: list[Any] = []
        while not self.accept(closing):
            if elements:
                self.expect(",")
            elements.append(read())
        return elements

    def skip_group(self) -> None:
        """Pass a group in brackets with everything inside."""
        expected = [_OPENING.get(self.peek().text) or self.fail("an opening bracket")]
        self.next()
        while expected:
            token = self.next()
            if token.kind == "end":
                self.fail(repr(expected[-1]))
            if token.kind != "mark":
                continue
            if token.text in _OPENING:
                expected.append(_OPENING[token.text])
            elif token.text == expected[-1]:
                expected.pop()
