"""``first_nan``: the first number of a call that is not finite, found by a second, node by node evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphc.base.array_report import ArrayReport, report_of
from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.calls.machine import is_device
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Evaluator, Interpreter, solved_sizes
from graphc.ir.op import Trait
from graphc.ops.host import interpreting
from graphc.runtime.host_calls import current
from graphc.steps.finite_flag import Guarded
from graphc.steps.state_rounds import CALLS
from graphc.tensors.placement import on_host


class Scene(NamedTuple):
    """What a guarded graph is a part of."""

    name: str
    """What messages call it."""
    classes: Mapping[str, str] = MappingProxyType({})
    """The classes of modules, by path."""
    kind: str = "step"
    """What a call is: a step, a call, a backward call."""
    updates: Sequence[range] = ()
    """Numbers of the nodes that belong to an optimizer's update."""
    phase: str = "forward"
    """That of nodes which are neither part of a gradient nor of an update."""


class FirstNan:
    """Guards the calls of one program whose graph ends with the check of ``finite_flag``."""

    def __init__(self, scene: Scene, graph: Graph, guarded: Guarded, machine: str):
        if is_device(machine):
            raise ArgumentError(f"{scene.name}: first_nan on a device", remedy="first_nan=False, or run it on the host")
        self.scene, self.graph, self.guarded = scene, graph, guarded

    def look(
        self,
        number: int,
        bound: Mapping[str, Any],
        given: Sequence[Any],
        sizes: Mapping[str, int] | None = None,
    ) -> list[np.ndarray]:
        """Evaluates a call again that was stopped, and has written nothing: raises NonFiniteError, or what another
        check says; where all is finite it writes what the call would have written, and returns the outputs.

        ``given`` are its arguments, ``bound`` holds the arrays of params and states by path, ``sizes`` those of named
        dimensions that no argument tells. What Python functions have returned to the call is not asked for again."""
        plain = iter(given)
        arguments = [
            np.asarray(on_host(next(plain) if input_class(v) == "input" else bound[input_path(v)]))
            for v in self.graph.inputs
        ]
        search, host = Search(self.guarded), current()
        with nullcontext() if host is None else interpreting(host.rewind()), np.errstate(all="ignore"):
            outputs = search.evaluate(self.graph, arguments, sizes or {})
        found = search.first()
        if found is not None:
            raise self._error(search, found, number)
        for argument, value in self.guarded.writes.items():
            np.copyto(bound[input_path(argument)], search.values[value])
        return [np.array(output) for output in outputs]

    def written(self, number: int, bound: Mapping[str, Any], path: str) -> NonFiniteError:
        """The error of a tensor that is not finite since a call that nothing else has told of."""
        slots = [p for p in bound if p.startswith(f"optimizer.{path}.")]
        return NonFiniteError(
            f"{self.scene.name}: {path} is not finite after step {number}: {report_of(bound[path])}; the update of "
            f"that step or of one of the {CALLS} before it has made it so, if nothing else has written to it",
            where="; ".join(f"{p} {report_of(bound[p])}" for p in slots) or None,
            remedy='first_nan="all", which looks at what an update makes before it is written; a smaller learning rate',
        )

    def _error(self, search: Search, found: Node | Value, number: int) -> NonFiniteError:
        head = f"{self.scene.name}: {self.scene.kind} {number}"
        undone = f"nothing of the {self.scene.kind} was written: look at these operands"
        if isinstance(found, Value):
            return self._given(search, found, head, number)
        if self._phase(found) == "update":
            undone += ", or at the learning rate"
        maker, tokens = _maker(found)
        made = ", ".join(search.text(v) for v in found.results[tokens:])
        operands = "; ".join(f"%{v.name} {search.text(v)}" for v in found.operands[tokens:])
        return NonFiniteError(
            f"{head}: the first number that is not finite is made by {maker}{self._place(found)}, "
            f"{self._phase(found)}: {made}",
            where=f"operands {operands}",
            origin=found.location.describe() or None,
            remedy=undone,
        )

    def _given(self, search: Search, found: Value, head: str, number: int) -> NonFiniteError:
        """The error of what was not finite when the call began."""
        path = input_path(found)
        own = {input_path(argument) for argument in self.guarded.writes}
        message = f"{head}: {path or f'input {found.name}'} is not finite: {search.text(found)}"
        if path not in own or number == 1 or self.scene.kind != "step":
            return NonFiniteError(message, remedy=f"nothing of the {self.scene.kind} was written")
        slots = [v for v in self.graph.inputs if input_path(v).startswith(f"optimizer.{path}.")]
        return NonFiniteError(
            f"{message}; the update of step {number - 1} has made it so, if nothing else has written to it",
            where="; ".join(f"{input_path(v)} {search.text(v)}" for v in slots) or None,
            remedy='first_nan="all", which looks at what an update makes before it is written; a smaller learning rate',
        )

    def _place(self, node: Node) -> str:
        """The module of a node and its class; of an update the parameter."""
        if self._phase(node) == "update":
            path = self._updated(node)
            kind = self.scene.classes.get(path.rpartition(".")[0])
            return f" for {path} ({kind})" if kind else f" for {path}" if path else ""
        module = node.location.module
        kind = self.scene.classes.get(module)
        name = f"{module} ({kind})" if module and kind else module or kind
        return f" in {name}" if name else ""

    def _updated(self, node: Node) -> str:
        """The path of the first parameter that a node leads to."""
        leads = {node}
        for later in self.graph.nodes():
            # NOTE: what waits for the check is not made of all that this looks at.
            made_of = later.operands[:1] if later.op.has(Trait.WAITS) else later.operands
            if any(v.node in leads for v in made_of):
                leads.add(later)
        paths = [input_path(a) for a, value in self.guarded.writes.items() if value.node in leads]
        every = {input_path(argument) for argument in self.guarded.writes}
        for path in paths:
            owner = path.removeprefix("optimizer.").rpartition(".")[0]
            return owner if path.startswith("optimizer.") and owner in every else path
        return ""

    def _phase(self, node: Node) -> str:
        if any(node.id in numbers for numbers in self.scene.updates):
            return "update"
        return "backward" if node.results[0].name.startswith("grad.") else self.scene.phase


