"""Sizes of PyTorch's symbolic shapes as sizes of graphc: named dimensions and what is computed of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import torch

from graphc.base.errors import UnsupportedError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import LARGEST

_KINDS = frozenset({"Add", "Mul", "FloorDiv", "CleanDiv", "Mod", "PythonMod", "Pow"})
"""Expressions that sizes of graphc have, too."""


class Sizes:
    """The dimensions of one graph, made of PyTorch's symbols with their ranges and hints."""

    def __init__(self, values: Mapping[str, int] | None = None, names: Mapping[str, str] | None = None) -> None:
        """``values`` are the numbers in the places of the dimensions of these names. ``names`` are what dimensions are
        called, by the symbols; others are called after the symbol."""
        self._values = values or {}
        self._names = names or {}
        self._known: dict[str, Any] = {}

    def of(self, size: Any) -> Any:
        """An int, or the size that a SymInt is. What is no polynomial or quotient of symbols, as their roundings and
        least and largest ones, is a dimension of its own: it follows where it stands by itself among the arguments.
        Raises UnsupportedError for what depends on numbers that are not whole."""
        if not isinstance(size, torch.SymInt):
            return int(size)
        known = size.node.maybe_as_int()
        return self._of(size.node.expr, size.node) if known is None else known

    def shape(self, sizes: Any) -> tuple[Any, ...]:
        """The sizes of a shape."""
        return tuple([self.of(s) for s in sizes])

    def _of(self, expression: Any, node: Any) -> Any:
        kind = type(expression).__name__
        if expression.is_Integer:
            return int(expression)
        if expression.is_Symbol:
            return self._dimension(expression, node)
        if kind not in _KINDS:
            return self._rounded(expression, node)
        parts = [self._of(part, node) for part in expression.args]
        if kind == "Add":
            return sum(parts[1:], start=parts[0])
        if kind == "Mul":
            return math.prod(parts[1:], start=parts[0])
        if kind in ("FloorDiv", "CleanDiv"):
            return parts[0] // parts[1]
        if kind in ("Mod", "PythonMod"):
            return parts[0] % parts[1]
        return parts[0] ** parts[1]

    def _dimension(self, symbol: Any, node: Any) -> Any:
        env = node.shape_env
        hint = _hints(env).get(symbol)
        return self._named(self._names.get(str(symbol), f"size_{symbol}"), env.var_to_range[symbol], hint)

    def _rounded(self, expression: Any, node: Any) -> Any:
        if not is_of_sizes(expression) or not expression.is_integer:
            raise UnsupportedError(f"a size {expression}")
        known = _hints(node.shape_env)
        expected = expression.xreplace({s: known[s] for s in expression.free_symbols if s in known})
        number = hashlib.sha256(str(expression).encode()).hexdigest()[:8]
        hint = expected if expected.is_Integer else None
        return self._named(f"{type(expression).__name__}_{number}", node.shape_env.bound_sympy(expression), hint)

    def _named(self, name: str, limits: Any, hint: Any) -> Any:
        if name in self._values:
            return self._values[name]
        if name not in self._known:
            low, high = (_whole(limits.lower, 0), _whole(limits.upper, LARGEST))
            expected = None if hint is None else min(max(int(hint), low), high)
            self._known[name] = Dim(name, low, high, hint=expected)
        return self._known[name]


def is_of_sizes(expression: Any) -> bool:
    """Whether an expression of PyTorch depends on whole numbers alone, which sizes are."""
    return all(symbol.is_integer for symbol in expression.free_symbols)


def _hints(env: Any) -> Mapping[Any, Any]:
    """What symbols are expected to be."""
    return env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val


def _whole(limit: Any, otherwise: int) -> int:
    try:
        return min(max(int(limit), 0), LARGEST)
    except (OverflowError, ValueError, TypeError, AttributeError):
        return otherwise
