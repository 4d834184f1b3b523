"""``scan``: apply a sub-graph step by step along sequences, with carries between the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64, int64
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.size import is_size
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.graph.interpret import Evaluator, Reemitter
from graphc.ir.op import Attr, Attrs, ErrorSample, OpDef, Sample, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.autodiff import Split, split_forward_backward, vjp_graph
from graphc.ops.batch import BatchedOperand, move, spread
from graphc.ops.batching import batched_graph
from graphc.ops.contraction import matrix_product
from graphc.ops.define import define
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.flow.control import inline
from graphc.ops.movement.shape import filled, reshape
from graphc.ops.pointwise import elementwise, math
from graphc.ops.rules import check_type, show
from graphc.ops.samples import floats, integers, plain

_REMEDY = "return carries of the same types from the step"


def _step_types(operands: Sequence[TensorType], carries: int, sequences: int) -> list[TensorType]:
    """Return the types of the body's arguments: slices of the sequences, entire other operands."""
    last = carries + sequences
    return [TensorType(t.dtype, t.shape[1:]) if carries <= i < last else t for i, t in enumerate(operands)]


def _infer(*operands: TensorType, body: Graph, carries: int, sequences: int, length: int, reverse: bool) -> Types:
    if len(operands) != len(body.inputs):
        raise ArgumentError(f"scan: {len(operands)} operands for a body with {len(body.inputs)} arguments")
    if min(carries, sequences) < 0 or length < 0 or carries + sequences > len(operands) or carries > len(body.outputs):
        what = f"scan: {carries} carries and {sequences} sequences of length {length} do not fit"
        raise AttributeValueError(f"{what} {len(operands)} operands and {len(body.outputs)} results of a step")
    for i in range(carries, carries + sequences):
        if operands[i].shape[:1] != (length,):
            what = f"scan: sequence {i - carries} has shape {show(operands[i].shape)}, not {length} steps"
            raise ShapeError(what, remedy="make the steps the first dimension of every sequence")
    for i, (type, value) in enumerate(zip(_step_types(operands, carries, sequences), body.inputs, strict=True)):
        check_type(f"scan: argument {i} of a step", type, value.type, _REMEDY)
    for i in range(carries):
        check_type(f"scan: new carry {i}", body.outputs[i].type, operands[i], _REMEDY)
    for node in body.nodes():
        if not node.op.has(Trait.PURE):
            raise AttributeValueError(f"scan: a step has an effect: {node.op.name}", remedy="move it out of the step")
    stacked = (TensorType(v.dtype, (length, *v.shape)) for v in body.outputs[carries:])
    return (*operands[:carries], *stacked)


def steps(length: int, reverse: bool) -> Iterator[int]:
    """Yield the indices of the slices of a sequence in the order of the steps."""
    return iter(reversed(range(length))) if reverse else iter(range(length))


def run_steps(
    run: Callable[[list[np.ndarray]], Sequence[np.ndarray]], operands: Sequence[np.ndarray], attrs: Attrs
) -> tuple[np.ndarray, ...]:
    """Run a scan; ``run`` computes a step."""
    carries, sequences, outputs = attrs["carries"], attrs["sequences"], attrs["body"].outputs
    present = list(operands[:carries])
    slices, constants = operands[carries : carries + sequences], operands[carries + sequences :]
    stacked = [np.empty((attrs["length"], *v.shape), v.dtype.numpy) for v in outputs[carries:]]
    for t in steps(attrs["length"], attrs["reverse"]):
        results = run([*present, *(s[t] for s in slices), *constants])
        present = list(results[:carries])
        for array, value in zip(stacked, results[carries:], strict=True):
            array[t] = value
    return (*(np.array(a) for a in present), *stacked)


