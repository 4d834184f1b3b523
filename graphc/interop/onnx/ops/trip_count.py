"""Trip counts of loops whose condition compares a counter with a bound, such as ``i + 1 < n``.

Other frameworks write every loop over a sequence with such a condition, besides the number of steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphc.base.sizes.size import always
from graphc.interop.onnx.graph import OnnxGraph
from graphc.interop.onnx.values import Value


class _Affine(NamedTuple):
    """A number that grows by ``rate`` in each step: ``first + rate * step``."""

    first: Any
    """A Python number or a size."""
    rate: int


class _Body:
    """Numbers of a loop's body, by name."""

    def __init__(self, body: OnnxGraph, state: Sequence[Any], scope: Mapping[str, Any]):
        self.body = body
        self.scope = scope
        self.makers = {name: node for node in body.nodes for name in node.outputs}
        carried = zip(body.inputs[2:], state, body.outputs[1:], strict=False)
        self.carried = {port.name: (value, after.name) for port, value, after in carried}
        self._affine: dict[str, _Affine | None] = {}
        """Results by name. None, too, for a number whose growth depends on itself."""

    def source(self, name: str) -> str:
        """Return the name of which a value is a copy, possibly of another type."""
        while name in self.makers and self.makers[name].op in ("Identity", "Cast") and not self.makers[name].domain:
            name = self.makers[name].inputs[0]
        return name

    def affine(self, name: str) -> _Affine | None:
        """Return a number as a function of the step; None for others."""
        name = self.source(name)
        if name not in self._affine:
            self._affine[name] = None
            self._affine[name] = self._computed(name)
        return self._affine[name]

    def _computed(self, name: str) -> _Affine | None:
        if name == self.body.inputs[0].name:
            return _Affine(0, 1)
        if name in self.carried:
            value, after = self.carried[name]
            rate = self._rate(name, self.source(after))
            first = None if rate is None else _number(value)
            return None if rate is None or first is None else _Affine(first, rate)
        node = self.makers.get(name)
        if node is None:
            constant = self.body.constants.get(name)
            number = _number(
                self.scope.get(name) if constant is None else Value(constant.element, None, constant.array)
            )
            return None if number is None else _Affine(number, 0)
        if node.op == "Constant" and "value" in node.attributes:
            constant = node.attributes["value"]
            number = _number(Value(constant.element, None, constant.array))
            return None if number is None else _Affine(number, 0)
        if node.op not in ("Add", "Sub") or node.domain:
            return None
        a, b = map(self.affine, node.inputs)
        sign = 1 if node.op == "Add" else -1
        return None if a is None or b is None else _Affine(a.first + sign * b.first, a.rate + sign * b.rate)

    def _rate(self, name: str, after: str) -> int | None:
        """Return by how much a carried number grows in each step."""
        if name == after:
            return 0
        node = self.makers.get(after)
        if node is None or node.domain or node.op not in ("Add", "Sub") or len(node.inputs) != 2:
            return None
        sources = [self.source(n) for n in node.inputs]
        if name not in sources or (node.op == "Sub" and sources[0] != name):
            return None
        other = sources[1 - sources.index(name)]
        step = None if other in self.carried else self.affine(other)
        if step is None or step.rate or not isinstance(step.first, int):
            return None
        return step.first if node.op == "Add" else -step.first


_LESS: dict[str, tuple[int, int, int]] = {
    "Less": (0, 1, 0),
    "LessOrEqual": (0, 1, 1),
    "Greater": (1, 0, 0),
    "GreaterOrEqual": (1, 0, 1),
}
"""Inputs that are the smaller and the larger operand, and 1 where they may be equal."""


def trip_count(
    body: OnnxGraph, cond: Value | None, M: Value | None, state: Sequence[Any], scope: Mapping[str, Any]
) -> Any:
    """Return the number of steps of a loop as a number or a size; None where its condition says something else.

    ``M`` is the largest number of steps, ``cond`` whether there is a first one, ``scope`` the values around the body.
    """
    if (cond is not None and not _number(cond)) or len(body.inputs) < 2:
        return None
    count = _steps(_Body(body, state, scope), body.outputs[0].name)
    if M is None or count is None:
        return count
    limit = _number(M)
    return None if limit is None else _smaller(count, limit)


def _steps(body: _Body, name: str) -> Any:
    """Return the number of steps until a condition is first false."""
    node = body.makers.get(body.source(name))
    if node is None or node.domain or len(node.inputs) != 2:
        return None
    if node.op == "And":
        a, b = (_steps(body, n) for n in node.inputs)
        return None if a is None or b is None else _smaller(a, b)
    if node.op not in _LESS:
        return None
    low, high, equal = _LESS[node.op]
    a, b = body.affine(node.inputs[low]), body.affine(node.inputs[high])
    if a is None or b is None or a.rate <= b.rate:
        return None
    # The condition holds while rate * step < distance.
    distance, rate = b.first - a.first + equal, a.rate - b.rate
    more = -((-distance) // rate)
    if isinstance(more, int):
        return max(more, 0) + 1
    return more + 1 if always("<=", 0, more) else None


def _smaller(a: Any, b: Any) -> Any:
    """Return the smaller one of two sizes; None where it differs from call to call."""
    return a if always("<=", a, b) else b if always("<=", b, a) else None


def _number(value: Any) -> Any:
    """Return the number or size of a scalar that calls do not decide; None for other values."""
    if not isinstance(value, Value) or value.is_open or value.element.is_floating_point:
        return None
    return value.number if value.array.size == 1 else None
