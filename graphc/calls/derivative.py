"""Derivatives of compiled functions to any order: gradients as functions of all that they were computed from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.base.errors import GradientError
from graphc.base.locks import Lock
from graphc.calls.bound_program import GivenProgram, build
from graphc.eager.forward_ad import propagate_by
from graphc.eager.record import Snapshot
from graphc.ir.graph.graph import Graph
from graphc.ops.autodiff import pullback_graph, pushforward_graph
from graphc.passes.base import Pass
from graphc.passes.scans import MergeScans
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.node import Edge, Node, freed
from graphc.tape.tangents import USED
from graphc.tensors.placement import is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of

Choice = tuple[tuple[int, ...], tuple[int, ...]]
"""Numbers of the inputs whose gradients are asked for, and of the outputs that have a gradient."""


class Derivative:
    """A function of arrays that are all given. Its graph, its program and its own derivatives are made when they are
    asked for: who asks for no derivative pays for none."""

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
        """The function, as a graph of plain inputs, and for which of those that were wanted it has results."""
        if self._made is None:
            with self._lock:
                self._made = self._made or self._make()
        return self._made

    def pulled(self, wanted: tuple[int, ...], chosen: tuple[int, ...]) -> Derivative:
        """Its reverse: of its inputs, and gradients of the outputs ``chosen``, to those of the inputs ``wanted``."""
        key = wanted, chosen
        found = self._pulled.get(key)
        if found is None:

            def make() -> tuple[Graph, list[int]]:
                # NOTE: gradients of this function are known for results that it has, so these are their numbers.
                return pullback_graph(self.made[0], wanted, chosen)

            made = Derivative(self.name, make, self._passes, self._machine)
            found = self._pulled.setdefault(key, made)
        return found

    def pushed(self, moving: tuple[int, ...]) -> Derivative:
        """Its forward derivative: of its inputs, and tangents of the inputs ``moving``, to those of its outputs."""
        found = self._pushed.get(moving)
        if found is None:
            made = Derivative(self.name, lambda: pushforward_graph(self.made[0], moving), self._passes, self._machine)
            found = self._pushed.setdefault(moving, made)
        return found

    def run(self, arrays: Sequence[Any], sizes: Mapping[str, int] | None) -> list[Any]:
        """The outputs; ``sizes`` are those of named dimensions where no input tells them."""
        if self._calls is None:
            with self._lock:
                if self._calls is None:
                    graph = MergeScans().run(self.made[0]).graph
                    self._calls = GivenProgram(build(graph, self._passes, self._machine))
        given = sizes if self._calls.program.sizes.are_given else None
        return self._calls.run(arrays, (), given)


class Operand(NamedTuple):
    """What a derivative is a function of: an array, and where its gradient goes."""

    held: Any
    """A snapshot of a tensor; an array or a number that nobody else has."""
    edge: Edge | None = None
    tangents: Mapping[int, Any] | None = None
    """What the tensor carried along, by level."""

    @staticmethod
    def of(tensor: Any, edge: Edge | None, whose: str) -> Operand:
        """A tensor as it is now."""
        return Operand(Snapshot(tensor, None, whose), edge, tensor._tangents)

    def array(self) -> Any:
        """Its elements; raises GradientError where they were written to since."""
        return self.held.check() if isinstance(self.held, Snapshot) else self.held


def record(derivative: Derivative, operands: Sequence[Operand], results: Sequence[Any], sizes: Any) -> None:
    """Makes results of a derivative part of the autograd graph, where an operand is."""
    if not any([o.edge is not None for o in operands]):
        return
    node = DerivativeNode(derivative, operands, len(results), sizes)
    for i, result in enumerate(results):
        result._fresh = False
        result._node, result._index, result._requires_grad = node, i, True


def push_through(derivative: Derivative, operands: Sequence[Operand], results: Sequence[Any], sizes: Any) -> None:
    """Gives results of a derivative the tangents that follow from those of its operands, at all open levels."""
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
        made = [Tensor._wrap(a) for a in pushed.run([o.array() for o in everything], sizes)] if pushed.made[1] else []
        push_through(pushed, everything, made, sizes)
        if is_grad_enabled():
            record(pushed, everything, made, sizes)
        found: list[Any] = [None] * len(results)
        for i, tangent in zip(pushed.made[1], made, strict=True):
            found[i] = tangent
        return found

    propagate_by(push, carriers, results)
    for result in results:
        result._fresh = result._fresh and result._tangents is None


class DerivativeNode(Node):
    """One call of a derivative of a compiled function."""

    chooses = True

    def __init__(self, derivative: Derivative, operands: Sequence[Operand], count: int, sizes: Any):
        super().__init__()
        self.derivative = derivative
        self.operands: Sequence[Operand] | None = operands
        self.edges = tuple([o.edge for o in operands])
        self.count = count
        self.sizes = sizes

    def name(self) -> str:
        """The function's name."""
        return f"Compiled{self.derivative.name}DerivativeBackward"

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Gradients of all operands that have one."""
        return self.run_for(grads, [edge is not None for edge in self.edges])

    def run_for(self, grads: list[Any], needed: Sequence[bool]) -> Sequence[Any]:
        """Gradients of the operands that are needed."""
        if self.operands is None:
            raise freed()
        chosen = tuple([i for i, g in enumerate(grads) if g is not None])
        wanted = tuple([i for i, need in enumerate(needed) if need and self.edges[i] is not None])
        pulled = self.derivative.pulled(wanted, chosen)
        operands = [*self.operands, *gradient_operands([grads[i] for i in chosen], self.derivative.name)]
        arrays = [o.array() for o in operands]
        wanted = tuple([wanted[k] for k in pulled.made[1]])
        pairs = zip(pulled.run(arrays, self.sizes) if wanted else (), wanted, strict=True)
        results = [Tensor._wrap(_where(a, arrays[i])) for a, i in pairs]
        push_through(pulled, operands, results, self.sizes)
        if is_grad_enabled():
            record(pulled, operands, results, self.sizes)
        found: list[Any] = [None] * len(self.edges)
        for i, result in zip(wanted, results, strict=True):
            found[i] = result
        return found

    def release(self) -> None:
        """Frees what the next derivative would read."""
        self.operands = None


def gradient_operands(gradients: Sequence[Any], name: str) -> list[Operand]:
    """Incoming gradients as operands of the next derivative."""
    return [Operand.of(g, edge_of(g) if g._requires_grad else None, f"a gradient of {name}") for g in gradients]


def _where(result: Any, array: Any) -> Any:
    """A result, or a copy of it in the memory of the host, where its operand lies there."""
    return result.get() if is_on_device(result) and not is_on_device(array) else result


def no_copy(name: str, path: str) -> GradientError:
    """The error of a state that is too large to be kept for derivatives that nobody may ask for."""
    return GradientError(
        f"a second derivative through the compiled {name} needs what its state {path!r} held before the call, which "
        "is too large to be kept",
        remedy="call the function that is not compiled, or compile one that computes the gradient inside",
    )


def no_host_calls(name: str) -> GradientError:
    """The error of code that calls Python functions, whose gradients have no gradients."""
    return GradientError(
        f"a second derivative through the compiled {name} is not available: it calls Python functions or hooks",
        remedy="call the function that is not compiled, or remove the hooks",
    )