def _reference(*operands: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    return run_steps(lambda arguments: Evaluator().run(attrs["body"], arguments), operands, attrs)


def _decompose(*operands: Any, body: Graph, carries: int, sequences: int, length: int, reverse: bool) -> Any:
    """Replace no step, or a single one, by straight-line code where the length is known."""
    if is_size(length) or length > 1:
        return None
    if not length:
        empty = (filled(0, v.dtype, (0, *v.shape)) for v in body.outputs[carries:])
        results = (*operands[:carries], *empty)
    else:
        present, stacks = operands[:carries], operands[carries : carries + sequences]
        slices = [reshape(s, shape=s.shape[1:]) for s in stacks]
        outputs = inline(body, [*present, *slices, *operands[carries + sequences :]])
        results = (*outputs[:carries], *(reshape(v, shape=(1, *v.shape)) for v in outputs[carries:]))
    return results[0] if len(results) == 1 else results


# ---- gradient


class _CarryRewriter(Reemitter):
    """Rewriter that makes carries further results of a step, for the backward pass."""

    def __init__(self, saved_carries: Sequence[int]):
        super().__init__()
        self.saved_carries = saved_carries

    def transform(self, graph: Graph) -> Graph:
        """Return the step with further results."""
        target = super().transform(graph)
        target.set_outputs([*target.outputs, *(target.inputs[i] for i in self.saved_carries)])
        return target


class _Backward:
    """Backward pass of a scan: a reversed scan over values saved by a second run of the scan.

    Its carries are the gradients of the carries, then the summed gradients of the constants. The pass passes.scans
    merges equal parts of the two runs.
    """

    def __init__(self, body: Graph, carries: int, sequences: int, has_gradient: Sequence[bool]):
        self.body, self.carries, self.sequences = body, carries, sequences
        chosen = [
            i for i, v in enumerate(body.outputs) if v.dtype.is_differentiable and (i < carries or has_gradient[i])
        ]
        self.differentiable = [i for i, v in enumerate(body.inputs) if v.dtype.is_differentiable]
        self.chosen = chosen
        joint = vjp_graph(body, [body.inputs[i] for i in self.differentiable], chosen)
        self.split: Split = split_forward_backward(joint, len(body.inputs), len(body.outputs))
        self.saved_carries = [i for i in self.split.kept if i < carries]
        self.forward = _CarryRewriter(self.saved_carries).transform(self.split.forward)

    def float_carries(self) -> list[int]:
        """Return the positions of the carries with gradients."""
        return [i for i in self.differentiable if i < self.carries]

    def float_constants(self) -> list[int]:
        """Return the positions of the constants with gradients."""
        return [i for i in self.differentiable if i >= self.carries + self.sequences]

    def step(self) -> Graph:
        """Build a step backwards. Arguments: gradients of carries, sums for constants, residuals, saved carries, slices
        of saved sequences, gradients of stacked results, saved constants. Results: the same carries, then the gradients
        of the slices."""
        split, last = self.split, self.carries + self.sequences
        graph = Graph(f"{self.body.name}.backward")
        source = split.backward.inputs
        residuals, reread = source[: split.residuals], source[split.residuals : len(source) - split.gradients]
        gradients = source[len(source) - split.gradients :]
        by_input = dict(zip(split.kept, reread, strict=True))
        values: dict[Value, Value] = {}

        def take(inner: Value) -> None:
            values[inner] = graph.add_input(inner.type, inner.name)

        carried = dict(zip(self.chosen, gradients, strict=True))
        for i in self.float_carries():
            take(carried[i])
        sums = [graph.add_input(self.body.inputs[i].type, f"sum.{i}") for i in self.float_constants()]
        for inner in (*residuals, *(by_input[i] for i in self.saved_carries)):
            take(inner)
        for inner in (v for i, v in by_input.items() if self.carries <= i < last):
            take(inner)
        for inner in (v for i, v in carried.items() if i >= self.carries):
            take(inner)
        for inner in (v for i, v in by_input.items() if i >= last):
            take(inner)
        with dispatch.use(GraphDispatcher(graph)):
            results = dict(zip(self.differentiable, inline(split.backward, [values[v] for v in source]), strict=True))
            totals = [elementwise.add(s, results[i]) for s, i in zip(sums, self.float_constants(), strict=True)]
        graph.set_outputs(
            [
                *(results[i] for i in self.float_carries()),
                *totals,
                *(v for i, v in results.items() if self.carries <= i < last),
            ]
        )
        return graph


def gradient(
    g: Any,
    result: Any,
    *operands: Any,
    body: Graph,
    carries: int,
    sequences: int,
    length: int,
    reverse: bool,
) -> tuple[Any, ...]:
    """Return the gradients of the operands of a scan, for those of its results."""
    gradients = g if isinstance(g, tuple) else (g,)
    last = carries + sequences
    plan = _Backward(body, carries, sequences, [v is not None for v in gradients])
    attrs = {"carries": carries, "sequences": sequences, "length": length, "reverse": reverse}
    outputs = _results(scan(*operands, body=plan.forward, **attrs))
    saved = outputs[len(body.outputs) :]
    carried_gradients = [
        filled(0, v.dtype, v.shape) if gradients[i] is None else gradients[i]
        for i, v in ((i, operands[i]) for i in plan.float_carries())
    ]
    sums = [filled(0, operands[i].dtype, operands[i].shape) for i in plan.float_constants()]
    slices = [operands[i] for i in plan.split.kept if carries <= i < last]
    stacked = [gradients[i] for i in plan.chosen if i >= carries]
    constants = [operands[i] for i in plan.split.kept if i >= last]
    carried, over = [*carried_gradients, *sums], [*saved, *slices, *stacked]
    back = {"carries": len(carried), "sequences": len(over), "length": length, "reverse": not reverse}
    results = _results(scan(*carried, *over, *constants, body=plan.step(), **back))
    order = [*plan.float_carries(), *plan.float_constants(), *(i for i in plan.differentiable if carries <= i < last)]
    by_operand = dict(zip(order, results, strict=True))
    return tuple(by_operand.get(i) for i in range(len(operands)))


def _results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


# ---- samples


def _graph(name: str, types: Sequence[TensorType], make: Any) -> Graph:
    """Build a step from op functions."""
    graph = Graph(name)
    values = [graph.add_input(t, chr(97 + i)) for i, t in enumerate(types)]
    with dispatch.use(GraphDispatcher(graph)):
        graph.set_outputs(make(*values))
    return graph


_WIDE = TensorType(float64, (2, 3))
_SQUARE = TensorType(float64, (3, 3))


def _sums() -> Graph:
    """Build a running sum of squares."""

    def step(total: Value, x: Value) -> list[Value]:
        new = elementwise.add(total, elementwise.mul(x, x))
        return [new, new]

    return _graph("sums", (_WIDE, _WIDE), step)


def _network() -> Graph:
    """Build a recurrent step with two carries and a shared matrix; the old state is among the results."""

    def step(h: Value, c: Value, x: Value, w: Value) -> list[Value]:
        mixed = math.tanh(elementwise.add(matrix_product.matmul(h, w), x))
        cell = elementwise.add(elementwise.mul(c, 0.5), mixed)
        return [elementwise.mul(mixed, cell), cell, h, cell]

    return _graph("network", (_WIDE, _WIDE, _WIDE, _SQUARE), step)


def _exchange() -> Graph:
    """Build a step that exchanges two carries, and a counter."""

    def step(a: Value, b: Value, n: Value) -> list[Value]:
        return [b, elementwise.neg(a), elementwise.add(n, 1), n]

    return _graph("exchange", (_WIDE, _WIDE, TensorType(int64)), step)


def _nested() -> Graph:
    """Build a step that contains a scan."""

    def step(total: Value, x: Value) -> list[Value]:
        return [*scan(total, x, body=_graph("inner", (_ROW, _ROW), _row), carries=1, sequences=1, length=2)]

    return _graph("nested", (_ROW, _WIDE), step)


def _row(total: Value, x: Value) -> list[Value]:
    return [math.tanh(elementwise.add(total, x)), elementwise.mul(total, x)]


_ROW = TensorType(float64, (3,))
_NARROW = TensorType(float32, (2, 3))


def _attrs(body: Graph, carries: int, sequences: int, length: int, reverse: bool = False) -> dict[str, Any]:
    return {"body": body, "carries": carries, "sequences": sequences, "length": length, "reverse": reverse}


def _samples() -> list[Sample]:
    wide, square = floats((2, 3)), floats((3, 3), seed=2, low=-0.5, high=0.5)
    network = (wide, floats((2, 3), seed=1), floats((3, 2, 3), seed=3), square)
    return [
        Sample((wide, floats((4, 2, 3), seed=1)), _attrs(_sums(), 1, 1, 4)),
        Sample(network, _attrs(_network(), 2, 1, 3)),
        Sample(network, _attrs(_network(), 2, 1, 3, reverse=True)),
        Sample((wide, floats((1, 2, 3), seed=1)), _attrs(_sums(), 1, 1, 1)),
        plain(wide, floats((0, 2, 3)), **_attrs(_sums(), 1, 1, 0)),
        plain(wide, floats((2, 3), seed=1), integers(()), **_attrs(_exchange(), 3, 0, 5)),
        Sample((floats((3,)), floats((3, 2, 3), seed=1)), _attrs(_nested(), 1, 1, 3)),
    ]


def _error_samples() -> tuple[ErrorSample, ...]:
    sums, sequence = _sums(), TensorType(float64, (4, 2, 3))
    grows = _graph("grows", (_WIDE,), lambda a: [reshape(a, shape=(3, 2))])
    return (
        ErrorSample((_WIDE,), "1 operands for a body with 2 arguments", _attrs(sums, 1, 1, 4), ArgumentError),
        ErrorSample((_WIDE, sequence), "sequence 0 has shape [4,2,3], not 5", _attrs(sums, 1, 1, 5), ShapeError),
        ErrorSample((_NARROW, sequence), "argument 0 of a step is f32, not f64", _attrs(sums, 1, 1, 4), DTypeError),
        ErrorSample((_WIDE,), "new carry 0 has shape [3,2], not [2,3]", _attrs(grows, 1, 0, 4), ShapeError),
        ErrorSample((_WIDE, sequence), "3 carries and 1 sequences", _attrs(sums, 3, 1, 4), AttributeValueError),
    )


def _batched_scan(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    """Batch carries and stacks; steps stay the first dimension of sequences."""
    carries, last = attrs["carries"], attrs["carries"] + attrs["sequences"]
    flags = [True] * carries + [e.batched for e in operands[carries:]]
    values = [
        spread(e, size) if i < carries else move(e.value, 0, 1, 1) if e.batched and i < last else e.value
        for i, e in enumerate(operands)
    ]
    results = scan(*values, **{**attrs, "body": batched_graph(attrs["body"], size, flags)})
    results = results if isinstance(results, tuple) else (results,)
    return tuple(v if i < carries else move(v, 1, 1, 0) for i, v in enumerate(results))


scan = define(
    "scan",
    "Applies a step length times. The step takes the carries, a slice of each sequence and the constants; it returns "
    "the carries of the next step and values to stack in the order of the sequences. Returns the last carries, then "
    "the stacks.",
    "*operands",
    _infer,
    attrs=[
        Attr("body", "graph", "the step"),
        Attr("carries", "int", "how many operands each step passes to the next one"),
        Attr("sequences", "int", "how many operands after those are sliced along their first dimension"),
        Attr("length", "int", "the number of steps"),
        Attr("reverse", "bool", "from the last slice to the first", default=False, required=False),
    ],
    reference=_reference,
    vjp=gradient,
    decompose=_decompose,
    traits=Trait.PURE | Trait.LOOP,
    runs=lambda attrs: (attrs["body"], attrs["length"]),
    batch=_batched_scan,
    samples=_samples,
    error_samples=_error_samples(),
)
