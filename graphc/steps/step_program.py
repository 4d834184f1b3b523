"""A training step for one signature: forward, gradients and update as one graph, compiled and bound."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import (
    ArgumentError,
    ConditionError,
    GradientError,
    IndexRangeError,
    ShapeError,
    TraceError,
)
from graphc.calls.bindings import Slot
from graphc.calls.bound_program import bind, binding_of, build
from graphc.calls.machine import machine_of
from graphc.calls.memory import within_memory
from graphc.calls.sized_traces import SizedTrace, Sizes, structure_at, value_at
from graphc.calls.user_passes import passed
from graphc.calls.variant import no_hooks
from graphc.guards.attributes import set_again
from graphc.ir.graph.graph import Graph, Value, input_class, input_path
from graphc.ir.op import Trait
from graphc.ops.autodiff import leads_to, vjp_graph
from graphc.optim.settings import OptimizerSettings
from graphc.passes.pipeline import arrange, with_narrow_products
from graphc.runtime.host_calls import current
from graphc.steps.finite_flag import Guarded, append_check
from graphc.steps.first_nan import FirstNan, Scene, class_names
from graphc.steps.state_rounds import Rounds
from graphc.steps.step_gradients import seed_of
from graphc.steps.step_options import StepOptions
from graphc.steps.step_state import StepState
from graphc.steps.step_tail import Tail
from graphc.steps.step_update import UpdatedParameters, state_path
from graphc.tensors.placement import on_host
from graphc.tensors.structure import Branch, Leaf, given_for, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.identity import check_apart
from graphc.tracing.trace import Argument, Traced, graph_name

Gradients = Mapping[Value, tuple[Value, Tensor]]
"""For the argument of each parameter to update: its gradient, and the parameter."""


class StepResult(NamedTuple):
    """The results of one call of a program."""

    loss: Any
    """The loss's result."""
    output: Any
    """The model's output."""
    norm: Tensor | None = None
    """The norm of the gradients, where requested."""


