"""Steps of random ONNX graphs with parts of their own: quantised products, branches, loops and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tools.nets.builder import Unfit
from tools.nets.onnx_graphs import Extent, OnnxBuilder, Value, fixed, is_open

_FLOAT, _INT, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
_MOVING = {"Transpose", "Slice", "Reshape", "Flatten", "Expand", "Tile", "Gather", "Split", "Squeeze", "Unsqueeze"}
"""Operators that move elements of their first input."""
_EXACT = _MOVING | {"Relu", "Neg", "Abs"}


def exact(b: OnnxBuilder) -> Value:
    """Return a value whose elements are the same bits everywhere, so that no rounding to codes falls otherwise."""
    makers = {name: node for node in b.nodes for name in node.output}
    names = {value.name for value, _ in b.inputs}

    def is_exact(value: Value) -> bool:
        name = value.name
        while name in makers and makers[name].op_type in _EXACT:
            name = makers[name].input[0]
        return name in names

    return b.value(is_exact)


# ---- quantised parts


def _codes(b: OnnxBuilder, *shape: int, signed: bool) -> str:
    low, high = (-127, 128) if signed else (0, 256)
    return b.constant(b.random.integers(low, high, shape), np.int8 if signed else np.uint8)


def quantized(b: OnnxBuilder) -> None:
    """Round to codes with constant scales, and back."""
    x = exact(b)
    signed, options = b.chance(0.5), {}
    scale: Any = 2.0 ** -int(b.random.integers(3, 6))
    zero: Any = int(b.random.integers(-20, 20)) if signed else int(b.random.integers(100, 150))
    fixed_axes = [i for i, n in enumerate(x.shape) if not is_open(n)]
    if fixed_axes and b.chance(0.4):
        options["axis"] = axis = b.pick(fixed_axes)
        scale, zero = (np.full(int(x.shape[axis][0]), number) for number in (scale, zero))
    parameters = b.constant(scale, np.float32), b.constant(zero, np.int8 if signed else np.uint8)
    codes = b.node("QuantizeLinear", x.name, *parameters, **options)
    b.keep(b.node("DequantizeLinear", codes, *parameters, **options), x.shape)


def quantized_by_range(b: OnnxBuilder) -> None:
    """Round to codes of the range of a value, and back."""
    x = exact(b)
    b.keep(b.node("DequantizeLinear", *b.results(3, "DynamicQuantizeLinear", x.name)), x.shape)


def weights_of_codes(b: OnnxBuilder) -> None:
    """Multiply by a matrix of codes with a scale for each column."""
    x = b.value(lambda v: len(v.shape) > 1 and not is_open(v.shape[-1]))
    scales = b.constant(b.random.random(5) * 0.01, np.float32)
    zeros = b.constant(np.zeros(5), np.int8)
    matrix = b.node("DequantizeLinear", _codes(b, int(x.shape[-1][0]), 5, signed=True), scales, zeros, axis=1)
    b.keep(b.node("MatMul", x.name, matrix), [*x.shape[:-1], fixed(5)])


def _real(b: OnnxBuilder, sums: str, scale: str) -> str:
    """Return sums of products of codes as real numbers."""
    whole = b.node("Mul", scale, b.constant(0.01, np.float32))
    return b.node("Mul", b.node("Cast", sums, to=_FLOAT), whole)


def integer_product(b: OnnxBuilder) -> None:
    """Multiply codes by a matrix of codes, as dynamic quantisation does."""
    x = exact(b)
    if len(x.shape) < 2 or is_open(x.shape[-1]):
        raise Unfit("no matrix of a fixed width")
    signed = b.chance(0.5)
    codes, scale, zero = b.results(3, "DynamicQuantizeLinear", x.name)
    zeros = b.constant(3, np.int8 if signed else np.uint8)
    sums = b.node("MatMulInteger", codes, _codes(b, int(x.shape[-1][0]), 4, signed=signed), zero, zeros)
    b.keep(_real(b, sums, scale), [*x.shape[:-1], fixed(4)])


def integer_convolved(b: OnnxBuilder) -> None:
    """Convolve codes with codes, as dynamic quantisation does."""
    x = exact(b)
    if len(x.shape) not in (3, 4) or is_open(x.shape[1]):
        raise Unfit("no image of fixed channels")
    rank, kernel, pad = len(x.shape) - 2, int(b.pick([1, 3])), int(b.pick([0, 1]))
    extents = [n + 2 * pad - kernel + 1 for n in x.shape[2:]]
    if min(n.min() for n in extents) < 1:
        raise Unfit("a window larger than the image")
    codes, scale, zero = b.results(3, "DynamicQuantizeLinear", x.name)
    weight = _codes(b, 4, int(x.shape[1][0]), *[kernel] * rank, signed=False)
    sums = b.node("ConvInteger", codes, weight, zero, b.constant(128, np.uint8), pads=[pad] * 2 * rank)
    b.keep(_real(b, sums, scale), [x.shape[0], fixed(4), *extents])


# ---- control flow


class _Body:
    """Nodes of an inner graph, which may read all values of the outer one."""

    def __init__(self, b: OnnxBuilder):
        self.prefix = f"i{len(b.nodes)}_{len(b.constants)}_"
        self.nodes: list[Any] = []

    def name(self) -> str:
        return f"{self.prefix}{len(self.nodes)}"

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result; return its name."""
        name = self.name()
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def graph(self, inputs: Sequence[tuple[str, int, int]], outputs: Sequence[tuple[str, int, int]]) -> Any:
        """Return the graph; an input or output is its name, element type and rank."""
        taken, given = (
            [helper.make_tensor_value_info(name, element, [None] * rank) for name, element, rank in ports]
            for ports in (inputs, outputs)
        )
        return helper.make_graph(self.nodes, f"{self.prefix}body", taken, given)


