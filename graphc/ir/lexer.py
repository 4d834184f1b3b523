"""Tokens of the texts, and the cursor with which both parsers read them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

import numpy as np

from graphc.base.dtypes import BY_NAME, DType
from graphc.base.errors import ArgumentError, ParseError
from graphc.base.records import dataclass
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import larger
from graphc.ir.literal import digest, parse_number
from graphc.ir.types import TensorType

T = TypeVar("T")
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_PATTERN = r"""
    (?P<blank>[ \t\r]+) | (?P<newline>\n) | (?P<comment>{comment}[^\n]*)
  | (?P<string>{string})
  | (?P<value>%(?:[A-Za-z0-9_.]+|{string})) | (?P<symbol>@(?:[A-Za-z0-9_.]+|{string}))
  | (?P<quoted>`[^`\n]*`)
  | (?P<digest>sha256:[0-9a-f]{{16}}) | (?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan:[0-9a-f]+)
  | (?P<word>[A-Za-z_]\w*(?:\.\w+)*)
  | (?P<mark>->|<=|\.\.|//|[-+*%(){{}}\[\]<>=,:])
"""


@dataclass(frozen=True, slots=True)
class Token:
    """A token; ``line`` and ``column`` count from 1."""

    kind: str
    text: str
    line: int
    column: int


class Cursor:
    """Reader of tokens, one after the other. It rejects input by a ParseError with line, column and the expected
    token."""

    def __init__(self, text: str, comment: str = "//", data: Mapping[str, np.ndarray] | None = None):
        self._lines = text.split("\n")
        self._data = data or {}
        self.dims: dict[str, Any] = {}
        """Named dimensions declared at the head of the text, by their names as the text quotes them."""
        self._comments: dict[int, str] = {}
        self._tokens = self._split(text, comment)
        self._next = 0
        self.token = self._tokens[0]
        """The next token, comments excluded."""

    def _split(self, text: str, comment: str) -> list[Token]:
        pattern = re.compile(_PATTERN.format(comment=re.escape(comment), string=_STRING), re.VERBOSE)
        tokens: list[Token] = []
        open_marks: list[str] = []
        line, start, position = 1, 0, 0
        while position < len(text):
            match = pattern.match(text, position)
            if match is not None and match.lastgroup == "comment" and _divides(match.group(), tokens, open_marks, line):
                match = _DIVISION.match(text, position)
            if match is None:
                self.refuse(f"unexpected character {text[position]!r}", Token("", "", line, position - start + 1))
            kind = match.lastgroup or ""
            if kind == "newline":
                line, start = line + 1, match.end()
            elif kind == "comment":
                if tokens and tokens[-1].line == line:
                    self._comments[len(tokens)] = match.group().removeprefix(comment).strip()
            elif kind != "blank":
                tokens.append(Token(kind, match.group(), line, match.start() - start + 1))
                if kind == "mark":
                    _follow(open_marks, match.group())
            position = match.end()
        tokens.append(Token("end", "", line, position - start + 1))
        return tokens

    # ---- moving through the tokens

    def take(self) -> Token:
        """Pass the next token and return it."""
        token = self.token
        self._next = min(self._next + 1, len(self._tokens) - 1)
        self.token = self._tokens[self._next]
        return token

    def peek(self) -> Token:
        """Return the token after the next one."""
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def trailing_comment(self) -> str:
        """Return the comment after the last passed token on its line, without its mark, or an empty string."""
        return self._comments.get(self._next, "")

    def at(self, *texts: str) -> bool:
        """Check whether the next token is one of these words or marks."""
        return self.token.kind in ("word", "mark") and self.token.text in texts

    def accept(self, text: str) -> bool:
        """Pass a word or mark if it is the next token; return whether it was."""
        accepted = self.at(text)
        if accepted:
            self.take()
        return accepted

    def expect(self, *texts: str) -> Token:
        """Pass one of these words or marks, or raise ParseError."""
        if not self.at(*texts):
            self.refuse_next(" or ".join(f"'{t}'" for t in texts))
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Pass a token of a kind; ``what`` names it in the error."""
        if self.token.kind != kind:
            self.refuse_next(what)
        return self.take()

    def expect_end(self) -> None:
        """Raise ParseError unless the text ends here."""
        if self.token.kind != "end":
            self.refuse_next("the end of the text")

    def refuse_next(self, expected: str) -> NoReturn:
        """Raise ParseError: ``expected`` should be in place of the next token."""
        token = self.token
        actual = "the text ends" if token.kind == "end" else f"found {token.text}"
        self.refuse(f"expected {expected}, {actual}", token)

    def refuse(self, message: str, token: Token, remedy: str | None = None) -> NoReturn:
        """Raise ParseError at a token."""
        source = self._lines[token.line - 1].strip() if token.line <= len(self._lines) else ""
        where = source or "end of the text"
        raise ParseError(f"line {token.line}, column {token.column}: {message}", where=where, remedy=remedy)

    # ---- phrases of both texts

    def list_of(self, item: Callable[[], T], opening: str, closing: str) -> list[T]:
        """Read ``opening item, item, ... closing``, which may be empty."""
        self.expect(opening)
        items: list[T] = []
        while not self.at(closing):
            if items:
                self.expect(",")
            items.append(item())
        self.expect(closing)
        return items

    def name(self, kind: str, what: str) -> str:
        """Read the name after ``%`` (kind ``value``) or ``@`` (kind ``symbol``)."""
        text = self.expect_kind(kind, what).text[1:]
        return json.loads(text) if text.startswith('"') else text

    def string(self) -> str:
        """Read a quoted string."""
        token = self.expect_kind("string", "a string")
        try:
            return json.loads(token.text)
        except json.JSONDecodeError:
            self.refuse(f"{token.text} has a wrong escape", token)

    def lookup(self, table: Mapping[str, T], what: str) -> T:
        """Return the entry that the next word names; reject unknown words with the nearest known ones."""
        token = self.expect_kind("word", what)
        if token.text not in table:
            near = get_close_matches(token.text, table, cutoff=0.7)
            self.refuse(f"expected {what}, found {token.text}", token, f"write {' or '.join(near)}" if near else None)
        return table[token.text]

    def dtype(self) -> DType:
        """Read an element type."""
        return self.lookup(_DTYPES, "an element type")

    def integer(self) -> int:
        """Read an integer with an optional sign."""
        negative = self.accept("-")
        token = self.expect_kind("number", "an integer")
        if not token.text.isdigit():
            self.refuse(f"expected an integer, found {token.text}", token)
        return -int(token.text) if negative else int(token.text)

    def declare_dims(self) -> None:
        """Read any number of ``dim time = 1..512 hint 128 common [1,32]``; hint and common are optional."""
        while self.accept("dim"):
            token = self.expect_kind("quoted" if self.token.kind == "quoted" else "word", "the name of a dimension")
            self.expect("=")
            low = self.integer()
            self.expect("..")
            high = self.integer()
            hint = self.integer() if self.accept("hint") else None
            common = self.list_of(self.integer, "[", "]") if self.accept("common") else ()
            if token.text in self.dims:
                self.refuse(f"dimension {token.text} is declared twice", token)
            try:
                self.dims[token.text] = Dim(token.text.strip("`"), low, high, hint, common)
            except ArgumentError as error:
                self.refuse(error.what, token, error.remedy)

    def size(self) -> int:
        """Read an integer, or a size of declared dimensions: ``+ - * //``, ``max`` and parentheses, as sizes print."""
        total = self._product(-1 if self.accept("-") else 1)
        while self.at("+", "-"):
            sign = -1 if self.take().text == "-" else 1
            total = total + sign * self._product()
        return total

    def _product(self, sign: int = 1) -> int:
        product = sign * self.factor()
        while self.at("*", "//"):
            token = self.take()
            other = self.factor()
            try:
                product = product * other if token.text == "*" else product // other
            except (ArgumentError, ZeroDivisionError):
                self.refuse(f"a size is divided by {other}", token)
        return product

    def factor(self) -> int:
        """Read a factor of a size: an integer, a dimension, ``max(...)`` or a size in parentheses."""
        if self.accept("("):
            size = self.size()
            self.expect(")")
            return size
        if self.at("max") and self.peek().text == "(":
            self.take()
            return functools.reduce(larger, self.list_of(self.size, "(", ")"))
        token = self.token
        if not self.dims or token.kind not in ("word", "quoted"):
            return self.integer()
        if token.text not in self.dims:
            declared = ", ".join(self.dims)
            self.refuse(f"{token.text} is not declared as a dimension", token, f"use one of {declared}")
        return self.dims[self.take().text]

    def shape(self) -> tuple[int, ...]:
        """Read a shape: ``[2,3]``, ``[batch,2*time]``."""
        return tuple(self.list_of(self._extent, "[", "]"))

    def _extent(self) -> int:
        token = self.token
        size = self.size()
        if type(size) is int and size < 0:
            self.refuse("expected a dimension, found -", token)
        return size

    def tensor_type(self) -> TensorType:
        """Read a type: ``f32[2,3]``."""
        dtype = self.dtype()
        return TensorType(dtype, self.shape())

    def number_text(self) -> tuple[str, Token]:
        """Read a number, ``inf``, ``nan``, ``true`` or ``false``; return its text with sign, and its first token."""
        first = self.token
        sign = "-" if self.accept("-") else ""
        if self.token.kind != "number" and not self.at("inf", "nan", "true", "false"):
            self.refuse_next("a number")
        return sign + self.take().text, first

    def number(self, dtype: DType) -> np.generic:
        """Read a number of an element type as a numpy scalar; a complex one is its real and imaginary part."""
        text, token = self.number_text()
        if dtype.is_complex:
            text = f"{text} {self.number_text()[0]}"
        try:
            return parse_number(text, dtype)
        except ValueError as error:
            self.refuse(str(error), token)

    def scalar(self) -> tuple[np.generic, DType]:
        """Read a typed scalar: ``f32(0.5)``."""
        dtype = self.dtype()
        self.expect("(")
        value = self.number(dtype)
        self.expect(")")
        return value, dtype

    def array(self) -> np.ndarray:
        """Read ``f32[2](0.5, 1.0)``, or ``f32[64](sha256:...)`` with the data passed along with the text."""
        first = self.token
        dtype = self.dtype()
        shape = self.shape() if self.at("[") else ()
        if self.peek().kind == "digest":
            self.expect("(")
            array = self._stored(TensorType(dtype, shape))
            self.expect(")")
            return array
        flat = self.list_of(lambda: self.number(dtype), "(", ")")
        if len(flat) != TensorType(dtype, shape).size:
            self.refuse(
                f"{dtype.name}{list(shape)} has {TensorType(dtype, shape).size} elements, not {len(flat)}", first
            )
        return np.array(flat, dtype=dtype.numpy).reshape(shape)

    def _stored(self, type: TensorType) -> np.ndarray:
        token = self.take()
        array: Any = self._data.get(token.text)
        if array is None:
            self.refuse(
                f"no data was passed for {token.text}", token, "pass data=collect_data(...) of the printed object"
            )
        if array.shape != type.shape or array.dtype != type.dtype.numpy or digest(array) != token.text:
            self.refuse(f"the data passed for {token.text} differ from the printed ones", token)
        return array


_DIVISION = re.compile(r"(?P<mark>//)")
_CLOSING = {")": "(", "]": "[", "}": "{"}


def _follow(open_marks: list[str], mark: str) -> None:
    """Update the stack of open marks after ``mark``."""
    if mark in _CLOSING.values():
        open_marks.append(mark)
    elif open_marks and _CLOSING.get(mark) == open_marks[-1]:
        open_marks.pop()


def _divides(comment: str, tokens: list[Token], open_marks: list[str], line: int) -> bool:
    """Check whether a comment mark is a division: after a factor on its line, and inside of ``(`` or ``[``."""
    if not (comment.startswith("//") and tokens and open_marks and open_marks[-1] in "(["):
        return False
    last = tokens[-1]
    return last.line == line and (last.kind in ("word", "quoted", "number") or last.text == ")")


_DTYPES = {d.name: d for d in BY_NAME.values()}
