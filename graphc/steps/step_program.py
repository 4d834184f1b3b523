"""A training step for one signature: the program of its function's trace, and its calls with ``first_nan``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ConditionError, IndexRangeError
from graphc.calls.bindings import Modules, Slot
from graphc.calls.function import Compiled
from graphc.calls.number_places import DynamicValues, Fresh
from graphc.calls.outside import Outside
from graphc.calls.program_store import trim
from graphc.calls.recompile_reasons import Recompiles
from graphc.calls.recompile_warning import RecompileCount, argument_names
from graphc.calls.sized_traces import DimsOfCalls, SizedCall, SizedTrace
from graphc.calls.variant import Variant, Weights
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.op import Trait
from graphc.passes.pipeline import arrange
from graphc.runtime.host_calls import current
from graphc.steps.finite_flag import Guarded, append_check
from graphc.steps.first_nan import FirstNan, Scene, class_names
from graphc.steps.state_rounds import Rounds
from graphc.steps.step_function import StepFunction
from graphc.steps.step_options import StepOptions
from graphc.steps.step_state import StepState
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.placement import on_host
from graphc.tensors.structure import Branch
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced, modules_of, trace_function


class StepProgram(Variant):
    """A training step for one signature. It updates parameters, or only accumulates gradients."""

    def __init__(self, options: StepOptions, traced: Traced, modules: Modules, leaves: Sequence[Any], outside: Outside):
        """``outside`` is the state of the world outside when it was traced."""
        training: Any = traced.training
        self.function: StepFunction = training.step
        guarded = None
        if options.first_nan:
            traced, guarded = without_checked(options, traced)
        self.graph: Graph = traced.graph
        # NOTE: live, as no packed weight outlives an update.
        weights = Weights(options.precision, live=True, memory=options.memory)
        pipeline = arrange(options.passes).pipeline
        super().__init__(options.name, traced, modules, leaves, weights, pipeline, options.target, outside)
        if guarded is not None:
            self.guarded = GuardedStep(options, self, guarded, self._machine)

    @property
    def updates(self) -> bool:
        """Whether it updates parameters."""
        return self.function.updates

    @property
    def slots(self) -> dict[str, Slot]:
        """The slots of the trace's params and states, by path."""
        return self._slots

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the program's params and states, by path."""
        return {spec.path: self._slots[spec.path].tensor() for spec in self.program.bound}

    @property
    def passed_numbers(self) -> dict[Any, np.ndarray]:
        """The optimizers' numbers among the program's inputs, as its last ones, in order, with their present values."""
        training: Any = self.training
        numbers = training.passed
        return dict(zip(numbers.keys(), numbers.arrays(), strict=True))


