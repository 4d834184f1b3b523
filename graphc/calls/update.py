"""Optimizer updates as native programs: all parameters and states at once, in place, by the traced rule."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from graphc.base import module_path
from graphc.base.dtypes import BY_NAME, DType
from graphc.base.errors import TraceError
from graphc.base.interruptions import kept_outside
from graphc.calls.bindings import Binding, Slot
from graphc.calls.bound_program import BoundProgram, build
from graphc.calls.in_place import can_be_written
from graphc.compiler.native_call import unchanged
from graphc.guards.attributes import recording
from graphc.guards.facts import Account
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.optim.settings import GivenNumbers, GroupRule, OptimizerSettings
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import draws, no_collector, settled
from graphc.tracing.tracer import Tracer

TYPES = ("f32", "f64")
"""Element types of parameters that programs update."""


class Update:
    """One step of an optimizer for some of its parameters as one program.

    Its arguments are the gradients and the numbers that schedules change, in the parameters' precision. It writes
    parameters and states in place.
    """

    def __init__(self, optimizer: Any, params: Sequence[Any]):
        """Raise what tracing the rule raises, and TraceError where a program would not do the same."""
        self.params = list(params)
        self.settings = OptimizerSettings(optimizer)
        self._numbers = GivenNumbers()
        self._checked: tuple[Any, bool] = (None, False)
        """The arrays of parameters and states in the previous call, and whether a program may write to them."""
        self.states = [(p, optimizer.state_of(p)) for p in self.params]
        self.types = [(p.dtype.numpy, p.shape) for p in self.params]
        graph, slots = self._trace(optimizer)
        program = build(graph)
        order = [spec.path for spec in program.bound]
        writes = {n.operands[0].node.attrs["path"] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        self._binding = Binding([slots[p] for p in order], [p in writes for p in order])
        self._calls = BoundProgram(program, self._binding, self._account.words)
        self.nbytes = self._calls.nbytes

    def _trace(self, optimizer: Any) -> tuple[Graph, dict[str, Slot]]:
        graph = Graph(f"{type(optimizer).__name__}_update")
        gradients = [graph.add_input(TensorType(p.dtype, p.shape), f"grad.{i}") for i, p in enumerate(self.params)]
        tracer = Tracer(graph)
        tracer.differentiable = False
        slots: dict[str, Slot] = {}
        number = {id(p): i for i, p in enumerate(self.params)}
        with no_collector(), kept_outside(), dispatch.use(tracer), module_path.outside(), no_grad():
            with recording(True) as reads:
                reads.reach(optimizer.rule, "")
                try:
                    for index, group in enumerate(optimizer.param_groups):
                        rules: dict[DType, GroupRule] = {}
                        for i in [number[id(p)] for p in group["params"] if id(p) in number]:
                            dtype = self.params[i].dtype
                            if dtype not in rules:
                                rules[dtype] = GroupRule(optimizer, index, dtype, graph)
                                self._numbers.add(rules[dtype].inputs)
                            self._append(tracer, optimizer, i, gradients[i], rules[dtype].values, slots)
                # NOTE: whatever exception ends the traced code, first undo its changes, then raise it again.
                except BaseException:
                    reads.settle()
                    raise
            facts = settled(reads, f"{type(optimizer).__name__}.update")
        if tracer.captured or draws(graph):
            raise TraceError(f"{type(optimizer).__name__}.update reads tensors besides its arguments, or draws numbers")
        self._account = Account((), facts, (), unchanged)
        graph.set_outputs([])
        return graph, slots

    def _append(
        self, tracer: Tracer, optimizer: Any, i: int, gradient: Value, rule: dict[str, Any], slots: dict[str, Slot]
    ) -> None:
        """Append the update of one parameter and its state."""
        param, state = self.states[i]

        def argument(tensor: Any, path: str, location: Any) -> Value:
            slots[path] = Slot(tensor, location, f"state {path!r}")
            return tracer.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, "state", path)

        values = {name: argument(t, f"{i}.{name}", (state, name)) for name, t in state.items()}
        own = argument(param, f"{i}", None)
        traced_state = {name: Tensor._wrap(value) for name, value in values.items()}
        new, after = optimizer.new_values(Tensor._wrap(own), Tensor._wrap(gradient), traced_state, rule)
        for target, tensor in [(own, new), *((values[n], after[n]) for n in values if n in after)]:
            tracer.write(target, tensor)

    def fits(self, optimizer: Any, params: Sequence[Any]) -> bool:
        """Check for the same parameters, and that all dependencies are unchanged."""
        if len(params) != len(self.params) or not all(map(is_, params, self.params)):
            return False
        state_of = optimizer.state.get
        for param, state in self.states:
            if state and state_of(param) is not state:
                return False
        return self.settings.holds() and self._binding.holds() and self._account.holds()

    def run(self) -> bool:
        """Run one step. Return False, with nothing changed, where a program cannot take the gradients or parameters."""
        bound = self._binding.arrays()
        if bound is not self._checked[0]:
            self._checked = bound, can_be_written(bound)
        if not self._checked[1]:
            return False
        numbers = self._numbers.arrays()
        gradients = [p._grad._data for p in self.params]
        if self._calls.native()(*gradients, *numbers) is None:
            if [(getattr(g, "dtype", None), g.shape) for g in gradients] != self.types:
                return False
            self._calls.run([*gradients, *numbers])
        else:
            self._binding.note_writes()
        return True


def is_plain(param: Any) -> bool:
    """Return whether programs can update a parameter: in host memory, not a view, of a supported type."""
    gradient = param._grad
    return (
        param.dtype in _TYPES
        and param._data.__class__ is np.ndarray
        and param._view is None
        and param._counter is not None
        and gradient.dtype is param.dtype
        and gradient._data.__class__ is np.ndarray
        and gradient._view is None
    )


_TYPES = tuple(BY_NAME[name] for name in TYPES)
