"""Loops whose number of steps a value decides, ``while_loop`` and ``fori_loop``; ``map``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.dtypes import bool_, int64
from graphc.base.errors import ArgumentError, DTypeError, ShapeError, TraceError
from graphc.control.branch import cond
from graphc.control.scan import scan
from graphc.control.sub_graphs import (
    as_they_were,
    generator_states,
    held,
    join_arguments,
    place_of,
    put_back,
    sub_trace,
    unshared,
)
from graphc.ir.op import Trait
from graphc.ops.index import iota
from graphc.ops.while_loop import while_loop as while_op
from graphc.tensors.generator import own_step
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer


def while_loop(
    cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any, max_steps: int | None = None
) -> Any:
    """The last state of ``state = body_fn(state)``, from ``init`` on, as long as ``cond_fn(state)`` is true.

    The state is a tensor or nested tuples, lists and dictionaries of tensors, which keep their shapes and types.
    ``cond_fn`` returns a bool or a bool tensor of one element. What is compiled holds a loop that runs as often as
    values ask for. Its gradient needs ``max_steps``, the largest number of steps that there may be: then so many states
    are kept, and the loop ends there.

    Both functions may draw random numbers: each call of one draws those of a step of its own, and what is drawn behind
    the loop is another step, however often it ran; so numbers are the same in eager mode and compiled.

    Raises ShapeError and DTypeError where a step changes types, GradientError where a gradient would go through a loop
    without ``max_steps``, TraceError in a trace where a function writes to tensors from outside or, without
    ``max_steps``, checks an index.
    """
    if not flatten(init)[0]:
        raise ArgumentError("while_loop: the state holds no tensor", remedy="graphc.tensor(0) as a counter")
    if max_steps is not None and max_steps < 0:
        raise ArgumentError(f"while_loop: max_steps is {max_steps}")
    if not isinstance(front(), Tracer):
        return _in_python(cond_fn, body_fn, init, max_steps)
    if max_steps is not None:
        return _bounded(cond_fn, body_fn, init, max_steps)
    return _unbounded(cond_fn, body_fn, init)


def _in_python(cond_fn: Any, body_fn: Any, state: Any, max_steps: int | None) -> Any:
    steps = 0
    while (max_steps is None or steps < max_steps) and bool(_asked(cond_fn, state)):
        before, form = flatten(state)
        state = _stepped(body_fn, state)
        after, new = flatten(state)
        _same(before, form, after, new)
        steps += 1
    return unshared(state)


def _asked(cond_fn: Any, state: Any) -> Any:
    """The condition of a state, which may draw."""
    with own_step(uncertain=True):
        return _condition(cond_fn(state))


def _stepped(body_fn: Any, state: Any) -> Any:
    """The next state, for which random numbers may be drawn."""
    with own_step(uncertain=True):
        return body_fn(state)


def _bounded(cond_fn: Any, body_fn: Any, init: Any, max_steps: int) -> Any:
    """So many steps, of which those behind the last one hand on what they get."""
    if not max_steps:
        return unshared(init)
    if _draws(cond_fn, init):
        return _bounded_draws(cond_fn, body_fn, init, max_steps)

    def step(state: Any, _: Any) -> tuple[Any, Any]:
        more = _asked(cond_fn, state)
        return cond(more, lambda s: _like(s, _stepped(body_fn, s)), lambda s: s, (state,)), None

    return scan(step, init, length=max_steps)[0]


def _bounded_draws(cond_fn: Any, body_fn: Any, init: Any, max_steps: int) -> Any:
    """As ``_bounded`` for a condition that draws, which is not asked again behind the last step."""

    def step(given: Any, _: Any) -> tuple[Any, Any]:
        more, state = given
        more = cond(more, lambda s: _condition(cond_fn(s)), lambda s: more, (state,))
        return (more, cond(more, lambda s: _like(s, _stepped(body_fn, s)), lambda s: s, (state,))), None

    return scan(step, (front().scalar(True, bool_), init), length=max_steps)[0][1]


def _draws(cond_fn: Any, init: Any) -> bool:
    """Whether a condition draws random numbers."""
    leaves, form = flatten(init)
    inner, _ = sub_trace("while.test", lambda state: _asked(cond_fn, state), leaves, form)
    return bool(generator_states(inner, "while_loop", _REMEDY))


def _like(before: Any, after: Any) -> Any:
    _same(*flatten(before), *flatten(after))
    return after


def _condition(value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.dtype is not bool_ or value.numel() != 1:
            what = f"{value.dtype.name}{list(value.shape)}"
            raise DTypeError(
                f"while_loop: the condition is {what}, not one bool", remedy="a comparison, .any(), .all()"
            )
        return value.reshape(())
    return value


def _same(before: Sequence[Tensor], form: Any, after: Sequence[Tensor], new: Any) -> None:
    if form != new:
        raise ArgumentError("while_loop: a step returns a state that is nested otherwise", remedy="the same nesting")
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        if a.dtype is not b.dtype:
            raise DTypeError(f"while_loop: tensor {i} of the state was {a.dtype.name} and becomes {b.dtype.name}")
        if tuple(a.shape) != tuple(b.shape):
            what = f"while_loop: tensor {i} of the state had shape {list(a.shape)} and gets {list(b.shape)}"
            raise ShapeError(what, remedy="a buffer of the largest size, of which a part is used")


_REMEDY = "make it a part of the state"


def _unbounded(cond_fn: Any, body_fn: Any, init: Any) -> Any:
    """The loop as one node of a trace."""
    leaves, form = flatten(init)
    test, more = sub_trace("while.test", lambda state: _asked(cond_fn, state), leaves, form)
    if generator_states(test, "while_loop", _REMEDY):
        return _asked_before(cond_fn, body_fn, init)
    if not more:
        raise ArgumentError(
            "while_loop: the condition does not depend on the state, so that the loop would never end",
            remedy="a comparison of tensors of the state",
        )

    def step(state: Any) -> Any:
        return _like(state, _stepped(body_fn, state))

    body, after = sub_trace("while.body", step, leaves, form)
    drawn = generator_states(body, "while_loop", _REMEDY)
    others = join_arguments((test, body), len(leaves))
    operands = [*leaves, *as_they_were(others, [entry.tensor for entry in drawn])]
    for number, entry in enumerate(drawn, len(leaves)):
        index = body.graph.inputs.index(entry.value)
        operands.insert(number, operands.pop(index))
        for inner in (test, body):
            inner.graph.inputs.insert(number, inner.graph.inputs.pop(index))
        after.append(held(body, entry.tensor)._data)
    test.graph.set_outputs(more)
    body.graph.set_outputs(after)
    for inner in (test, body):
        _check_effects(inner)
    attrs = {"test": test.graph, "body": body.graph, "carries": len(after)}
    found = front().apply(while_op.op, operands, attrs)
    found = list(found) if isinstance(found, tuple) else [found]
    for entry, value in zip(drawn, found[len(leaves) :], strict=True):
        put_back(entry.tensor, value, recorded=False)
    return unflatten(form, found[: len(leaves)])


def _asked_before(cond_fn: Any, body_fn: Any, init: Any) -> Any:
    """The loop of a condition that draws: each step also makes the condition of the next one."""

    def step(given: Any) -> Any:
        state = _like(given[1], _stepped(body_fn, given[1]))
        return _asked(cond_fn, state), state

    return _unbounded(lambda given: given[0], step, (_asked(cond_fn, init), init))[1]


def _check_effects(inner: Tracer) -> None:
    for node in inner.graph.nodes():
        if node.op.has(Trait.CHECK):
            raise TraceError(
                "while_loop: a function checks an index or a condition, which would be done once, not in each step",
                origin=place_of(node),
                remedy="do it before the loop, or while_loop(..., max_steps=N)",
            )


def fori_loop(
    lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init: Any, max_steps: int | None = None
) -> Any:
    """Applies ``state = body_fn(i, state)`` for each ``i`` from ``lower`` to below ``upper``; the last state.

    With Python numbers as bounds it is a ``scan``, with gradients, and ``i`` an i64 tensor without dimensions. With a
    tensor as a bound it is a ``while_loop``, whose gradient needs ``max_steps``. Raises what these raise.
    """
    if isinstance(lower, int) and isinstance(upper, int):
        if upper <= lower:
            return unshared(init)
        numbers = iota(shape=(upper - lower,), axis=0, dtype=int64) + lower
        return scan(lambda state, i: (body_fn(i, state), None), init, numbers)[0]
    start = lower if isinstance(lower, Tensor) else front().scalar(lower, int64)
    state = (start.reshape(()).to(int64), init)
    found = while_loop(lambda s: s[0] < upper, lambda s: (s[0] + 1, body_fn(s[0], s[1])), state, max_steps)
    return found[1]


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """``f`` of each slice of ``xs`` along the first dimension, one after the other, stacked.

    ``xs`` and what ``f`` returns are tensors or nested tuples, lists and dictionaries of them. What is compiled holds
    ``f`` once; ``vmap`` computes all slices at once instead. Raises what ``scan`` raises.
    """
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]
