"""The programs of a training step, by signature."""

from __future__ import annotations

from typing import Any

from graphc.calls.bindings import Modules
from graphc.calls.function import Compiled
from graphc.calls.number_places import DynamicValues, Fresh
from graphc.calls.outside import Outside
from graphc.calls.program_store import trim
from graphc.calls.recompile_reasons import Recompiles
from graphc.calls.recompile_warning import RecompileCount, argument_names
from graphc.calls.sized_traces import DimsOfCalls, SizedCall, SizedTrace
from graphc.calls.variant import Variant, Weights
from graphc.passes.pipeline import arrange
from graphc.steps.step_function import StepFunction
from graphc.steps.step_options import StepOptions
from graphc.steps.step_state import StepState
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced, modules_of, trace_function


class StepPrograms(Compiled):
    """The programs of a step, those of a compiled function: its trace is that of a ``StepFunction``."""

    def __init__(self, options: StepOptions, state: StepState):
        self.options, self.state = options, state
        names = argument_names(options.model)
        names += [] if options.loss is None else argument_names(options.loss)[1:]
        # NOTE: its own function applies the first passes, to the forward pass alone.
        first_nan, precision = options.first_nan, options.precision
        super().__init__(StepFunction(options, state, True), machine=options.target, first_nan=first_nan)
        self._pipeline = arrange(options.passes).pipeline
        # NOTE: live, as no packed weight outlives an update.
        self._weights = Weights(precision, live=True, memory=options.memory)
        self._has_root = True
        self._name, self._recompiles = options.name, Recompiles(options.name)
        self._recompile_count = RecompileCount(options.name, lambda: names)
        self._calls = DimsOfCalls(options.dims, options.model, names)

    def _named_modules(self) -> list[tuple[str, Any]]:
        """Return the modules of model and loss, with prefixes for the names of their tensors."""
        loss = [] if self.options.loss is None else modules_of(self.options.loss)
        return [*modules_of(self.options.model), *((f"loss.{prefix}", module) for prefix, module in loss)]

    def present_modules(self) -> Modules:
        """Return the modules of model and loss."""
        modules = self._modules
        return self._renewed_modules() if modules is None or not modules.holds() else modules

    def program(
        self, key: Any, structure: Any, dynamic: DynamicValues, batch: tuple[Any, ...], call: SizedCall | None
    ) -> tuple[Variant, list[Tensor]]:
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

    def _traced(
        self,
        structure: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        modules: Modules,
        call: SizedCall | None,
        answers: Any = None,
    ) -> tuple[Any, DynamicValues, SizedTrace, Any]:
        sized = call.arguments() if call else {}

        def trace(fresh: Fresh) -> Traced:
            function, named = StepFunction(self.options, self.state, self.state.is_update), self._named_modules()
            options = {"guarded": True, "numbers": fresh(), "checks": bool(self.first_nan), **sized}
            with enable_grad():
                return trace_function(function, args, {}, self._name, named, **options)

        shape, dynamic, traced, numbers = self._numbers.traced(structure, trace)
        return shape, dynamic, SizedTrace(self._name, traced, Outside(traced, modules), numbers), None
