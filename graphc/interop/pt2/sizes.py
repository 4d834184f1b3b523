"""Sizes in ``.pt2`` files: symbols with ranges become named dimensions, and expressions become symbolic sizes."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from graphc.base.errors import ArtifactError, GraphcError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import LARGEST, bounds, is_size, larger, smaller, terms
from graphc.interop.pt2.fields import Field

MOST_CHARACTERS = 1000
MOST_TERMS = 64
"""Terms of an expression, and its largest power."""


class ProgramSizes:
    """Dimensions of one program by the names of PyTorch's symbols."""

    def __init__(self, ranges: Field):
        self._ranges = {name: _range(limits) for name, limits in ranges.entries().items()}
        self._dims: dict[str, Any] = {}

    def of(self, field: Field) -> Any:
        """Return the int, or size, of a SymInt in the file. Raises UnsupportedError for unknown expressions."""
        kind, content = field.union()
        if kind == "as_int":
            return content.integer()
        if kind != "as_expr":
            raise field.other(kind, "as_int, as_expr")
        members = content.record("expr_str", "hint")
        text = members["expr_str"].text()
        tree = _tree(text, members["expr_str"])
        hint = _hint(members["hint"])
        try:
            return self._read(tree, hint)
        except (ValueError, TypeError, ArithmeticError, GraphcError):
            raise members["expr_str"].unsupported(f"graphc cannot express the size {text[:80]!r}") from None

    def shape(self, field: Field) -> tuple[Any, ...]:
        """Return the sizes of a shape, none of which can be negative."""
        sizes = [(element, self.of(element)) for element in field.items()]
        for element, size in sizes:
            low, high = bounds(size) if is_size(size) else (size, size)
            if low < 0 or high is None or (not is_size(size) and size > LARGEST):
                raise ArtifactError(f"{element.path} is the size {str(size)[:80]}, which is not in 0..{LARGEST}")
        return tuple([size for _, size in sizes])

    def _read(self, tree: ast.expr, hint: int | None = None) -> Any:
        """Return the value of an expression. Raises ValueError for syntax that sizes lack."""
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
            symbol = str(tree.args[0].value)
            if not symbol.isidentifier():
                raise ValueError
            return self._dimension(symbol, hint)
        if tree.keywords:
            raise ValueError
        if name == "Integer" and len(tree.args) == 1:
            return self._read(tree.args[0])
        return _applied(name, [self._read(argument) for argument in tree.args])

    def _dimension(self, symbol: str, hint: int | None) -> Any:
        dim = self._dims.get(symbol)
        if dim is None:
            low, high = self._ranges.get(symbol, (1, LARGEST))
            expected = None if hint is None else min(max(hint, low), high)
            dim = self._dims[symbol] = Dim(f"size_{symbol}", low, high, hint=expected)
        return dim


def _range(field: Field) -> tuple[int, int]:
    """Return a range. PyTorch assumes a minimum of 2 in its proofs, but accepts 1 in calls."""
    members = field.record("", "min_val max_val")
    low = 1 if members["min_val"].is_none else members["min_val"].integer()
    high = LARGEST if members["max_val"].is_none else members["max_val"].integer()
    low = min(max(low if low > 2 else min(low, 1), 0), LARGEST)
    high = min(high, LARGEST)
    if low > high:
        raise ArtifactError(f"{field.path} is an empty range {low}..{high}")
    return low, high


def _hint(field: Field) -> int | None:
    if field.is_none:
        return None
    kind, content = field.union()
    return content.integer() if kind == "as_int" else None


def _tree(text: str, field: Field) -> ast.expr:
    if len(text) > MOST_CHARACTERS:
        raise field.unsupported(f"a size has {len(text)} characters, at most {MOST_CHARACTERS} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ArtifactError(f"{field.path}: {text[:80]!r} is not a size") from None
    if sum(1 for _ in ast.walk(tree)) > MOST_TERMS * 8:
        raise field.unsupported(f"the size {text[:80]!r} has too many terms")
    return tree


_SIGNS = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.FloorDiv: "FloorDiv",
    ast.Mod: "Mod",
    ast.Pow: "Pow",
}


def _power(operands: list[Any]) -> Any:
    base, exponent = operands
    if type(exponent) is not int or not 0 <= exponent <= MOST_TERMS:
        raise ValueError
    if is_size(base) and exponent > 4:
        raise ValueError
    return base**exponent


def _modular(operands: list[Any]) -> Any:
    base, divisor, modulus = operands
    return base // divisor % modulus


_FUNCTIONS: Mapping[str, Callable[[list[Any]], Any]] = {
    "Add": lambda x: sum(x[1:], start=x[0]),
    "Sub": lambda x: x[0] - x[1],
    "Mul": lambda x: math.prod(x[1:], start=x[0]),
    "Max": lambda x: functools.reduce(larger, x),
    "Min": lambda x: functools.reduce(smaller, x),
    "Pow": _power,
    "PowByNatural": _power,
    "ModularIndexing": _modular,
    **dict.fromkeys(("FloorDiv", "CleanDiv"), lambda x: x[0] // x[1]),
    **dict.fromkeys(("Mod", "PythonMod"), lambda x: x[0] % x[1]),
}
_COUNTS = {"Add": 0, "Mul": 0, "Max": 0, "Min": 0, "ModularIndexing": 3}


def _applied(name: str, operands: list[Any]) -> Any:
    """Apply a function of sizes. Raises ValueError for an unknown name or number of operands."""
    function, count = _FUNCTIONS.get(name), _COUNTS.get(name, 2)
    if function is None or not operands or (count and len(operands) != count):
        raise ValueError
    result = function(operands)
    if len(terms(result)) > MOST_TERMS or (not is_size(result) and abs(result) >= 1 << 63):
        raise ValueError
    return result
