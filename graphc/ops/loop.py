"""``scan``: a sub-graph applied step by step along sequences, with values that each step takes over from the last."""

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
from graphc.ops import dispatch, elementwise, math, matrix_product
from graphc.ops.autodiff import Split, split_forward_backward, vjp_graph
from graphc.ops.batch import Entry, move, spread
from graphc.ops.batching import batched_graph
from graphc.ops.control import inline
from graphc.ops.define import define
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.rules import check_type, show
from graphc.ops.samples import floats, integers, plain
from graphc.ops.shape import filled, reshape

_REMEDY = "a step gives carries of the types that it takes"


def _step_types(operands: Sequence[TensorType], carries: int, sequences: int) -> list[TensorType]:
    """Types of the body's arguments: slices of the sequences, all others whole."""
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
            raise ShapeError(what, remedy="steps are the first dimension of every sequence")
    for i, (given, value) in enumerate(zip(_step_types(operands, carries, sequences), body.inputs, strict=True)):
        check_type(f"scan: argument {i} of a step", given, value.type, _REMEDY)
    for i in range(carries):
        check_type(f"scan: new carry {i}", body.outputs[i].type, operands[i], _REMEDY)
    for node in body.nodes():
        if not node.op.has(Trait.PURE):
            raise AttributeValueError(f"scan: a step has an effect: {node.op.name}", remedy="move it out of the step")
    stacked = (TensorType(v.dtype, (length, *v.shape)) for v in body.outputs[carries:])
    return (*operands[:carries], *stacked)


def steps(length: int, reverse: bool) -> Iterator[int]:
    """The places of the slices of a sequence in the order in which they are taken."""
    return iter(reversed(range(length))) if reverse else iter(range(length))


def run_steps(
    run: Callable[[list[np.ndarray]], Sequence[np.ndarray]], operands: Sequence[np.ndarray], attrs: Attrs
) -> tuple[np.ndarray, ...]:
    """What a scan gives when ``run`` computes a step."""
    carries, sequences, outputs = attrs["carries"], attrs["sequences"], attrs["body"].outputs
    present = list(operands[:carries])
    given, constants = operands[carries : carries + sequences], operands[carries + sequences :]
    stacked = [np.empty((attrs["length"], *v.shape), v.dtype.numpy) for v in outputs[carries:]]
    for t in steps(attrs["length"], attrs["reverse"]):
        found = run([*present, *(s[t] for s in given), *constants])
        present = list(found[:carries])
        for array, value in zip(stacked, found[carries:], strict=True):
            array[t] = value
    return (*(np.array(a) for a in present), *stacked)


