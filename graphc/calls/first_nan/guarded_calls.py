"""Calls with ``first_nan``: a program with the check of finite numbers, and the errors of its calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

from graphc.base.errors import ArgumentError, ConditionError, IndexRangeError
from graphc.calls.bindings import Slot
from graphc.calls.first_nan.finite_flag import Guarded, append_check
from graphc.calls.first_nan.search import FirstNan, Moment, Scene, class_names
from graphc.calls.first_nan.state_rounds import Rounds
from graphc.ir.graph.graph import Node, input_class, input_path
from graphc.ir.op import Trait
from graphc.optim.traced_step import UPDATE
from graphc.runtime.host_calls import current
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors.placement import on_host
from graphc.tracing.trace import Traced
from graphc.tracing.training import Training


class GuardedProgram(Protocol):
    """A program whose graph has the check; see ``calls.variant.Variant``."""

    name: str
    machine: str
    traced: Traced
    training: Training | None
    calls: Any

    @property
    def slots(self) -> dict[str, Slot]: ...


def with_check(name: str, traced: Traced, first_nan: bool | str) -> tuple[Traced, Guarded]:
    """Append the check of ``first_nan`` to a trace, and remove the checked values from its outputs.

    The values that the trace collected and the writes that do not depend on an update must be finite, with ``"all"``
    all writes, and the numbers of optimizers. The other outputs must contain no NaN.
    """
    graph, training = traced.graph, traced.training
    if training is None and is_grad_enabled() and any(traced.differentiable):
        raise ArgumentError(
            f"{name}: first_nan checks a function that calls backward() itself, or one without gradients",
            remedy="compile the whole training function; or call it inside no_grad()",
        )
    if any(function.lends for function in traced.host):
        raise ArgumentError(
            f"{name}: first_nan stops the call of one process while the others go on",
            remedy="use a dynamic loss scale, which all processes follow alike; or run first_nan with one process",
        )
    count = len(graph.outputs) - (0 if training is None else training.checked)
    outputs, checked = graph.outputs[:count], graph.outputs[count:]
    numbers = [v for v in graph.inputs if input_class(v) == "input"][len(traced.inputs) :]
    written = {n.operands[0]: n.operands[1] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
    overflowing = set() if training is None else training.overflowing
    updated = _updated(graph.nodes())
    written = {a: v for a, v in written.items() if input_path(a) not in overflowing}
    writes = [v for v in written.values() if first_nan == "all" or v.node not in updated]
    graph.set_outputs(outputs)
    guarded = append_check(graph, [*checked, *numbers, *writes], outputs)
    return replace(traced, differentiable=traced.differentiable[:count]), guarded


def _updated(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes of updates and all that depend on them."""
    updated: set[Node] = set()
    for node in nodes:
        is_update = bool(node.results) and node.results[0].name.startswith(UPDATE)
        if is_update or any(v.node in updated for v in node.operands):
            updated.add(node)
    return updated


class GuardedCalls:
    """The calls of one program. Each raises NonFiniteError where this or an earlier one makes a non-finite value."""

    def __init__(
        self,
        program: GuardedProgram,
        guarded: Guarded,
        first_nan: bool | str,
        modules: Iterable[tuple[str, Any]],
        has_root: bool,
    ):
        """For ``modules`` see ``class_names``, for ``has_root`` see ``Scene``."""
        self._program = program
        scene = Scene(program.name, program.machine, class_names(modules), has_root)
        self._first = FirstNan(scene, program.traced.graph, guarded)
        written = sorted(input_path(argument) for argument in guarded.writes)
        slots = {path: program.slots[path] for path in written}
        floats = {path: slot for path, slot in slots.items() if slot.dtype.is_floating_point}
        self._rounds = Rounds({} if first_nan == "all" else floats)

    def run(self, arguments: list[Any]) -> list[Any]:
        """Run the program."""
        calls = self._program.calls
        try:
            results = calls.run(arguments)
        except (ConditionError, IndexRangeError):
            host = current()
            if host is not None and host.error is not None:
                raise
            with calls.alone():
                return self._first.look(self._moment(), self._bound(), arguments)
        path = self._rounds.look()
        if path is not None:
            raise self._first.written(self._moment(), self._bound(), path)
        return results

    def _moment(self) -> Moment:
        training = self._program.training
        return Moment(1 + training.optimizers[0].step_count) if training and training.optimizers else Moment()

    def _bound(self) -> dict[str, Any]:
        """Return the arrays of params and states by path."""
        return {path: on_host(slot.tensor()._data) for path, slot in self._program.slots.items()}
