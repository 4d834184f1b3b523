"""Random quantized ONNX graphs: a builder of blocks, which are short chains of nodes from codes to codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tools.nets.quantized.definitions import observed

MICROSOFT = "com.microsoft"
_VERSIONS = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
_LARGEST = 6000
"""Elements of the largest value."""
_FEW = 5
"""Values with at most so many different codes are used where no other fits."""
_MOST_INPUTS = 3
_ATTEMPTS = 80
"""Blocks to draw for a graph before it is complete."""


class Unfit(Exception):
    """No value of the graph fits a block."""


class Codes(NamedTuple):
    """Value of 8-bit codes in a graph."""

    name: str
    shape: tuple[int, ...]
    dtype: type
    scale: float
    zero: int
    point: str = ""
    """Name of the value that is the zero point, where nodes compute it."""


class Block(NamedTuple):
    """Nodes from codes to codes."""

    kind: str
    inputs: tuple[Codes, ...]
    nodes: tuple[Any, ...]
    constants: tuple[Any, ...]
    outputs: tuple[str, ...]


class QuantizedBuilder:
    """Graph of codes while it grows."""

    def __init__(self, seed: int, number: int):
        self.random = np.random.default_rng((seed, number, 8))
        self.is_exact = self.chance(0.4)
        """Whether scales are powers of two, with which arithmetic in f32 is exact."""
        self.inputs: list[Codes] = []
        self.values: list[Codes] = []
        """Codes, the newest last."""
        self.blocks: list[Block] = []
        self.elements: dict[str, int] = {}
        """ONNX element types of results of blocks."""
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.arrays: dict[str, np.ndarray] = {}
        """Arrays of inputs and results, as ONNX's evaluator computes them."""
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._ends: list[str] = []
        """Names of the scale and the zero point of the block's result, which follow from its numbers."""
        self._names = 0

    # ---- drawing

    def pick(self, options: Sequence[Any]) -> Any:
        """Return one of the options."""
        return options[int(self.random.integers(len(options)))]

    def chance(self, share: float) -> bool:
        """Return True in this share of calls."""
        return bool(self.random.random() < share)

    def value(self, accept: Callable[[Codes], bool] = lambda value: True) -> Codes:
        """Return one of the newest values that are accepted, one of many codes if possible. Raises Unfit."""
        options = [v for v in self.values[-5:] if accept(v)]
        if not options:
            raise Unfit("no value fits")
        return self.pick([v for v in options if np.unique(self.arrays[v.name]).size > _FEW] or options)

    def scale(self, size: float) -> float:
        """Return a scale of about this size that f32 can hold."""
        if self.is_exact:
            return float(2.0 ** np.round(np.log2(size)))
        return float(np.float32(size * (0.7 + 0.6 * self.random.random())))

    def zero(self, dtype: type) -> int:
        """Return a zero point: an end of the range, the middle, or any other."""
        low, high = (0, 255) if dtype is np.uint8 else (-128, 127)
        middle = (low + high + 1) // 2
        return int(self.pick([low, high, middle, middle, int(self.random.integers(low, high + 1))]))

    def codes(self, dtype: type, shape: Sequence[int]) -> np.ndarray:
        """Return codes: any, or those at the ends of the range, with which narrow sums saturate."""
        low, high = (0, 255) if dtype is np.uint8 else (-128, 127)
        form = self.pick(["any", "any", "any", "any", "high", "low", "ends", "small"])
        if form in ("high", "low"):
            codes = np.full(shape, high if form == "high" else low)
            return np.where(self.random.random(shape) < 0.05, low + 50, codes).astype(dtype)
        if form == "ends":
            return self.random.choice([low, high, low + 1, high - 1], shape).astype(dtype)
        if form == "small":
            low, high = max(low, -9), 9
        return self.random.integers(low, high + 1, shape).astype(dtype)

    # ---- nodes

    def _fresh(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def input(self) -> Codes:
        """Add an input of images, rows or a vector."""
        random = self.random
        if self.chance(0.6):
            size = int(random.integers(4, 10))
            shape = (int(random.integers(1, 3)), self.pick([1, 2, 3, 4, 6, 8, 16]), size, size)
        else:
            shape = (*self.pick([(), (2,)]), int(random.integers(1, 8)), int(self.pick([3, 4, 7, 16, 33, 64])))
        dtype = self.pick([np.uint8, np.uint8, np.int8])
        codes = Codes(self._fresh("x"), shape, dtype, self.scale(0.03), self.zero(dtype))
        self.inputs.append(codes)
        self.arrays[codes.name] = self.codes(dtype, shape)
        self._keep(codes)
        return codes

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        """Add an initializer; return its name."""
        name = self._fresh("c")
        self._constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def parameters(self, codes: Codes) -> list[str]:
        """Return the names of a value's scale and zero point."""
        names = [self.constant(codes.scale), codes.point or self.constant(codes.zero, codes.dtype)]
        if not codes.name:
            self._ends = names
        return names

    def triple(self, codes: Codes) -> list[str]:
        """Return the names of a value, its scale and its zero point."""
        return [codes.name, *self.parameters(codes)]

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one result; return its name."""
        return self.nodes(1, op, *inputs, domain=domain, **attributes)[0]

    def nodes(self, count: int, op: str, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
        """Add a node; return the names of its results."""
        outputs = [self._fresh("v") for _ in range(count)]
        self._nodes.append(helper.make_node(op, list(inputs), outputs, domain=domain, **attributes))
        return outputs

    def dequantized(self, codes: Codes) -> str:
        """Add a DequantizeLinear of a value."""
        return self.node("DequantizeLinear", *self.triple(codes))

    def result(self, dtype: type) -> Codes:
        """Return a result without a name. Its scale and zero point follow from its numbers when the block ends."""
        return Codes("", (), dtype, 1.0, 0)

    def quantized(self, x: str, codes: Codes) -> str:
        """Add a QuantizeLinear to the scale of a result."""
        return self.node("QuantizeLinear", x, *self.parameters(codes))

    # ---- blocks

    def block(self, kind: str, inputs: Sequence[Codes], name: str, codes: Codes, shape: Sequence[int]) -> Codes:
        """End a block whose result has a name and a shape. Raises Unfit where it is large."""
        result = codes._replace(name=name, shape=tuple(int(n) for n in shape))
        if np.prod(result.shape) > _LARGEST or 0 in result.shape:
            raise Unfit("too large or empty")
        self._keep(result)
        produced = {name for node in self._nodes for name in node.output}
        names = [name, *(n for n in self.elements if n in produced and n != name)]
        block = Block(kind, tuple(inputs), tuple(self._nodes), tuple(self._constants), tuple(names))
        if self._ends:
            result = self.values[-1] = self._calibrated(block, result)
        self.blocks.append(block)
        self.arrays.update(observed(self.part(block), self.arrays)[0])
        self._nodes, self._constants, self._ends = [], [], []
        return result

    def _calibrated(self, block: Block, codes: Codes) -> Codes:
        """Set the scale and the zero point of a block's result so that its numbers fill the codes."""
        numbers = observed(self.part(block), self.arrays)[1]
        low, high = np.quantile(numbers, [0.02, 0.98])
        limits = np.iinfo(codes.dtype)
        reach = self.pick([0.5, 1.0, 1.0, 1.0, 2.0])
        largest = float(np.abs(numbers).max())
        scale = self.scale(max(float(high - low), largest / 50, 1e-6) * reach / 255)
        zero = int(np.clip(np.rint((limits.min + limits.max) / 2 - (low + high) / 2 / scale), limits.min, limits.max))
        if self.chance(0.25):
            scale = self.scale(max(largest, 1e-6) * reach / 128)
            zero = self.zero(codes.dtype)
        for constant in block.constants:
            if constant.name in self._ends:
                value = (scale, zero)[self._ends.index(constant.name)]
                dtype = numpy_helper.to_array(constant).dtype
                constant.CopyFrom(numpy_helper.from_array(np.asarray(value, dtype), constant.name))
        return codes._replace(scale=scale, zero=zero)

    def further(self, name: str, element: int, shape: Sequence[int]) -> str:
        """Note a result of a block that no other block reads as codes."""
        self.elements[name], self.shapes[name] = element, tuple(shape)
        return name

    def _keep(self, codes: Codes) -> None:
        self.values.append(codes)
        self.further(codes.name, TensorProto.UINT8 if codes.dtype is np.uint8 else TensorProto.INT8, codes.shape)

    def add(self, step: Callable[[QuantizedBuilder], None]) -> bool:
        """Add the block of a step, or nothing where no value fits."""
        counts = len(self.values), dict(self.elements), dict(self.shapes)
        try:
            step(self)
        except Unfit:
            del self.values[counts[0] :]
            self._nodes, self._constants, self._ends = [], [], []
            self.elements, self.shapes = counts[1], counts[2]
            return False
        return True

    # ---- models

    def model(self, all_results: bool = False) -> Any:
        """Return the graph as a ModelProto. Its results are those of the last block and some others, or all."""
        random = np.random.default_rng(len(self.blocks))
        names = [n for b in self.blocks[:-1] for n in b.outputs if all_results or random.random() < 0.2]
        names += self.blocks[-1].outputs
        nodes = [node for b in self.blocks for node in b.nodes]
        constants = [c for b in self.blocks for c in b.constants]
        return self._model_of(nodes, constants, [v.name for v in self.inputs], names)

    def part(self, block: Block) -> Any:
        """Return one block as a ModelProto."""
        names = {n for node in block.nodes for n in node.input}
        inputs = [n for n in self.elements if n in names and not any(n in node.output for node in block.nodes)]
        return self._model_of(block.nodes, block.constants, inputs, block.outputs)

    def _model_of(
        self, nodes: Sequence[Any], constants: Sequence[Any], inputs: Sequence[str], outputs: Sequence[str]
    ) -> Any:
        starts, ends = (
            [helper.make_tensor_value_info(n, self.elements[n], self.shapes[n]) for n in names]
            for names in (inputs, outputs)
        )
        graph = helper.make_graph(list(nodes), "quantized", starts, ends, list(constants))
        return helper.make_model(graph, opset_imports=_VERSIONS, ir_version=10)

    def feeds(self) -> dict[str, np.ndarray]:
        """Return the arrays of the inputs."""
        return {v.name: self.arrays[v.name] for v in self.inputs}


def drawn(seed: int, number: int, steps: Sequence[Callable[[QuantizedBuilder], None]]) -> QuantizedBuilder:
    """Return the graph of a seed and a number: inputs, and one to six of these steps."""
    builder = QuantizedBuilder(seed, number)
    for _ in range(builder.random.integers(1, _MOST_INPUTS)):
        builder.input()
    count = builder.random.integers(1, 7)
    for _ in range(_ATTEMPTS):
        if len(builder.blocks) >= count:
            break
        builder.add(builder.pick(steps))
    return builder


def names(seed: int) -> Iterator[str]:
    """Yield names of graphs without end: seed and number."""
    number = 0
    while True:
        yield f"{seed}/{number}"
        number += 1
