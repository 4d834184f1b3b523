"""Sizes of PyTorch's symbolic shapes as sizes of graphc: named dimensions and what is computed of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from graphc.base.errors import UnsupportedError
from graphc.base.named_dims import Dim
from graphc.base.size import LARGEST


class Sizes:
    """The dimensions of one graph, made of PyTorch's symbols with their ranges and hints."""

    def __init__(self, values: Mapping[str, int] | None = None, names: Mapping[str, str] | None = None) -> None:
        """``values`` are the numbers in the places of the dimensions of these names. ``names`` are what dimensions are
        called, by the symbols; others are called after the symbol."""
        self._values = values or {}
        self._names = names or {}
        self._known: dict[str, Any] = {}

    def of(self, size: Any) -> Any:
        """An int, or the size that a SymInt is. Raises UnsupportedError for an expression that has no counterpart."""
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
        parts = [self._of(part, node) for part in expression.args]
        if kind == "Add":
            return sum(parts[1:], start=parts[0])
        if kind == "Mul":
            return math.prod(parts[1:], start=parts[0])
        if kind in ("FloorDiv", "CleanDiv"):
            return parts[0] // parts[1]
        if kind in ("Mod", "PythonMod"):
            return parts[0] % parts[1]
        if kind == "Pow":
            return parts[0] ** parts[1]
        raise UnsupportedError(f"a size {expression}")

    def _dimension(self, symbol: Any, node: Any) -> Any:
        name = self._names.get(str(symbol), f"size_{symbol}")
        if name in self._values:
            return self._values[name]
        if name not in self._known:
            env = node.shape_env
            limits = env.var_to_range[symbol]
            low, high = (_whole(limits.lower, 0), _whole(limits.upper, LARGEST))
            hint = (
                env.backed_var_to_val.get(symbol) if hasattr(env, "backed_var_to_val") else env.var_to_val.get(symbol)
            )
            expected = None if hint is None else min(max(int(hint), low), high)
            self._known[name] = Dim(name, low, high, hint=expected)
        return self._known[name]


def _whole(limit: Any, otherwise: int) -> int:
    try:
        return min(max(int(limit), 0), LARGEST)
    except (OverflowError, ValueError, TypeError, AttributeError):
        return otherwise
