"""Loops whose number of steps a value decides, ``while_loop`` and ``fori_loop``; ``map`` and ``associative_scan``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base import module_path
from graphc.base.dtypes import bool_, int64
from graphc.base.errors import ArgumentError, DTypeError, ShapeError, TraceError
from graphc.base.location import capture
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.index import iota
from graphc.ops.shape import concat
from graphc.ops.while_loop import while_loop as while_op
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.branch import cond
from graphc.tracing.scan import scan
from graphc.tracing.tracer import Tracer


def while_loop(
    cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any, max_steps: int | None = None
) -> Any:
    """The last state of ``state = body_fn(state)``, from ``init`` on, as long as ``cond_fn(state)`` is true.

    The state is a tensor or nested tuples, lists and dictionaries of tensors, which keep their shapes and types.
    ``cond_fn`` returns a bool or a bool tensor of one element. What is compiled holds a loop that runs as often as
    values ask for. Its gradient needs ``max_steps``, the largest number of steps that there may be: then so many states
    are kept, and the loop ends there.

    Raises ShapeError and DTypeError where a step changes types, GradientError where a gradient would go through a loop
    without ``max_steps``, TraceError in a trace where a function writes to tensors from outside, draws random numbers,
    or checks an index.
    """
    leaves, form = flatten(init)
    if not leaves:
        raise ArgumentError("while_loop: the state holds no tensor", remedy="graphc.tensor(0) as a counter")
    if max_steps is not None and max_steps < 0:
        raise ArgumentError(f"while_loop: max_steps is {max_steps}")
    if not isinstance(front(), Tracer):
        return _in_python(cond_fn, body_fn, init, max_steps)
    if max_steps is not None:
        return _bounded(cond_fn, body_fn, init, max_steps)
    return unflatten(form, _While(cond_fn, body_fn, leaves, form).trace())


def _in_python(cond_fn: Any, body_fn: Any, state: Any, max_steps: int | None) -> Any:
    steps = 0
    while (max_steps is None or steps < max_steps) and bool(_condition(cond_fn(state))):
        before, form = flatten(state)
        state = body_fn(state)
        after, new = flatten(state)
        _same(before, form, after, new)
        steps += 1
    return state


def _bounded(cond_fn: Any, body_fn: Any, init: Any, max_steps: int) -> Any:
    """So many steps, of which those behind the last one hand on what they get."""
    if not max_steps:
        return init

    def step(state: Any, _: Any) -> tuple[Any, Any]:
        more = _condition(cond_fn(state))
        return cond(more, lambda s: _like(s, body_fn(s)), lambda s: s, (state,)), None

    return scan(step, init, length=max_steps)[0]


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


class _While:
    """The loop as one node of a trace."""

    def __init__(self, cond_fn: Any, body_fn: Any, leaves: Sequence[Tensor], form: Any):
        tracer = front()
        assert isinstance(tracer, Tracer)
        self.tracer, self.leaves, self.form = tracer, leaves, form
        self.required = [refresh(tracer.local(t))._requires_grad for t in leaves]
        self.functions = (lambda state: _condition(cond_fn(state)), body_fn)

    def trace(self) -> list[Tensor]:
        """The last state."""
        inner, results = [], []
        for name, function in zip(("test", "body"), self.functions, strict=True):
            one, values = self._run(name, function)
            inner.append(one)
            results.append(values)
        graphs = self._graphs(inner, results)
        operands = [*self.leaves, *(t for one in inner for t in one.origins)]
        attrs = {"test": graphs[0], "body": graphs[1], "carries": len(self.leaves)}
        found = self.tracer.apply(while_op.op, operands, attrs)
        return list(found) if isinstance(found, tuple) else [found]

    def _run(self, name: str, function: Callable[[Any], Any]) -> tuple[Tracer, list[Value]]:
        inner = Tracer(Graph(f"while.{name}"), parent=self.tracer)
        with dispatch.use(inner):
            given = []
            for i, leaf in enumerate(self.leaves):
                kind = TensorType(leaf.dtype, tuple(leaf.shape))
                given.append(Tensor._wrap(inner.graph.add_input(kind, f"state.{i}")))
                given[-1]._requires_grad = self.required[i] and leaf.dtype.kind == "f"
            found = function(unflatten(self.form, given))
            leaves, form = flatten(found)
            if name == "body":
                _same(self.leaves, self.form, leaves, form)
            elif not leaves:
                raise ArgumentError(
                    "while_loop: the condition does not depend on the state, so that the loop would never end",
                    remedy="a comparison of tensors of the state",
                )
            values = [refresh(inner.local(t))._data for t in leaves]
        _check(inner)
        return inner, values

    def _graphs(self, inner: Sequence[Tracer], results: Sequence[list[Value]]) -> list[Graph]:
        graphs = []
        for one, values in zip(inner, results, strict=True):
            graph = one.graph
            arguments, own = list(graph.inputs[: len(self.leaves)]), list(one.lifted.values())
            for other in inner:
                for i, tensor in enumerate(other.origins):
                    kind = TensorType(tensor.dtype, tuple(tensor.shape))
                    arguments.append(own[i] if other is one else graph.add_input(kind, f"unused{i}"))
            graph.inputs[:] = arguments
            graph.set_outputs(values)
            graphs.append(graph)
        return graphs


def _check(inner: Tracer) -> None:
    for node in inner.graph.nodes():
        if node.op.has(Trait.RANDOM) or node.op.has(Trait.CHECK):
            draws = node.op.has(Trait.RANDOM)
            what = "draws random numbers" if draws else "checks an index or a condition"
            raise TraceError(
                f"while_loop: a function {what}, which would be done once instead of in each step",
                origin=node.location.describe() or capture(module_path.current_path()).describe(),
                remedy="scan or fori_loop with whole numbers, whose steps may draw"
                if draws
                else "do it before the loop, or while_loop(..., max_steps=N)",
            )
    for entry in inner.written():
        origin = entry.origin.describe() if entry.origin else None
        remedy = "make it a part of the state"
        raise TraceError("while_loop: a function writes to a tensor from outside", origin=origin, remedy=remedy)


def fori_loop(
    lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init: Any, max_steps: int | None = None
) -> Any:
    """Applies ``state = body_fn(i, state)`` for each ``i`` from ``lower`` to below ``upper``; the last state.

    With Python numbers as bounds it is a ``scan``, with gradients, and ``i`` an i64 tensor without dimensions. With a
    tensor as a bound it is a ``while_loop``, whose gradient needs ``max_steps``. Raises what these raise.
    """
    if isinstance(lower, int) and isinstance(upper, int):
        if upper <= lower:
            return init
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


def associative_scan(f: Callable[[Any, Any], Any], xs: Any, dim: int = 0, reverse: bool = False) -> Any:
    """All partial results of an associative function: ``y[i] = f(y[i - 1], x[i])`` along ``dim``, ``y[0] = x[0]``.

    ``f`` takes and gives many elements at once: two nested structures like ``xs``, of the same shapes but for the size
    of ``dim``. It is called about ``2 log2(n)`` times, for halves of what is left (Blelloch 1990), so what is compiled
    grows with the logarithm of the length. ``reverse`` begins at the end. Raises ShapeError where sizes along ``dim``
    differ or are 0.
    """
    leaves, form = flatten(xs)
    if not leaves or not leaves[0].shape:
        raise ShapeError("associative_scan needs tensors with a dimension to go along")
    axis = dim % len(leaves[0].shape)
    sizes = {t.shape[axis] if axis < len(t.shape) else -1 for t in leaves}
    if len(sizes) != 1 or sizes <= {0, -1}:
        raise ShapeError(
            f"associative_scan: sizes along dimension {dim} are {sorted(sizes)}", remedy="one size, 1 or more"
        )
    given = [t.flip(axis) for t in leaves] if reverse else list(leaves)

    def combine(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
        return flatten(f(unflatten(form, first), unflatten(form, second)))[0]

    found = _partial(combine, given, axis)
    return unflatten(form, [t.flip(axis) for t in found] if reverse else found)


def _partial(
    combine: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]], xs: Sequence[Tensor], axis: int
) -> list[Tensor]:
    """Combines neighbours, solves for these pairs, and makes the places between them of the results."""
    count = xs[0].shape[axis]
    if count < 2:
        return list(xs)

    def part(tensors: Sequence[Tensor], start: int, stop: int, step: int) -> list[Tensor]:
        index = (*(slice(None) for _ in range(axis)), slice(start, stop, step))
        return [t[index] for t in tensors]

    pairs = combine(part(xs, 0, count - 1, 2), part(xs, 1, count, 2))
    odd = _partial(combine, pairs, axis)
    left = odd if count % 2 else part(odd, 0, odd[0].shape[axis] - 1, 1)
    first, others = part(xs, 0, 1, 1), part(xs, 2, count, 2)
    rest = combine(left, others) if others[0].shape[axis] else others
    even = [concat(a, b, axis=axis) for a, b in zip(first, rest, strict=True)]
    return [_interleaved(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """Elements of both in turn; the first may have one more."""
    pairs, more = odd.shape[axis], even.shape[axis] - odd.shape[axis]
    shape = list(even.shape)
    both = concat(even.narrow(axis, 0, pairs).unsqueeze(axis + 1), odd.unsqueeze(axis + 1), axis=axis + 1).reshape(
        *shape[:axis], 2 * pairs, *shape[axis + 1 :]
    )
    return concat(both, even.narrow(axis, pairs, 1), axis=axis) if more else both
