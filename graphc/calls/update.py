"""Optimizers' updates as native programs: all parameters and their states at once, in place, by the traced rule."""

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
from graphc.calls.bound_program import BoundProgram, bound_values, build
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

    The gradients and the numbers that schedules change are its arguments, in the parameters' precision; parameters and
    states are written in place."""

    def __init__(self, optimizer: Any, params: Sequence[Any]):
        """Raises what the rule raises when it is traced, and TraceError where a program would not do the same."""
        self.params = list(params)
        self.settings = OptimizerSettings(optimizer)
        self._numbers = GivenNumbers()
        self._checked: tuple[Any, bool] = (None, False)
        """The arrays of parameters and states in the call before, and whether a program may write to them."""
        self.states = [(p, optimizer.state_of(p)) for p in self.params]
        self.types = [(p.dtype.numpy, p.shape) for p in self.params]
        graph, slots = self._trace(optimizer)
        program = build(graph)
        order = [v.node.attrs["path"] for v in bound_values(graph, program)]
        writes = {n.operands[0].node.attrs["path"] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        self._binding = Binding([slots[p] for p in order], [p in writes for p in order])
        self._calls = BoundProgram(program, self._binding, self._account.words)

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
                # NOTE: whatever ends the traced code: what it has changed is put back, then that is raised again.
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
        """Appends the update of one parameter and its state."""
        param, state = self.states[i]

        def argument(tensor: Any, path: str, place: Any) -> Value:
            slots[path] = Slot(tensor, place, f"state {path!r}")
            return tracer.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, "state", path)

        values = {name: argument(t, f"{i}.{name}", (state, name)) for name, t in state.items()}
        own = argument(param, f"{i}", None)
        images = {name: Tensor._wrap(value) for name, value in values.items()}
        new, after = optimizer.new_values(Tensor._wrap(own), Tensor._wrap(gradient), images, rule)
        for target, tensor in [(own, new), *((value, after[name]) for name, value in values.items())]:
            tracer.write(target, tensor)

    def fits(self, optimizer: Any, params: Sequence[Any]) -> bool:
        """Whether it is the update of these parameters, as all that it depends on is now."""
        if len(params) != len(self.params) or not all(map(is_, params, self.params)):
            return False
        state_of = optimizer.state.get
        for param, state in self.states:
            if state and state_of(param) is not state:
                return False
        return self.settings.holds() and self._binding.holds() and self._account.holds()

    def run(self) -> bool:
        """One step; False, and nothing has changed, where gradients or parameters are none that a program takes."""
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
    """Whether a parameter is one that programs update: in the memory of the host, of its own, of a known type."""
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
