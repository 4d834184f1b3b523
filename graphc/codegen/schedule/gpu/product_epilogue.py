"""Epilogues of a library's products: a factor of the sum, added matrices, an activation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphc.ir.kernel.statements import Const, Let, Load, Read, Ref, Stmt, Store

_COMMUTATIVE = ("add", "mul", "max")


@dataclass(frozen=True)
class Epilogue:
    """``activation(alpha * sum + added)``."""

    activation: str
    """``relu``, ``gelu`` or empty."""
    alpha: float
    added: tuple[Load, ...]
    store: Store


class _Terms:
    """Hash-consed expressions: equal expressions get the same number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple, int] = {}
        self.keys: list[tuple] = []

    def make(self, op: str, *operands: object) -> int:
        """Return the number of an expression of others."""
        key = (op, *(sorted(operands, key=str) if op in _COMMUTATIVE else operands))
        if key not in self.numbers:
            self.numbers[key] = len(self.keys)
            self.keys.append(key)
        return self.numbers[key]

    def constant(self, value: float) -> int:
        """Return the number of a literal, rounded to f32."""
        return self.make("constant", float(np.float32(value)))

    def gelu(self, x: int) -> int:
        """Return the number of graphc's expression of gelu (the tanh approximation)."""
        cube = self.make("mul", self.make("mul", x, x), x)
        inner = self.make("add", x, self.make("mul", cube, self.constant(0.044715)))
        tanh = self.make("tanh", self.make("mul", inner, self.constant(0.7978845608028654)))
        return self.make("mul", self.make("mul", x, self.constant(0.5)), self.make("add", tanh, self.constant(1.0)))

    def relu(self, x: int) -> int:
        """Return the number of graphc's expression of relu."""
        zero = self.constant(0.0)
        return self.make("select", self.make("le", x, zero), zero, x)


def match_epilogue(after: Sequence[Stmt]) -> Epilogue | None:
    """Match the statements after a sum as an epilogue of the library; None for others."""
    stores = [s for s in after if isinstance(s, Store)]
    if len(stores) != 1 or stores[0].guard or stores[0].combine or isinstance(stores[0].value, Const):
        return None
    terms, loads = _Terms(), {}
    numbers: dict[Ref, int] = {}
    for stmt in after:
        if isinstance(stmt, Read):
            numbers[stmt.name] = terms.make("sum")
        elif isinstance(stmt, Load):
            numbers[stmt.name] = terms.make("load", stmt.name)
            loads[numbers[stmt.name]] = stmt
        elif isinstance(stmt, Let):
            operands = [terms.constant(x.value) if isinstance(x, Const) else numbers.get(x, -1) for x in stmt.args]
            numbers[stmt.name] = terms.make(stmt.op, *operands)
    stored = numbers.get(stores[0].value, -1)
    if stored < 0:
        return None
    for activation, inner in _activations(terms, stored):
        scaled = _sum_of_loads(terms, inner)
        if scaled is not None:
            alpha, added = scaled
            if all(x in loads and not loads[x].guard for x in added):
                return Epilogue(activation, alpha, tuple(loads[x] for x in added), stores[0])
    return None


def _activations(terms: _Terms, expression: int) -> list[tuple[str, int]]:
    """Return all (activation, operand) by which an expression can be an activation of another one."""
    matches = [("", expression)]
    for x in range(len(terms.keys)):
        if x != expression and terms.relu(x) == expression:
            matches.append(("relu", x))
        if terms.keys[expression][0] == "mul" and x != expression and terms.gelu(x) == expression:
            matches.append(("gelu", x))
    return matches


def _sum_of_loads(terms: _Terms, expression: int) -> tuple[float, list[int]] | None:
    """Match ``factor * sum + loads``, with at most two loads; return the factor and the loads, or None."""
    stack, added, alpha = [expression], [], None
    while stack:
        op, *operands = terms.keys[stack.pop()]
        if op == "add":
            stack.extend(operands)
        elif op == "load":
            added.append(terms.make(op, *operands))
        else:
            factor = _factor(terms, op, operands)
            if factor is None or alpha is not None:
                return None
            alpha = factor
    return None if alpha is None or len(added) > 2 else (alpha, added)


def _factor(terms: _Terms, op: str, operands: Sequence[int]) -> float | None:
    """Return the literal by which the sum is multiplied; None for other expressions."""
    if op == "sum":
        return 1.0
    if op != "mul":
        return None
    keys = [terms.keys[p] for p in operands]
    numbers = [key[1] for key in keys if key[0] == "constant"]
    return numbers[0] if len(numbers) == 1 and any(key[0] == "sum" for key in keys) else None
