"""Steps of random programs as texts: each line is a template of a statement, with operands that are drawn as needed.

In a template ``{a|b}`` is one of several templates, and ``{x}`` the value of an expression. Its names are the builder
``b`` and operands, each drawn once for a statement by the expression that `OPERANDS` or the step gives for it. A number
before a line is its weight; ``!`` begins a statement that writes instead of an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tools.nets.builder import Builder, Unfit

OPERANDS = {
    "x": "b.real(filled=False)",
    "y": "b.like(x)",
    "z": "b.like(x)",
    "positive": "b.like(x, '', 'positive')",
    "axis": "b.axis(x)",
    "axes": "b.axes(x)",
    "shape": "b.shape_of(x)",
    "rank": "b.values[x].dim()",
    "flag": "b.chance(0.5)",
    "keep": "b.pick(('', '', ', keepdim=True'))",
}
"""Expressions of the operands that all steps may use."""
_LINE = re.compile(r"(?:(\d+): )?(! )?(.*)")


class Step:
    """A kind of statements; a call adds one to a program."""

    def __init__(self, text: str, /, **operands: Any):
        """Read the lines of a text. ``operands`` are expressions, or functions and values for all templates."""
        self.expressions = OPERANDS | {name: e for name, e in operands.items() if isinstance(e, str)}
        self.scope = {name: value for name, value in operands.items() if not isinstance(value, str)}
        self.lines: list[tuple[bool, str]] = []
        for line in filter(None, map(str.strip, text.splitlines())):
            match = _LINE.fullmatch(line)
            assert match is not None
            self.lines += [(bool(match[2]), match[3])] * int(match[1] or 1)

    def __call__(self, b: Builder) -> None:
        writes, template = b.pick(self.lines)
        statement = Statement(b, self.expressions, self.scope).expand(template)
        if writes:
            b.do(statement)
        else:
            b.let(statement)


class Statement(dict[str, Any]):
    """The operands of one statement by name, drawn when they are first used."""

    def __init__(self, b: Builder, expressions: dict[str, str], scope: dict[str, Any]):
        super().__init__(b=b, let=lambda text: b.let(self.expand(text)), Unfit=Unfit)
        self.b, self.expressions = b, expressions
        self.scope = scope

    def __missing__(self, name: str) -> Any:
        if name not in self.expressions:
            raise KeyError(name)
        self[name] = self.value(self.expressions[name])
        return self[name]

    def value(self, expression: str) -> Any:
        """Return the value of an expression. Raises Unfit where an operand lacks the dimension that it asks for."""
        try:
            return eval(expression, self.scope, self)
        except IndexError as error:
            raise Unfit(str(error)) from error

    def expand(self, template: str) -> str:
        """Return a template with its choices made and its operands filled in."""
        text, end = "", 0
        for start, stop in _braces(template):
            inner = template[start + 1 : stop]
            options = list(_options(inner))
            filled = self.expand(self.b.pick(options)) if len(options) > 1 else str(self.value(inner))
            text, end = text + template[end:start] + filled, stop + 1
        return (text + template[end:]).replace("\\", "")


def _braces(template: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each outermost pair of braces."""
    depth = start = 0
    for i, c in enumerate(template):
        if c == "{":
            start = start if depth else i
            depth += 1
        elif c == "}":
            depth -= 1
            if not depth:
                yield start, i


def _options(inner: str) -> Iterator[str]:
    """Yield the alternatives of a choice; a backslash before a bar keeps it."""
    depth, option, before = 0, "", ""
    for c in inner:
        depth += (c == "{") - (c == "}")
        if c == "|" and not depth and before != "\\":
            yield option
            option = ""
        else:
            option += c
        before = c
    yield option


def per_dimension(b: Builder, dims: int, low: int, high: int) -> tuple[int, ...]:
    """Return one number for each dimension."""
    return tuple(b.whole(low, high) for _ in range(dims))


Steps = tuple[Callable[[Builder], None], ...]
"""Steps of a family."""
