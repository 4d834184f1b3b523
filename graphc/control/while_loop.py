"""Loops whose number of steps depends on values, ``while_loop`` and ``fori_loop``; ``map``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.dtypes import bool_, int64
from graphc.base.errors import ArgumentError, DTypeError, TraceError
from graphc.base.location import at
from graphc.base.sizes.size import is_size
from graphc.control.branch import cond
from graphc.control.checkpoint import checkpoint as run_again
from graphc.control.scan import chunk_length, emit_steps, scan
from graphc.control.step_values import StepValues, constant
from graphc.control.sub_graphs import (
    as_they_were,
    final_value,
    generator_states,
    join_arguments,
    place_of,
    put_back,
    sub_trace,
    taken_checks,
    unshared,
)
from graphc.ir.graph.graph import Node, Value
from graphc.ir.op import Trait
from graphc.ops.flow.while_loop import while_loop as while_op
from graphc.ops.selection.index import iota
from graphc.tensors.creation import full
from graphc.tensors.free_functions import cat, where
from graphc.tensors.matching import Sides, matched_types, types_of
from graphc.tensors.random.generator import own_step
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer


def while_loop(
    cond_fn: Callable[[Any], Any],
    body_fn: Callable[[Any], Any],
    init: Any,
    max_steps: int | None = None,
    *,
    checkpoint: int | bool = False,
) -> Any:
    """Repeat ``state = body_fn(state)`` while ``cond_fn(state)`` is true, and return the last state.

    Compiled code contains a loop whose number of steps depends on values. Each call of either function draws random
    numbers of its own; eager and compiled code draw the same ones. Under ``vmap`` each entry takes its own number of
    steps, and the loop ends with the last entry.

    Args:
        cond_fn: function of the state that returns a bool or a bool tensor of one element.
        body_fn: function of the state that returns the next one, of the same shapes and types.
        init: first state: a tensor, or nested tuples, lists, dictionaries and dataclasses of tensors.
        max_steps: upper bound of the number of steps, where the loop stops. Gradients require it; memory for this many
            states is kept.
        checkpoint: a number k, with ``max_steps``: the gradient keeps the state before each k steps alone, and runs
            the k steps again in the backward pass. True stands for about the square root of ``max_steps``. Compiled
            code then skips the chunks after the last step.

    Returns:
        The last state.

    Raises:
        ShapeError: a step changes a shape.
        DTypeError: a step changes an element type.
        ArgumentError: a step changes the nesting, or the state holds no tensor; or ``checkpoint`` is no number of
            steps, or comes without ``max_steps`` or with a condition that draws random numbers.
        GradientError: a gradient passes through a loop without ``max_steps``.
        TraceError: in a trace, a function writes to tensors from outside or, without ``max_steps``, ``cond_fn`` checks
            an index.

    Example:
        >>> import graphc as gc
        >>> gc.while_loop(lambda n: n < 100, lambda n: n * 2, gc.tensor(3))
        tensor(192)
    """
    if not flatten(init)[0]:
        raise ArgumentError("while_loop: the state holds no tensor", remedy="add a counter: graphc.tensor(0)")
    if max_steps is not None and max_steps < 0:
        raise ArgumentError(f"while_loop: max_steps must be at least 0, got {max_steps}")
    if checkpoint and max_steps is None:
        raise ArgumentError("while_loop: checkpoint needs max_steps", remedy="pass an upper bound of the steps")
    chunk = chunk_length("while_loop", checkpoint, max_steps) if checkpoint else 0
    if not isinstance(front(), Tracer):
        return _in_python(cond_fn, body_fn, init, max_steps, chunk)
    if max_steps is not None:
        return _bounded(cond_fn, body_fn, init, max_steps, chunk)
    return _unbounded(cond_fn, body_fn, init)


def _in_python(cond_fn: Any, body_fn: Any, state: Any, max_steps: int | None, chunk: int) -> Any:
    def run(state: Any, most: int | None) -> tuple[Any, bool]:
        steps = 0
        while most is None or steps < most:
            if not bool(_evaluated(cond_fn, state)):
                return state, False
            state = _like(state, _stepped(body_fn, state))
            steps += 1
        return state, True

    if not chunk or max_steps is None:
        return unshared(run(state, max_steps)[0])
    goes_on = True
    for start in range(0, max_steps, chunk):
        if goes_on:
            state, goes_on = run_again(run, state, min(chunk, max_steps - start))
    return unshared(state)


def _evaluated(cond_fn: Any, state: Any) -> Any:
    """Evaluate the condition in a random step of its own."""
    with own_step(uncertain=True):
        return _condition(cond_fn(state))


def _stepped(body_fn: Any, state: Any) -> Any:
    """Compute the next state in a random step of its own."""
    with own_step(uncertain=True):
        return body_fn(state)


def _bounded(cond_fn: Any, body_fn: Any, init: Any, max_steps: int, chunk: int) -> Any:
    """Run ``max_steps`` steps of a scan; those after the last real one pass their state on. With ``chunk``, a step of
    the scan is a branch that runs this many steps: its gradient keeps its operands alone (see ``cond``)."""
    if not max_steps:
        return unshared(init)
    if _draws(cond_fn, init):
        if chunk:
            raise ArgumentError(
                "while_loop: checkpoint does not work with a condition that draws random numbers",
                remedy="draw them in the step, and make them part of the state",
            )
        return _bounded_draws(cond_fn, body_fn, init, max_steps)

    def step(state: Any, _: Any) -> tuple[Any, Any]:
        more = _evaluated(cond_fn, state)
        return cond(more, lambda s: _like(s, _stepped(body_fn, s)), lambda s: s, (state,)), None

    def steps(state: Any, count: int) -> Any:
        more = _evaluated(cond_fn, state)
        return cond(more, lambda s: scan(step, s, length=count)[0], lambda s: s, (state,))

    if not chunk:
        return scan(step, init, length=max_steps)[0]
    count, rest = divmod(max_steps, chunk)
    state = scan(lambda state, _: (steps(state, chunk), None), init, length=count)[0] if count else init
    return steps(state, rest) if rest else state


def _bounded_draws(cond_fn: Any, body_fn: Any, init: Any, max_steps: int) -> Any:
    """Run ``_bounded`` for a condition that draws random numbers: it is not evaluated again after the last step."""

    def step(carry: Any, _: Any) -> tuple[Any, Any]:
        more, state = carry
        more = cond(more, lambda s: _condition(cond_fn(s)), lambda s: more, (state,))
        return (more, cond(more, lambda s: _like(s, _stepped(body_fn, s)), lambda s: s, (state,))), None

    return scan(step, (front().scalar(True, bool_), init), length=max_steps)[0][1]


def _draws(cond_fn: Any, init: Any) -> bool:
    """Return whether a condition draws random numbers."""
    leaves, form = flatten(init)
    inner, _ = sub_trace("while.test", lambda state: _evaluated(cond_fn, state), leaves, form)
    return bool(generator_states(inner, "while_loop", _REMEDY))


def _like(before: Any, after: Any) -> Any:
    """Return the next state, nested as the previous one is."""
    leaves, form = flatten(before)
    return unflatten(form, matched_types(form, types_of(leaves), after, _STATE))


def _condition(value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.dtype is not bool_ or value.numel() != 1:
            what = f"{value.dtype.name}{list(value.shape)}"
            raise DTypeError(
                f"while_loop: the condition is {what}, not one bool",
                remedy="return a comparison, or reduce it with .any() or .all()",
            )
        return value.reshape(())
    return value


def imported_loop(cond_fn: Any, body_fn: Any, init: Any, checkpoint: int | bool = False) -> Any:
    """Run the loop of a model from elsewhere, see ``while_loop``. ``checkpoint`` applies where constants and counters
    decide the number of steps."""
    if isinstance(front(), Tracer):
        return _unbounded(cond_fn, body_fn, init, checkpoint)
    return _in_python(cond_fn, body_fn, init, None, 0)


_STATE = Sides("while_loop", "state")
_REMEDY = "make it part of the state"
_NO_FAULT = -(1 << 63)
"""Number that no check of a loop refuses."""


def _unbounded(cond_fn: Any, body_fn: Any, init: Any, checkpoint: int | bool = False) -> Any:
    """Trace the loop as one node: as a scan where constants and counters decide the number of steps."""
    leaves, form = flatten(init)
    test, more = _traced_test(cond_fn, leaves, form)
    if generator_states(test, "while_loop", _REMEDY):
        return _unbounded_draws(cond_fn, body_fn, init)

    def step(state: Any) -> Any:
        return _like(state, _stepped(body_fn, state))

    body, after = sub_trace("while.body", step, leaves, form)
    _refuse_checks(test)
    count, is_exact = _count(test, more, body, leaves, after)
    if count == 0:
        return unshared(init)
    if count is not None and is_exact:
        attrs = {"length": count, "reverse": False}
        return unflatten(form, emit_steps(body, leaves, [], after, attrs, "while_loop", checkpoint)[0])
    if checks := taken_checks(body.graph):
        return _unbounded_checks(cond_fn, body_fn, init, len(checks))
    drawn = generator_states(body, "while_loop", _REMEDY)
    others = join_arguments((test, body), len(leaves))
    operands = [*leaves, *as_they_were(others, [entry.tensor for entry in drawn])]
    for number, entry in enumerate(drawn, len(leaves)):
        index = body.graph.inputs.index(entry.value)
        operands.insert(number, operands.pop(index))
        for inner in (test, body):
            inner.graph.inputs.insert(number, inner.graph.inputs.pop(index))
        after.append(final_value(body, entry.tensor)._data)
    test.graph.set_outputs(more)
    body.graph.set_outputs(after)
    attrs = {"test": test.graph, "body": body.graph, "carries": len(after), "most": count or 0}
    outputs = front().apply(while_op.op, operands, attrs)
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    for entry, value in zip(drawn, outputs[len(leaves) :], strict=True):
        put_back(entry.tensor, value, recorded=False)
    return unflatten(form, outputs[: len(leaves)])


def _traced_test(cond_fn: Any, leaves: list[Tensor], form: Structure) -> tuple[Tracer, list[Value]]:
    """Trace the condition; return the tracer and the result. Raises ArgumentError for a condition that is True."""

    def condition(state: Any) -> Tensor:
        more = _evaluated(cond_fn, state)
        return more if isinstance(more, Tensor) else front().scalar(bool(more), bool_)

    test, more = sub_trace("while.test", condition, leaves, form)
    if more[0].is_scalar_constant and more[0].node.attrs["value"]:
        raise ArgumentError(
            "while_loop: the condition is true for every state, so that the loop would never end",
            remedy="compare tensors of the state",
        )
    return test, more


def _count(
    test: Tracer, more: list[Value], body: Tracer, leaves: list[Tensor], after: list[Value]
) -> tuple[int | None, bool]:
    """Return the number of steps of a loop or an upper bound, as counters decide it, and whether it is exact."""
    tracer = front()
    assert isinstance(tracer, Tracer)
    test.graph.set_outputs(more)
    body.graph.set_outputs(after)
    first = [constant(tracer, x) for x in leaves]
    entire, ends = ([*first, *(constant(tracer, x) for x in inner.origins)] for inner in (body, test))
    return StepValues(body.graph, entire, len(leaves)).trip_count(test.graph, ends)


def _unbounded_draws(cond_fn: Any, body_fn: Any, init: Any) -> Any:
    """Trace the loop of a condition that draws random numbers: each step also evaluates the next condition."""

    def step(carry: Any) -> Any:
        state = _like(carry[1], _stepped(body_fn, carry[1]))
        return _evaluated(cond_fn, state), state

    return _unbounded(lambda carry: carry[0], step, (_evaluated(cond_fn, init), init))[1]


def _unbounded_checks(cond_fn: Any, body_fn: Any, init: Any, count: int) -> Any:
    """Trace the loop of a body with ``count`` checks: it ends after the step in which one fails, and passes on the
    fault, which is checked after the loop."""
    checks: list[Node] = []

    def step(carry: Any) -> Any:
        after = _like(carry[0], _stepped(body_fn, carry[0]))
        tracer = front()
        assert isinstance(tracer, Tracer)
        checks[:] = taken_checks(tracer.graph)
        return after, [_fault(node) for node in checks]

    def more(carry: Any) -> Any:
        condition = _evaluated(cond_fn, carry[0])
        for fault in carry[1]:
            condition = condition & fault.eq(_NO_FAULT)
        return condition

    state, faults = _unbounded(more, step, (init, [front().scalar(_NO_FAULT, int64) for _ in range(count)]))
    for node, fault in zip(checks, faults, strict=True):
        with at(node.location):
            if "allowed" in node.attrs:
                front().apply(node.op, [fault], {**node.attrs, "allowed": (*node.attrs["allowed"], _NO_FAULT)})
            else:
                front().apply(node.op, [fault.eq(_NO_FAULT)], node.attrs)
    return state


def _fault(node: Node) -> Tensor:
    """Return the largest element that a check of a range refuses, 0 for a false condition, or ``_NO_FAULT``."""
    x = Tensor._wrap(node.operands[0]).reshape(-1)
    if "allowed" in node.attrs:
        low, high, allowed = (node.attrs[name] for name in ("low", "high", "allowed"))
        elements = x.to(int64)
        wrong = elements.lt(low) | elements.gt(high)
        for value in allowed:
            wrong = wrong & elements.ne(value)
    else:
        elements, wrong = x.to(int64), x.logical_not()
    faults = where(wrong, elements, _NO_FAULT)
    if not is_size(x.shape[0]) and x.shape[0] == 1:
        return faults.reshape(())
    return cat([faults, full((1,), _NO_FAULT, dtype=int64)]).amax(0)


def _refuse_checks(test: Tracer) -> None:
    for node in test.graph.nodes():
        if node.op.has(Trait.CHECK):
            raise TraceError(
                "while_loop: the condition checks an index or another condition, which compiled code would check once, "
                "not in each step",
                origin=place_of(node),
                remedy="check it in the step, and make the result part of the state",
            )


def fori_loop(
    lower: Any,
    upper: Any,
    body_fn: Callable[[Any, Any], Any],
    init: Any,
    max_steps: int | None = None,
    *,
    checkpoint: int | bool = False,
) -> Any:
    """Apply ``state = body_fn(i, state)`` for each ``i`` from ``lower`` to ``upper - 1``; return the last state.

    With Python numbers as bounds it is a differentiable ``scan``, and ``i`` is an i64 tensor without dimensions. With a
    tensor as a bound it is a ``while_loop``, whose gradient needs ``max_steps``. ``checkpoint`` and the errors are
    those of these two.

    Example:
        >>> import graphc as gc
        >>> gc.fori_loop(1, 6, lambda i, product: product * i, gc.tensor(1))
        tensor(120)
    """
    if isinstance(lower, int) and isinstance(upper, int):
        if upper <= lower:
            return unshared(init)
        numbers = iota(shape=(upper - lower,), axis=0, dtype=int64) + lower
        return scan(lambda state, i: (body_fn(i, state), None), init, numbers, checkpoint=checkpoint)[0]
    start = lower if isinstance(lower, Tensor) else front().scalar(lower, int64)
    state = (start.reshape(()).to(int64), init)

    def step(s: Any) -> Any:
        return s[0] + 1, body_fn(s[0], s[1])

    return while_loop(lambda s: s[0] < upper, step, state, max_steps, checkpoint=checkpoint)[1]


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply ``f`` to each slice of ``xs`` along the first dimension, one after the other, and stack the results.

    ``xs`` and the results of ``f`` are tensors or nested tuples, lists and dictionaries of them. Compiled code contains
    ``f`` once; ``vmap`` computes all slices at once instead. Raises the errors of ``scan``.

    Example:
        >>> import graphc as gc
        >>> gc.map(lambda row: row.sum(), gc.tensor([[1, 2], [3, 4]]))
        tensor([3, 7])
    """
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]
