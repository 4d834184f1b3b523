"""A training step for one signature: forward, gradients and update as one graph, compiled and bound."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from graphc.base import module_path
from graphc.base.errors import ArgumentError, GradientError, ShapeError, TraceError
from graphc.base.interruptions import kept_outside
from graphc.compiled.bindings import Slot
from graphc.compiled.bound_program import bind, binding_of, bound_values, build
from graphc.compiled.machine import machine_of
from graphc.compiled.memory import within_memory
from graphc.compiled.number_places import GivenNumbers
from graphc.compiled.outside import Outside
from graphc.compiled.sized_traces import Sizes, structure_at, value_at
from graphc.compiled.step_options import StepOptions
from graphc.compiled.step_update import (
    GroupNumber,
    GroupRule,
    OptimizerSettings,
    UpdatedParameters,
    append_update,
    state_path,
    taken_writes,
)
from graphc.compiled.user_passes import passed
from graphc.compiled.variant import no_hooks
from graphc.ir.graph.graph import Graph, Value, input_path
from graphc.ir.op import Trait
from graphc.ops import dispatch
from graphc.ops.autodiff import vjp_graph
from graphc.passes.pipeline import arrange
from graphc.runtime.host_calls import running
from graphc.tape.grad_mode import no_grad
from graphc.tensors.placement import on_host
from graphc.tensors.structure import Branch, Leaf, given_for, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.attributes import recording, set_again
from graphc.tracing.host import HostCalls
from graphc.tracing.identity import check_apart
from graphc.tracing.trace import Traced, graph_name, settled
from graphc.tracing.tracer import Tracer


class StepProgram:
    """A training step for one signature."""

    def __init__(
        self, options: StepOptions, traced: Traced, outside: Outside, taken: GivenNumbers, leaves: Sequence[Any]
    ):
        passes = arrange(options.passes)
        self.model = options.model
        self.optimizer = options.optimizer
        self.given = taken
        """How it takes numbers that each call gives."""
        no_hooks(options.name, traced)
        if traced.training is not None:
            raise TraceError(
                f"{options.name}: the model or the loss calls backward or steps an optimizer itself",
                remedy="graphc.compile of the whole training function, called with the batch",
            )
        self.machine = machine_of(options.target, [*leaves, *[a.tensor for a in traced.arguments]])
        self.traced = passed(traced, passes.first, self.machine)
        self._effects = self.traced.effects
        self._outside = outside
        self.account = self._outside.account([OptimizerSettings(options.optimizer)])
        graph, parameters = self._differentiate(options.optimizer)
        slots = self._slots(options.optimizer, parameters)
        self._given: list[float] = []
        """The optimizer's numbers of the last step, where they were plain ones."""
        self._numbers: list[np.ndarray] = []
        """Arrays of them."""
        self.hyper = self._append_update(options.optimizer, graph, parameters)
        self.graph = graph
        within = within_memory(graph, options.memory, self.machine, passes.pipeline)
        self.memory_report = within.report
        """What the memory budget has led to; None without one."""
        self.program = build(within.graph, within.passes, self.machine)
        order = [v.node.attrs["path"] for v in bound_values(graph, self.program)]
        written = {n.operands[0].node.attrs["path"] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        self.binding = binding_of(self.program, [slots[p] for p in order], [p in written for p in order])
        self.calls = bind(self.program, self.binding, self.account.words, len(graph.outputs))
        self.single = self.traced.structure == Branch(tuple, (), (Leaf(), Leaf()))

    def _differentiate(self, optimizer: Any) -> tuple[Graph, dict[Value, tuple[Value, Tensor]]]:
        """The graph with gradients; for each parameter to update its argument, with gradient and tensor."""
        traced = self.traced
        value = traced.graph.outputs[0]
        if value.type.size != 1:
            raise ShapeError(f"the loss must be one number, got {value.type}", remedy="loss.mean() or loss.sum()")
        if not traced.differentiable[0]:
            raise GradientError("the loss does not depend on any parameter that requires gradients")
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        wanted = [a for a in traced.arguments if id(a.tensor) in known and traced.reached.get(a.value) == 0]
        if not wanted:
            raise ArgumentError(
                "compile_step: the optimizer holds no parameter that the loss depends on",
                remedy=f"an optimizer of the parameters of this {graph_name(self.model)}: model.parameters()",
            )
        joint = vjp_graph(traced.graph, [a.value for a in wanted], [0], unit=True)
        position = {v: i for i, v in enumerate(traced.graph.inputs)}
        count = len(traced.graph.outputs)
        gradients = joint.outputs[count:]
        joint.set_outputs(joint.outputs[:count])
        parameters = {
            joint.inputs[position[a.value]]: (gradient, a.tensor) for a, gradient in zip(wanted, gradients, strict=True)
        }
        return joint, parameters

    def _slots(self, optimizer: Any, parameters: dict[Value, tuple[Value, Tensor]]) -> dict[str, Slot]:
        """The tensors that the program reads and writes, by path; optimizer state is made where it does not exist."""
        slots = dict(self._outside.slots)
        self.updated = UpdatedParameters(
            [(slots[input_path(value)], param) for value, (_, param) in parameters.items()]
        )
        self.states: list[tuple[Any, Any]] = []
        for argument, (_, param) in parameters.items():
            state = optimizer.state_of(param)
            if state:
                self.states.append((param, state))
            for name, tensor in state.items():
                path = state_path(argument, name)
                slots[path] = Slot(tensor, (state, name), f"state {path!r}")
        return slots

    def _append_update(
        self, optimizer: Any, graph: Graph, parameters: dict[Value, tuple[Value, Tensor]]
    ) -> list[GroupNumber]:
        """Traces the update rule for every parameter; returns the numbers that became arguments, in order."""
        numbers: list[GroupNumber] = []
        by_param = {id(param): (value, gradient) for value, (gradient, param) in parameters.items()}
        tracer = Tracer(graph)
        tracer.differentiable = False
        tracer.host = HostCalls(self.traced.host)
        contents = taken_writes(graph, parameters)
        with kept_outside(), dispatch.use(tracer), module_path.outside(), no_grad(), recording(True) as reads:
            reads.reach(optimizer, "")
            for index, group in enumerate(optimizer.param_groups):
                present = [p for p in group["params"] if id(p) in by_param]
                rule = GroupRule(optimizer, index, graph) if present else None
                numbers += rule.inputs if rule else []
                for param in present:
                    assert rule is not None
                    argument, gradient = by_param[id(param)]
                    append_update(tracer, optimizer, param, (argument, contents[argument], gradient), rule)
        self.account.watched += tuple(settled(reads, f"{type(optimizer).__name__}.update"))
        self.host = tuple(tracer.host.functions)
        return numbers

    def holds(self, optimizer: Any) -> bool:
        """Whether nothing outside has changed that the program depends on."""
        state_of = optimizer.state.get
        for param, state in self.states:
            if state_of(param) is not state:
                return False
        return self.binding.holds() and self.account.holds() and self.updated.holds()

    def why(self) -> list[str]:
        """What has changed."""
        found = [*self.given.why(), *self.binding.why(), *self.account.why()]
        if not self.updated.holds():
            found.append("a parameter of the optimizer was replaced in the model")
        return found or ["the state of the optimizer was replaced"]

    used = 0
    """See program_table."""
    is_stale = False

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, scratch memory, and outputs that are used again."""
        return self.calls.nbytes

    def prepacked(self) -> Sequence[np.ndarray]:
        """Nothing that is made of weights outlives a step, which writes them."""
        return ()

    def run(self, leaves: Sequence[Any], sizes: Sizes | None) -> tuple[Any, Any]:
        """One step, for these sizes of named dimensions; what the loss and what the model returned."""
        if self.traced.written:
            check_apart(self.traced.graph.name, self.traced.written, leaves)
        structure, effects = self.traced.structure, self._effects
        if sizes:
            structure = structure_at(structure, sizes)
            effects = tuple([(table, name, value_at(value, sizes)) for table, name, value in effects])
        if effects:
            set_again(effects)
        groups = self.optimizer.param_groups
        given = [self.optimizer.number(groups[i], name) for i, name, _ in self.hyper]
        if not (self._given and all(map(is_, given, self._given))):
            self._numbers = [_array(value, dtype) for value, (_, _, dtype) in zip(given, self.hyper, strict=True)]
            self._given = given if all([type(value) is float for value in given]) else []
        given = [*map(given_for, leaves), *self._numbers]
        if self.host:
            with running(self.host, {}):
                found = [Tensor._wrap(a) for a in self.calls.run(given)]
        else:
            found = [Tensor._wrap(a) for a in self.calls.run(given)]
        if self.single:
            return found[0], found[1]
        return unflatten(structure, found)


def _array(value: Any, dtype: np.dtype) -> np.ndarray:
    return np.asarray(on_host(value._data) if isinstance(value, Tensor) else value, dtype)