def _maker(node: Node) -> tuple[str, int]:
    """What messages call a node, and how many tokens stand in front of what it takes and gives."""
    forward = node.attrs.get("forward")
    functions = [n for n in [node, *(forward.nodes() if forward else ())] if n.op.has(Trait.HOST)]
    is_ordered = node.op.has(Trait.HOST) or bool(node.attrs.get("ordered"))
    return functions[0].attrs["name"] if functions else node.op.name, int(is_ordered)


class Search(Evaluator):
    """Evaluates a graph and finds where numbers that are not finite begin.

    A NaN begins where none of the operands has one, an infinity where all operands are finite. Infinities that come
    from constants and inputs (masks) are none of these as long as no NaN is made of them, nor are values that nothing
    non-finite in the outputs or the written tensors is made of."""

    def __init__(self, guarded: Guarded):
        super().__init__()
        self.guarded = guarded
        self._reports: dict[Value, ArrayReport] = {}

    def evaluate(self, graph: Graph, arguments: Sequence[Any], sizes: Mapping[str, int]) -> tuple[Any, ...]:
        """Evaluates all nodes and keeps their values; ``sizes`` as ``look`` takes them."""
        self.graph = graph
        self.sizes = solved_sizes(graph, arguments) | {graph.dims[name]: n for name, n in sizes.items()}
        return Interpreter.run(self, graph, arguments)

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Evaluates one node; the check of finite numbers holds."""
        return (np.zeros((), np.bool_),) if node is self.guarded.check else super().apply(node, operands)

    def first(self) -> Node | Value | None:
        """The node, or the input with a NaN (or trained tensor with an infinity), that is to blame; None for none.

        Where no node is, it is an infinity of an input or constant that has reached what is written."""
        return self._first(False) or self._first(True)

    def _first(self, blames_given: bool) -> Node | Value | None:
        trained = self.guarded.writes
        begins: list[Node | Value] = []
        for value in self.graph.inputs:
            nans, infinities = self._counts(value)
            if nans or (infinities and (blames_given or value in trained)):
                begins.append(value)
        bad: set[Value] = {v for v in begins if isinstance(v, Value)}
        for node in self.graph.nodes():
            found = [v for v in node.results if any(self._counts(v))]
            if not found or (node.op is CONSTANT and not blames_given):
                continue
            if any(v in bad for v in node.operands):
                bad.update(found)
            elif self._begins(node):
                bad.update(found)
                begins.append(node)
        blamed = self._leads(bad)
        for begin in begins:
            if any(v in blamed for v in ((begin,) if isinstance(begin, Value) else begin.results)):
                return begin
        return None

    def _begins(self, node: Node) -> bool:
        """Whether a node makes a NaN, or an infinity of finite numbers."""
        made = any(self._counts(v)[0] for v in node.results)
        return made or not any(self._counts(v)[1] for v in node.operands)

    def _leads(self, bad: set[Value]) -> set[Value]:
        """The bad values of which one is made that the check looks at."""
        stack = [v for v in self.guarded.seen if v in bad]
        found: set[Value] = set()
        while stack:
            value = stack.pop()
            if value not in found:
                found.add(value)
                stack.extend(v for v in value.node.operands if v in bad)
        return found

    def _counts(self, value: Value) -> tuple[int, int]:
        """How many elements are NaN, and infinite."""
        if not value.dtype.is_floating_point:
            return 0, 0
        found = self._report(value)
        return found.nans, found.infinities

    def _report(self, value: Value) -> ArrayReport:
        if value not in self._reports:
            self._reports[value] = report_of(np.asarray(self.values[value]))
        return self._reports[value]

    def text(self, value: Value) -> str:
        """Type, range, and counts of what is not finite."""
        return str(self._report(value))


def class_names(model: Any) -> dict[str, str]:
    """The class of each module of a model, by its path in locations."""
    return {path: type(m).__name__ for path, m in model.named_modules()} if hasattr(model, "named_modules") else {}
