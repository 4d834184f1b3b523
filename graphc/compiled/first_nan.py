"""``first_nan``: the first number of a training step that is not finite, found by a second, node by node evaluation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.base.interruptions import kept_outside
from graphc.compiled.bindings import Binding
from graphc.compiled.device_binding import DeviceBinding
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.op import Trait
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.dispatch import use
from graphc.runtime.host_calls import running
from graphc.tape.grad_mode import no_grad
from graphc.tensors.placement import on_host
from graphc.tensors.tensor import Tensor
from graphc.tracing.tracer import Tracer


def append_flag(graph: Graph, unseen: Collection[str]) -> None:
    """Appends an output that says whether a call is fine: the first output (the loss) and all that is written are
    finite, and no other output holds a NaN. States at the paths ``unseen`` are not looked at."""
    tracer = Tracer(graph)
    tracer.differentiable = False
    written = {input_path(n.operands[0]): n.operands[1] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
    seen = [value for path, value in written.items() if path not in unseen]
    finite = {v: True for v in [graph.outputs[0], *seen] if v.dtype.is_floating_point}
    others = [v for v in graph.outputs[1:] if v.dtype.is_floating_point]
    with kept_outside(), use(tracer), no_grad():
        found: list[Any] = []
        for value in dict.fromkeys([*finite, *others]):
            tensor: Any = Tensor._wrap(value)
            good: Any = mathematics.isfinite(tensor) if value in finite else ew.eq(tensor, tensor)
            found.append(good.all())
        while len(found) > 1:
            # NOTE: a tree, not a chain: passes walk along operands.
            pairs = [ew.logical_and(a, b) for a, b in zip(found[::2], found[1::2], strict=False)]
            found = [*pairs, *found[2 * len(pairs) :]]
    graph.set_outputs([*graph.outputs, found[0]._data])


class FirstNan:
    """Guards the calls of one program whose last output is the flag of ``append_flag``."""

    def __init__(
        self,
        name: str,
        graph: Graph,
        first_update: int,
        binding: Binding,
        paths: Sequence[str],
        classes: Mapping[str, str],
    ):
        """``first_update`` is the id of the first node of the update; ``paths`` are those of the binding; ``classes``
        are the names of the modules' classes by path."""
        if isinstance(binding, DeviceBinding):
            raise ArgumentError(f"{name}: first_nan on a device", remedy="first_nan=False, or a step on the host")
        self.name, self.graph, self.first_update = name, graph, first_update
        self.binding, self.paths, self.classes = binding, paths, classes
        self._kept: list[np.ndarray] = []

    def _written(self) -> list[np.ndarray]:
        arrays = self.binding.arrays()
        return [arrays[i] for i in self.binding.written]

    def keep(self) -> None:
        """Keeps what the next call may write over."""
        arrays = self._written()
        if [(a.shape, a.dtype) for a in arrays] != [(a.shape, a.dtype) for a in self._kept]:
            self._kept = [np.empty_like(a) for a in arrays]
        for kept, array in zip(self._kept, arrays, strict=True):
            np.copyto(kept, array)

    def check(self, flag: Any, given: Sequence[Any], host: Sequence[Any], step: int) -> None:
        """Raises NonFiniteError where the flag of a call is false; what the call has written is as before then."""
        if bool(flag):
            return
        for kept, array in zip(self._kept, self._written(), strict=True):
            np.copyto(array, kept)
        state = dict(zip(self.paths, self.binding.arrays(), strict=True))
        plain = iter(given)
        arguments = [
            np.array(on_host(next(plain) if input_class(v) == "input" else state[input_path(v)]))
            for v in self.graph.inputs
        ]
        search = Search()
        with running(host, {}), np.errstate(all="ignore"):
            search.run(self.graph, arguments)
        raise self._error(search, step)

    def _error(self, search: Search, step: int) -> NonFiniteError:
        head = f"{self.name}: step {step}"
        undone = "nothing of the step was written: look at these operands, or at the learning rate"
        found = search.first()
        if found is None:
            return NonFiniteError(
                f"{head}: the loss or an updated tensor is not finite, but is when each node is evaluated alone",
                remedy="graphc.check of the step",
            )
        if isinstance(found, Value):
            role = input_path(found) or f"input {found.name}"
            return NonFiniteError(f"{head}: {role} is not finite: {search.text(found)}", remedy=undone)
        phase = self._phase(found)
        made = ", ".join(search.text(v) for v in found.results)
        operands = "; ".join(f"%{v.name} {search.text(v)}" for v in found.operands)
        module = found.location.module
        kind = self.classes.get(module)
        name = f"{module} ({kind})" if module and kind else module or kind
        place = f" in {name}" if name else ""
        return NonFiniteError(
            f"{head}: the first number that is not finite is made by {found.op.name}{place}, {phase}: {made}",
            where=f"operands {operands}",
            origin=found.location.describe() or None,
            remedy=undone,
        )

    def _phase(self, node: Node) -> str:
        if node.id >= self.first_update:
            return "update"
        return "backward" if node.results[0].name.startswith("grad.") else "forward"


class Search(Evaluator):
    """Evaluates a graph and finds where numbers that are not finite begin.

    A NaN begins where none of the operands has one, an infinity where all operands are finite. Infinities that come
    from constants and inputs (masks) are none of these as long as no NaN is made of them, nor are values that nothing
    non-finite in the outputs or the written tensors is made of."""

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Evaluates all nodes and keeps their values."""
        self.graph = graph
        return super().run(graph, arguments)

    def first(self) -> Node | Value | None:
        """The node, or the input with a NaN (or trained tensor with an infinity), that is to blame; None for none.

        Where no node is, it is an infinity of an input or constant that has reached what is written."""
        return self._first(False) or self._first(True)

    def _first(self, blames_given: bool) -> Node | Value | None:
        trained = {n.operands[0] for n in self.graph.nodes() if n.op.has(Trait.STATE_WRITE)}
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
        """The bad values of which a bad output or written tensor is made."""
        written = [n.operands[1] for n in self.graph.nodes() if n.op.has(Trait.STATE_WRITE)]
        stack = [v for v in [*self.graph.outputs, *written] if v in bad]
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
        array = np.asarray(self.values[value])
        nans = int(np.count_nonzero(array != array))
        return nans, int(array.size - np.count_nonzero(np.isfinite(array))) - nans

    def text(self, value: Value) -> str:
        """Type, range, and counts of what is not finite."""
        array = np.asarray(self.values[value])
        parts = [str(value.type)]
        if array.dtype.kind in "fiu":
            finite = array[np.isfinite(array)]
            if finite.size:
                parts.append(f"{float(finite.min()):.4g}..{float(finite.max()):.4g}")
        counts = zip(self._counts(value), ("NaN", "inf"), strict=True)
        return " ".join([*parts, *(f"{n} {what}" for n, what in counts if n)])


def class_names(model: Any) -> dict[str, str]:
    """The class of each module of a model, by its path in locations."""
    return {path: type(m).__name__ for path, m in model.named_modules()} if hasattr(model, "named_modules") else {}