def _reference(*operands: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    return run_steps(lambda arguments: Evaluator().run(attrs["body"], arguments), operands, attrs)


def _decompose(*operands: Any, body: Graph, carries: int, sequences: int, length: int, reverse: bool) -> Any:
    """No step and a single one need no loop, where it is known that there are no more."""
    if is_size(length) or length > 1:
        return None
    if not length:
        empty = (filled(0, v.dtype, (0, *v.shape)) for v in body.outputs[carries:])
        results = (*operands[:carries], *empty)
    else:
        present, given = operands[:carries], operands[carries : carries + sequences]
        slices = [reshape(s, shape=s.shape[1:]) for s in given]
        found = inline(body, [*present, *slices, *operands[carries + sequences :]])
        results = (*found[:carries], *(reshape(v, shape=(1, *v.shape)) for v in found[carries:]))
    return results[0] if len(results) == 1 else results


# ---- gradient


class _Step(Reemitter):
    """Copies a step, and gives carries that the backward pass reads as further results."""

    def __init__(self, kept: Sequence[int]):
        super().__init__()
        self.kept = kept

    def transform(self, graph: Graph) -> Graph:
        """The step with further results."""
        target = super().transform(graph)
        target.set_outputs([*target.outputs, *(target.inputs[i] for i in self.kept)])
        return target


class _Backward:
    """The backward pass of a scan: a scan the other way round, over what a second run of the first one keeps.

    Its carries are the gradients of the carries, then the sums of the gradients of the constants; the equal parts of
    the two runs become one (see passes.scans)."""

    def __init__(self, body: Graph, carries: int, sequences: int, given: Sequence[bool]):
        self.body, self.carries, self.sequences = body, carries, sequences
        chosen = [i for i, v in enumerate(body.outputs) if v.dtype.is_differentiable and (i < carries or given[i])]
        self.wanted = [i for i, v in enumerate(body.inputs) if v.dtype.is_differentiable]
        self.given = chosen
        joint = vjp_graph(body, [body.inputs[i] for i in self.wanted], chosen)
        self.split: Split = split_forward_backward(joint, len(body.inputs), len(body.outputs))
        self.kept = [i for i in self.split.kept if i < carries]
        self.forward = _Step(self.kept).transform(self.split.forward)

    def float_carries(self) -> list[int]:
        """Positions of the carries that have gradients."""
        return [i for i in self.wanted if i < self.carries]

    def float_constants(self) -> list[int]:
        """Positions of the constants that have gradients."""
        return [i for i in self.wanted if i >= self.carries + self.sequences]

    def step(self) -> Graph:
        """A step backwards. Arguments: gradients of carries, sums for constants, residuals, kept carries, slices of
        kept sequences, gradients of stacked results, kept constants. Results: the same carries, then the gradients of
        the slices."""
        split, last = self.split, self.carries + self.sequences
        graph = Graph(f"{self.body.name}.backward")
        source = split.backward.inputs
        residuals, kept = source[: split.residuals], source[split.residuals : len(source) - split.gradients]
        gradients = source[len(source) - split.gradients :]
        places = dict(zip(split.kept, kept, strict=True))
        values: dict[Value, Value] = {}

        def take(inner: Value) -> None:
            values[inner] = graph.add_input(inner.type, inner.name)

        carried = dict(zip(self.given, gradients, strict=True))
        for i in self.float_carries():
            take(carried[i])
        sums = [graph.add_input(self.body.inputs[i].type, f"sum.{i}") for i in self.float_constants()]
        for inner in (*residuals, *(places[i] for i in self.kept)):
            take(inner)
        for inner in (v for i, v in places.items() if self.carries <= i < last):
            take(inner)
        for inner in (v for i, v in carried.items() if i >= self.carries):
            take(inner)
        for inner in (v for i, v in places.items() if i >= last):
            take(inner)
        with dispatch.use(GraphDispatcher(graph)):
            found = dict(zip(self.wanted, inline(split.backward, [values[v] for v in source]), strict=True))
            totals = [elementwise.add(s, found[i]) for s, i in zip(sums, self.float_constants(), strict=True)]
        graph.set_outputs(
            [
                *(found[i] for i in self.float_carries()),
                *totals,
                *(v for i, v in found.items() if self.carries <= i < last),
            ]
        )
        return graph


def _gradient(
    g: Any,
    result: Any,
    *operands: Any,
    body: Graph,
    carries: int,
    sequences: int,
    length: int,
    reverse: bool,
) -> tuple[Any, ...]:
    gradients = g if isinstance(g, tuple) else (g,)
    last = carries + sequences
    plan = _Backward(body, carries, sequences, [v is not None for v in gradients])
    attrs = {"carries": carries, "sequences": sequences, "length": length, "reverse": reverse}
    found = _results(scan(*operands, body=plan.forward, **attrs))
    saved = found[len(body.outputs) :]
    given = [
        filled(0, v.dtype, v.shape) if gradients[i] is None else gradients[i]
        for i, v in ((i, operands[i]) for i in plan.float_carries())
    ]
    sums = [filled(0, operands[i].dtype, operands[i].shape) for i in plan.float_constants()]
    slices = [operands[i] for i in plan.split.kept if carries <= i < last]
    stacked = [gradients[i] for i in plan.given if i >= carries]
    constants = [operands[i] for i in plan.split.kept if i >= last]
    carried, over = [*given, *sums], [*saved, *slices, *stacked]
    back = {"carries": len(carried), "sequences": len(over), "length": length, "reverse": not reverse}
    results = _results(scan(*carried, *over, *constants, body=plan.step(), **back))
    order = [*plan.float_carries(), *plan.float_constants(), *(i for i in plan.wanted if carries <= i < last)]
    made = dict(zip(order, results, strict=True))
    return tuple(made.get(i) for i in range(len(operands)))


def _results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


# ---- samples


def _graph(name: str, types: Sequence[TensorType], make: Any) -> Graph:
    """A step of op functions."""
    graph = Graph(name)
    values = [graph.add_input(t, chr(97 + i)) for i, t in enumerate(types)]
    with dispatch.use(GraphDispatcher(graph)):
        graph.set_outputs(make(*values))
    return graph


_WIDE = TensorType(float64, (2, 3))
_SQUARE = TensorType(float64, (3, 3))


def _sums() -> Graph:
    """A running sum of squares."""

    def step(total: Value, x: Value) -> list[Value]:
        new = elementwise.add(total, elementwise.mul(x, x))
        return [new, new]

    return _graph("sums", (_WIDE, _WIDE), step)


def _network() -> Graph:
    """A recurrent step with two carries and a shared matrix; the old state is among the results."""

    def step(h: Value, c: Value, x: Value, w: Value) -> list[Value]:
        mixed = math.tanh(elementwise.add(matrix_product.matmul(h, w), x))
        kept = elementwise.add(elementwise.mul(c, 0.5), mixed)
        return [elementwise.mul(mixed, kept), kept, h, kept]

    return _graph("network", (_WIDE, _WIDE, _WIDE, _SQUARE), step)


def _exchange() -> Graph:
    """Carries that change places, and a counter."""

    def step(a: Value, b: Value, n: Value) -> list[Value]:
        return [b, elementwise.neg(a), elementwise.add(n, 1), n]

    return _graph("exchange", (_WIDE, _WIDE, TensorType(int64)), step)


def _nested() -> Graph:
    """A scan in each step."""

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


def _batched_scan(op: OpDef, size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    """Carries and stacks of batches; steps stay the first dimension of sequences."""
    carries, last = attrs["carries"], attrs["carries"] + attrs["sequences"]
    flags = [True] * carries + [e.batched for e in operands[carries:]]
    values = [
        spread(e, size) if i < carries else move(e.value, 0, 1, 1) if e.batched and i < last else e.value
        for i, e in enumerate(operands)
    ]
    found = scan(*values, **{**attrs, "body": batched_graph(attrs["body"], size, flags)})
    found = found if isinstance(found, tuple) else (found,)
    return tuple(v if i < carries else move(v, 1, 1, 0) for i, v in enumerate(found))


scan = define(
    "scan",
    "Applies a step length times: it takes the carries, a slice of each sequence and the constants, and gives the "
    "carries of the next step and values that are stacked in the order of the sequences. Gives the last carries, then "
    "the stacks.",
    "*operands",
    _infer,
    attrs=[
        Attr("body", "graph", "the step"),
        Attr("carries", "int", "how many operands the steps take over from each other"),
        Attr("sequences", "int", "how many operands after those are sliced along their first dimension"),
        Attr("length", "int", "the number of steps"),
        Attr("reverse", "bool", "from the last slice to the first", default=False, required=False),
    ],
    reference=_reference,
    vjp=_gradient,
    decompose=_decompose,
    traits=Trait.PURE | Trait.LOOP,
    runs=lambda attrs: (attrs["body"], attrs["length"]),
    batch=_batched_scan,
    samples=_samples,
    error_samples=_error_samples(),
)
