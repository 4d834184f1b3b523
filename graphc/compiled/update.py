"""Optimizers' updates as native programs: all parameters and their states at once, in place, by the traced rule."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from graphc.base import module_path
from graphc.base.dtypes import BY_NAME, DType
from graphc.base.errors import TraceError
from graphc.base.interruptions import kept_outside
from graphc.compiled.bindings import Binding, Slot
from graphc.compiled.bound_program import BoundProgram, bound_values, build
from graphc.compiled.in_place import can_be_written
from graphc.compiler.native_call import unchanged
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.define import as_type
from graphc.ops.state import state_write
from graphc.tape.grad_mode import no_grad
from graphc.tensors.placement import on_host
from graphc.tensors.structure import flatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.attributes import recording
from graphc.tracing.facts import Account
from graphc.tracing.trace import draws, no_collector, settled
from graphc.tracing.tracer import Tracer

TYPES = ("f32", "f64")
"""Element types of parameters that programs update."""


class _Number(NamedTuple):
    """A number of a group that is an argument of the program."""

    group: int
    name: str
    dtype: np.dtype


def is_static(name: str, value: Any) -> bool:
    """Whether a schedulable number is part of the program: absent ones, and those that are 0, which switch off what
    they scale. A rate switches nothing off."""
    if isinstance(value, Tensor) or name == "lr":
        return False
    return not isinstance(value, (int, float)) or value == 0


class Settings:
    """What an optimizer's program depends on besides its parameters: all numbers that are no arguments."""

    def __init__(self, optimizer: Any):
        self._settings = self._read(optimizer)
        self._seen = self._values(optimizer)

    @staticmethod
    def _read(optimizer: Any) -> list[Any]:
        found = []
        for group in optimizer.param_groups:
            numbers = optimizer.hyper(group)
            kept = {k: v for k, v in numbers.items() if k not in optimizer.schedulable or is_static(k, v)}
            found.append(flatten(kept)[1])
        return found

    @staticmethod
    def _values(optimizer: Any) -> list[Any]:
        return [value for group in optimizer.param_groups for name, value in group.items() if name != "params"]

    def holds(self, optimizer: Any) -> bool:
        """Whether they are what they were; nearly always nothing was assigned at all."""
        values = self._values(optimizer)
        if len(values) == len(self._seen) and all(map(is_, values, self._seen)):
            return True
        if self._read(optimizer) != self._settings:
            return False
        self._seen = values
        return True


class Update:
    """One step of an optimizer for some of its parameters as one program.

    The gradients and the numbers that schedules change are its arguments, in the parameters' precision; parameters and
    states are written in place."""

    def __init__(self, optimizer: Any, params: Sequence[Any]):
        """Raises what the rule raises when it is traced, and TraceError where a program would not do the same."""
        self.params = list(params)
        self.settings = Settings(optimizer)
        self._numbers: list[_Number] = []
        self._given: list[Any] = []
        """The numbers of the last step, where they were plain ones."""
        self._arrays: list[np.ndarray] = []
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
                reads.reach(optimizer, "")
                try:
                    for index, group in enumerate(optimizer.param_groups):
                        rules: dict[DType, dict[str, Any]] = {}
                        for i in [number[id(p)] for p in group["params"] if id(p) in number]:
                            dtype = self.params[i].dtype
                            if dtype not in rules:
                                rules[dtype] = self._rule(optimizer, graph, index, dtype)
                            self._append(tracer, optimizer, i, gradients[i], rules[dtype], slots)
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

    def _rule(self, optimizer: Any, graph: Graph, index: int, dtype: DType) -> dict[str, Any]:
        """The numbers of a group for parameters of one element type."""
        values = dict(optimizer.hyper(optimizer.param_groups[index]))
        for name in optimizer.schedulable:
            if name in values and not is_static(name, values[name]):
                argument = graph.add_input(TensorType(dtype), f"group{index}.{name}.{dtype.name}")
                values[name] = Tensor._wrap(argument)
                self._numbers.append(_Number(index, name, dtype.numpy))
        return values

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
        new, after = optimizer.update(Tensor._wrap(own), Tensor._wrap(gradient), images, rule)
        for target, tensor in [(own, new), *((value, after[name]) for name, value in values.items())]:
            result = as_type(tracer.local(tensor), target.dtype)._data
            if result is not target:
                emit(tracer.graph, state_write.op, (target, result), {}, name=f"{target.name}.next")

    def fits(self, optimizer: Any, params: Sequence[Any]) -> bool:
        """Whether it is the update of these parameters, as all that it depends on is now."""
        if len(params) != len(self.params) or not all(map(is_, params, self.params)):
            return False
        state_of = optimizer.state.get
        for param, state in self.states:
            if state and state_of(param) is not state:
                return False
        return self.settings.holds(optimizer) and self._binding.holds() and self._account.holds()

    def run(self, optimizer: Any) -> bool:
        """One step; False, and nothing has changed, where gradients or parameters are none that a program takes."""
        bound = self._binding.arrays()
        if bound is not self._checked[0]:
            self._checked = bound, can_be_written(bound)
        if not self._checked[1]:
            return False
        groups = optimizer.param_groups
        given = [optimizer.number(groups[i], name) for i, name, _ in self._numbers]
        if not (self._given and all(map(is_, given, self._given))):
            self._arrays = [_array(value, dtype) for value, (_, _, dtype) in zip(given, self._numbers, strict=True)]
            self._given = given if all([type(value) is float for value in given]) else []
        gradients = [p._grad._data for p in self.params]
        if self._calls.native()(*gradients, *self._arrays) is None:
            if [(getattr(g, "dtype", None), g.shape) for g in gradients] != self.types:
                return False
            self._calls.run([*gradients, *self._arrays])
        else:
            self._binding.note_writes()
        return True


def _array(value: Any, dtype: np.dtype) -> np.ndarray:
    return np.asarray(on_host(value._data) if isinstance(value, Tensor) else value, dtype)


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
