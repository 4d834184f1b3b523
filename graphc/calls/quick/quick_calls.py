"""The quick tier: calls of a graph by its NumPy references, until its native program is built in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np

from graphc.base.locks import Lock
from graphc.calls.bindings import Binding
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.op import Trait
from graphc.tensors.journal import USED


class Calls(Protocol):
    """Calls of a program bound to params and states."""

    @property
    def nbytes(self) -> int: ...

    def run(self, arguments: list[Any]) -> list[np.ndarray]:
        """Return the outputs for these inputs."""
        ...


class References(Evaluator):
    """Evaluator of one call. It forgets values after their last use, and writes states at the end of the call."""

    def __init__(self, last_uses: dict[Node, list[Value]]):
        super().__init__()
        self._last_uses = last_uses
        self.writes: list[tuple[Value, np.ndarray]] = []
        """State inputs with their new contents."""

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Evaluate one node."""
        results = super().apply(node, operands)
        if node.op.has(Trait.STATE_WRITE):
            self.writes.append((node.operands[0], results[0]))
        for value in self._last_uses.get(node, ()):
            del self.values[value]
        return results


def last_uses(graph: Graph) -> dict[Node, list[Value]]:
    """Return the values that no later node reads, by the node that reads them last. Results of the graph stay."""
    seen = {*graph.outputs, *graph.inputs}
    by_node: dict[Node, list[Value]] = {}
    for node in reversed([*graph.nodes()]):
        fresh = [v for v in dict.fromkeys(node.operands) if v not in seen]
        if fresh:
            by_node[node] = fresh
            seen.update(fresh)
    return by_node


class QuickCalls:
    """Calls of a graph by its references. A call takes the native program as soon as it is there.

    ``successor`` returns the calls of the native program, or None while it is built; it raises the errors of the build.
    """

    nbytes = 0

    def __init__(self, graph: Graph, binding: Binding, successor: Callable[[], Calls | None]):
        """``binding`` has the tensors of the graph's params and states, in order."""
        self._graph, self._binding, self._successor = graph, binding, successor
        self._last_uses = last_uses(graph)
        self._constants = [n.attrs["value"] for n in graph.nodes() if n.op is CONSTANT]
        self._turn: Any = Lock() if binding.written else nullcontext()
        """Held by a call that writes to states, until it has written."""

    def run(self, arguments: list[Any]) -> list[np.ndarray]:
        """Return the outputs for these inputs, arrays and whole numbers."""
        with self._turn:
            calls = self._successor()
            if calls is None:
                return self._evaluate(arguments)
        return calls.run(arguments)

    def _evaluate(self, arguments: list[Any]) -> list[np.ndarray]:
        if USED[0]:
            self._binding.announce_writes()
        plain, bound = iter(arguments), iter(self._binding.arrays())
        inputs = [np.asarray(next(plain if input_class(v) == "input" else bound)) for v in self._graph.inputs]
        evaluator = References(self._last_uses)
        results = evaluator.run(self._graph, inputs)
        given = {id(array) for array in (*inputs, *self._constants)}
        outputs = [_owned(array, given) for array in results]
        memory = dict(zip(self._graph.inputs, inputs, strict=True))
        for value, array in [(v, _owned(a, given)) for v, a in evaluator.writes]:
            np.copyto(memory[value], array)
        self._binding.note_writes()
        return outputs


def _owned(array: np.ndarray, others: set[int]) -> np.ndarray:
    """Return an array that shares memory with no other one: a copy of a view, and of an array in ``others``, to which
    it adds the result."""
    flags = array.flags
    if array.base is not None or not flags.c_contiguous or not flags.writeable or id(array) in others:
        array = np.array(array, order="C")
    others.add(id(array))
    return array
