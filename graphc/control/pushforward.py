"""Forward-mode derivatives of loops and branches: the same loop or branch, of values and their tangents.

The gradient rules would determine the tangents too, but keep the values of all steps, and need a bound of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.autograd.transforms import jvp
from graphc.control.branch import cond
from graphc.control.scan import scan
from graphc.control.while_loop import while_loop
from graphc.ir.graph.graph import Graph
from graphc.ir.op import Attrs, OpDef
from graphc.ops.flow.branch import cond as cond_op
from graphc.ops.flow.control import inline
from graphc.ops.flow.loop import scan as scan_op
from graphc.ops.flow.while_loop import while_loop as while_op
from graphc.ops.movement.shape import zeros_like

Pairs = tuple[list[Any], list[Any]]
"""Tensors, and the tangents of those whose type is differentiable."""


def pushed(
    op: OpDef, tangents: Sequence[Any], operands: Sequence[Any], attrs: Attrs
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the results of ``scan``, ``while_loop`` or ``cond``, and their tangents. Tangents are None for tensors
    without one; the derivative of a non-differentiable result is None."""
    return _RULES[op](tangents, *operands, **attrs)


def _pairs(values: Sequence[Any], tangents: Sequence[Any]) -> Pairs:
    slopes = [
        zeros_like(x) if t is None else t for x, t in zip(values, tangents, strict=True) if x.dtype.is_differentiable
    ]
    return list(values), slopes


def _tangents(pairs: Pairs) -> list[Any]:
    """Return a tangent or None for each tensor."""
    slopes = iter(pairs[1])
    return [next(slopes) if x.dtype.is_differentiable else None for x in pairs[0]]


def _pushed(graph: Graph, *arguments: Pairs) -> Pairs:
    """Apply a graph to tensors with tangents."""
    values = [x for part, _ in arguments for x in part]
    slopes = [t for _, part in arguments for t in part]
    floats = [i for i, x in enumerate(values) if x.dtype.is_differentiable]

    def run(chosen: Sequence[Any]) -> list[Any]:
        everything = list(values)
        for i, x in zip(floats, chosen, strict=True):
            everything[i] = x
        return list(inline(graph, everything))

    if not floats:
        results = run([])
        return _pairs(results, [None] * len(results))
    results, pushed = jvp(run, ([values[i] for i in floats],), (slopes,))
    return results, [t for x, t in zip(results, pushed, strict=True) if x.dtype.is_differentiable]


def _while_loop(tangents: Sequence[Any], *operands: Any, test: Graph, body: Graph, carries: int, **_: Any) -> Any:
    outside = _pairs(operands[carries:], tangents[carries:])
    last = while_loop(
        lambda state: inline(test, [*state[0], *outside[0]])[0],
        lambda state: _pushed(body, state, outside),
        _pairs(operands[:carries], tangents[:carries]),
    )
    return last[0], _tangents(last)


def _scan(tangents: Sequence[Any], *operands: Any, body: Graph, carries: int, sequences: int, **attrs: Any) -> Any:
    first, rest = carries, carries + sequences
    outside = _pairs(operands[rest:], tangents[rest:])

    def step(carry: Pairs, x: Pairs) -> tuple[Pairs, Pairs]:
        values, slopes = _pushed(body, carry, x, outside)
        count = sum(v.dtype.is_differentiable for v in values[:carries])
        return (values[:carries], slopes[:count]), (values[carries:], slopes[count:])

    last, stacks = scan(
        step,
        _pairs(operands[:first], tangents[:first]),
        _pairs(operands[first:rest], tangents[first:rest]),
        attrs["length"],
        attrs["reverse"],
    )
    return [*last[0], *stacks[0]], [*_tangents(last), *_tangents(stacks)]


def _cond(tangents: Sequence[Any], pred: Any, *operands: Any, then: Graph, otherwise: Graph) -> Any:
    pairs = _pairs(operands, tangents[1:])
    results = cond(pred, lambda pairs: _pushed(then, pairs), lambda pairs: _pushed(otherwise, pairs), (pairs,))
    return results[0], _tangents(results)


_RULES = {while_op.op: _while_loop, scan_op.op: _scan, cond_op.op: _cond}
