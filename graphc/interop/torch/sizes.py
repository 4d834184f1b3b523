"""Conversion of PyTorch's symbolic sizes to graphc's: named dimensions and expressions of them."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping
from typing import Any

import torch

from graphc.base.errors import UnsupportedError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import LARGEST, larger, smaller

_KINDS = frozenset({"Add", "Mul", "FloorDiv", "CleanDiv", "Mod", "PythonMod", "Pow", "Max", "Min"})
"""Expressions that graphc's sizes have, too."""


class GraphSizes:
    """Dimensions of one graph, from PyTorch's symbols with their ranges and hints."""

    def __init__(self, values: Mapping[str, int] | None = None, names: Mapping[str, str] | None = None) -> None:
        """Take the names of dimensions, and values for some of them.

        ``values`` fixes the dimensions of these names to numbers. ``names`` maps symbols to names of dimensions. Other
        dimensions are named after their symbol.
        """
        self._values = values or {}
        self._names = names or {}
        self._dims: dict[str, Any] = {}

    def of(self, size: Any) -> Any:
        """Return the int, or the size of a SymInt.

        Polynomials, quotients, minima and maxima of symbols are expressions. Others, such as roundings, become
        dimensions of their own, which must occur alone among the arguments' sizes. Raises UnsupportedError for
        expressions of fractions.
        """
        if not isinstance(size, torch.SymInt):
            return int(size)
        fixed = size.node.maybe_as_int()
        return self._of(size.node.expr, size.node) if fixed is None else fixed

    def shape(self, sizes: Any) -> tuple[Any, ...]:
        """Return the sizes of a shape."""
        return tuple([self.of(s) for s in sizes])

    def _of(self, expression: Any, node: Any) -> Any:
        kind = type(expression).__name__
        if expression.is_Integer:
            return int(expression)
        if expression.is_Symbol:
            return self._dimension(expression, node)
        if kind not in _KINDS:
            return self._rounded(expression, node)
        operands = [self._of(operand, node) for operand in expression.args]
        if kind == "Add":
            return sum(operands[1:], start=operands[0])
        if kind == "Mul":
            return math.prod(operands[1:], start=operands[0])
        if kind in ("Max", "Min"):
            return functools.reduce(larger if kind == "Max" else smaller, operands)
        if kind in ("FloorDiv", "CleanDiv"):
            return operands[0] // operands[1]
        if kind in ("Mod", "PythonMod"):
            return operands[0] % operands[1]
        return operands[0] ** operands[1]

    def _dimension(self, symbol: Any, node: Any) -> Any:
        env = node.shape_env
        hint = _hints(env).get(symbol)
        return self._named(self._names.get(str(symbol), f"size_{symbol}"), env.var_to_range[symbol], hint)

    def _rounded(self, expression: Any, node: Any) -> Any:
        if not is_of_sizes(expression) or not expression.is_integer:
            raise UnsupportedError(f"graphc cannot express the size {expression}")
        hints = _hints(node.shape_env)
        expected = expression.xreplace({s: hints[s] for s in expression.free_symbols if s in hints})
        number = hashlib.sha256(str(expression).encode()).hexdigest()[:8]
        hint = expected if expected.is_Integer else None
        return self._named(f"{type(expression).__name__}_{number}", node.shape_env.bound_sympy(expression), hint)

    def _named(self, name: str, limits: Any, hint: Any) -> Any:
        if name in self._values:
            return self._values[name]
        if name not in self._dims:
            low, high = (_clamped(limits.lower, 0), _clamped(limits.upper, LARGEST))
            expected = None if hint is None else min(max(int(hint), low), high)
            self._dims[name] = Dim(name, low, high, hint=expected)
        return self._dims[name]


def is_of_sizes(expression: Any) -> bool:
    """Check whether an expression of PyTorch depends on integers only, as sizes are."""
    return all(symbol.is_integer for symbol in expression.free_symbols)


def _hints(env: Any) -> Mapping[Any, Any]:
    """Return the expected values of symbols."""
    return env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val


def _clamped(limit: Any, otherwise: int) -> int:
    try:
        return min(max(int(limit), 0), LARGEST)
    except (OverflowError, ValueError, TypeError, AttributeError):
        return otherwise