class StepPrograms(Compiled):
    """The programs of a step, those of a compiled function: its trace is that of a ``StepFunction``."""

    def __init__(self, options: StepOptions, state: StepState):
        self.options, self.state = options, state
        names = argument_names(options.model)
        names += [] if options.loss is None else argument_names(options.loss)[1:]
        # NOTE: its own function applies the first passes, to the forward pass alone.
        super().__init__(StepFunction(options, state, True), machine=options.target)
        self._name, self._recompiles = options.name, Recompiles(options.name)
        self._recompile_count = RecompileCount(options.name, lambda: names)
        self._calls = DimsOfCalls(options.dims, options.model, names)

    def _named_modules(self) -> list[tuple[str, Any]]:
        """Return the modules of model and loss, with prefixes for the names of their tensors."""
        loss = [] if self.options.loss is None else modules_of(self.options.loss)
        return [*modules_of(self.options.model), *((f"loss.{prefix}", module) for prefix, module in loss)]

    @property
    def programs_of_step(self) -> list[StepProgram]:
        """The programs held in memory."""
        return [variant for variant in self._variants if isinstance(variant, StepProgram)]

    def present_modules(self) -> Modules:
        """Return the modules of model and loss. Drop all programs where a module was added, removed or replaced."""
        modules = self._modules
        if modules is None or not modules.holds():
            modules = self._modules = Modules(module for _, module in self._named_modules())
            self._variants.clear()
            self._traces.clear()
        return modules

    def program(
        self, key: Any, structure: Any, dynamic: DynamicValues, batch: tuple[Any, ...], call: SizedCall | None
    ) -> tuple[StepProgram, list[Tensor]]:
        """Return the program for a call, compiled if necessary, and the call's dynamic numbers as tensors."""
        match = self._find_variant(key, dynamic, call)
        if match is None:
            match = self._new_variant(key, structure, self.present_modules(), batch, {}, call)
            trim()
            if self.state.is_update:
                self._recompile_count.note(match[1], 4)
        elif match[0] is not self._variants.last:
            self._variants.use(match[0])
        return match[0], match[2]  # type: ignore[return-value]

    def _make(
        self, key: Any, traced: Traced, modules: Modules, leaves: Sequence[Tensor], outside: Outside
    ) -> StepProgram:
        return StepProgram(self.options, traced, modules, leaves, outside)

    def _traced(
        self, structure: Any, args: tuple[Any, ...], kwargs: dict[str, Any], modules: Modules, call: SizedCall | None
    ) -> tuple[Any, DynamicValues, SizedTrace, Any]:
        sized = call.arguments() if call else {}

        def trace(fresh: Fresh) -> Traced:
            function, named = StepFunction(self.options, self.state, self.state.is_update), self._named_modules()
            with enable_grad():
                return trace_function(function, args, {}, self._name, named, True, numbers=fresh(), **sized)

        shape, dynamic, traced, numbers = self._numbers.traced(structure, trace)
        return shape, dynamic, SizedTrace(self._name, traced, Outside(traced, modules), numbers), None


def without_checked(options: StepOptions, traced: Traced) -> tuple[Traced, Guarded]:
    """Append the check of ``first_nan`` to a trace, and remove the checked values from its outputs.

    The losses, the values that decide on the update, and the writes of the forward pass must be finite. The other
    outputs must contain no NaN.
    """
    graph, structure, training = traced.graph, traced.structure, traced.training
    assert isinstance(structure, Branch) and training is not None
    *others, last = structure.children
    assert isinstance(last, Branch)
    count = len(graph.outputs) - len(last.children)
    outputs, checked = graph.outputs[:count], graph.outputs[count:]
    numbers = [v for v in graph.inputs if input_class(v) == "input"][len(traced.inputs) :]
    written = {n.operands[0]: n.operands[1] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
    early = training.step.forward_paths - training.step.updated_paths
    writes = [v for a, v in written.items() if input_path(a) in early or options.first_nan == "all"]
    graph.set_outputs(outputs)
    guarded = append_check(graph, [*checked, *numbers, *writes], outputs)
    structure = replace(structure, children=(*others, Branch(tuple, (), ())))
    return replace(traced, structure=structure, differentiable=traced.differentiable[:count]), guarded


class GuardedStep:
    """The calls of one program. Each raises NonFiniteError where this or an earlier one makes a non-finite value."""

    def __init__(self, options: StepOptions, program: Any, guarded: Guarded, machine: str):
        self._options, self._program = options, program
        scene = Scene(options.name, class_names(options.model), first_of_backward(program.graph))
        self._first = FirstNan(scene, program.graph, guarded, machine)
        written = sorted(input_path(argument) for argument in guarded.writes)
        slots = {path: program.slots[path] for path in written}
        floats = {path: slot for path, slot in slots.items() if slot.dtype.is_floating_point}
        self._rounds = Rounds({} if options.first_nan == "all" else floats)

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
                return self._first.look(*self._scene(), arguments)
        path = self._rounds.look()
        if path is not None:
            raise self._first.written(*self._scene(), path)
        return results

    def _scene(self) -> tuple[int, dict[str, Any]]:
        """Return the number of the step, and the arrays of params and states by path."""
        bound = {path: on_host(slot.tensor()._data) for path, slot in self._program.slots.items()}
        return 1 + self._options.optimizers[0].step_count, bound


def first_of_backward(graph: Graph) -> int:
    """Return the least id of a node that computes a gradient. Others after it prepare gradients or update."""
    return min([n.id for n in graph.nodes() if n.results and n.results[0].name.startswith("grad.")])
