"""The search of ``first_nan``: find the first non-finite value by evaluating a call again, node by node."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.calls.first_nan.finite_flag import Guarded
from graphc.calls.first_nan.state_rounds import CALLS
from graphc.calls.machine import is_device
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Evaluator, Interpreter, solved_sizes
from graphc.ir.op import Trait
from graphc.ops.effects.host import interpreting
from graphc.optim.traced_step import UPDATE
from graphc.runtime.host_calls import current
from graphc.tensors.array_report import ArrayReport, report_of
from graphc.tensors.placement import on_host

GRADIENT = "grad."
"""Prefix of the names of nodes of backward passes; see ``Tracer.locate``."""


class Scene(NamedTuple):
    """The context of guarded calls, for messages."""

    name: str
    machine: str
    classes: Mapping[str, str] = MappingProxyType({})
    """The classes of modules, by path."""
    has_root: bool = True
    """Whether code outside of submodules belongs to the root."""


class Moment(NamedTuple):
    """The number of a call as a step of its optimizer, for messages; None without an optimizer."""

    number: int | None = None

    @property
    def noun(self) -> str:
        """Return the word for a call."""
        return "call" if self.number is None else "step"

    def __str__(self) -> str:
        return "the call" if self.number is None else f"step {self.number}"


class FirstNan:
    """Guards the calls of one program whose graph ends with the check of ``finite_flag``."""

    def __init__(self, scene: Scene, graph: Graph, guarded: Guarded):
        if is_device(scene.machine):
            raise ArgumentError(
                f"{scene.name}: first_nan on a device", remedy="pass first_nan=False, or run it on the host"
            )
        self.scene, self.graph, self.guarded = scene, graph, guarded

    def look(self, moment: Moment, bound: Mapping[str, Any], call_arguments: Sequence[Any]) -> list[np.ndarray]:
        """Evaluate a stopped call again, which has written nothing. Raise NonFiniteError, or the error of another
        check.

        Where all values are finite, make the call's writes and return its outputs. ``bound`` holds the arrays of params
        and states by path. Results of Python functions are replayed, not computed again.
        """
        plain = iter(call_arguments)
        arguments = [
            np.asarray(on_host(next(plain) if input_class(v) == "input" else bound[input_path(v)]))
            for v in self.graph.inputs
        ]
        search, host = Search(self.guarded), current()
        with nullcontext() if host is None else interpreting(host.rewind()), np.errstate(all="ignore"):
            outputs = search.evaluate(self.graph, arguments)
        origin = search.first()
        if origin is not None:
            raise self._error(search, origin, moment)
        for argument, value in self.guarded.writes.items():
            np.copyto(bound[input_path(argument)], search.values[value])
        return [np.array(output) for output in outputs]

    def written(self, moment: Moment, bound: Mapping[str, Any], path: str) -> NonFiniteError:
        """Return the error for a tensor left non-finite by an earlier call, unnoticed by the check."""
        slots = [p for p in bound if p.startswith(f"optimizer.{path}.")]
        return NonFiniteError(
            f"{self.scene.name}: {path} is not finite after {moment}: {report_of(bound[path])}; the update of "
            f"that {moment.noun} or of one of the {CALLS} before it caused this, unless something else wrote to it",
            where="; ".join(f"{p} {report_of(bound[p])}" for p in slots) or None,
            remedy='pass first_nan="all", which checks updates before they are written; or lower the learning rate',
        )

    def _error(self, search: Search, origin: Node | Value, moment: Moment) -> NonFiniteError:
        head = f"{self.scene.name}: {moment}"
        undone = f"inspect these operands (the {moment.noun} wrote nothing)"
        if isinstance(origin, Value):
            return self._given_error(search, origin, head, moment)
        if self._phase(origin) == "update":
            undone += ", or lower the learning rate"
        maker, tokens = _maker(origin)
        results = ", ".join(search.text(v) for v in origin.results[tokens:])
        operands = "; ".join(f"%{v.name} {search.text(v)}" for v in origin.operands[tokens:])
        return NonFiniteError(
            f"{head}: the first number that is not finite is made by {maker}{self._place(origin)}, "
            f"{self._phase(origin)}: {results}",
            where=f"operands {operands}",
            origin=origin.location.describe() or None,
            remedy=undone,
        )

    def _given_error(self, search: Search, value: Value, head: str, moment: Moment) -> NonFiniteError:
        """Return the error for a value non-finite before the call."""
        path = input_path(value)
        own = {input_path(argument) for argument in self.guarded.writes}
        message = f"{head}: {path or f'input {value.name}'} is not finite: {search.text(value)}"
        if path not in own or moment.number is None or moment.number == 1:
            return NonFiniteError(message, remedy=f"correct its content (the {moment.noun} wrote nothing)")
        slots = [v for v in self.graph.inputs if input_path(v).startswith(f"optimizer.{path}.")]
        return NonFiniteError(
            f"{message}; the update of step {moment.number - 1} caused this, unless something else wrote to it",
            where="; ".join(f"{input_path(v)} {search.text(v)}" for v in slots) or None,
            remedy='pass first_nan="all", which checks updates before they are written; or lower the learning rate',
        )

    def _place(self, node: Node) -> str:
        """Return the module of a node and its class; for an update, the parameter."""
        if self._phase(node) == "update":
            path = self._updated(node)
            kind = self.scene.classes.get(path.rpartition(".")[0])
            return f" for {path} ({kind})" if kind else f" for {path}" if path else ""
        module = node.location.module
        kind = self.scene.classes.get(module) if module or self.scene.has_root else None
        name = f"{module} ({kind})" if module and kind else module or kind
        return f" in {name}" if name else ""

    def _updated(self, node: Node) -> str:
        """Return the path of the first parameter that depends on a node."""
        leads = {node}
        for later in self.graph.nodes():
            # NOTE: a node that waits for the check does not depend on everything that the check reads.
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
        if _is_named(node, GRADIENT):
            return "backward"
        return "update" if _is_named(node, UPDATE) or node in self._behind_gradients else "forward"

    @functools.cached_property
    def _behind_gradients(self) -> set[Node]:
        """The nodes that prepare gradients for an update, and those after the last gradient."""
        nodes = list(self.graph.nodes())
        last = max((i for i, node in enumerate(nodes) if _is_named(node, GRADIENT)), default=len(nodes))
        behind: set[Node] = set()
        for node in nodes[:last]:
            makers = [v.node for v in node.operands if not _is_named(v.node, UPDATE)]
            if _is_named(node, GRADIENT) or any(maker in behind for maker in makers):
                behind.add(node)
        return behind.union(nodes[last:])


def _is_named(node: Node, prefix: str) -> bool:
    return bool(node.results) and node.results[0].name.startswith(prefix)


def _maker(node: Node) -> tuple[str, int]:
    """Return the name of a node in messages, and the number of tokens before its operands and results."""
    forward = node.attrs.get("forward")
    functions = [n for n in [node, *(forward.nodes() if forward else ())] if n.op.has(Trait.HOST)]
    is_ordered = node.op.has(Trait.HOST) or bool(node.attrs.get("ordered"))
    return functions[0].attrs["name"] if functions else node.op.name, int(is_ordered)


class Search(Evaluator):
    """Evaluates a graph and finds the origin of non-finite values.

    A NaN begins at a node without a NaN among its operands, an infinity at a node with finite operands. An infinity
    from a constant or input (a mask) does not count unless it leads to a NaN. A value does not count either if no
    checked output or written tensor depends on it.
    """

    def __init__(self, guarded: Guarded):
        super().__init__()
        self.guarded = guarded
        self._reports: dict[Value, ArrayReport] = {}

    def evaluate(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Evaluate all nodes and keep their values."""
        self.graph = graph
        self.sizes = solved_sizes(graph, arguments)
        return Interpreter.run(self, graph, arguments)

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Evaluate one node. The check for finite numbers passes."""
        return (np.zeros((), np.bool_),) if node is self.guarded.check else super().apply(node, operands)

    def first(self) -> Node | Value | None:
        """Return the node to blame, or the input with a NaN (or trained tensor with an infinity); None without one.

        Where no node is to blame, an infinity of an input or constant has reached a checked value.
        """
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
            bad_results = [v for v in node.results if any(self._counts(v))]
            if not bad_results or (node.op is CONSTANT and not blames_given):
                continue
            if any(v in bad for v in node.operands):
                bad.update(bad_results)
            elif self._begins(node):
                bad.update(bad_results)
                begins.append(node)
        blamed = self._leads(bad)
        for begin in begins:
            if any(v in blamed for v in ((begin,) if isinstance(begin, Value) else begin.results)):
                return begin
        return None

    def _begins(self, node: Node) -> bool:
        """Return whether a node creates a NaN, or an infinity from finite numbers."""
        has_nan = any(self._counts(v)[0] for v in node.results)
        return has_nan or not any(self._counts(v)[1] for v in node.operands)

    def _leads(self, bad: set[Value]) -> set[Value]:
        """Return the bad values on which a checked value depends."""
        stack = [v for v in self.guarded.checked if v in bad]
        leading: set[Value] = set()
        while stack:
            value = stack.pop()
            if value not in leading:
                leading.add(value)
                stack.extend(v for v in value.node.operands if v in bad)
        return leading

    def _counts(self, value: Value) -> tuple[int, int]:
        """Return the numbers of NaN and of infinite elements."""
        if not value.dtype.is_floating_point:
            return 0, 0
        report = self._report(value)
        return report.nans, report.infinities

    def _report(self, value: Value) -> ArrayReport:
        if value not in self._reports:
            self._reports[value] = report_of(np.asarray(self.values[value]))
        return self._reports[value]

    def text(self, value: Value) -> str:
        """Describe a value by type, range, and counts of NaN and infinities."""
        return str(self._report(value))


def class_names(modules: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return the class of each module, by its path in locations and in the names of tensors.

    ``modules`` are roots with the prefixes of the names of their tensors. Omit paths of several classes.
    """
    classes: dict[str, set[str]] = {}
    for prefix, root in modules:
        for path, module in root.named_modules() if hasattr(root, "named_modules") else ():
            for name in {path or prefix.rstrip("."), f"{prefix}{path}".rstrip(".")}:
                classes.setdefault(name, set()).add(type(module).__name__)
    return {path: names.pop() for path, names in classes.items() if len(names) == 1}