def branch(b: OnnxBuilder) -> None:
    """Choose by a size, or by a value, between two functions of a value."""
    x = b.value()
    if b.chance(0.4):
        limit = int(b.random.integers(2, 12))
        condition = b.node("Less", b.scalar(b.size_of(x, b.axis(x))), b.constant(limit))
    else:
        largest = b.node("ReduceMax", x.name, keepdims=0)
        condition = b.node("Greater", largest, b.constant(float(b.random.random()), np.float32))
    graphs = []
    for op in ("Relu", "Neg"):
        body = _Body(b)
        body.prefix += op
        result = body.node("Add", body.node(op, x.name), x.name)
        graphs.append(body.graph([], [(result, _FLOAT, len(x.shape))]))
    b.keep(b.node("If", condition, then_branch=graphs[0], else_branch=graphs[1]), x.shape)


def loop(b: OnnxBuilder) -> None:
    """Repeat a step a fixed or computed number of times, or until a value is large, and stack what each returns."""
    x = b.value()
    form = b.pick(["fixed", "fixed", "size", "condition"])
    trips = b.number(int(b.random.integers(1, 5))) if form != "size" else b.size_of(x, b.axis(x))
    stacks = form != "condition" and b.chance(0.6)
    rank, body = len(x.shape), _Body(b)
    count, going, state = (body.prefix + name for name in ("count", "going", "state"))
    factor = body.node("Mul", body.node("Cast", count, to=_FLOAT), b.constant(0.1, np.float32))
    following = body.node("Add", body.node("Mul", state, b.constant(0.5, np.float32)), body.node("Add", x.name, factor))
    still = body.node("Identity", going)
    if form == "condition":
        still = body.node("Less", body.node("ReduceMax", following, keepdims=0), b.constant(2.5, np.float32))
    outputs = [(still, _BOOL, 0), (following, _FLOAT, rank)]
    if stacks:
        outputs.append((body.node("ReduceSum", following, b.constant([rank - 1]), keepdims=0), _FLOAT, rank - 1))
    graph = body.graph([(count, _INT, 0), (going, _BOOL, 0), (state, _FLOAT, rank)], outputs)
    inputs = b.scalar(trips), b.constant(True, np.bool_), x.name
    names = b.results(1 + stacks, "Loop", *inputs, body=graph)
    b.keep(names[0], x.shape)
    if stacks:
        b.keep(names[1], [trips.extent, *x.shape[:-1]])


def scan(b: OnnxBuilder) -> None:
    """Carry a sum along the first axis, forwards or backwards."""
    x = b.value(lambda v: len(v.shape) > 1)
    rank, body = len(x.shape) - 1, _Body(b)
    state, element = body.prefix + "state", body.prefix + "element"
    following = body.node("Tanh", body.node("Add", state, element))
    stacked = body.node("Identity", following)
    ports = [(state, _FLOAT, rank), (element, _FLOAT, rank)], [(following, _FLOAT, rank), (stacked, _FLOAT, rank)]
    graph = body.graph(*ports)
    start = b.node("ReduceMean", x.name, b.constant([0]), keepdims=0)
    options: dict[str, Any] = {"scan_input_directions": [1], "scan_output_directions": [1]} if b.chance(0.4) else {}
    last, stack = b.results(2, "Scan", start, x.name, body=graph, num_scan_inputs=1, **options)
    rest: tuple[Extent, ...] = x.shape[1:]
    b.keep(last, rest)
    b.keep(stack, x.shape)


PARTS: list[Callable[[OnnxBuilder], None]] = [
    *(quantized, quantized_by_range, weights_of_codes, integer_product, integer_convolved, branch, loop, loop, scan)
]
