"""ONNX operators that run graphs: If, Loop, Scan and SequenceMap, as Python or as branches and loops of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import UnsupportedError, ValueNeededError
from graphc.base.sizes.size import is_size
from graphc.control.branch import cond as branch
from graphc.control.scan import scan as scan_steps
from graphc.control.while_loop import while_loop
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.elements import BOOL, INT64, Element
from graphc.interop.onnx.graph import OnnxGraph, Port
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors.creation import arange
from graphc.tensors.free_functions import stack
from graphc.tensors.generator import own_step
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer

MOST_UNROLLED = 1000
"""Operators of all steps of a loop whose number of steps a trace knows: longer ones are loops of the program."""
MOST_BOUNDED = 10_000
"""Steps up to which a loop with a condition is one of so many steps, of which gradients can be taken."""


@op("If", values=True)
def if_(cond: Value, *, call: Call) -> Any:
    """The results of one of two graphs."""
    graphs = [call.graph(name) for name in ("then_branch", "else_branch")]
    if not cond.is_open:
        with own_step(uncertain=not cond.is_known):
            return tuple(call.run(graphs[0] if cond.array.reshape(-1)[0] else graphs[1]))
    elements: list[list[Element]] = []

    def run(graph: OnnxGraph) -> list[Tensor]:
        found = call.run(graph)
        elements.append([_need_tensor(v, "If").element for v in found])
        return [v.tensor for v in found]

    found = branch(cond.tensor.reshape(()), lambda: run(graphs[0]), lambda: run(graphs[1]))
    return tuple([Value(e, t) for e, t in zip(elements[0], found, strict=True)])


def _need_tensor(value: Any, title: str) -> Value:
    """A value that graphs of a trace hand on. Raises UnsupportedError for sequences, texts and what is not there."""
    if not isinstance(value, Value) or value.element.carrier is None:
        raise UnsupportedError(
            f"{title} whose condition is known in calls only, with values that are no tensors",
            remedy="the model without compilation",
        )
    return value


# ---- Loop


@op("Loop", values=True)
def loop(M: Value | None, cond: Value | None = None, *state: Any, call: Call) -> Any:
    """Steps until so many are done or the condition is false: the last state, and what each step gives, stacked."""
    body = call.graph("body")
    count = None if M is None or M.is_open else M.number
    steps = _Steps(call, body, len(state))
    if not any(isinstance(v, Value) and v.is_open for v in (M, cond)):
        if cond is not None and not cond.array.reshape(-1)[0]:
            count = 0
        found = steps.in_python(count, state)
        if found is not None:
            return found
        if steps.goes_on and count is not None:
            return steps.counted(count, state)
    return steps.conditional(M, cond, state)


class _Steps:
    """The graph of a loop: number of the step, condition and state to condition, state, and what is stacked."""

    def __init__(self, call: Call, body: OnnxGraph, carried: int):
        self.call = call
        self.body = body
        self.carried = carried
        self.goes_on = _goes_on(body)
        self.stacked = body.outputs[1 + carried :]
        self.elements: list[Element] = []
        """Of what is stacked, once a step was traced."""

    def in_python(self, count: Any, state: Sequence[Any]) -> tuple[Any, ...] | None:
        """One step after the other, whatever state and results are. None in a trace that does not know when to end, or
        of which that would be a large part."""
        most = MOST_UNROLLED // max(len(self.body.nodes), 1) if isinstance(front(), Tracer) else None
        if most is not None and (is_size(count) or (self.goes_on and (count is None or count > most))):
            return None
        state, stacks, number = list(state), [[] for _ in self.stacked], 0
        while count is None or number < count:
            with own_step(uncertain=not self.goes_on):
                go_on, *found = self.call.run(self.body, Value.of(np.int64(number)), Value.of(np.True_), *state)
            if not self.goes_on and (go_on.is_open or number == most):
                return None
            state = found[: self.carried]
            for kept, value in zip(stacks, found[self.carried :], strict=True):
                kept.append(value)
            number += 1
            if not self.goes_on and not go_on.array.reshape(-1)[0]:
                break
        return *state, *(_stacked(kept, port) for kept, port in zip(stacks, self.stacked, strict=True))

    def _step(self, number: Tensor, state: Sequence[Tensor], elements: Sequence[Element]) -> Any:
        """Condition, next state and what is stacked, as tensors."""
        given = [Value(e, t) for e, t in zip(elements, state, strict=True)]
        go_on, *found = self.call.run(self.body, Value(INT64, number), Value.of(np.True_), *given)
        for value in found:
            _need_tensor(value, "Loop")
        self.elements = [v.element for v in found[self.carried :]]
        tensors = [v.tensor for v in found]
        return go_on.tensor.reshape(()), tensors[: self.carried], tensors[self.carried :]

    def counted(self, count: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        """So many steps as one loop of the program."""
        elements = [_need_tensor(v, "Loop").element for v in state]

        def step(carry: list[Tensor], number: Tensor) -> tuple[list[Tensor], list[Tensor]]:
            return self._step(number, carry, elements)[1:]

        last, stacks = scan_steps(step, [v.tensor for v in state], arange(count))
        return *map(Value, elements, last), *map(Value, self.elements, stacks)

    def conditional(self, M: Value | None, cond: Value | None, state: Sequence[Any]) -> tuple[Any, ...]:
        """Steps as long as values say so, as one loop of the program."""
        if self.stacked:
            raise ValueNeededError(
                "Loop stacks results of steps whose number is known in calls only",
                remedy="the model without compilation, or a loop with a constant number of steps",
            )
        elements = [_need_tensor(v, "Loop").element for v in state]
        known = M is not None and not M.is_open and not is_size(M.number) and M.number <= MOST_BOUNDED
        limit = None if M is None else M.tensor.reshape(())
        first = Value.of(np.True_) if cond is None else cond
        init = (Value.of(np.int64(0)).tensor, first.tensor.reshape(()), [v.tensor for v in state])

        def more(carry: Any) -> Tensor:
            return carry[1] if limit is None else carry[1] & (carry[0] < limit)

        def step(carry: Any) -> Any:
            go_on, after, _ = self._step(carry[0], carry[2], elements)
            return carry[0] + 1, go_on, after

        last = while_loop(more, step, init, M.number if known else None)[2]  # type: ignore[union-attr]
        return tuple(map(Value, elements, last))


def _goes_on(body: OnnxGraph) -> bool:
    """Whether a loop's graph gives a condition that is always true, or hands on the one that it gets."""
    makers = {name: node for node in body.nodes for name in node.outputs}
    name = body.outputs[0].name
    while name in makers and makers[name].op in ("Identity", "Cast"):
        name = makers[name].inputs[0]
    if len(body.inputs) > 1 and name == body.inputs[1].name:
        return True
    constant = body.constants.get(name)
    if constant is None and name in makers and makers[name].op == "Constant":
        constant = makers[name].attributes.get("value")
    return constant is not None and bool(np.all(constant.array))


