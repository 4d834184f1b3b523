"""``cond`` and ``switch``: run one of several functions, chosen by a value of the call; one node of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.dtypes import bool_
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.control.sub_graphs import (
    argument,
    as_they_were,
    changed_arguments,
    check_names,
    join_arguments,
    put_back,
    unshared,
    written_states,
)
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import Trait
from graphc.ops import dispatch
from graphc.ops.effects.check import check_true, limits_of
from graphc.ops.flow.branch import cond as cond_op
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import no_grad
from graphc.tensors.matching import Sides, TensorTypes, matched_types, types_of
from graphc.tensors.random.generator import own_step
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.tracer import Tracer

Function = Callable[..., Any]


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Any = ()) -> Any:
    """Call ``true_fn(*operands)`` if ``pred`` is true, else ``false_fn(*operands)``; compute only that one.

    Compiled code contains both functions and a branch; its backward pass recomputes the chosen one. Under ``vmap`` with
    different conditions, both are computed. Eager and compiled code draw the same random numbers (``Generator.draw``).
    Eager mode calls the chosen function only; compiled code compares the types of the results of both.

    Args:
        pred: a bool, or a bool tensor of one element.
        true_fn, false_fn: functions of the operands. They may use and write to tensors from outside, such as buffers,
            and draw random numbers; only the chosen one does. Tensors from outside get gradients too.
        operands: tuple or list of tensors, or of nested tuples, lists, dictionaries and dataclasses of tensors.

    Returns:
        The result of the chosen function. Both return the same nesting, shapes and element types.

    Raises:
        ShapeError: in a trace, the results have different shapes.
        DTypeError: in a trace, the results have different element types.
        ArgumentError: in a trace, the results are nested differently.

    Example:
        >>> import graphc as gc
        >>> x = gc.tensor([1.0, -4.0])
        >>> gc.cond(x.sum() > 0, lambda x: x, lambda x: -x, (x,))
        tensor([-1.,  4.])
    """
    if not isinstance(operands, (tuple, list)):
        raise ArgumentError(
            f"cond: operands must be a tuple or a list, got {type(operands).__name__}", remedy="pass (x,)"
        )
    if not callable(true_fn) or not callable(false_fn):
        raise ArgumentError("cond takes a condition and two functions", remedy="call cond(pred, f, g, (x,))")
    if not isinstance(pred, Tensor):
        return (true_fn if pred else false_fn)(*operands)
    if pred.dtype is not bool_:
        raise DTypeError(f"cond: the condition is {pred.dtype.name}", remedy="pass a comparison, such as x.sum() > 0")
    if pred.numel() != 1:
        raise ShapeError(f"cond: the condition has shape {list(pred.shape)}", remedy="reduce it with .any() or .all()")
    tracer = front()
    if not isinstance(tracer, Tracer) or tracer.known(pred) is not None:
        with own_step(uncertain=True):
            return unshared((true_fn if bool(pred) else false_fn)(*operands))
    return _Branches(tracer, operands).trace(pred.reshape(()), true_fn, false_fn)


_RESULTS = Sides("cond", "result", "from one function", "from the other")


def switch(index: Any, branches: Sequence[Function], operands: Any = ()) -> Any:
    """Return ``branches[index](*operands)``; only that one is computed. The index is clamped to the valid range.

    Like ``cond``, with an integer, or an integer tensor of one element, in place of the condition.

    Example:
        >>> import graphc as gc
        >>> gc.switch(1, [lambda x: x + 1, lambda x: x * 10], (gc.tensor(4),))
        tensor(40)
    """
    functions = list(branches)
    if not functions:
        raise ArgumentError("switch needs at least one function")
    if not isinstance(index, Tensor):
        return functions[min(max(index, 0), len(functions) - 1)](*operands)
    if index.dtype.kind not in "iu" or index.numel() != 1:
        what = f"{index.dtype.name}{list(index.shape)}"
        raise DTypeError(
            f"switch: the index is {what}, not one integer", remedy="use argmax(), or convert a number with .long()"
        )
    return _choose(index.reshape(()), functions, 0, operands)


def _choose(index: Tensor, functions: Sequence[Function], first: int, operands: Any) -> Any:
    """Select one function by binary search over the index."""
    if len(functions) == 1:
        return functions[0](*operands)
    middle = len(functions) // 2
    return cond(
        index < first + middle,
        lambda *inputs: _choose(index, functions[:middle], first, inputs),
        lambda *inputs: _choose(index, functions[middle:], first + middle, inputs),
        operands,
    )


class _Branches:
    """The two functions as graphs over the same arguments."""

    def __init__(self, tracer: Tracer, operands: Sequence[Any]):
        self.tracer = tracer
        self.leaves, self.nested = flatten(tuple(operands))
        self.required = [refresh(tracer.local(t))._requires_grad for t in self.leaves]
        self.inner: list[Tracer] = []
        self.arguments: list[list[Tensor]] = []
        """For each function, its traced operands."""
        self.results: list[list[Value]] = []
        self.checks: list[list[tuple[Value, str]]] = []
        self.form: Structure | None = None
        self.types: TensorTypes = ()

    def trace(self, pred: Tensor, *functions: Function) -> Any:
        """Trace the functions, append the node, and return its results."""
        for name, function in zip(("then", "otherwise"), functions, strict=True):
            self._run(name, function)
        states = self._states()
        others = join_arguments(self.inner, len(self.leaves))
        operands = [pred, *as_they_were([*self.leaves, *others], [tensor for tensor, _ in states])]
        then, otherwise = self._graphs()
        outputs = []
        if then.outputs:
            outputs = self.tracer.apply(cond_op.op, operands, {"then": then, "otherwise": otherwise})
            outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        count = len(self.results[0])
        for (tensor, recorded), value in zip(states, outputs[count - len(states) :], strict=False):
            put_back(tensor, value, recorded)
        with no_grad():
            for holds, (_, message) in zip(outputs[count:], [c for checks in self.checks for c in checks], strict=True):
                check_true(holds, message=message)
        assert self.form is not None
        return unflatten(self.form, outputs[: count - len(states)])

    def _run(self, name: str, function: Function) -> None:
        inner = Tracer(Graph(f"cond.{name}"), parent=self.tracer)
        with dispatch.use(inner), own_step(uncertain=True):
            arguments = [argument(inner, t, f"x{i}", self.required[i]) for i, t in enumerate(self.leaves)]
            result = function(*unflatten(self.nested, arguments))
            if self.form is None:
                returned, self.form = flatten(result)
                self.types = types_of(returned)
            else:
                returned = matched_types(self.form, self.types, result, _RESULTS)
            results = [refresh(inner.local(t))._data for t in returned]
            self.checks.append(self._extract_checks(inner))
        self.inner.append(inner)
        self.arguments.append(arguments)
        self.results.append(results)

    def _states(self) -> list[tuple[Tensor, bool]]:
        """Append the final contents of all operands and outside tensors that either function writes to, as further
        results of both. Return each tensor with whether it requires a gradient."""
        images: list[tuple[Tensor, list[Tensor]]] = []
        changed = {
            i
            for inner, tensors in zip(self.inner, self.arguments, strict=True)
            for i in changed_arguments(inner, tensors)
        }
        for i in sorted(changed):
            images.append((self.leaves[i], [refresh(tensors[i]) for tensors in self.arguments]))
        for tensor in written_states(self.inner):
            final = []
            for inner in self.inner:
                with dispatch.use(inner):
                    final.append(refresh(inner.local(tensor)))
            images.append((tensor, final))
        check_names(self.inner, self.leaves, [tensor for tensor, _ in images], "cond")
        for _, final in images:
            for image, results in zip(final, self.results, strict=True):
                results.append(image._data)
        return [(tensor, any(image._requires_grad for image in final)) for tensor, final in images]

    def _graphs(self) -> list[Graph]:
        """Set the outputs of both graphs: results, then the checks of both functions."""
        graphs = []
        for number, inner in enumerate(self.inner):
            graph = inner.graph
            checked = []
            for owner, checks in enumerate(self.checks):
                checked += [v if owner == number else graph.scalar(True, bool_) for v, _ in checks]
            graph.set_outputs([*self.results[number], *checked])
            graphs.append(graph)
        return graphs

    def _extract_checks(self, inner: Tracer) -> list[tuple[Value, str]]:
        """Remove the checks of a branch; return whether each one holds, with its message."""
        extracted = []
        for node in [n for n in inner.graph.nodes() if n.op.has(Trait.CHECK)]:
            low, high, allowed = limits_of(node.attrs)
            x = Tensor._wrap(node.operands[0])
            with no_grad():
                holds = x if x.dtype is bool_ else ew.logical_and(ew.ge(x, low), ew.le(x, high))
                for value in allowed:
                    holds = ew.logical_or(holds, ew.eq(x, value))
                message = (
                    node.attrs.get("message") or f"{node.attrs.get('what', 'a value')} is out of range in a branch"
                )
                extracted.append((refresh(inner.local(holds.all()))._data, message))
            inner.graph.erase(node)
        return extracted
