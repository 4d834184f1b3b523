"""Guards of an export: conditions on sizes of arguments in PyTorch's notation, checked in each call."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import GraphcError, ShapeError, UnsupportedError

MOST_CHARACTERS = 10_000
_SHOWN = 200
_LARGEST = 1 << 256
"""Bound of the results of arithmetic on sizes."""
_ROOT = "L"
"""PyTorch's name for the dictionary of arguments."""
Read = Callable[[Mapping[str, Any]], Any]
"""Function that returns the value of an expression for arguments by name."""


class Guards:
    """Conditions such as ``(L['x'].size()[0] % 2) == 0``. They are parsed, never executed as Python code."""

    def __init__(self, texts: Sequence[str], names: Sequence[str]):
        """Parse the conditions. ``names`` are the names of the arguments, ``args_0`` the first of variadic ones.

        Raises UnsupportedError for a condition of another form, and for one on an unknown argument.
        """
        self.texts = tuple(texts)
        self.names = tuple(names)
        self._conditions = [(text, _ConditionCompiler(names).condition(text)) for text in self.texts]

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise ShapeError where a condition does not hold for these arguments by name.

        In a trace, conditions on sizes of named dimensions are assumed.
        """
        for text, read in self._conditions:
            try:
                holds = bool(read(values))
            except GraphcError:
                raise
            except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
                holds = False
            if not holds:
                raise ShapeError(
                    f"the export is valid for arguments with {text[:_SHOWN]}, which does not hold in this call",
                    remedy="export with example arguments of these sizes",
                )

    def __reduce__(self) -> Any:
        return Guards, (self.texts, self.names)


class _ConditionCompiler:
    """Compiler of conditions to functions. Raises ValueError for other syntax."""

    def __init__(self, names: Sequence[str]):
        self._names = frozenset(names)

    def condition(self, text: str) -> Read:
        """Compile the text of a condition."""
        try:
            if len(text) > MOST_CHARACTERS:
                raise ValueError
            return self._read(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
            raise UnsupportedError(
                f"the export relies on {text[:_SHOWN]!r}, which is not a condition on sizes of arguments"
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
        function, operand = _UNARY[_known(tree.op, _UNARY)], self._read(tree.operand)
        return lambda values: function(operand(values))

    def _binary(self, tree: Any) -> Read:
        function, left, right = _BINARY[_known(tree.op, _BINARY)], self._read(tree.left), self._read(tree.right)

        def applied(values: Mapping[str, Any]) -> Any:
            result = function(left(values), right(values))
            if type(result) is int and abs(result) >= _LARGEST:
                raise OverflowError
            return result

        return applied

    def _comparison(self, tree: Any) -> Read:
        functions = [_COMPARISONS[_known(op, _COMPARISONS)] for op in tree.ops]
        operands = [self._read(operand) for operand in (tree.left, *tree.comparators)]

        def compared(values: Mapping[str, Any]) -> bool:
            numbers = [operand(values) for operand in operands]
            return all(f(a, b) for f, a, b in zip(functions, numbers, numbers[1:], strict=False))

        return compared

    def _joined(self, tree: Any) -> Read:
        operands, join = [self._read(operand) for operand in tree.values], all if isinstance(tree.op, ast.And) else any
        return lambda values: join(operand(values) for operand in operands)

    def _subscript(self, tree: Any) -> Read:
        """Compile a subscript: an element of an argument, or one size of its shape."""
        key = ast.literal_eval(tree.slice)
        if type(key) not in (str, int):
            raise ValueError
        if isinstance(tree.value, ast.Name) and tree.value.id == _ROOT:
            return self._argument(key)
        spread = self._spread(tree.value, key)
        if spread is not None:
            return spread
        container = self._read(tree.value)
        return lambda values: container(values)[key]

    def _argument(self, name: Any) -> Read:
        if name not in self._names:
            raise ValueError
        return lambda values: values[name]

    def _spread(self, tree: Any, key: Any) -> Read | None:
        """Compile one of variadic arguments, ``L['args'][0]`` or ``L['kwargs']['x']``. None for other expressions."""
        is_root = isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name) and tree.value.id == _ROOT
        name = ast.literal_eval(tree.slice) if is_root else None
        if name is None or name in self._names:
            return None
        return self._argument(key if isinstance(key, str) else f"{name}_{key}")

    def _size(self, tree: Any) -> Read:
        """Compile ``x.size()``, the shape of an argument."""
        function = tree.func
        if not isinstance(function, ast.Attribute) or function.attr != "size" or tree.args or tree.keywords:
            raise ValueError
        tensor = self._read(function.value)
        return lambda values: tensor(values).shape

    _KINDS: Mapping[type, Callable[[Any, Any], Read]] = {
        ast.Constant: _constant,
        ast.UnaryOp: _unary,
        ast.BinOp: _binary,
        ast.Compare: _comparison,
        ast.BoolOp: _joined,
        ast.Subscript: _subscript,
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
