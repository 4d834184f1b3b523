"""Derivatives of compiled functions to any order, as functions of all operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.autograd.forward_ad import propagate_by
from graphc.autograd.record import Snapshot
from graphc.base.errors import GradientError
from graphc.base.lazy import deferred
from graphc.base.locks import Lock
from graphc.base.records import NamedTuple
from graphc.calls.bound_program import GivenProgram, build
from graphc.ir.graph.graph import Graph
from graphc.ops.autodiff import pullback_graph, pushforward_graph
from graphc.passes.base import Pass
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.node import Edge, Node, freed
from graphc.tape.tangents import USED
from graphc.tensors.placement import is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of

MergeScans = deferred("graphc.passes.scans:MergeScans")

Choice = tuple[tuple[int, ...], tuple[int, ...]]
"""Indices of the inputs whose gradients are requested, and of the outputs that have a gradient."""


class Derivative:
    """A function with all arrays as arguments. Its graph, program and derivatives are made on demand."""

    def __init__(self, name: str, make: Callable[[], tuple[Graph, list[int]]], passes: Sequence[Pass], machine: str):
        self.name = name
        self._make = make
        self._passes, self._machine = passes, machine
        self._made: tuple[Graph, list[int]] | None = None
        self._calls: GivenProgram | None = None
        self._pulled: dict[Choice, Derivative] = {}
        self._pushed: dict[tuple[int, ...], Derivative] = {}
        self._lock = Lock()

    @property
    def made(self) -> tuple[Graph, list[int]]:
        """The function as a graph of plain inputs, and indices of the requested gradients for which it has results."""
        if self._made is None:
            with self._lock:
                self._made = self._made or self._make()
        return self._made

    def pulled(self, inputs: tuple[int, ...], chosen: tuple[int, ...]) -> Derivative:
        """Return the pullback: from the inputs, and gradients of the outputs ``chosen``, to gradients of the inputs
        ``wanted``.
        """
        key = inputs, chosen
        existing = self._pulled.get(key)
        if existing is None:

            def make() -> tuple[Graph, list[int]]:
                # NOTE: incoming gradients belong to the results that this function has, so ``chosen`` indexes those.
                return pullback_graph(self.made[0], inputs, chosen)

            created = Derivative(self.name, make, self._passes, self._machine)
            existing = self._pulled.setdefault(key, created)
        return existing

    def pushed(self, moving: tuple[int, ...]) -> Derivative:
        """Return the pushforward: from inputs, and tangents of the inputs ``moving``, to tangents of the outputs."""
        existing = self._pushed.get(moving)
        if existing is None:
            created = Derivative(
                self.name, lambda: pushforward_graph(self.made[0], moving), self._passes, self._machine
            )
            existing = self._pushed.setdefault(moving, created)
        return existing

    def run(self, arrays: Sequence[Any], sizes: Mapping[str, int] | None) -> list[Any]:
        """Return the outputs. ``sizes`` are the named sizes that no input determines."""
        if self._calls is None:
            with self._lock:
                if self._calls is None:
                    graph = MergeScans().run(self.made[0]).graph
                    self._calls = GivenProgram(build(graph, self._passes, self._machine))
        given_sizes = sizes if self._calls.program.sizes.are_given else None
        return self._calls.run(arrays, (), given_sizes)


class DerivativeOperand(NamedTuple):
    """An operand of a derivative: an array, and the target of its gradient."""

    held: Any
    """A snapshot of a tensor; or an array or number without other owners."""
    edge: Edge | None = None
    tangents: Mapping[int, Any] | None = None
    """Tangents of the tensor, by level."""

    @staticmethod
    def of(tensor: Any, edge: Edge | None, whose: str) -> DerivativeOperand:
        """Return an operand for a tensor as it is now."""
        return DerivativeOperand(Snapshot(tensor, None, whose), edge, tensor._tangents)

    def array(self) -> Any:
        """Return the array. Raise GradientError where it was written to since."""
        return self.held.check() if isinstance(self.held, Snapshot) else self.held


def record(derivative: Derivative, operands: Sequence[DerivativeOperand], results: Sequence[Any], sizes: Any) -> None:
    """Record results of a derivative on the autograd tape, where an operand is recorded."""
    if not any([o.edge is not None for o in operands]):
        return
    node = DerivativeNode(derivative, operands, len(results), sizes)
    for i, result in enumerate(results):
        result._fresh = False
        result._node, result._index, result._requires_grad = node, i, True


def push_through(
    derivative: Derivative, operands: Sequence[DerivativeOperand], results: Sequence[Any], sizes: Any
) -> None:
    """Propagate tangents from the operands of a derivative to its results, at all open levels."""
    if not USED[0] or all(not o.tangents for o in operands):
        return
    carriers = []
    for operand in operands:
        carriers.append(Tensor._wrap(operand.array()))
        carriers[-1]._tangents = operand.tangents

    def push(tangents: Sequence[Any]) -> Sequence[Any]:
        moving = tuple(i for i, tangent in enumerate(tangents) if tangent is not None)
        pushed = derivative.pushed(moving)
        everything = [*operands, *gradient_operands([tangents[i] for i in moving], derivative.name)]
        outputs = (
            [Tensor._wrap(a) for a in pushed.run([o.array() for o in everything], sizes)] if pushed.made[1] else []
        )
        push_through(pushed, everything, outputs, sizes)
        if is_grad_enabled():
            record(pushed, everything, outputs, sizes)
        by_result: list[Any] = [None] * len(results)
        for i, tangent in zip(pushed.made[1], outputs, strict=True):
            by_result[i] = tangent
        return by_result

    propagate_by(push, carriers, results)
    for result in results:
        result._fresh = result._fresh and result._tangents is None


class DerivativeNode(Node):
    """One call of a derivative of a compiled function."""

    chooses = True

    def __init__(self, derivative: Derivative, operands: Sequence[DerivativeOperand], count: int, sizes: Any):
        super().__init__()
        self.derivative = derivative
        self.operands: Sequence[DerivativeOperand] | None = operands
        self.edges = tuple([o.edge for o in operands])
        self.count = count
        self.sizes = sizes

    def name(self) -> str:
        """Return the function's name in the style of autograd nodes."""
        return f"Compiled{self.derivative.name}DerivativeBackward"

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Return the gradients of all operands with one."""
        return self.run_for(grads, [edge is not None for edge in self.edges])

    def run_for(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        """Return the gradients of the needed operands."""
        if self.operands is None:
            raise freed()
        chosen = tuple([i for i, g in enumerate(grads) if g is not None])
        targets = tuple([i for i, need in enumerate(needed) if need and self.edges[i] is not None])
        pulled = self.derivative.pulled(targets, chosen)
        operands = [*self.operands, *gradient_operands([grads[i] for i in chosen], self.derivative.name)]
        arrays = [o.array() for o in operands]
        targets = tuple([targets[k] for k in pulled.made[1]])
        pairs = zip(pulled.run(arrays, self.sizes) if targets else (), targets, strict=True)
        results = [Tensor._wrap(_where(a, arrays[i])) for a, i in pairs]
        push_through(pulled, operands, results, self.sizes)
        if is_grad_enabled():
            record(pulled, operands, results, self.sizes)
        gradients: list[Any] = [None] * len(self.edges)
        for i, result in zip(targets, results, strict=True):
            gradients[i] = result
        return gradients

    def release(self) -> None:
        """Free the operands of the next derivative."""
        self.operands = None


def gradient_operands(gradients: Sequence[Any], name: str) -> list[DerivativeOperand]:
    """Return incoming gradients as operands of the next derivative."""
    return [
        DerivativeOperand.of(g, edge_of(g) if g._requires_grad else None, f"a gradient of {name}") for g in gradients
    ]


def _where(result: Any, array: Any) -> Any:
    """Return a result, copied to host memory where its operand is there."""
    return result.get() if is_on_device(result) and not is_on_device(array) else result


def no_copy(name: str, path: str) -> GradientError:
    """Return the error for a state too large to copy for second derivatives."""
    return GradientError(
        f"a second derivative through the compiled {name} needs the content of its state {path!r} before the call, "
        "which is too large to copy",
        remedy="call the uncompiled function, or compile a function that computes the gradient inside",
    )


def no_host_calls(name: str) -> GradientError:
    """Return the error for second derivatives of code that calls Python functions."""
    return GradientError(
        f"a second derivative through the compiled {name} is not available: it calls Python functions or hooks",
        remedy="call the uncompiled function, or remove the hooks",
    )