class StepProgram:
    """A training step for one signature. It updates parameters, or only accumulates gradients."""

    def __init__(
        self,
        options: StepOptions,
        state: StepState,
        updates: bool,
        trace: SizedTrace,
        traced: Traced,
        leaves: Sequence[Any],
    ):
        """``traced`` is the part of ``trace`` for the sizes of this program."""
        self.options = options
        self.updates = updates
        self.trace = trace
        self.number_inputs = trace.numbers
        """Inputs for the dynamic numbers of each call."""
        no_hooks(options.name, traced)
        if traced.training is not None:
            raise TraceError(
                f"{options.name}: the model or the loss calls backward or steps an optimizer itself",
                remedy="compile the whole training function with graphc.compile, and call it with the batch",
            )
        passes = arrange(options.passes)
        pipeline = passes.pipeline if options.precision is None else with_narrow_products(passes.pipeline)
        self.machine = machine_of(options.target, [*leaves, *[a.tensor for a in traced.arguments]])
        self.traced = passed(traced, passes.first, self.machine)
        self._effects = self.traced.effects
        self.account = trace.outside.account([OptimizerSettings(o) for o in options.optimizers])
        count = len(self.traced.graph.outputs)
        graph, parameters = self._differentiate()
        slots = self._slots_of = self._slots(parameters)
        self.params = frozenset(id(param) for _, param in parameters.values())
        """The ``id`` of each parameter that has a gradient here."""
        tail = Tail(options, state, self.traced, trace.outside, slots)
        first_update = 1 + max(n.id for n in graph.nodes())
        tail.append(graph, parameters, updates)
        guarded = self._guarded(graph, tail) if options.first_nan else None
        self.account.watched += tuple(tail.facts)
        self.host = tail.host
        """The Python functions that the program calls."""
        self._numbers, self._norms, self._gradient_params = tail.numbers, tail.norms, tail.gradient_params
        self._count = count
        self.graph = graph
        within = within_memory(graph, options.memory, self.machine, pipeline)
        self.memory_report = within.report
        """Report of the memory budget; None without one."""
        self.program = build(within.graph, within.passes, self.machine)
        order = [spec.path for spec in self.program.bound]
        written = {n.operands[0].node.attrs["path"] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        self.binding = binding_of(self.program, [slots[p] for p in order], [p in written for p in order])
        self.first_nan: FirstNan | None = None
        """The search for values that are not finite."""
        if guarded is not None:
            self._arm(guarded, first_update, slots, written)
        self.calls = bind(self.program, self.binding, self.account.words, len(graph.outputs))
        plain = self.traced.structure == Branch(tuple, (), (Leaf(), Leaf()))
        self.single = plain and count == len(graph.outputs) and options.losses is None

    def _arm(self, guarded: Guarded, first_update: int, slots: dict[str, Slot], written: set[str]) -> None:
        options = self.options
        updates = [range(first_update, sys.maxsize)]
        scene = Scene(options.name, class_names(options.model), "step", updates)
        self.first_nan = FirstNan(scene, self.graph, guarded, self.machine)
        floats = {path: slots[path] for path in sorted(written) if slots[path].dtype.is_floating_point}
        self._rounds = Rounds({} if options.first_nan == "all" else floats)

    def _guarded(self, graph: Graph, tail: Tail) -> Guarded:
        """Append the check of ``first_nan``.

        The losses, the values that decide on the update, and the writes of the forward pass must be finite. The other
        outputs must contain no NaN.
        """
        losses = len(self.options.losses or (None,))
        numbers = [v for v in graph.inputs if input_class(v) == "input"][len(self.traced.inputs) :]
        written = {n.operands[0]: n.operands[1] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        captured = {input_path(a.value) for a in self.traced.arguments}
        updated = self.updated_paths
        finite = [*graph.outputs[:losses], *tail.decisive, *numbers]
        finite += [
            v for a, v in written.items() if input_path(a) in captured - updated or self.options.first_nan == "all"
        ]
        return append_check(graph, finite, graph.outputs[losses:])

    def _differentiate(self) -> tuple[Graph, Gradients]:
        """Return the graph with gradients appended, and the gradients."""
        graph = self.traced.graph
        count = len(graph.outputs)
        targets = self._loss_targets()
        is_one = self.options.accumulate == 1 and self.options.loss_scale is None
        seed: Any = True if is_one else functools.partial(seed_of, self.options)
        position = {v: i for i, v in enumerate(graph.inputs)}
        joint = graph
        for number, arguments in targets.items():
            joint = vjp_graph(joint, [joint.inputs[position[a.value]] for a in arguments], [number], unit=seed)
        gradients = joint.outputs[count:]
        joint.set_outputs(joint.outputs[:count])
        every = [a for arguments in targets.values() for a in arguments]
        by_argument = {
            joint.inputs[position[a.value]]: (gradient, a.tensor) for a, gradient in zip(every, gradients, strict=True)
        }
        return joint, by_argument

    def _loss_targets(self) -> dict[int, list[Argument]]:
        """Return, for the output index of each loss, the arguments that its gradient updates."""
        traced, names = self.traced, self.options.losses
        targets: dict[int, list[Argument]] = {}
        for number in range(len(names) if names else 1):
            loss = traced.graph.outputs[number]
            if loss.type.size != 1:
                raise ShapeError(
                    f"the loss must be one number, got {loss.type}", remedy="reduce it: loss.mean() or loss.sum()"
                )
            if not traced.differentiable[number]:
                raise GradientError("the loss does not depend on any parameter that requires gradients")
            optimizers = self.options.optimizers if names is None else [self.options.optimizers[number]]
            optimized = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
            met = None if names is None else leads_to(traced.graph, loss)
            targets[number] = [
                a
                for a in traced.arguments
                if id(a.tensor) in optimized and (traced.reached.get(a.value) == 0 if met is None else a.value in met)
            ]
            if not targets[number]:
                raise ArgumentError(
                    "compile_step: the optimizer holds no parameter that the loss depends on",
                    remedy=f"give the optimizer the parameters of this {graph_name(self.options.model)}: "
                    "model.parameters()",
                )
        return targets

    def _slots(self, parameters: Gradients) -> dict[str, Slot]:
        """Return the slots of tensors read and written by the program, by path. Create missing optimizer state."""
        slots = dict(self.trace.outside.slots)
        pairs = [(slots[input_path(value)], param) for value, (_, param) in parameters.items()]
        self.updated = UpdatedParameters(pairs)
        self.updated_paths = {input_path(value) for value in parameters}
        self.states: list[tuple[Any, Any, Any]] = []
        holders = {id(p): o for o in self.options.optimizers for group in o.param_groups for p in group["params"]}
        for argument, (_, param) in parameters.items() if self.updates else ():
            optimizer = holders[id(param)]
            state = optimizer.state_of(param) if optimizer.owned([param]) else {}
            if state:
                self.states.append((optimizer, param, state))
            for name, tensor in state.items():
                path = state_path(argument, name)
                slots[path] = Slot(tensor, (state, name), f"state {path!r}")
        return slots

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the program's params and states, by path."""
        return {spec.path: self._slots_of[spec.path].tensor() for spec in self.program.bound}

    @property
    def numbers(self) -> dict[Any, np.ndarray]:
        """The optimizers' numbers among the program's inputs, as its last ones, in order, with their present values."""
        return dict(zip(self._numbers.keys(), self._numbers.arrays(), strict=True))

    @property
    def sets_attributes(self) -> bool:
        """Whether each call sets attributes of modules."""
        return bool(self._effects)

    def holds(self) -> bool:
        """Check that the program's dependencies outside are unchanged."""
        for optimizer, param, state in self.states:
            if optimizer.state.get(param) is not state:
                return False
        return self.binding.holds() and self.account.holds() and self.updated.holds()

    def why(self) -> list[str]:
        """Return what changed."""
        reasons = [*self.number_inputs.why(), *self.binding.why(), *self.account.why()]
        if not self.updated.holds():
            reasons.append("a parameter of the optimizer was replaced in the model")
        return reasons or ["the state of the optimizer was replaced"]

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, scratch memory and reused outputs."""
        return self.calls.nbytes

    def run(self, leaves: Sequence[Any], sizes: Sizes | None) -> StepResult:
        """Run one step, for these sizes of named dimensions."""
        if self.traced.written:
            check_apart(self.traced.graph.name, self.traced.written, leaves)
        structure, effects = self.traced.structure, self._effects
        if sizes:
            structure = structure_at(structure, sizes)
            effects = tuple([(table, name, value_at(value, sizes)) for table, name, value in effects])
        if effects:
            set_again(effects)
        arrays = [*map(given_for, leaves), *self._numbers.arrays()]
        results = [Tensor._wrap(a) for a in self._call(arrays)]
        if self.single:
            return StepResult(results[0], results[1])
        count = self._count
        for param, gradient in zip(self._gradient_params, results[count + self._norms :], strict=True):
            param.grad = gradient
        loss, output = unflatten(structure, results[:count])[-2:]
        return StepResult(loss, output, results[count] if self._norms else None)

    def _call(self, arrays: list[Any]) -> list[Any]:
        run = self.calls.run if self.first_nan is None else self._run_guarded
        if self.host:
            run = self.trace.outside.serving(run, self.host, {}, self, self.first_nan is not None)
        return run(arrays)

    def _run_guarded(self, arrays: list[Any]) -> list[Any]:
        """Run the program. Raise NonFiniteError where this or an earlier call computes a non-finite value."""
        first_nan: Any = self.first_nan
        calls: Any = self.calls
        try:
            results = calls.run(arrays)
        except (ConditionError, IndexRangeError):
            host = current()
            if host is not None and host.error is not None:
                raise
            with calls.alone():
                return first_nan.look(*self._scene(), arrays)
        path = self._rounds.look()
        if path is not None:
            raise first_nan.written(*self._scene(), path)
        return results

    def _scene(self) -> tuple[int, dict[str, Any]]:
        """Return the number of the step, and the arrays of params and states by path."""
        bound = {path: on_host(slot.tensor()._data) for path, slot in self._slots_of.items()}
        return 1 + self.options.optimizers[0].step_count, bound
