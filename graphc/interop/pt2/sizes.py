"""Sizes in ``.pt2`` files: symbols with ranges become named dimensions, expressions what is computed of them."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from graphc.base.errors import ArtifactError, GraphcError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import LARGEST, bounds, is_size, terms
from graphc.interop.pt2.fields import Field

MOST_CHARACTERS = 1000
MOST_TERMS = 64
"""Parts of an expression, and its largest power."""


class Sizes:
    """The dimensions of one program by the names of PyTorch's symbols."""

    def __init__(self, ranges: Field):
        self._ranges = {name: _range(part) for name, part in ranges.entries().items()}
        self._known: dict[str, Any] = {}

    def of(self, field: Field) -> Any:
        """The int, or size, that a SymInt of the file is. Raises UnsupportedError for what cannot be computed."""
        kind, content = field.union()
        if kind == "as_int":
            return content.whole()
        if kind != "as_expr":
            raise field.other(kind, "as_int, as_expr")
        parts = content.record("expr_str", "hint")
        text = parts["expr_str"].text()
        tree = _tree(text, parts["expr_str"])
        hint = _hint(parts["hint"])
        try:
            return self._read(tree, hint)
        except (ValueError, TypeError, ArithmeticError, GraphcError):
            raise parts["expr_str"].unsupported(f"a size {text[:80]!r}") from None

    def shape(self, field: Field) -> tuple[Any, ...]:
        """The sizes of a shape, none of which can be negative."""
        found = [(part, self.of(part)) for part in field.items()]
        for part, size in found:
            low, high = bounds(size) if is_size(size) else (size, size)
            if low < 0 or high is None or (not is_size(size) and size > LARGEST):
                raise ArtifactError(f"{part.path} is the size {str(size)[:80]}, which is none of 0..{LARGEST}")
        return tuple([size for _, size in found])

    def _read(self, tree: ast.expr, hint: int | None = None) -> Any:
        """The value of an expression; ValueError where it has parts that sizes lack."""
        if isinstance(tree, ast.Constant) and type(tree.value) is int and abs(tree.value) < 1 << 63:
            return tree.value
        if isinstance(tree, ast.Name):
            return self._dimension(tree.id, hint)
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return -self._read(tree.operand)
        if isinstance(tree, ast.BinOp):
            return _applied(_SIGNS.get(type(tree.op), ""), [self._read(tree.left), self._read(tree.right)])
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            return self._called(tree.func.id, tree, hint)
        raise ValueError

    def _called(self, name: str, tree: ast.Call, hint: int | None) -> Any:
        if name == "Symbol" and len(tree.args) == 1 and isinstance(tree.args[0], ast.Constant):
            return self._dimension(str(tree.args[0].value), hint)
        if tree.keywords:
            raise ValueError
        if name == "Integer" and len(tree.args) == 1:
            return self._read(tree.args[0])
        return _applied(name, [self._read(part) for part in tree.args])

    def _dimension(self, symbol: str, hint: int | None) -> Any:
        known = self._known.get(symbol)
        if known is None:
            low, high = self._ranges.get(symbol, (1, LARGEST))
            expected = None if hint is None else min(max(hint, low), high)
            known = self._known[symbol] = Dim(f"size_{symbol}", low, high, hint=expected)
        return known


def _range(field: Field) -> tuple[int, int]:
    """A range; PyTorch takes a lower end of 2 for granted in its proofs, and takes 1 in calls."""
    parts = field.record("", "min_val max_val")
    low = 1 if parts["min_val"].is_none else parts["min_val"].whole()
    high = LARGEST if parts["max_val"].is_none else parts["max_val"].whole()
    low = min(max(low if low > 2 else min(low, 1), 0), LARGEST)
    high = min(high, LARGEST)
    if low > high:
        raise ArtifactError(f"{field.path} is an empty range {low}..{high}")
    return low, high


def _hint(field: Field) -> int | None:
    if field.is_none:
        return None
    kind, content = field.union()
    return content.whole() if kind == "as_int" else None


def _tree(text: str, field: Field) -> ast.expr:
    if len(text) > MOST_CHARACTERS:
        raise field.unsupported(f"a size of {len(text)} characters, at most {MOST_CHARACTERS} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ArtifactError(f"{field.path}: {text[:80]!r} is no size") from None
    if sum(1 for _ in ast.walk(tree)) > MOST_TERMS * 8:
        raise field.unsupported(f"a size {text[:80]!r} of so many parts")
    return tree


_SIGNS = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.FloorDiv: "FloorDiv",
    ast.Mod: "Mod",
    ast.Pow: "Pow",
}


def _power(parts: list[Any]) -> Any:
    base, exponent = parts
    if type(exponent) is not int or not 0 <= exponent <= MOST_TERMS:
        raise ValueError
    if is_size(base) and exponent > 4:
        raise ValueError
    return base**exponent


def _modular(parts: list[Any]) -> Any:
    base, divisor, modulus = parts
    return base // divisor % modulus


_FUNCTIONS: Mapping[str, Callable[[list[Any]], Any]] = {
    "Add": lambda parts: sum(parts[1:], start=parts[0]),
    "Sub": lambda parts: parts[0] - parts[1],
    "Mul": lambda parts: math.prod(parts[1:], start=parts[0]),
    "Pow": _power,
    "PowByNatural": _power,
    "ModularIndexing": _modular,
    **dict.fromkeys(("FloorDiv", "CleanDiv"), lambda parts: parts[0] // parts[1]),
    **dict.fromkeys(("Mod", "PythonMod"), lambda parts: parts[0] % parts[1]),
}
_COUNTS = {"Add": 0, "Mul": 0, "ModularIndexing": 3}


def _applied(name: str, parts: list[Any]) -> Any:
    """What a function of sizes gives; ValueError where there is none of this name and number of parts."""
    function, count = _FUNCTIONS.get(name), _COUNTS.get(name, 2)
    if function is None or not parts or (count and len(parts) != count):
        raise ValueError
    found = function(parts)
    if len(terms(found)) > MOST_TERMS or (not is_size(found) and abs(found) >= 1 << 63):
        raise ValueError
    return found
