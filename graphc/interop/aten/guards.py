"""What an export relied on: conditions on sizes of arguments, as PyTorch writes them, which each call is held to."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import GraphcError, ShapeError, UnsupportedError

MOST_CHARACTERS = 10_000
_SHOWN = 200
_LARGEST = 1 << 256
"""No size that is computed of sizes is as large."""
_ROOT = "L"
"""What PyTorch calls the arguments, by name."""
Read = Callable[[Mapping[str, Any]], Any]
"""Gives the value of a part of a condition for arguments by name."""


class Guards:
    """Conditions such as ``(L['x'].size()[0] % 2) == 0``. They are parsed, and nothing else than these is computed."""

    def __init__(self, texts: Sequence[str], names: Sequence[str]):
        """``names`` are those of the arguments, ``args_0`` the first of any number of them. Raises UnsupportedError for
        a condition of another form, and one on an argument that there is not."""
        self.texts = tuple(texts)
        self.names = tuple(names)
        self._conditions = [(text, _Reader(names).condition(text)) for text in self.texts]

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises ShapeError where a condition does not hold for these arguments by name. In a trace, what it asks of
        sizes of named dimensions is assumed."""
        for text, read in self._conditions:
            try:
                holds = bool(read(values))
            except GraphcError:
                raise
            except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
                holds = False
            if not holds:
                raise ShapeError(
                    f"the export holds for arguments with {text[:_SHOWN]}, which is not so in this call",
                    remedy="an export with an example of that kind",
                )

    def __reduce__(self) -> Any:
        return Guards, (self.texts, self.names)


class _Reader:
    """Makes functions of conditions; ValueError where they have parts that these lack."""

    def __init__(self, names: Sequence[str]):
        self._names = frozenset(names)

    def condition(self, text: str) -> Read:
        """The function of a text."""
        try:
            if len(text) > MOST_CHARACTERS:
                raise ValueError
            return self._read(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
            raise UnsupportedError(
                f"the export relies on {text[:_SHOWN]!r}, which is no condition on sizes of arguments"
            ) from None

    def _read(self, tree: ast.expr) -> Read:
        for kind, read in self._KINDS.items():
            if isinstance(tree, kind):
                return read(self, tree)
        raise ValueError

    def _constant(self, tree: Any) -> Read:
        value = tree.value
        if type(value) not in (int, bool, float) or abs(value) >= 1 << 63:
            raise ValueError
        return lambda values: value

    def _unary(self, tree: Any) -> Read:
        function, part = _UNARY[_known(tree.op, _UNARY)], self._read(tree.operand)
        return lambda values: function(part(values))

    def _binary(self, tree: Any) -> Read:
        function, left, right = _BINARY[_known(tree.op, _BINARY)], self._read(tree.left), self._read(tree.right)

        def applied(values: Mapping[str, Any]) -> Any:
            found = function(left(values), right(values))
            if type(found) is int and abs(found) >= _LARGEST:
                raise OverflowError
            return found

        return applied

    def _comparison(self, tree: Any) -> Read:
        functions = [_COMPARISONS[_known(op, _COMPARISONS)] for op in tree.ops]
        parts = [self._read(part) for part in (tree.left, *tree.comparators)]

        def compared(values: Mapping[str, Any]) -> bool:
            found = [part(values) for part in parts]
            return all(f(a, b) for f, a, b in zip(functions, found, found[1:], strict=False))

        return compared

    def _joined(self, tree: Any) -> Read:
        parts, join = [self._read(part) for part in tree.values], all if isinstance(tree.op, ast.And) else any
        return lambda values: join(part(values) for part in parts)

    def _part(self, tree: Any) -> Read:
        """A part of an argument, or one size of its shape."""
        key = ast.literal_eval(tree.slice)
        if type(key) not in (str, int):
            raise ValueError
        if isinstance(tree.value, ast.Name) and tree.value.id == _ROOT:
            return self._argument(key)
        spread = self._spread(tree.value, key)
        if spread is not None:
            return spread
        whole = self._read(tree.value)
        return lambda values: whole(values)[key]

    def _argument(self, name: Any) -> Read:
        if name not in self._names:
            raise ValueError
        return lambda values: values[name]

    def _spread(self, tree: Any, key: Any) -> Read | None:
        """One of any number of arguments, ``L['args'][0]`` or ``L['kwargs']['x']``; None for others."""
        is_root = isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name) and tree.value.id == _ROOT
        name = ast.literal_eval(tree.slice) if is_root else None
        if name is None or name in self._names:
            return None
        return self._argument(key if isinstance(key, str) else f"{name}_{key}")

    def _size(self, tree: Any) -> Read:
        """``x.size()``, the shape of an argument."""
        function = tree.func
        if not isinstance(function, ast.Attribute) or function.attr != "size" or tree.args or tree.keywords:
            raise ValueError
        whole = self._read(function.value)
        return lambda values: whole(values).shape

    _KINDS: Mapping[type, Callable[[Any, Any], Read]] = {
        ast.Constant: _constant,
        ast.UnaryOp: _unary,
        ast.BinOp: _binary,
        ast.Compare: _comparison,
        ast.BoolOp: _joined,
        ast.Subscript: _part,
        ast.Call: _size,
    }


_UNARY = {ast.USub: operator.neg, ast.Not: operator.not_}
_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}
_COMPARISONS = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _known(kind: Any, table: Mapping[type, Any]) -> type:
    if type(kind) not in table:
        raise ValueError
    return type(kind)
