"""Summary of a model: its layers with output shapes, parameters, multiply-adds and memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.ir.graph.graph import Graph, Node
from graphc.nn.module import Module
from graphc.tensors.structure import flatten
from graphc.tracing.trace import trace


@dataclass(frozen=True)
class Layer:
    """A module. Its numbers include the modules inside it."""

    path: str
    """Dotted path below the model; empty for the model itself."""
    kind: str
    """Name of its class."""
    outputs: tuple[tuple[int, ...], ...]
    """Shapes of the tensors that its last call returned; empty when it was not called."""
    calls: int
    parameters: int
    """Elements of all parameters; a shared one counts once."""
    trainable: int
    """Elements of the parameters that require gradients."""
    state_bytes: int
    """Bytes of parameters and buffers."""
    output_bytes: int
    """Bytes of the outputs of the layers without children, over all calls."""
    multiply_adds: int
    """Multiplications, each with an addition, of matrix products and convolutions."""

    @property
    def depth(self) -> int:
        """Number of modules around it."""
        return self.path.count(".") + 1 if self.path else 0

    @property
    def name(self) -> str:
        """Name within its parent."""
        return self.path.rpartition(".")[2]


@dataclass(frozen=True)
class Summary:
    """A table of layers: the model itself first, then its modules in the order of registration."""

    layers: tuple[Layer, ...]
    input_bytes: int

    @property
    def total(self) -> Layer:
        """The row of the model itself."""
        return self.layers[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        total = self.total
        return {
            "layers": [{**asdict(row), "outputs": [list(s) for s in row.outputs]} for row in self.layers],
            "parameters": total.parameters,
            "trainable": total.trainable,
            "multiply_adds": total.multiply_adds,
            "input_bytes": self.input_bytes,
            "state_bytes": total.state_bytes,
            "output_bytes": total.output_bytes,
        }

    def text(self, depth: int | None = None) -> str:
        """Return the table with the totals below. ``depth`` omits modules nested deeper."""
        rows = self.rows(depth)
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            f"{a:{widths[0]}}  {b:{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}".rstrip() for a, b, c, d in rows
        ]
        return "\n".join([*lines, "", self.totals()])

    def rows(self, depth: int | None = None) -> list[tuple[str, str, str, str]]:
        """Return the cells of the table, with its heading."""
        layers = [_row(layer) for layer in self.layers if depth is None or layer.depth <= depth]
        return [("layer", "output", "parameters", "multiply-adds"), *layers]

    def totals(self) -> str:
        """Return the lines below the table."""
        total = self.total
        return "\n".join(
            [
                f"parameters     {total.parameters:,}, {total.trainable:,} of them trainable",
                f"multiply-adds  {total.multiply_adds:,}",
                f"memory         input {_bytes(self.input_bytes)}, parameters and buffers {_bytes(total.state_bytes)}, "
                f"outputs of layers {_bytes(total.output_bytes)}",
            ]
        )

    def __str__(self) -> str:
        return self.text()


def _row(layer: Layer) -> tuple[str, str, str, str]:
    name = f"{layer.name}: {layer.kind}" if layer.path else layer.kind
    shapes = " ".join(f"[{', '.join(map(str, s))}]" for s in layer.outputs) if layer.calls else "(not called)"
    times = f" × {layer.calls}" if layer.calls > 1 else ""
    numbers = (f"{n:,}" if n else "" for n in (layer.parameters, layer.multiply_adds))
    return ("  " * layer.depth + name, shapes + times, *numbers)  # type: ignore[return-value]


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


class _Calls:
    """Calls, bytes and shapes of each module's outputs, recorded by forward hooks during one call of the model."""

    def __init__(self) -> None:
        self.count: Counter[int] = Counter()
        self.bytes: Counter[int] = Counter()
        self.shapes: dict[int, tuple[tuple[int, ...], ...]] = {}

    def see(self, module: Module, args: Any, output: Any) -> None:
        """Record an output, as a forward hook."""
        tensors, _ = flatten(output)
        self.count[id(module)] += 1
        self.shapes[id(module)] = tuple(t.shape for t in tensors)
        if not module._modules:
            self.bytes[id(module)] += sum(t.nbytes for t in tensors)


def summary(model: Module, *examples: Any, **keyword_examples: Any) -> Summary:
    """Summarize ``model`` for a call with these example tensors or arrays.

    The model is traced in its present mode: nothing is computed and no state changes, so models of any size work. Raise
    ArgumentError for anything but a Module, and the errors of tracing.

    Example:
        >>> import graphc as gc
        >>> report = gc.summary(gc.nn.Linear(3, 2), gc.zeros(4, 3))
        >>> report.total.parameters, report.total.multiply_adds
        (8, 24)
    """
    if not isinstance(model, Module):
        raise ArgumentError(f"a summary shows a Module, got {type(model).__name__}")
    calls = _Calls()
    handles = [module.register_forward_hook(calls.see) for module in model.modules()]
    try:
        graph = trace(model, *examples, **keyword_examples)
    finally:
        for handle in handles:
            handle.remove()
    products = _multiply_adds(graph)
    layers = [_layer(path, module, calls, products) for path, module in model.named_modules()]
    inputs, _ = flatten((examples, keyword_examples))
    return Summary(tuple(layers), sum(t.nbytes for t in inputs))


def _layer(path: str, module: Module, calls: _Calls, products: Counter[str]) -> Layer:
    parameters = list(module.parameters())
    inside = [p for p in products if not path or p == path or p.startswith(f"{path}.")]
    return Layer(
        path,
        type(module).__name__,
        calls.shapes.get(id(module), ()),
        calls.count[id(module)],
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in parameters if p.requires_grad),
        sum(t.nbytes for t in (*parameters, *module.buffers())),
        sum(calls.bytes[id(m)] for m in module.modules()),
        sum(products[p] for p in inside),
    )


def _multiply_adds(graph: Graph) -> Counter[str]:
    """Return multiply-adds by path of the module whose forward contains them."""
    counts: Counter[str] = Counter()
    open_: list[tuple[Graph, str, int]] = [(graph, "", 1)]
    while open_:
        present, path, times = open_.pop()
        for node in present.nodes():
            here = node.location.module or path
            counts[here] += times * products_of(node)
            if node.op.runs is not None:
                inner, more = node.op.runs(node.attrs)
                open_.append((inner, here, times * more))
    return counts


def products_of(node: Node) -> int:
    """Return the multiply-adds of a matrix product or a convolution; 0 for other nodes."""
    if node.op.multiply_adds is None:
        return 0
    operands, results = (tuple(v.type for v in values) for values in (node.operands, node.results))
    return node.op.multiply_adds(operands, results, node.attrs)
