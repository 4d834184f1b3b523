"""Graphs of models with named dimensions, built from traces for prime sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.base.sizes.named_dims import Dim
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.movement.shape import filled
from graphc.ops.selection.index import iota

BATCH, TIME = Dim("batch", 1, 64, hint=8), Dim("time", 1, 128, hint=32)
PRIMES = {37: BATCH, 53: TIME}
"""What stands for each dimension in the trace; no other size of a model is a multiple of one."""


class _Namer(Reemitter):
    """Copies a graph with dimensions for multiples of the prime numbers."""

    def copy_input(self, value: Value) -> Value:
        type = TensorType(value.dtype, named(value.shape))
        return self.target.add_input(type, value.name, input_class(value), input_path(value))

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if node.op is CONSTANT and PRIMES.keys() & set(node.result.shape):
            with dispatch.use(dispatch.GraphDispatcher(self.target, node.location)):
                return (_constant(node.attrs["value"], node.result.type),)
        kinds = {a.name: a.kind for a in node.op.attrs}
        return self.copy_node(node, operands, {n: _attr(kinds[n], v) for n, v in node.attrs.items()})


def _constant(array: np.ndarray, type: TensorType) -> Value:
    """One number everywhere, or the numbers from 0 on."""
    shape = named(type.shape)
    if array.ndim == 1 and (array == np.arange(len(array))).all():
        return iota(shape=shape, axis=0, dtype=type.dtype)
    (number,) = set(array.flat)
    return filled(number, type.dtype, shape)


def _attr(kind: str, value: Any) -> Any:
    if kind == "graph":
        return named_graph(value)
    return named(value) if kind in ("int", "ints", "pairs") else value


def named(value: Any) -> Any:
    """A number, or a tuple of them, with dimensions for multiples of the prime numbers."""
    if isinstance(value, tuple):
        return tuple(named(entry) for entry in value)
    factor = 1
    for prime, dimension in PRIMES.items():
        while value and value % prime == 0:
            value, factor = value // prime, factor * dimension
    return value * factor


def named_graph(graph: Graph) -> Graph:
    """The graph for every size of the dimensions."""
    return _Namer().transform(graph)


def traced(module: nn.Module, shape: tuple[int, ...]) -> Graph:
    """The graph of a module for an input of this shape, whose prime numbers are dimensions."""
    words = isinstance(module, Embedded)
    return named_graph(gc.trace(module.eval(), gc.zeros(shape, dtype=gc.int64 if words else gc.float32)))


B, T = PRIMES


class Attention(nn.Module):
    """Self-attention with two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        batch, time, width = x.shape
        q, k, v = (y.reshape(batch, time, 2, 4).transpose(1, 2) for y in self.inner(x).chunk(3, -1))
        weights = ((q @ k.transpose(-2, -1)) * 0.5).softmax(-1)
        return self.outer((weights @ v).transpose(1, 2).reshape(batch, time, width))


class Recurrent(nn.Module):
    """A GRU whose last state goes through a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.GRU(6, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: Any) -> Any:
        outputs, _ = self.inner(x)
        return self.outer(outputs)


class First(nn.Module):
    """The first of several results."""

    def forward(self, x: Any) -> Any:
        return x[0]


class Embedded(nn.Module):
    """Numbers of words and their positions as vectors, through a layer of an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(128, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.encoder(self.words(x) + self.places(gc.arange(x.shape[1])))


def image_net() -> nn.Module:
    """Convolutions, one of them strided, with normalization and pooling."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 8, 3, stride=2, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(1),
        nn.Linear(8, 5),
    )


MODELS: Mapping[str, Callable[[], Graph]] = {
    "mlp": lambda: traced(nn.Sequential(nn.Linear(12, 7), nn.ReLU(), nn.Linear(7, 5)), (B, 12)),
    "mlp of sequences": lambda: traced(nn.Sequential(nn.Linear(12, 7), nn.GELU(), nn.Linear(7, 5)), (B, T, 12)),
    "layer norm": lambda: traced(nn.LayerNorm(10), (B, T, 10)),
    "softmax": lambda: traced(nn.Softmax(-1), (B, T)),
    "attention": lambda: traced(Attention(), (B, T, 8)),
    "convolution": lambda: traced(image_net(), (B, 3, 16, 16)),
    "sequence convolution": lambda: traced(nn.Conv1d(3, 4, 5, padding=2), (B, 3, T)),
    "gru": lambda: traced(Recurrent(), (B, T, 6)),
    "lstm": lambda: traced(nn.Sequential(nn.LSTM(6, 5, num_layers=2, bidirectional=True), First()), (T, B, 6)),
    "embedding": lambda: traced(Embedded(), (B, T)),
}
"""Graphs by name."""


def arrays_for(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    """Arguments of a graph without dimensions: numbers between 0 and 1, as variances are too."""
    random = np.random.default_rng(seed)
    return [
        random.uniform(0.1, 1, v.shape).astype(v.dtype.numpy)
        if v.dtype.kind == "f"
        else random.integers(0, 10, v.shape).astype(v.dtype.numpy)
        for v in graph.inputs
    ]


def some_sizes(graph: Graph) -> Iterator[dict[str, int]]:
    """Sizes of the dimensions of a graph: the least ones, odd ones, the largest ones."""
    for batch, time in ((1, 1), (3, 5), (8, 33), (64, 2), (2, 128)):
        sizes = {"batch": batch, "time": time}
        yield {name: sizes[name] for name in graph.dims}
