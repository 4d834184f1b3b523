"""Random ONNX graphs with open sizes: a builder that knows every size at five sets of sizes, and steps that add nodes.

A size is an array of its values at the five sets. Steps refuse (``Unfit``) what would be invalid at one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tools.nets.builder import Unfit

SETS = 5
"""Sets of sizes that each graph runs at."""
Extent = np.ndarray
"""Values of a size at all sets."""
NAMES = ("batch", "time", "class", "in", "seq len", "0_0", "height", "s0*2")
"""Names of open sizes."""
_SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24)
_LARGEST = 40_000
"""Elements of the largest value."""
_FLOAT, _INT, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Value(NamedTuple):
    """A value of the graph."""

    name: str
    shape: tuple[Extent, ...]
    element: int = _FLOAT


class Size(NamedTuple):
    """A size that the graph computes, as a vector of one element."""

    name: str
    extent: Extent


def fixed(number: int) -> Extent:
    """Return a size that is the same at all sets."""
    return np.full(SETS, number)


def equal(a: Extent, b: Extent) -> bool:
    """Return whether two sizes are equal at all sets."""
    return bool((a == b).all())


def is_open(extent: Extent) -> bool:
    """Return whether a size differs between the sets."""
    return bool((extent != extent[0]).any())


class OnnxBuilder:
    """A graph while it grows, with the shapes of its values at all sets of sizes."""

    def __init__(self, seed: int, number: int):
        self.random = np.random.default_rng((seed, number))
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[tuple[Value, list[Any]]] = []
        self.values: list[Value] = []
        """Tensors of floats, the newest last."""
        self.steps: list[str] = []
        """Names of the steps that added nodes."""
        names = self.random.permutation(NAMES)[: self.random.integers(1, 4)]
        self.dims = {str(name): self._drawn_sizes() for name in names}

    def _drawn_sizes(self) -> Extent:
        sizes = self.random.choice(_SIZES, SETS, replace=False)
        if sizes[0] == 1:  # the sizes of the trace
            sizes[:2] = sizes[1::-1]
        return sizes

    # ---- drawing

    def pick(self, options: Sequence[Any]) -> Any:
        """Return one of the options."""
        return options[int(self.random.integers(len(options)))]

    def chance(self, share: float) -> bool:
        """Return True in this share of calls."""
        return bool(self.random.random() < share)

    def value(self, accept: Callable[[Value], bool] = lambda value: True) -> Value:
        """Return one of the newest values that are accepted."""
        options = [v for v in self.values[-6:] if accept(v)]
        if not options:
            raise Unfit("no value fits")
        return self.pick(options)

    def axis(self, value: Value, accept: Callable[[Extent], bool] = lambda extent: True) -> int:
        """Return an axis whose size is accepted, an open one if possible."""
        axes = [i for i, n in enumerate(value.shape) if accept(n)]
        if not axes:
            raise Unfit("no axis fits")
        return self.pick([i for i in axes if is_open(value.shape[i])] or axes)

    # ---- nodes

    def input(self, rank: int) -> Value:
        """Add an input whose sizes are open ones and small numbers."""
        open_names = list(self.dims)
        labels = [self.pick(open_names) if self.chance(0.6) else int(self.random.integers(1, 7)) for _ in range(rank)]
        if not any(isinstance(label, str) for label in labels):
            labels[self.random.integers(rank)] = self.pick(open_names)
        extents = [self.dims[label] if isinstance(label, str) else fixed(label) for label in labels]
        if self.chance(0.1):
            labels[0], extents[0] = "?", self._drawn_sizes()  # a size without a name
        value = Value(f"x{len(self.inputs)}", tuple(extents))
        self.need_small(value.shape)
        self.inputs.append((value, labels))
        self.values.append(value)
        return value

    def constant(self, array: Any, element: Any = None) -> str:
        """Add an initializer; return its name."""
        name = f"c{len(self.constants)}"
        numbers = np.asarray(array, np.int64 if element is None else element)
        self.constants.append(numpy_helper.from_array(numbers, name))
        return name

    def weight(self, *shape: int) -> str:
        """Add an initializer of small random numbers."""
        return self.constant(self.random.standard_normal(shape) * 0.5, np.float32)

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result; return its name."""
        return self.results(1, op, *inputs, **attributes)[0]

    def results(self, count: int, op: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node; return the names of its results."""
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, **attributes))
        return outputs

    def keep(self, name: str, shape: Sequence[Extent]) -> Value:
        """Make a result available to later steps."""
        self.need_small(shape)
        value = Value(name, tuple(shape))
        self.values.append(value)
        return value

    def need_small(self, shape: Sequence[Extent]) -> None:
        """Raise Unfit for a value that is large, or empty, at one of the sets."""
        total = np.prod(np.array([*shape, fixed(1)]), axis=0)
        if total.max() > _LARGEST or total.min() < 1:
            raise Unfit("too large or empty")

    # ---- sizes

    def size_of(self, value: Value, axis: int) -> Size:
        """Compute the size of an axis, as exporters do: Shape, then Gather, Slice, or Shape of one axis."""
        extent, form = value.shape[axis], self.random.integers(3)
        if form == 0:
            return Size(self.node("Shape", value.name, start=axis, end=axis + 1), extent)
        shape = self.node("Shape", value.name)
        if form == 1:
            bounds = (self.constant([n]) for n in (axis, axis + 1, 0))
            return Size(self.node("Slice", shape, *bounds), extent)
        scalar = self.node("Gather", shape, self.constant(axis), axis=0)
        return Size(self.node("Unsqueeze", scalar, self.constant([0])), extent)

    def number(self, number: int) -> Size:
        """Return a constant size."""
        return Size(self.constant([number]), fixed(number))

    def size(self, extent: Extent, value: Value) -> Size:
        """Return a size of a value, computed where it is open."""
        if not is_open(extent):
            return self.number(int(extent[0]))
        axes = [i for i, n in enumerate(value.shape) if equal(n, extent)]
        if not axes:
            raise Unfit("no axis has this size")
        return self.size_of(value, self.pick(axes))

    def computed(self, size: Size) -> Size:
        """Return a size after one step of arithmetic; positive at all sets."""
        number = int(self.random.integers(1, 5))
        op = self.pick(["Add", "Sub", "Mul", "Div", "Max", "Min", "half", "same", "same"])
        if op == "same":
            return size
        if op == "half":
            return Size(self.node("Div", size.name, self.constant([2])), size.extent // 2)
        function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.floor_divide}.get(op)
        function = function or {"Max": np.maximum, "Min": np.minimum}[op]
        return Size(self.node(op, size.name, self.constant([number])), function(size.extent, number))

    def vector(self, sizes: Sequence[Size]) -> str:
        """Concatenate sizes."""
        return self.node("Concat", *(s.name for s in sizes), axis=0) if len(sizes) > 1 else sizes[0].name

    def scalar(self, size: Size) -> str:
        """Return a size as a scalar."""
        return self.node("Squeeze", size.name, self.constant([0]))

    def count(self, size: Size) -> str:
        """Return the numbers 0, 1, ... below a size, as i64."""
        return self.node("Range", self.constant(0), self.scalar(size), self.constant(1))

    def model(self) -> Any:
        """Return the graph as a ModelProto; its results are the last values."""
        inputs = [helper.make_tensor_value_info(v.name, v.element, labels) for v, labels in self.inputs]
        produced = [v for v in self.values if v.name.startswith("v")][-2:]
        if not produced:
            raise Unfit("no step fits")
        outputs = [helper.make_tensor_value_info(v.name, v.element, [None] * len(v.shape)) for v in produced]
        graph = helper.make_graph(self.nodes, "net", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    def feeds(self, number: int) -> dict[str, np.ndarray]:
        """Return arrays for the inputs at one of the sets."""
        random = np.random.default_rng(number)
        shapes = {v.name: tuple(int(n[number]) for n in v.shape) for v, _ in self.inputs}
        return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def drawn(seed: int, number: int, steps: Sequence[Callable[[OnnxBuilder], None]]) -> OnnxBuilder:
    """Return the graph of a seed and a number: one to three inputs and three to nine of these steps."""
    builder = OnnxBuilder(seed, number)
    for _ in range(builder.random.integers(1, 4)):
        builder.input(int(builder.random.integers(2, 5)))
    wanted = builder.random.integers(3, 10)
    for _ in range(60):
        if len(builder.steps) >= wanted:
            break
        step = builder.pick(steps)
        before = len(builder.nodes), len(builder.constants), len(builder.values)
        try:
            step(builder)
        except Unfit:
            for items, length in zip((builder.nodes, builder.constants, builder.values), before, strict=True):
                del items[length:]
            continue
        builder.steps.append(step.__name__)
    return builder


# ---- steps


def unary(b: OnnxBuilder) -> None:
    """Apply a function of elements."""
    x = b.value()
    b.keep(b.node(b.pick(["Relu", "Sigmoid", "Tanh", "Abs", "Neg"]), x.name), x.shape)


def binary(b: OnnxBuilder) -> None:
    """Combine two values whose shapes broadcast to the first one's."""
    x = b.value()
    y = b.value(lambda v: len(v.shape) <= len(x.shape) and _broadcasts(v.shape, x.shape))
    b.keep(b.node(b.pick(["Add", "Sub", "Mul"]), x.name, y.name), x.shape)


def _broadcasts(shape: Sequence[Extent], to: Sequence[Extent]) -> bool:
    trailing = to[len(to) - len(shape) :]
    return all(equal(a, b) or equal(a, fixed(1)) for a, b in zip(shape, trailing, strict=True))


def reduced(b: OnnxBuilder) -> None:
    """Reduce an axis."""
    x = b.value(lambda v: len(v.shape) > 1)
    axis, keep = b.axis(x), int(b.chance(0.6))
    name = b.node(b.pick(["ReduceSum", "ReduceMean", "ReduceMax"]), x.name, b.constant([axis]), keepdims=keep)
    b.keep(name, _replaced(x.shape, axis, [fixed(1)] if keep else []))


def _replaced(shape: Sequence[Extent], axis: int, sizes: Sequence[Extent]) -> tuple[Extent, ...]:
    return (*shape[:axis], *sizes, *shape[axis + 1 :])


def transposed(b: OnnxBuilder) -> None:
    """Permute the axes."""
    x = b.value()
    if not x.shape:
        raise Unfit("no axis to permute")
    order = [int(i) for i in b.random.permutation(len(x.shape))]
    b.keep(b.node("Transpose", x.name, perm=order), [x.shape[i] for i in order])


def sliced(b: OnnxBuilder) -> None:
    """Slice an axis up to a computed size, from one on, with a step, or backwards."""
    x = b.value()
    axis = b.axis(x)
    extent, zero, axes = x.shape[axis], b.number(0), b.constant([axis])
    form = b.pick(["end", "start", "step", "negative", "backwards"])
    if form == "end":
        end = b.computed(b.size_of(x, axis))
        name = b.node("Slice", x.name, zero.name, end.name, axes)
        sizes = np.where(end.extent < 0, np.maximum(end.extent + extent, 0), np.minimum(end.extent, extent))
    elif form == "start":
        start = b.computed(b.size_of(x, axis))
        name = b.node("Slice", x.name, start.name, b.constant([2**62]), axes)
        begin = np.where(start.extent < 0, np.maximum(start.extent + extent, 0), np.minimum(start.extent, extent))
        sizes = extent - begin
    elif form == "step":
        step = int(b.random.integers(2, 4))
        name = b.node("Slice", x.name, zero.name, b.constant([2**62]), axes, b.constant([step]))
        sizes = -(-extent // step)
    elif form == "negative":
        name = b.node("Slice", x.name, b.constant([-2]), b.constant([2**62]), axes)
        sizes = np.minimum(extent, 2)
    else:
        name = b.node("Slice", x.name, b.constant([-1]), b.constant([-(2**62)]), axes, b.constant([-1]))
        sizes = extent
    b.keep(name, _replaced(x.shape, axis, [sizes]))


def constant_cut(b: OnnxBuilder) -> None:
    """Add a table of constants cut to an open size, as positions are."""
    x = b.value()
    axis = len(x.shape) - 1 if len(x.shape) == 1 else len(x.shape) - 2
    if x.shape[axis].max() > 64:
        raise Unfit("more positions than the table has")
    table = b.weight(64, 1) if len(x.shape) > 1 else b.weight(64)
    cut = b.node("Slice", table, b.constant([0]), b.size_of(x, axis).name, b.constant([0]))
    b.keep(b.node("Add", x.name, cut), x.shape)


def reshaped(b: OnnxBuilder) -> None:
    """Join two axes, or split one, by sizes that the graph computes or by -1."""
    x = b.value(lambda v: len(v.shape) > 1)
    axis = int(b.random.integers(len(x.shape) - 1))
    sizes = [*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]]
    parts = [b.size(n, x) for n in x.shape[:axis]], [b.size(n, x) for n in x.shape[axis + 2 :]]
    if b.chance(0.5):
        joined = b.number(-1)
    else:
        joined = Size(b.node("Mul", b.size(x.shape[axis], x).name, b.size(x.shape[axis + 1], x).name), sizes[axis])
    b.keep(b.node("Reshape", x.name, b.vector([*parts[0], joined, *parts[1]])), sizes)


def split_axis(b: OnnxBuilder) -> None:
    """Split an axis into a number and the rest."""
    x = b.value(lambda v: len(v.shape) < 4)
    factor = int(b.pick([2, 3]))
    axis = b.axis(x, lambda n: bool((n % factor == 0).all()))
    number, rest = b.number(factor), b.number(-1)
    pair, sizes = ([number, rest], [fixed(factor), x.shape[axis] // factor])
    if b.chance(0.5):
        pair, sizes = pair[::-1], sizes[::-1]
    shape = [*(b.size(n, x) for n in x.shape[:axis]), *pair, *(b.size(n, x) for n in x.shape[axis + 1 :])]
    b.keep(b.node("Reshape", x.name, b.vector(shape)), _replaced(x.shape, axis, sizes))


def flattened(b: OnnxBuilder) -> None:
    """Flatten to two axes."""
    x = b.value(lambda v: len(v.shape) > 1)
    axis = int(b.random.integers(1, len(x.shape)))
    two = [np.prod(np.array(s), axis=0) for s in (x.shape[:axis], x.shape[axis:])]
    b.keep(b.node("Flatten", x.name, axis=axis), two)


def expanded(b: OnnxBuilder) -> None:
    """Expand a new first axis to a computed size."""
    x = b.value(lambda v: len(v.shape) < 4)
    size = b.computed(b.size_of(x, b.axis(x)))
    shape = b.vector([size, *(b.number(1) for _ in x.shape)])
    b.keep(b.node("Expand", x.name, shape), [size.extent, *x.shape])


def tiled(b: OnnxBuilder) -> None:
    """Repeat the first axis a number of times, or as often as another size says."""
    x = b.value()
    times = b.number(2) if b.chance(0.5) else b.size_of(x, b.axis(x))
    repeats = b.vector([times, *(b.number(1) for _ in x.shape[1:])])
    b.keep(b.node("Tile", x.name, repeats), [x.shape[0] * times.extent, *x.shape[1:]])


def positions(b: OnnxBuilder) -> None:
    """Add the numbers 0, 1, ... along the last axis."""
    x = b.value()
    numbers = b.node("Cast", b.count(b.size_of(x, len(x.shape) - 1)), to=_FLOAT)
    b.keep(b.node("Add", x.name, b.node("Mul", numbers, b.constant(0.01, np.float32))), x.shape)


def filled(b: OnnxBuilder) -> None:
    """Append an axis block of a constant of computed sizes."""
    x = b.value()
    axis = b.axis(x)
    size = b.computed(b.size(x.shape[axis], x))
    shape = b.vector([size if i == axis else b.size(n, x) for i, n in enumerate(x.shape)])
    value = helper.make_tensor("value", _FLOAT, [1], [0.5])
    block = b.node("ConstantOfShape", shape, value=value)
    b.need_small([size.extent])
    b.keep(b.node("Concat", x.name, block, axis=axis), _replaced(x.shape, axis, [x.shape[axis] + size.extent]))


def padded(b: OnnxBuilder) -> None:
    """Pad an axis by numbers or by computed sizes."""
    x = b.value()
    axis = b.axis(x)
    mode = b.pick(["constant", "reflect", "edge"])
    amounts = [b.number(int(n)) for n in b.random.integers(0, 3, 2)]
    if mode != "reflect" and b.chance(0.4):
        amounts[1] = b.computed(b.size_of(x, axis))
    if (mode == "reflect" and x.shape[axis].min() <= 2) or min(a.extent.min() for a in amounts) < 0:
        raise Unfit("a padding that is too large")
    zeros = [b.number(0) for _ in x.shape[1:]]
    before, after = [[*zeros[:axis], amount, *zeros[axis:]] for amount in amounts]
    name = b.node("Pad", x.name, b.vector([*before, *after]), mode=mode)
    b.keep(name, _replaced(x.shape, axis, [x.shape[axis] + amounts[0].extent + amounts[1].extent]))


def resized(b: OnnxBuilder) -> None:
    """Resize images by scales, or to the sizes of another value."""
    x = b.value(lambda v: len(v.shape) == 4)
    mode = b.pick(["nearest", "linear"])
    form = "asymmetric" if mode == "nearest" else b.pick(["half_pixel", "asymmetric"])
    options = {"mode": mode, "coordinate_transformation_mode": form}
    if mode == "nearest":
        options["nearest_mode"] = "floor"
    if b.chance(0.5):
        scales = b.constant([1, 1, 2, 2], np.float32)
        b.keep(b.node("Resize", x.name, "", scales, **options), [*x.shape[:2], *(n * 2 for n in x.shape[2:])])
        return
    sizes = [b.computed(b.size(n, x)) for n in x.shape[2:]]
    if min(s.extent.min() for s in sizes) < 1:
        raise Unfit("an empty image")
    shape = b.vector([*(b.size(n, x) for n in x.shape[:2]), *sizes])
    b.keep(b.node("Resize", x.name, "", "", shape, **options), [*x.shape[:2], *(s.extent for s in sizes)])


def scattered(b: OnnxBuilder) -> None:
    """Write rows of a value at every position of another one's first axis, or at some."""
    x = b.value(lambda v: len(v.shape) > 1)
    rows = b.size_of(x, 0)
    indices = b.node("Unsqueeze", b.count(rows), b.constant([-1]))
    updates = b.node("Neg", x.name)
    if b.chance(0.5):
        zeros = b.node("ConstantOfShape", b.node("Shape", x.name))
        b.keep(b.node("ScatterND", zeros, indices, updates), x.shape)
    else:
        b.keep(b.node("ScatterND", x.name, indices, updates, reduction="add"), x.shape)


def gathered(b: OnnxBuilder) -> None:
    """Read an axis at computed positions."""
    x = b.value()
    axis = b.axis(x)
    size = b.size_of(x, axis)
    if b.chance(0.3):
        last = b.node("Sub", b.scalar(size), b.constant(1))
        b.keep(b.node("Gather", x.name, last, axis=axis), _replaced(x.shape, axis, []))
        return
    backwards = b.node("Sub", b.node("Sub", size.name, b.constant([1])), b.count(size))
    b.keep(b.node("Gather", x.name, backwards, axis=axis), x.shape)


def divided(b: OnnxBuilder) -> None:
    """Split an axis into a first element, or a computed number of them, and the rest."""
    x = b.value()
    axis = b.axis(x, lambda n: bool((n > 1).all()))
    size, first = b.size_of(x, axis), b.number(1)
    if b.chance(0.4):
        first = Size(b.node("Div", size.name, b.constant([2])), size.extent // 2)
    rest = Size(b.node("Sub", size.name, first.name), size.extent - first.extent)
    names = b.results(2, "Split", x.name, b.vector([first, rest]), axis=axis)
    for name, part in zip(names, (first, rest), strict=True):
        b.keep(name, _replaced(x.shape, axis, [part.extent]))


def masked(b: OnnxBuilder) -> None:
    """Hide elements after the diagonal of the last two axes, as causal attention does."""
    x = b.value(lambda v: len(v.shape) > 1)
    rows, columns = (b.count(b.size_of(x, len(x.shape) - k)) for k in (2, 1))
    column, row = b.node("Unsqueeze", columns, b.constant([0])), b.node("Unsqueeze", rows, b.constant([1]))
    mask = b.node("LessOrEqual", column, row)
    b.keep(b.node("Where", mask, x.name, b.constant(-1.0, np.float32)), x.shape)


def convolved(b: OnnxBuilder) -> None:
    """Convolve images, or signals."""
    x = b.value(lambda v: len(v.shape) in (3, 4) and not is_open(v.shape[1]))
    rank, channels = len(x.shape) - 2, int(x.shape[1][0])
    kernel, stride, pad = (int(n) for n in (b.pick([1, 3]), b.pick([1, 2]), b.pick([0, 1])))
    extents = [(n + 2 * pad - kernel) // stride + 1 for n in x.shape[2:]]
    if min((n + 2 * pad - kernel).min() for n in x.shape[2:]) < 0:
        raise Unfit("a window larger than the image")
    weight = b.weight(4, channels, *[kernel] * rank)
    name = b.node("Conv", x.name, weight, strides=[stride] * rank, pads=[pad] * 2 * rank)
    b.keep(name, [x.shape[0], fixed(4), *extents])


def pooled(b: OnnxBuilder) -> None:
    """Pool images, or signals."""
    x = b.value(lambda v: len(v.shape) in (3, 4))
    rank = len(x.shape) - 2
    if b.chance(0.3):
        b.keep(b.node("GlobalAveragePool", x.name), [*x.shape[:2], *[fixed(1)] * rank])
        return
    kernel, stride = 2, int(b.pick([1, 2]))
    if min(n.min() for n in x.shape[2:]) < kernel:
        raise Unfit("a window larger than the image")
    op = b.pick(["MaxPool", "AveragePool"])
    name = b.node(op, x.name, kernel_shape=[kernel] * rank, strides=[stride] * rank)
    b.keep(name, [*x.shape[:2], *((n - kernel) // stride + 1 for n in x.shape[2:])])


def attended(b: OnnxBuilder) -> None:
    """Attention of a value to itself over the last but one axis."""
    x = b.value(lambda v: len(v.shape) in (3, 4))
    order = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
    scores = b.node("MatMul", x.name, b.node("Transpose", x.name, perm=order))
    b.need_small([*x.shape[:-1], x.shape[-2]])
    if b.chance(0.5):
        width = b.node("Cast", b.size_of(x, len(x.shape) - 1).name, to=_FLOAT)
        scores = b.node("Div", scores, b.node("Sqrt", width))
    b.keep(b.node("MatMul", b.node("Softmax", scores, axis=-1), x.name), x.shape)


def multiplied(b: OnnxBuilder) -> None:
    """Multiply by a matrix of weights."""
    x = b.value(lambda v: len(v.shape) > 1 and not is_open(v.shape[-1]))
    b.keep(b.node("MatMul", x.name, b.weight(int(x.shape[-1][0]), 5)), [*x.shape[:-1], fixed(5)])


def normalized(b: OnnxBuilder) -> None:
    """Normalize the last axis."""
    x = b.value()
    centred = b.node("Sub", x.name, b.node("ReduceMean", x.name, b.constant([len(x.shape) - 1]), keepdims=1))
    square = b.node("ReduceMean", b.node("Mul", centred, centred), b.constant([len(x.shape) - 1]), keepdims=1)
    deviation = b.node("Sqrt", b.node("Add", square, b.constant(0.1, np.float32)))
    b.keep(b.node("Div", centred, deviation), x.shape)


def summed(b: OnnxBuilder) -> None:
    """Sum along an axis up to each element."""
    x = b.value()
    b.keep(b.node("CumSum", x.name, b.constant(b.axis(x))), x.shape)


def joined(b: OnnxBuilder) -> None:
    """Concatenate a value with itself."""
    x = b.value()
    axis = b.axis(x)
    b.keep(b.node("Concat", x.name, x.name, axis=axis), _replaced(x.shape, axis, [x.shape[axis] * 2]))


def unsqueezed(b: OnnxBuilder) -> None:
    """Add an axis of size 1, or remove one."""
    x = b.value(lambda v: len(v.shape) < 4)
    ones = [i for i, n in enumerate(x.shape) if equal(n, fixed(1))]
    if ones and b.chance(0.6):
        b.keep(b.node("Squeeze", x.name, b.constant([ones[0]])), _replaced(x.shape, ones[0], []))
        return
    axis = int(b.random.integers(len(x.shape) + 1))
    b.keep(b.node("Unsqueeze", x.name, b.constant([axis])), [*x.shape[:axis], fixed(1), *x.shape[axis:]])


def triangular(b: OnnxBuilder) -> None:
    """Keep a triangle of the last two axes."""
    x = b.value(lambda v: len(v.shape) > 1)
    b.keep(b.node("Trilu", x.name, upper=int(b.chance(0.5))), x.shape)


STEPS: list[Callable[[OnnxBuilder], None]] = [
    *(unary, binary, reduced, transposed, sliced, sliced, constant_cut, reshaped, reshaped, split_axis, flattened),
    *(expanded, tiled, positions, filled, padded, resized, resized, scattered, gathered, divided, masked, convolved),
    *(convolved, pooled, attended, multiplied, normalized, summed, joined, unsqueezed, triangular),
]


def names(seed: int) -> Iterator[str]:
    """Yield names of graphs without end: seed and number."""
    number = 0
    while True:
        yield f"{seed}/{number}"
        number += 1
