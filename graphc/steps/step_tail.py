"""The end of a training step's graph after the gradients: their processing, the updates, and averages of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphc.base import module_path
from graphc.base.interruptions import kept_outside
from graphc.calls.bindings import Modules, Slot
from graphc.calls.outside import Outside
from graphc.guards.attributes import recording
from graphc.ir.graph.graph import INPUT, Graph, Value, input_path
from graphc.ops import dispatch
from graphc.optim.settings import GivenNumbers, GroupRule
from graphc.steps.step_gradients import Gradients
from graphc.steps.step_options import StepOptions
from graphc.steps.step_state import StepState
from graphc.steps.step_update import append_update, forward_contents
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import HostCalls
from graphc.tracing.taps import deliver
from graphc.tracing.trace import Traced, modules_of, settled
from graphc.tracing.tracer import Tracer, named_tensors

AVERAGE = "ema"
"""Prefix of the paths of averaged weights."""


class _Continued(Tracer):
    """A tracer that extends the graph of another trace."""

    def adopt(self, tensor: Tensor, value: Value) -> None:
        """Record a value of the graph as the content of a tensor outside."""
        self._remember(tensor, value)


class Tail:
    """Traces the end of a step into the graph of its gradients."""

    def __init__(
        self, options: StepOptions, state: StepState, traced: Traced, outside: Outside, slots: dict[str, Slot]
    ):
        self.options = options
        self.state = state
        self._traced = traced
        self._outside = outside
        self._slots = slots
        self.numbers = GivenNumbers()
        """The optimizers' numbers that became arguments."""
        self.norms = 0
        """Number of outputs after those of the trace that are norms of the gradients: 0 or 1."""
        self.gradient_params: list[Tensor] = []
        """Parameters whose gradients are the last outputs."""
        self.facts: list[Any] = []
        """Facts that tracing read from the world outside."""
        self.host: tuple[Any, ...] = ()
        """The Python functions that the program calls."""
        self.decisive: list[Value] = []
        """Values that must be finite before any update: gradients, or their norm."""

    def append(self, graph: Graph, parameters: Mapping[Value, tuple[Value, Any]], updates: bool) -> None:
        """Append the end of the step. Update parameters if ``updates``, else only accumulate gradients."""
        tracer = _Continued(graph)
        tracer.differentiable = False
        tracer.host = HostCalls(self._traced.host)
        contents = forward_contents(graph, parameters, updates)
        names = ", ".join(type(o).__name__ for o in self.options.optimizers)
        with kept_outside(), dispatch.use(tracer), module_path.outside(), no_grad(), recording(True) as reads:
            for optimizer in self.options.optimizers:
                reads.reach(optimizer.rule, "")
            gradients = Gradients(self.options, self.state, tracer, self._slots)
            gradients.take(parameters, updates)
            if updates:
                gradients.prepare(parameters)
                self._update(tracer, parameters, contents, gradients)
                self._add_outputs(graph, parameters, gradients)
            if updates and self.state.average is not None:
                self._average(tracer, contents)
            self.decisive = [t._data for t in gradients.decisive()]
            deliver(tracer)
        self.facts = settled(reads, f"{names}.update")
        self.host = tuple(tracer.host.functions)

    def _update(
        self,
        tracer: Tracer,
        parameters: Mapping[Value, tuple[Value, Any]],
        contents: dict[Value, Value],
        gradients: Gradients,
    ) -> None:
        by_param = {id(param): argument for argument, (_, param) in parameters.items()}
        for optimizer in self.options.optimizers:
            params = [p for group in optimizer.param_groups for p in group["params"] if id(p) in by_param]
            for index, group in enumerate(optimizer.param_groups):
                rules: dict[Any, GroupRule] = {}
                for param in optimizer.owned([p for p in group["params"] if id(p) in by_param]):
                    if param.dtype not in rules:
                        rule = rules[param.dtype] = GroupRule(optimizer, index, param.dtype, tracer.graph)
                        self.numbers.add(rule.inputs)
                    argument = by_param[id(param)]
                    values = argument, contents[argument], gradients.by_argument[argument]
                    contents[argument] = append_update(
                        tracer, optimizer, param, values, rules[param.dtype], gradients.finite
                    )
            new = {id(p): Tensor._wrap(contents[by_param[id(p)]]) for p in params}
            for param, value in optimizer.from_others(params, new):
                contents[by_param[id(param)]] = tracer.write(by_param[id(param)], value)

    def _add_outputs(self, graph: Graph, parameters: Mapping[Value, tuple[Value, Any]], gradients: Gradients) -> None:
        more: list[Any] = []
        if gradients.norm is not None:
            self.norms = 1
            more.append(gradients.norm)
        if self.options.grads:
            self.gradient_params = [param for _, param in parameters.values()]
            more += gradients.by_argument.values()
        graph.set_outputs([*graph.outputs, *(t._data for t in more)])

    def _average(self, tracer: _Continued, contents: Mapping[Value, Value]) -> None:
        """Update the averages from the updated weights."""
        average: Any = self.state.average
        by_path = {input_path(v): v for v in tracer.graph.inputs if input_path(v)}
        captured = {id(a.tensor) for a in self._traced.arguments}
        for argument in self._traced.arguments:
            value = by_path[input_path(argument.value)]
            tracer.adopt(argument.tensor, contents.get(value, value))
        roots = [*modules_of(self.options.model), (f"{AVERAGE}.", average)]
        for prefix, root in roots:
            tracer.add_names(
                (t, cls, f"{prefix}{path}") for t, cls, path in named_tensors(root) if id(t) not in captured
            )
        before = set(tracer.captured)
        average.update_parameters(self.state.source)
        tracer.finish_writes()
        locations = {**self._outside.modules.locations(), **Modules([average]).locations()}
        for key, entry in tracer.captured.items():
            if key not in before and entry.value.node.op is INPUT:
                path = input_path(entry.value)
                self._slots[path] = Slot(entry.tensor, locations.get(key), f"state {path!r}")