def _stacked(values: Sequence[Value], port: Port) -> Value:
    """Results of all steps along a new first axis; without steps as the graph says that they would be."""
    if not values:
        element = port.element or BOOL
        return Value(element, None, np.zeros((0, *(s or 0 for s in port.shape or ())), element.numpy))
    if all(v.is_known for v in values):
        return Value(values[0].element, None, np.stack([v.array for v in values]))
    return Value(values[0].element, stack([v.tensor for v in values]))


# ---- Scan


@op("Scan", since=9, values=True)
def scan(
    *values: Any,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
    call: Call,
) -> tuple[Any, ...]:
    """A graph along axes of sequences: the last state, and what each step gives, stacked along an axis."""
    body = call.graph("body")
    count = len(values) - num_scan_inputs
    state, sequences = values[:count], values[count:]
    moved = [
        _towards(v.tensor.movedim(_entry(scan_input_axes, i), 0), _entry(scan_input_directions, i))
        for i, v in enumerate(sequences)
    ]
    last, stacks = _scanned(call, body, state, sequences, moved)
    turned = [
        Value(v.element, _towards(v.tensor, _entry(scan_output_directions, i)).movedim(0, _entry(scan_output_axes, i)))
        for i, v in enumerate(stacks)
    ]
    return *last, *turned


def _entry(numbers: Sequence[int], i: int) -> int:
    return numbers[i] if i < len(numbers) else 0


def _towards(x: Tensor, direction: int) -> Tensor:
    return x.flip(0) if direction else x


def _scanned(
    call: Call, body: OnnxGraph, state: Sequence[Value], sequences: Sequence[Value], tensors: Sequence[Tensor]
) -> tuple[list[Value], list[Value]]:
    """The last state and the stacks of a graph along the first axes of sequences."""
    kinds = [v.element for v in state]
    parts: list[Element] = []

    def step(carry: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        given = [*map(Value, kinds, carry), *map(Value, [v.element for v in sequences], slices)]
        found = call.run(body, *given)
        parts[:] = [_need_tensor(v, "Scan").element for v in found[len(state) :]]
        results = [v.tensor for v in found]
        return results[: len(state)], results[len(state) :]

    if not is_size(tensors[0].shape[0]) and tensors[0].shape[0] == 0:
        return list(state), [_stacked([], port) for port in body.outputs[len(state) :]]
    last, stacks = scan_steps(step, [v.tensor for v in state], list(tensors))
    return [*map(Value, kinds, last)], [*map(Value, parts, stacks)]


@op("Scan", since=8, values=True)
def scan_8(
    sequence_lens: Value | None, *values: Value, num_scan_inputs: int, directions: Sequence[int] = (), call: Call
) -> tuple[Any, ...]:
    """As Scan, for each element of a batch, which is the first axis."""
    if sequence_lens is not None:
        raise UnsupportedError("Scan of version 8 with sequence_lens", remedy="Scan of version 9")
    rows = []
    for i in range(values[0].shape[0]):
        given = [Value(v.element, v.tensor[i]) for v in values]
        rows.append(scan(*given, num_scan_inputs=num_scan_inputs, scan_input_directions=directions, call=call))
    return tuple([_stacked(column, Port("", "tensor", None, None)) for column in zip(*rows, strict=True)])


@op("SequenceMap", since=17, values=True)
def sequence_map(input_sequence: list[Value], *additional: Any, call: Call) -> tuple[Any, ...]:
    """A graph for each element of a sequence; of further sequences it gets the elements of the same place."""
    body = call.graph("body")
    columns: list[list[Any]] = [[] for _ in body.outputs]
    for i, value in enumerate(input_sequence):
        others = [v[i] if isinstance(v, list) else v for v in additional]
        for column, found in zip(columns, call.run(body, value, *others), strict=True):
            column.append(found)
    return tuple(columns)
