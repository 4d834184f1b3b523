"""Compiled training steps: forward, loss, gradients and the optimizer's update rule in one native call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base import config
from graphc.base.errors import ArgumentError, GradientError, HookError
from graphc.base.locks import Lock
from graphc.compiled.bindings import Modules
from graphc.compiled.graph_module import as_callable
from graphc.compiled.guards import Recompiles
from graphc.compiled.machine import HOST, machine_named, machine_of
from graphc.compiled.memory import Budget
from graphc.compiled.number_places import MOST_ANSWERS, Fresh, Given, NumberPlaces
from graphc.compiled.outside import Outside
from graphc.compiled.plan import Plan, plan_of
from graphc.compiled.program_table import ProgramTable, trim
from graphc.compiled.recompile_warning import RecompileCount, argument_names
from graphc.compiled.sized_traces import (
    DimsOfCalls,
    SizedCall,
    SizedTrace,
    SizedTraces,
    keys_of,
    program_for,
)
from graphc.compiled.step_options import StepOptions
from graphc.compiled.step_program import StepProgram
from graphc.compiler.memory_report import MemoryReport
from graphc.ir.graph.graph import Graph
from graphc.passes.base import Pass
from graphc.tape.grad_mode import enable_grad, is_grad_enabled, is_inference_mode_enabled
from graphc.tensors.structure import (
    LEAF,
    Branch,
    Structure,
    check_static,
    flatten,
    shape_of,
)
from graphc.tensors.tensor import Tensor
from graphc.tracing.identity import repeats
from graphc.tracing.trace import Traced, modules_of, trace_function


def _forward(model: Any, loss: Any, x: Any, y: Any) -> tuple[Any, Any]:
    output = model(*x)
    found = loss(output, *y)
    first = found[0] if isinstance(found, (tuple, list)) and found else found
    if not isinstance(first, Tensor):
        raise ArgumentError(
            f"compile_step: the loss returned {type(first).__name__} where the loss should be",
            remedy="return the loss, or a tuple that begins with it: return loss, {'accuracy': accuracy}",
        )
    return found, output


def _by_position(args: Sequence[Any], more: Sequence[Any]) -> tuple[Structure, list[Tensor]]:
    """The structure of a call with all of these by position, and its tensors."""
    leaves, structure = flatten(((*args, *more), {}))
    return structure, leaves


class CompiledStep:
    """One training step as one native call; see ``compile_step``."""

    def __init__(self, options: StepOptions):
        self.options = options
        self.model, self.loss, self.optimizer = options.model, options.loss, options.optimizer
        self.target, self.name = options.target, options.name
        self._recompiles = Recompiles(self.name)
        self.last_output: Any = None
        """What the model gave in the last step."""
        self._programs: ProgramTable[StepProgram] = ProgramTable(self._forget)
        self._count = RecompileCount(self.name, self._argument_names)
        self._modules: Modules | None = None
        self._numbers = NumberPlaces()
        self._calls = DimsOfCalls(options.dims, options.model, self._argument_names())
        self._traces = SizedTraces()
        self._lock = Lock()
        self._log = config.logger("compile")

    def __call__(self, x: Any, *y: Any) -> Any:
        """Trains on one batch and returns what the loss returned. ``x`` is the model's input, a tuple for several;
        ``y`` is given to ``loss(output, *y)``."""
        args = x if isinstance(x, tuple) else (x,)
        structure: Any = (len(args), len(y))
        leaves: Sequence[Any] = (*args, *y)
        # NOTE: loops, not comprehensions: each of those is a call of a function before Python 3.12.
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                opened = self._calls.with_numbers((*args, *y), {})[0]
                args, y = opened[: len(args)], opened[len(args) :]
                leaves, structure = flatten((args, y))
                break
        shape, given = (structure, []) if type(structure) is tuple else self._numbers.opened(structure)
        modules = self._modules
        if modules is None or not modules.holds():
            found = [m for t in (self.model, self.loss) for _, m in modules_of(t)]
            modules = self._modules = Modules(found)
            self._programs.clear()
            self._traces.clear()
        types = tuple([(t.dtype, shape_of(t)) for t in leaves])
        key = (shape, types, modules.training(), True, repeats(leaves), machine_of(self.target, leaves))
        for leaf in leaves:
            if leaf._counter is None or (leaf._node is not None and leaf._requires_grad):
                raise self._refusal(leaves)
        if not is_grad_enabled() or is_inference_mode_enabled():
            raise self._refusal(leaves)
        call = self._calls.of(*_by_position(args, y)) if self._calls.is_any else None
        program, numbers = self._find(key, given, call) or self._new(key, structure, modules, args, y, call)
        optimizer = self.optimizer
        if getattr(optimizer, "_step_pre_hooks", None):
            self._run_pre_hooks(program)
        loss, self.last_output = program.run([*leaves, *numbers] if numbers else leaves, call and call.sizes)
        optimizer.step_count += 1
        if getattr(optimizer, "_step_post_hooks", None):
            self._run_hooks("_step_post_hooks")
        return loss

    def _refusal(self, leaves: Sequence[Any]) -> GradientError:
        """Why there is no step, as eager mode has no gradient then."""
        if not is_grad_enabled() or is_inference_mode_enabled():
            mode = "inference_mode" if is_inference_mode_enabled() else "no_grad"
            return GradientError(
                f"{self.name}: a training step inside of {mode}(), where operations are not recorded for gradients",
                remedy="call the step outside of it; with enable_grad() around the call if it is only no_grad()",
            )
        if any([leaf._counter is None for leaf in leaves]):
            return GradientError(
                f"{self.name}: an input was made in inference mode and cannot be saved for a backward pass",
                remedy="input.clone() outside of inference mode, or no_grad instead of it",
            )
        return GradientError(
            f"{self.name}: an input is the result of an operation with gradients, which the step would not reach",
            remedy="input.detach(), or make the operation part of the model",
        )

    def __reduce__(self) -> Any:
        return CompiledStep, (self.options,)

    def _forget(self) -> None:
        """Nothing but the table refers to a program."""

    def _argument_names(self) -> list[str]:
        return [*argument_names(self.model), *argument_names(self.loss)[1:]]

    def _find(self, key: Any, given: Given, call: SizedCall | None) -> tuple[StepProgram, list[Tensor]] | None:
        """The program for a call, and the numbers that the call gives as tensors."""
        for program in (p for known in keys_of(call, key) for p in self._programs.find(known)):
            fits = call is None or program.traced.assumptions.broken(call.sizes) is None
            if fits and program.holds(self.optimizer) and (numbers := program.given.tensors(given)) is not None:
                if program is not self._programs.last:
                    self._programs.use(program)
                return program, numbers
        return None

    def _new(
        self, key: Any, structure: Any, modules: Modules, args: Any, target: Any, call: SizedCall | None
    ) -> tuple[StepProgram, list[Tensor]]:
        with self._lock:
            shape, given = self._numbers.learned(structure, self._programs)
            key = (shape, *key[1:])
            if found := self._find(key, given, call):
                return found
            known = call and self._traces.find(call.key(key), call.sizes, given)
            if known is None:
                check_static(structure if isinstance(structure, Branch) else LEAF)
                before = self._programs.items() if call is None else self._traces.items()
                self._recompiles.tell(call.key(key) if call else key, dict(before), modules, self._numbers.remarks)
                shape, given, traced, taken = self._numbers.traced(
                    structure, lambda fresh: self._trace(args, target, fresh, call)
                )
                key = (shape, *key[1:])
                if taken.is_none and (found := self._find(key, given, call)):
                    return found
                trace = SizedTrace(traced, Outside(traced, modules), taken)
                if call is not None:
                    self._traces.add(call.key(key), trace)
                known = trace, taken.of_trace()
            trace, numbers = known
            taken, outside, leaves = trace.numbers, trace.outside, _by_position(args, target)[1]
            program, key = program_for(
                trace, call, key, lambda _, found: StepProgram(self.options, found, outside, taken, leaves), self.name
            )
            program.holds(self.optimizer)
            self._programs.add(key, program)
            if len([p for p in self._programs.find(key) if p.given.asks]) > MOST_ANSWERS:
                self._numbers.fix(taken.asks)
            self._log.info("%s: variant %d", self.name, len(self._programs))
            trim()
            self._count.note(key, 3)
            return program, numbers

    def _trace(self, args: Any, target: Any, fresh: Fresh, call: SizedCall | None) -> Traced:
        forward = functools.partial(_forward, self.model, self.loss)
        named = [*modules_of(self.model), *((f"loss.{prefix}", m) for prefix, m in modules_of(self.loss))]
        sized = call.arguments() if call else {}
        with enable_grad():
            return trace_function(forward, (args, target), {}, self.name, named, True, numbers=fresh(), **sized)

    def _run_pre_hooks(self, program: StepProgram) -> None:
        """Hooks that run before the update may look, but not write: forward and update are one here."""
        before = [(t._data, t._version) for t in program.binding.tensors()]
        self._run_hooks("_step_pre_hooks")
        after = [(t._data, t._version) for t in program.binding.tensors()]
        if any([a[0] is not b[0] or a[1] != b[1] for a, b in zip(before, after, strict=True)]):
            raise HookError(
                f"{self.name}: a hook before the optimizer's step wrote to a tensor of the model, which would change "
                "the forward pass too: that is one with the update",
                remedy="write in a hook after the step, or between steps",
            )

    def _run_hooks(self, table: str) -> None:
        for hook in list(getattr(self.optimizer, table, {}).values()):
            hook(self.optimizer, (), {})

    def plan(self) -> list[Plan]:
        """What the programs of all signatures so far take: memory, code, the estimated time."""
        return [plan_of(p.program) for p in self._programs]

    def memory_report(self) -> list[MemoryReport]:
        """What the memory budget has led to, for each signature so far; empty without a budget."""
        return [p.memory_report for p in self._programs if p.memory_report is not None]

    @property
    def graphs(self) -> list[Graph]:
        """The graphs of all signatures so far, before optimization."""
        return [p.graph for p in self._programs]


def compile_step(
    model: Any,
    loss: Callable[..., Any],
    optimizer: Any,
    *,
    passes: Sequence[Pass] = (),
    target: str = HOST,
    device: Any = None,
    dims: Any = None,
    memory: int | str | None = None,
) -> CompiledStep:
    """A callable ``step(x, y)`` that runs forward, ``loss(output, y)``, backward and the optimizer's update as one
    native call and returns what the loss returned: the loss, or a tuple or list that begins with it.

    ``x`` is the model's input (a tuple for several). Parameters, buffers, random state and optimizer state are updated
    in place. Numbers that schedulers change are arguments of the program, so a change needs no new trace. Gradients
    are not kept in ``grad``. Inside ``no_grad`` and ``inference_mode``, and of tensors made in the latter, a step
    raises GradientError, as ``backward`` does. Numbers among ``x`` and ``y`` are taken as ``compile`` takes them.

    The model may be a graph, bound to the tensors that were traced, and ``passes`` are graph passes of one's own: both
    as ``compile`` takes them. Those without ``after`` see forward pass and loss, before gradients; others the whole
    step. ``target`` is what the code is made for, and ``device`` where it runs, as for ``compile``: of a model on a
    device the whole step is done there, and nothing but the results comes to the host. ``dims`` names sizes of ``x``
    and ``y`` as it does there, by the names that model and loss have for them: one trace serves the shorter last batch,
    too.

    ``memory`` is the most temporary memory that a step may plan for: bytes, a text such as ``"200MB"``, or ``"70%"`` of
    what it plans for without. Values are then computed twice until it fits, in the quickest way that is found;
    ``step.memory_report()`` says which. Raises MemoryLimitError, with the least that was reached, where none fits.
    """
    return CompiledStep(
        StepOptions(
            as_callable(model),
            loss,
            optimizer,
            tuple(passes),
            machine_named(target, device),
            dims,
            None if memory is None else Budget.parse(memory),
        )
    )
