"""What is done with a sum of products, where a library can do the same: a factor, something added, an activation."""

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
    """``relu``, ``gelu`` or none."""
    alpha: float
    added: tuple[Load, ...]
    store: Store


class _Terms:
    """Expressions with equal ones stored once, so that each is a number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple, int] = {}
        self.keys: list[tuple] = []

    def make(self, op: str, *parts: object) -> int:
        """The number of an expression of others."""
        key = (op, *(sorted(parts, key=str) if op in _COMMUTATIVE else parts))
        if key not in self.numbers:
            self.numbers[key] = len(self.keys)
            self.keys.append(key)
        return self.numbers[key]

    def constant(self, value: float) -> int:
        """The number of a literal, which counts as it is rounded to f32."""
        return self.make("constant", float(np.float32(value)))

    def gelu(self, x: int) -> int:
        """What graphc computes for gelu by tanh."""
        cube = self.make("mul", self.make("mul", x, x), x)
        inner = self.make("add", x, self.make("mul", cube, self.constant(0.044715)))
        tanh = self.make("tanh", self.make("mul", inner, self.constant(0.7978845608028654)))
        return self.make("mul", self.make("mul", x, self.constant(0.5)), self.make("add", tanh, self.constant(1.0)))

    def relu(self, x: int) -> int:
        """What graphc computes for relu."""
        zero = self.constant(0.0)
        return self.make("select", self.make("le", x, zero), zero, x)


def match_epilogue(after: Sequence[Stmt]) -> Epilogue | None:
    """What the statements after a sum do; None where a library has nothing that does it."""
    stores = [s for s in after if isinstance(s, Store)]
    if len(stores) != 1 or stores[0].guard or stores[0].combine or isinstance(stores[0].value, Const):
        return None
    terms, loads = _Terms(), {}
    made: dict[Ref, int] = {}
    for stmt in after:
        if isinstance(stmt, Read):
            made[stmt.name] = terms.make("sum")
        elif isinstance(stmt, Load):
            made[stmt.name] = terms.make("load", stmt.name)
            loads[made[stmt.name]] = stmt
        elif isinstance(stmt, Let):
            parts = [terms.constant(x.value) if isinstance(x, Const) else made.get(x, -1) for x in stmt.args]
            made[stmt.name] = terms.make(stmt.op, *parts)
    whole = made.get(stores[0].value, -1)
    if whole < 0:
        return None
    for activation, inner in _activations(terms, whole):
        found = _sum_of_loads(terms, inner)
        if found is not None:
            alpha, added = found
            if all(x in loads and not loads[x].guard for x in added):
                return Epilogue(activation, alpha, tuple(loads[x] for x in added), stores[0])
    return None


def _activations(terms: _Terms, whole: int) -> list[tuple[str, int]]:
    """The ways to see an expression as an activation of another one."""
    found = [("", whole)]
    for x in range(len(terms.keys)):
        if x != whole and terms.relu(x) == whole:
            found.append(("relu", x))
        if terms.keys[whole][0] == "mul" and x != whole and terms.gelu(x) == whole:
            found.append(("gelu", x))
    return found


def _sum_of_loads(terms: _Terms, whole: int) -> tuple[float, list[int]] | None:
    """The factor of the sum, and what is added to it."""
    stack, added, alpha = [whole], [], None
    while stack:
        op, *parts = terms.keys[stack.pop()]
        if op == "add":
            stack.extend(parts)
        elif op == "load":
            added.append(terms.make(op, *parts))
        else:
            factor = _factor(terms, op, parts)
            if factor is None or alpha is not None:
                return None
            alpha = factor
    return None if alpha is None or len(added) > 2 else (alpha, added)


def _factor(terms: _Terms, op: str, parts: Sequence[int]) -> float | None:
    """By what the sum is multiplied."""
    if op == "sum":
        return 1.0
    if op != "mul":
        return None
    keys = [terms.keys[p] for p in parts]
    numbers = [key[1] for key in keys if key[0] == "constant"]
    return numbers[0] if len(numbers) == 1 and any(key[0] == "sum" for key in keys) else None
