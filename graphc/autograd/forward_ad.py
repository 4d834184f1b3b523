"""Forward-mode differentiation: tensors carry tangents, and every operation propagates them to its results.

The tangent of a result is ``J t`` for the Jacobian J of the op. The gradient rule of the op computes ``w J``, which is
linear in w, so the gradient of ``w J t`` with respect to w is ``J t``: one rule per op serves both directions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from graphc.autograd import engine
from graphc.base.errors import ArgumentError, DTypeError, GradientError, ShapeError
from graphc.base.records import NamedTuple
from graphc.ir.graph.graph import Value
from graphc.ir.op import OpDef, Trait
from graphc.ops.movement.shape import filled, reshape
from graphc.ops.reduction.reduce import sum_to
from graphc.tape.grad_mode import enable_grad, is_grad_enabled
from graphc.tape.tangents import USED, levels, only, set_tangent, tangent_of
from graphc.tensors.placement import beside, following_rules, is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh

__all__ = ["UnpackedDualTensor", "dual_level", "make_dual", "unpack_dual"]

_LOOPS = Trait.LOOP | Trait.WHILE | Trait.BRANCH


def propagate(op: OpDef, attrs: Mapping[str, Any], operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Set the tangents of an op's results from the tangents of its operands."""
    if op.vjp is None and op.jvp is None:
        return

    def push(tangents: Sequence[Any]) -> Sequence[Any]:
        return _pushed(op, attrs, operands, results, tangents)

    propagate_by(push, operands, results)
    for result in results:
        if result._node is not None:
            result._node.results[result._index].tangents = result._tangents


def propagate_by(
    push: Callable[[Sequence[Any]], Sequence[Any]], operands: Sequence[Any], results: Sequence[Any]
) -> None:
    """Set tangents by ``push``, which maps the operands' tangents (None where missing) to the results' tangents.

    It runs once per open level, outermost first; its own operations propagate the tangents of enclosing levels.
    """
    open_levels = levels.get()
    for depth, level in enumerate(open_levels):
        tangents = [tangent_of(t, level) if isinstance(t, Tensor) else None for t in operands]
        if all(t is None for t in tangents):
            continue
        with only(open_levels[:depth]):
            new_tangents = push(tangents)
        for result, tangent in zip(results, new_tangents, strict=True):
            if tangent is not None and isinstance(result, Tensor) and result.dtype.is_differentiable:
                set_tangent(result, level, tangent)


def _pushed(
    op: OpDef, attrs: Mapping[str, Any], operands: Sequence[Any], results: Sequence[Any], tangents: Sequence[Any]
) -> Sequence[Any]:
    if any([is_on_device(t._data) for t in operands]):
        with following_rules():
            return _by_rules(op, attrs, operands, results, tangents)
    return _by_rules(op, attrs, operands, results, tangents)


def _by_rules(
    op: OpDef, attrs: Mapping[str, Any], operands: Sequence[Any], results: Sequence[Any], tangents: Sequence[Any]
) -> Sequence[Any]:
    if op.traits & _LOOPS:
        # Imported here: that module imports this one.
        again, pushed = import_module("graphc.control.pushforward").pushed(op, tangents, operands, attrs)
        for result, value in zip(results, again, strict=True):
            data = refresh(value)._data
            if isinstance(data, Value):
                result._data = data  # equal, so a trace computes the loop once; arrays may be those of operands
        return pushed
    if op.jvp is not None:
        return [op.jvp(tangents, results[0], *operands, **attrs)]
    create = is_grad_enabled()
    with enable_grad():
        zeros = [beside(filled(0, r.dtype, r.shape), r) if r.dtype.is_differentiable else None for r in results]
        weights = [None if zero is None else zero.requires_grad_() for zero in zeros]
        several = len(results) > 1
        g, result = (tuple(weights), tuple(results)) if several else (weights[0], results[0])
        rules = op.vjp
        if callable(rules):
            pulled = rules(g, result, *operands, **attrs)
        else:
            assert rules is not None
            pulled = [
                None if tangent is None or rule is None else rule(g, result, *operands, **attrs)
                for rule, tangent in zip(rules, tangents, strict=True)
            ]
        pairs = [
            (sum_to(p, x.shape), t)
            for p, t, x in zip(pulled, tangents, operands, strict=True)
            if p is not None and t is not None and p.requires_grad
        ]
    seeds = [w for w in weights if w is not None]
    if not pairs or not seeds:
        return [None] * len(results)
    derivatives = iter(
        engine.grad([p for p, _ in pairs], seeds, [t for _, t in pairs], create_graph=create, allow_unused=True)
    )
    return [None if w is None else next(derivatives) for w in weights]


# ---- what users call


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, or None."""

    primal: Any
    tangent: Any


_numbers = itertools.count()


class dual_level:
    """Context in which tensors made by ``make_dual`` carry tangents. Levels may be nested; ``with`` returns the level's
    number."""

    def __enter__(self) -> int:
        level = next(_numbers)
        USED[0] = True
        self._token = levels.set((*levels.get(), level))
        return level

    def __exit__(self, *exception: object) -> None:
        levels.reset(self._token)


def _level(level: int | None) -> int:
    open_levels = levels.get()
    if not open_levels or (level is not None and level not in open_levels):
        raise GradientError(
            "tangents exist only inside of a dual level", remedy="run it in a block `with forward_ad.dual_level():`"
        )
    return open_levels[-1] if level is None else level


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a copy of ``tensor``, connected to it for gradients, which carries ``tangent`` at a level (default: the
    innermost).

    Raises GradientError outside of a level, and DTypeError or ShapeError when the two do not match.
    """
    level = _level(level)
    if not isinstance(tensor, Tensor) or not isinstance(tangent, Tensor):
        raise ArgumentError("make_dual takes two tensors")
    if not tensor.dtype.is_differentiable or tangent.dtype is not tensor.dtype:
        raise DTypeError(
            f"a tangent of {tangent.dtype.name} does not fit a tensor of {tensor.dtype.name}; both must be of one "
            "floating-point type"
        )
    if tangent.shape != tensor.shape:
        raise ShapeError(f"a tangent of shape {list(tangent.shape)} does not fit a tensor of {list(tensor.shape)}")
    dual = front().own(reshape(tensor, shape=tensor.shape))
    set_tangent(dual, level, tangent)
    return dual


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return (primal, tangent) at a level (default: the innermost); the primal is a view without that tangent.

    Raises GradientError outside of a level.
    """
    level = _level(level)
    tensor = refresh(front().local(tensor))
    with only(tuple(n for n in levels.get() if n != level)):
        primal = reshape(tensor, shape=tensor.shape)
    return UnpackedDualTensor(primal, tangent_of(tensor, level))
