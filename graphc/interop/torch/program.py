"""Native programs that take and give tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch

from graphc.base.assumptions import Assumptions
from graphc.base.shape_patterns import Number, ShapePatterns
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.files.manifest import PREPACKED
from graphc.interop.aten.graph import AtenGraph
from graphc.interop.aten.run import Runner
from graphc.interop.torch.fx import dtype_of
from graphc.interop.torch.sizes import Sizes
from graphc.interop.torch.weights import Weights
from graphc.ir.graph.graph import Value
from graphc.ir.graph.interpret import Reemitter, assumed, settle
from graphc.tensors.generator import PATH as GENERATOR
from graphc.tensors.structure import NumberTensor
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced, trace_function


class Program:
    """A graph of ATen operators as native code, called with tensors of PyTorch and ints."""

    def __init__(
        self,
        graph: AtenGraph,
        examples: Sequence[Any],
        outputs: Sequence[Any],
        weights: Collection[int],
        watch: str,
        sizes: Sizes | None = None,
        assumptions: Assumptions | None = None,
    ):
        """``examples`` are what stands for the arguments: tensors, fake ones too, and SymInts. ``outputs`` are the same
        for the results, from which their strides are taken. ``weights`` are the numbers of the arguments that are
        parameters and buffers, which ``watch`` says how to look at (see Weights). ``sizes`` reads sizes; in
        ``assumptions`` stands what is assumed of them, which whoever calls the program asks.

        Raises UnsupportedError and what a trace raises."""
        self._boxed_call = True
        """By which AOTAutograd knows that it takes a list; with the instance, from which Dynamo's wrapper copies it."""
        sizes = sizes or Sizes()
        self.assumptions = assumptions or Assumptions()
        leaves, shapes = zip(*[_leaf(e, sizes) for e in examples], strict=True) if examples else ((), ())
        patterns = ShapePatterns(shapes, graph.inputs)
        orders = [order_of(o) for o in outputs]
        runner = Runner(graph)

        def run(*args: Any) -> list[Any]:
            found = runner(*args)
            return [_laid(value, order) for value, order in zip(found, orders, strict=True)]

        self._random: np.ndarray | None = None
        """The seed and the step of random numbers: each call takes a seed from PyTorch's generator."""
        self._empty = [i for i, value in enumerate(graph.output) if value is None]
        traced = trace_function(
            run, leaves, name=graph.name, patterns=patterns, modules=(), assumptions=self.assumptions
        )
        self._made(traced, weights, watch)
        self._orders = [o for i, o in enumerate(orders) if i not in self._empty]

    def _made(self, traced: Traced, weights: Collection[int], watch: str) -> None:
        graph = traced.graph
        graph.assumptions = tuple(self.assumptions.found.values())
        settled = settle(graph)
        image = dict(zip(graph.inputs, settled.inputs, strict=True))
        with assumed(settled):
            marked = _Marker({image[traced.inputs[i]]: str(i) for i in weights}).transform(settled)
        compiled = compile_graph(marked)
        self.program = load_compiled(compiled)
        first = None if compiled.prepacking is None else load_compiled(compiled.prepacking)
        state = traced.state()
        if GENERATOR in state:
            state[GENERATOR] = self._random = np.zeros(2, np.int64)
        self._inputs = [i for i in range(len(traced.inputs)) if i not in weights]
        paths = [spec.path for spec in self.program.bound]
        made = {PREPACKED + spec.name: i for i, spec in enumerate(first.outputs)} if first else {}
        self._weights = Weights(first, [state[p] if p in state else made.get(p, p) for p in paths], watch)

    def __call__(self, args: list[Any]) -> list[Any]:
        """The results for these arguments; the list is emptied."""
        if self._random is not None:
            self._random[:] = torch.empty((), dtype=torch.int64).random_().item(), 0
        given = [_array(args[i]) for i in self._inputs]
        bound = self._weights.arrays(args)
        args.clear()
        found = self.program.run(given, bound)
        results: list[Any] = [_tensor(array, order) for array, order in zip(found, self._orders, strict=True)]
        for i in self._empty:
            results.insert(i, None)
        return results


class _Marker(Reemitter):
    """Makes weights of some arguments of a graph, by the paths that they get."""

    def __init__(self, paths: dict[Value, str]):
        super().__init__()
        self._paths = paths

    def copy_input(self, value: Value) -> Value:
        if value not in self._paths:
            return super().copy_input(value)
        return self.target.add_input(value.type, value.name, "weight", self._paths[value])


def _leaf(example: Any, sizes: Sizes) -> tuple[Tensor, Any]:
    """What stands for an argument in a trace, and its shape."""
    if isinstance(example, (int, torch.SymInt)):
        size = sizes.of(example)
        return NumberTensor.of(0), Number((size,))
    shape = sizes.shape(example.shape)
    dtype = dtype_of(example.dtype)
    return Tensor._wrap(np.broadcast_to(np.zeros((), dtype.numpy), [1 for _ in shape])), shape


def order_of(output: Any) -> tuple[int, ...] | None:
    """The dimensions of a result from the one with the largest stride to that with the smallest, as PyTorch's own
    kernels leave them; None where that is their order."""
    if not isinstance(output, torch.Tensor) or output.dim() < 2:
        return None
    known = [int(s) if not isinstance(s, torch.SymInt) else s for s in output.stride()]
    if output.is_contiguous() or any(isinstance(s, torch.SymInt) for s in known) or 0 in known:
        return None
    return tuple(sorted(range(output.dim()), key=lambda d: -known[d]))


def _laid(value: Any, order: tuple[int, ...] | None) -> Any:
    """A result with its dimensions in the order in which they lie in memory."""
    if not isinstance(value, Tensor) or order is None:
        return value
    return value.permute(order)


def _array(argument: Any) -> Any:
    return argument if isinstance(argument, int) else argument.detach().numpy()


def _tensor(array: np.ndarray, order: tuple[int, ...] | None) -> torch.Tensor:
    found = torch.from_numpy(array)
    return found if order is None else found.permute(tuple(np.argsort(order)))
