"""Rules of If, Loop, Scan and SequenceMap: Python control flow, or branches and loops of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError, UnsupportedError, ValueNeededError
from graphc.base.sizes.size import LARGEST, is_size
from graphc.control.branch import cond as branch
from graphc.control.scan import scan as scan_steps
from graphc.control.while_loop import while_loop
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.elements import BOOL, INT64, Element
from graphc.interop.onnx.graph import OnnxGraph, Port
from graphc.interop.onnx.ops.trip_count import trip_count
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors.creation import arange
from graphc.tensors.free_functions import stack
from graphc.tensors.random.generator import own_step
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.reads import folded, is_cheap, may_read, read_flag
from graphc.tracing.tracer import Tracer

MOST_UNROLLED = 1000
"""Operators up to which a trace unrolls a loop with a static number of steps. Longer loops stay loops."""
MOST_BOUNDED = 10_000
"""Steps up to which a loop with a condition is traced with that bound, which makes it differentiable."""


@op("If", values=True)
def if_(cond: Value, *, call: Call) -> Any:
    """Return the results of one of two graphs."""
    graphs = [call.graph(name) for name in ("then_branch", "else_branch")]
    known = cond.array if not cond.is_open else folded(cond.tensor)
    if known is not None:
        with own_step(uncertain=not cond.is_known):
            return tuple(call.run(graphs[0] if known.reshape(-1)[0] else graphs[1]))
    if may_read() and is_cheap(cond.tensor):
        return _taken(cond, graphs, call)
    try:
        return _both(cond, graphs, call)
    # NOTE: a branch that does not fit the shapes of this call is never taken with them.
    except GraphcError:
        if not may_read():
            raise
        return _taken(cond, graphs, call)


def _taken(cond: Value, graphs: Sequence[OnnxGraph], call: Call) -> tuple[Any, ...]:
    """Trace the branch of this call; calls that take the other one have another program."""
    return tuple(call.run(graphs[0] if read_flag(cond.tensor, "the condition of If") else graphs[1]))


def _both(cond: Value, graphs: Sequence[OnnxGraph], call: Call) -> tuple[Any, ...]:
    """Trace both branches as one node of the program."""
    elements: list[list[Element]] = []

    def run(graph: OnnxGraph) -> list[Tensor]:
        results = call.run(graph)
        elements.append([_need_tensor(v, "If").element for v in results])
        return [v.tensor for v in results]

    results = branch(cond.tensor.reshape(()), lambda: run(graphs[0]), lambda: run(graphs[1]))
    return tuple([Value(e, t) for e, t in zip(elements[0], results, strict=True)])


def _need_tensor(value: Any, title: str) -> Value:
    """Return a value that graphs of a trace can pass on. Raises UnsupportedError for sequences, strings and absent
    values."""
    if not isinstance(value, Value) or value.element.carrier is None:
        raise UnsupportedError(
            f"{title} has a condition that only calls know, and values that are not tensors",
            remedy="call the model without compilation",
        )
    return value


# ---- Loop


@op("Loop", values=True)
def loop(M: Value | None, cond: Value | None = None, *state: Any, call: Call) -> Any:
    """Run steps until their count is reached or the condition is false. Returns the last state, and results stacked by
    step."""
    body = call.graph("body")
    count = None if M is None or M.is_open else M.number
    steps = _Steps(call, body, len(state))
    number = None if steps.goes_on else trip_count(body, cond, M, state, call.scope)
    if is_size(number):
        return steps.counted(number, state)
    if not any(isinstance(v, Value) and v.is_open for v in (M, cond)):
        if cond is not None and not cond.array.reshape(-1)[0]:
            count = 0
        results = steps.in_python(count, state)
        if results is not None:
            return results
        if steps.goes_on and count is not None:
            return steps.counted(count, state)
    return steps.conditional(M, cond, state) if number is None else steps.counted(number, state)


class _Steps:
    """Graph of a loop: takes step index, condition and state, returns condition, state, and results to stack."""

    def __init__(self, call: Call, body: OnnxGraph, carried: int):
        self.call = call
        self.body = body
        self.carried = carried
        self.goes_on = _goes_on(body)
        self.stacked = body.outputs[1 + carried :]
        self.elements: list[Element] = []
        """Element types of the stacked results, once a step is traced."""
        self.steps: Any = None
        """Steps that the last loop with a condition has run."""

    def in_python(self, count: Any, state: Sequence[Any]) -> tuple[Any, ...] | None:
        """Run the steps in Python, whatever state and results are.

        Returns None in a trace without a known end, or where the trace would become too long.
        """
        most = MOST_UNROLLED // max(len(self.body.nodes), 1) if isinstance(front(), Tracer) else None
        if most is not None and (is_size(count) or (self.goes_on and (count is None or count > most))):
            return None
        state, stacks, number = list(state), [[] for _ in self.stacked], 0
        while count is None or number < count:
            with own_step(uncertain=not self.goes_on):
                go_on, *results = self.call.run(self.body, Value.of(np.int64(number)), Value.of(np.True_), *state)
            if not self.goes_on and (go_on.is_open or number == most):
                return None
            state = results[: self.carried]
            for column, value in zip(stacks, results[self.carried :], strict=True):
                column.append(value)
            number += 1
            if not self.goes_on and not go_on.array.reshape(-1)[0]:
                break
        return *state, *(_stacked(column, port) for column, port in zip(stacks, self.stacked, strict=True))

    def _step(self, number: Tensor, state: Sequence[Tensor], elements: Sequence[Element]) -> Any:
        """Return the condition, the next state and the results to stack, as tensors."""
        inputs = [Value(e, t) for e, t in zip(elements, state, strict=True)]
        go_on, *results = self.call.run(self.body, Value(INT64, number), Value.of(np.True_), *inputs)
        for value in results:
            _need_tensor(value, "Loop")
        self.elements = [v.element for v in results[self.carried :]]
        tensors = [v.tensor for v in results]
        return go_on.tensor.reshape(()), tensors[: self.carried], tensors[self.carried :]

    def counted(self, count: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        """Run ``count`` steps as one loop of the program."""
        if count == 0:
            return *state, *(_stacked([], port) for port in self.stacked)
        elements = [_need_tensor(v, "Loop").element for v in state]

        def step(carry: list[Tensor], number: Tensor) -> tuple[list[Tensor], list[Tensor]]:
            return self._step(number, carry, elements)[1:]

        last, stacks = scan_steps(step, [v.tensor for v in state], arange(count))
        return *map(Value, elements, last), *map(Value, self.elements, stacks)

    def conditional(self, M: Value | None, cond: Value | None, state: Sequence[Any]) -> tuple[Any, ...]:
        """Run steps while the condition holds, as one loop of the program."""
        if self.stacked:
            return self._stacking(M, cond, state)
        elements = [_need_tensor(v, "Loop").element for v in state]
        is_bounded = M is not None and not M.is_open and not is_size(M.number) and M.number <= MOST_BOUNDED
        limit = None if M is None else M.tensor.reshape(())
        first = Value.of(np.True_) if cond is None else cond
        init = (Value.of(np.int64(0)).tensor, first.tensor.reshape(()), [v.tensor for v in state])

        def more(carry: Any) -> Tensor:
            return carry[1] if limit is None else carry[1] & (carry[0] < limit)

        def step(carry: Any) -> Any:
            go_on, after, _ = self._step(carry[0], carry[2], elements)
            return carry[0] + 1, go_on, after

        self.steps, _, last = while_loop(more, step, init, M.number if is_bounded else None)  # type: ignore[union-attr]
        return tuple(map(Value, elements, last))

    def _stacking(self, M: Value | None, cond: Value | None, state: Sequence[Any]) -> tuple[Any, ...]:
        """Run the steps of a loop that stacks results: each call reads their number, then runs them.

        A loop with a condition runs twice, first for the number alone.
        """
        if not may_read():
            raise ValueNeededError(
                "Loop stacks results of steps whose number only calls know",
                remedy="call the model without compilation, or give the loop a constant number of steps",
            )
        purpose = "the number of steps of Loop"
        if self.goes_on and M is not None and (cond is None or not cond.is_open):
            return self.counted(front().size(M.tensor.reshape(()).clamp(min=0), LARGEST, purpose), state)
        stacked, self.stacked = self.stacked, []
        self.conditional(M, cond, state)
        self.stacked = stacked
        most = LARGEST if M is None or M.is_open else M.number
        return self.counted(front().size(self.steps, most, purpose), state)


def _goes_on(body: OnnxGraph) -> bool:
    """Check whether a loop never ends by its condition, which is constant true or the unchanged input condition."""
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
    """Stack the results of all steps along a new first axis. Without steps the shape comes from the graph."""
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
    """Run a graph along axes of sequences. Returns the last state, and the results of steps stacked along an axis."""
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
    """Run a graph along the first axes of sequences. Returns the last state and the stacks."""
    kinds = [v.element for v in state]
    stacked_elements: list[Element] = []

    def step(carry: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        inputs = [*map(Value, kinds, carry), *map(Value, [v.element for v in sequences], slices)]
        outputs = call.run(body, *inputs)
        stacked_elements[:] = [_need_tensor(v, "Scan").element for v in outputs[len(state) :]]
        results = [v.tensor for v in outputs]
        return results[: len(state)], results[len(state) :]

    if not is_size(tensors[0].shape[0]) and tensors[0].shape[0] == 0:
        return list(state), [_stacked([], port) for port in body.outputs[len(state) :]]
    last, stacks = scan_steps(step, [v.tensor for v in state], list(tensors))
    return [*map(Value, kinds, last)], [*map(Value, stacked_elements, stacks)]


@op("Scan", since=8, values=True)
def scan_8(
    sequence_lens: Value | None, *values: Value, num_scan_inputs: int, directions: Sequence[int] = (), call: Call
) -> tuple[Any, ...]:
    """Run Scan for each element of a batch, which is the first axis."""
    if sequence_lens is not None:
        raise UnsupportedError("Scan of version 8 with sequence_lens", remedy="convert the model to Scan of version 9")
    rows = []
    for i in range(values[0].shape[0]):
        item = [Value(v.element, v.tensor[i]) for v in values]
        rows.append(scan(*item, num_scan_inputs=num_scan_inputs, scan_input_directions=directions, call=call))
    return tuple([_stacked(column, Port("", "tensor", None, None)) for column in zip(*rows, strict=True)])


@op("SequenceMap", since=17, values=True)
def sequence_map(input_sequence: list[Value], *additional: Any, call: Call) -> tuple[Any, ...]:
    """Run a graph for each element of a sequence, with the elements of further sequences at the same index."""
    body = call.graph("body")
    columns: list[list[Any]] = [[] for _ in body.outputs]
    for i, value in enumerate(input_sequence):
        others = [v[i] if isinstance(v, list) else v for v in additional]
        for column, result in zip(columns, call.run(body, value, *others), strict=True):
            column.append(result)
    return tuple(columns)
