"""Random graphs over the registered ops, right by construction because every node goes through its type rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

import graphc.ops.registry  # noqa: F401  (fills the registry)
from graphc.base.dtypes import ALL, bool_, float32, float64, int32
from graphc.base.location import Location
from graphc.ir.graph.build import constant, emit
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType

NAMES = ("x", "fc1.weight", "h", "odd name", "layers.0.norm", "x.1")
MODULES = ("", "fc1", "layers.0", 'dict["a b"]', "7")
FILES = ("", "model.py", "dir with blank/model.py", "a:b.py")


def locations() -> st.SearchStrategy[Location]:
    """Locations with and without module, file and line, odd paths too."""
    return st.builds(Location, st.sampled_from(MODULES), st.sampled_from(FILES), st.integers(0, 99))


class _Builder:
    """Appends one node after the other to a graph."""

    def __init__(self, draw: Callable):
        self.draw = draw
        self.graph = Graph(draw(st.sampled_from(("main", "mlp.forward", "odd name"))))
        self.values: list[Value] = []

    def value(self, kinds: str = "fiub") -> Value:
        fitting = [v for v in self.values if v.dtype.kind in kinds]
        return self.draw(st.sampled_from(fitting)) if fitting else self.graph.scalar(1, float32)

    def emit(self, name: str, operands: list[Value], **attrs: object) -> None:
        location, hint = self.draw(locations()), self.draw(st.sampled_from(NAMES))
        self.values.extend(emit(self.graph, REGISTRY[name], operands, attrs, location, hint))

    def inputs(self) -> None:
        for i in range(self.draw(st.integers(0, 4))):
            dtype, shape = (
                self.draw(st.sampled_from((float32, float64, int32, bool_))),
                self.draw(st.sampled_from(((), (3,), (2, 3)))),
            )
            cls = self.draw(st.sampled_from(("input", "param", "state")))
            path = "" if cls == "input" else f'path{i}."odd"'
            self.values.append(
                self.graph.add_input(TensorType(dtype, shape), self.draw(st.sampled_from(NAMES)), cls, path)
            )

    def unary(self) -> None:
        self.emit(self.draw(st.sampled_from(("neg", "exp", "abs"))), [self.value("f")])

    def binary(self) -> None:
        x = self.value("fi")
        others = [v for v in self.values if v.type == x.type]
        number = self.draw(st.floats(allow_nan=True)) if x.dtype.kind == "f" else self.draw(st.integers(-9, 9))
        with np.errstate(over="ignore"):
            scalar = self.graph.scalar(number, x.dtype)
        self.emit(
            self.draw(st.sampled_from(("add", "mul", "maximum"))), [x, self.draw(st.sampled_from([*others, scalar]))]
        )

    def compare(self) -> None:
        x = self.value("fi")
        self.emit("lt", [x, x])

    def cast(self) -> None:
        self.emit("cast", [self.value()], dtype=self.draw(st.sampled_from(ALL)))

    def reduction(self) -> None:
        x = self.value("f")
        axes = self.draw(st.lists(st.integers(0, x.type.rank - 1), unique=True)) if x.type.rank else []
        self.emit("sum", [x], axes=tuple(sorted(axes)), keepdims=self.draw(st.booleans()))

    def transpose(self) -> None:
        x = self.value()
        self.emit("transpose", [x], permutation=tuple(reversed(range(x.type.rank))))

    def pad(self) -> None:
        x = self.value("f")
        n = x.type.rank
        value = self.draw(st.sampled_from((0, -0.0, float("inf"), float("nan"), 1e30)))
        self.emit("pad", [x], low=(1,) * n, high=(0,) * n, interior=(0,) * n, value=value)

    def constant(self) -> None:
        dtype = self.draw(st.sampled_from(ALL))
        size = self.draw(st.sampled_from((1, 5, 16, 17)))
        bits = self.draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
        raw = np.frombuffer(bits, np.uint8)
        array = (raw % 2).astype(bool) if dtype.kind == "b" else raw.view(dtype.numpy)
        self.values.append(constant(self.graph, array, dtype))

    def node(self) -> None:
        steps = (
            self.unary,
            self.binary,
            self.compare,
            self.cast,
            self.reduction,
            self.transpose,
            self.pad,
            self.constant,
        )
        self.draw(st.sampled_from(steps))()


@st.composite
def graphs(draw: Callable) -> Graph:
    """Graphs with inputs of every class, constants of every type, scalars, views, reductions, odd names and places."""
    builder = _Builder(draw)
    builder.inputs()
    for _ in range(draw(st.integers(0, 10))):
        builder.node()
    outputs = draw(st.lists(st.sampled_from(builder.values), max_size=3)) if builder.values else []
    builder.graph.set_outputs(outputs)
    return builder.graph
