"""Compiled training steps: forward, loss, gradients and the optimizer's update rule in one native call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.base import module_path
from graphc.base.errors import GradientError, HookError
from graphc.base.progress import COMPILED, shown
from graphc.calls.graph_module import as_callable
from graphc.calls.machine import HOST, machine_named, machine_of
from graphc.calls.memory import Budget
from graphc.calls.plan import Plan, plan_of
from graphc.calls.variant import Variant
from graphc.compiler.memory_report import MemoryReport
from graphc.ir.graph.graph import Graph
from graphc.ops import dispatch
from graphc.passes.base import Pass
from graphc.steps.step_forward import Inputs
from graphc.steps.step_function import StepFunction
from graphc.steps.step_options import DynamicScale, StepOptions
from graphc.steps.step_program import StepPrograms
from graphc.steps.step_reductions import check_reductions
from graphc.steps.step_state import StepState
from graphc.tape.grad_mode import is_grad_enabled, is_inference_mode_enabled
from graphc.tensors.structure import (
    Structure,
    flatten,
    shape_of,
)
from graphc.tensors.tensor import Tensor
from graphc.tracing.identity import repeats


class _Batch(NamedTuple):
    """The arguments of a call."""

    x: tuple[Any, ...]
    """Positional arguments of the model."""
    y: tuple[Any, ...]
    """Arguments of the loss after the model's output; without a loss, further arguments of the model."""
    more: dict[str, Any]
    """Keyword arguments of the model."""

    def by_position(self) -> tuple[Structure, list[Tensor]]:
        """Return the structure of a call with ``x`` and ``y`` by position, and its tensors."""
        leaves, structure = flatten(((*self.x, *self.y), self.more))
        return structure, leaves

    def parts(self) -> tuple[Any, ...]:
        """Return the arguments of the trace. Omit empty keyword arguments."""
        return (self.x, self.y, self.more) if self.more else (self.x, self.y)


class CompiledStep:
    """One training step as one native call, made by ``compile_step``.

    In ``step(x, *y)``, ``x`` is the model's input: a tuple for several arguments, a dictionary for keyword arguments. A
    dictionary counts as keyword arguments where its keys are parameters of ``forward`` and include all without a
    default; else it is one argument. ``step(x, y, mask=mask)`` passes keyword arguments to the model too. Everything
    after ``x`` goes to the loss.

    Without a loss, ``step(*args, **kwargs)`` takes the arguments of the model. The loss is the model's result, the
    entry or attribute ``loss`` of the result, or the only scalar with a gradient in a tuple, as in ``(logits, loss)``.
    Numbers are treated as in ``compile``.

    A step updates parameters, buffers, random state and optimizer state in place. Numbers that schedules change are
    arguments of the program, in the precision of the parameters, so a change needs no new trace.

    With a dictionary of optimizers, the loss returns a dictionary of losses by the same names, or a tuple that begins
    with one. Each optimizer follows its own loss; all gradients are taken at the same weights. No two optimizers hold
    the same parameter. Where steps follow one another, as in a GAN, ``compile`` takes the whole training function.

    Inside ``no_grad`` and ``inference_mode``, and on tensors made in the latter, a step raises GradientError, as
    ``backward`` does.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Linear(2, 1)
        >>> step = gc.compile_step(model, gc.nn.MSELoss(), gc.optim.Adam(model.parameters()))
        >>> loss = step(gc.ones(4, 2), gc.zeros(4, 1))
        >>> loss.shape, len(step.plan())
        ((), 1)
    """

    def __init__(self, options: StepOptions):
        self.options = options
        self.model, self.loss, self.optimizer = options.model, options.loss, options.optimizer
        self._optimizers = options.optimizers
        self._state = StepState(options)
        self._inputs = Inputs(options.model)
        self.target, self.name = options.target, options.name
        self.last_output: Any = None
        """The model's output in the last step."""
        self.last_grad_norm: Any = None
        """The norm of the gradients before clipping in the last update, with ``clip_norm`` or ``grad_norm``. None after
        a call that only accumulates gradients.
        """
        self._compiled = StepPrograms(options, self._state)

    @shown(COMPILED, lambda call: call["self"].name)
    def __call__(self, *args: Any, **more: Any) -> Any:
        """Train on one batch, ``step(x, *y)``, and return the loss's result; see ``compile_step``."""
        leaves, plain, program, numbers, call = self._look_up(args, more)
        if program is None:
            return self._run_unserved(leaves, plain)
        leaves = [*leaves, *numbers] if numbers else leaves
        return self._run(program.training.step, program.run, leaves, call and call.sizes)

    def __repr__(self) -> str:
        optimizers = ", ".join(type(o).__name__ for o in self._optimizers)
        return f"compile_step({self.name}, {optimizers}; {len(self._compiled.variants)} programs)"

    def prepare(self, *args: Any, **more: Any) -> Variant:
        """Return the program for a batch, compiled if necessary, without running it. Raise the errors of a call."""
        return self.program_for_call(*args, **more)[0]

    def program_for_call(self, *args: Any, **more: Any) -> tuple[Variant, list[Any]]:
        """Return the program as ``prepare`` does, and the tensors that a call passes to it."""
        leaves, _, program, numbers, _ = self._look_up(args, more)
        if program is None:
            raise self._refusal(leaves)
        return program, [*leaves, *numbers]

    def _look_up(self, args: tuple[Any, ...], more: dict[str, Any]) -> tuple[Any, ...]:
        """Return the flat tensors of a call, the original batch, the program, its dynamic numbers and its named sizes.

        The last three are None where no program serves the call.
        """
        x, y, more = self._inputs.split(args, more)
        structure: Any = (len(x), len(y))
        leaves: Sequence[Any] = (*x, *y)
        batch = _Batch(x, y, more)
        # NOTE: loops, not comprehensions: before Python 3.12 each comprehension is a function call.
        is_plain = not more
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                is_plain = False
        plain = batch
        if not is_plain:
            batch = self._with_size_tensors(batch)
            leaves, structure = flatten(batch.parts())
        compiled = self._compiled
        shape, dynamic = (structure, []) if type(structure) is tuple else compiled._numbers.split(structure)
        modules = compiled.present_modules()
        types = tuple([(t.dtype, shape_of(t)) for t in leaves])
        machine, updates = machine_of(self.target, leaves), self._state.is_update
        key = (shape, types, modules.training(), True, repeats(leaves), machine, None, None, updates)
        is_unserved = not is_grad_enabled() or is_inference_mode_enabled() or dispatch.runs_python()
        for leaf in leaves:
            if leaf._counter is None or (leaf._node is not None and leaf._requires_grad):
                is_unserved = True
        if is_unserved:
            return leaves, plain, None, None, None
        call = compiled._calls.of(*batch.by_position()) if compiled._calls.is_any else None
        program, numbers = compiled.program(key, structure, dynamic, batch.parts(), call)
        return leaves, plain, program, numbers, call

    def _with_size_tensors(self, batch: _Batch) -> _Batch:
        """Return the batch with tensors for whole-number sizes."""
        by_position, more = self._compiled._calls.with_numbers((*batch.x, *batch.y), batch.more)
        return _Batch(by_position[: len(batch.x)], by_position[len(batch.x) :], more)

    def _run(self, function: StepFunction, run: Callable[..., Any], *args: Any) -> Any:
        """Run a step once, ``run(*args)``, with the hooks of its optimizers, and update the counts."""
        if self._state.reductions.modules:
            check_reductions(self._state.reductions)
        if self.options.accumulate > 1 and function.params:
            self._state.meet(frozenset(map(id, function.params)), function.updates)
        result = self._run_update(run, *args) if function.updates else run(*args)
        if self.options.accumulate > 1:
            self._state.advance(frozenset(map(id, function.params)))
        if len(result) == 2:
            loss, self.last_output = result
            self.last_grad_norm = None
            return loss
        loss, self.last_output, self.last_grad_norm, gradients = result
        for param, gradient in zip(function.params if gradients else (), gradients, strict=True):
            param.grad = gradient
        return loss

    def _run_update(self, run: Callable[..., Any], *args: Any) -> Any:
        """Run a step that updates parameters, with the hooks of its optimizers."""
        for optimizer in self._optimizers:
            if getattr(optimizer, "_step_pre_hooks", None):
                self._run_pre_hooks(optimizer)
        result = run(*args)
        for optimizer in self._optimizers:
            optimizer.step_count += 1
            for hook in list(getattr(optimizer, "_step_post_hooks", {}).values()):
                hook(optimizer, (), {})
        return result

    def _run_unserved(self, leaves: Sequence[Any], batch: _Batch) -> Any:
        """Handle a call that no program serves: raise, or run the step as Python."""
        has_history = any([t._counter is None or (t._node is not None and t._requires_grad) for t in leaves])
        if has_history or not is_grad_enabled() or is_inference_mode_enabled():
            raise self._refusal(leaves)
        function = StepFunction(self.options, self._state, self._state.is_update)
        with module_path.outside():
            return self._run(function, function, *batch)

    def _refusal(self, leaves: Sequence[Any]) -> GradientError:
        """Return the error for a call without gradients, also in eager mode."""
        if not is_grad_enabled() or is_inference_mode_enabled():
            mode = "inference_mode" if is_inference_mode_enabled() else "no_grad"
            return GradientError(
                f"{self.name}: a training step inside {mode}(), which records no operations for gradients",
                remedy="call the step outside of it; inside no_grad(), wrap the call in enable_grad()",
            )
        if any([leaf._counter is None for leaf in leaves]):
            return GradientError(
                f"{self.name}: an input was made in inference mode and cannot be saved for a backward pass",
                remedy="pass input.clone(), made outside inference mode; or use no_grad instead",
            )
        return GradientError(
            f"{self.name}: an input is the result of an operation with gradients, which the step cannot reach",
            remedy="pass input.detach(), or make the operation part of the model",
        )

    def __reduce__(self) -> Any:
        return _copied, (self.options, self._state.copied())

    def _run_pre_hooks(self, optimizer: Any) -> None:
        """Run the hooks before the update. They must not write, because forward and update are one call."""
        tensors = [t for _, _, t in self._compiled.present_modules().members() if t is not None]
        tensors += [p for group in optimizer.param_groups for p in group["params"]]
        tensors += [t for state in optimizer.state.values() for t in state.values()]
        before = [(t._data, t._version) for t in tensors]
        for hook in list(optimizer._step_pre_hooks.values()):
            hook(optimizer, (), {})
        after = [(t._data, t._version) for t in tensors]
        if any([a[0] is not b[0] or a[1] != b[1] for a, b in zip(before, after, strict=True)]):
            raise HookError(
                f"{self.name}: a hook before the optimizer's step wrote to a tensor of the model. The forward pass "
                "runs after the hook, in one call with the update, and would see the write",
                remedy="write in a hook after the step, or between steps",
            )

    def plan(self) -> list[Plan]:
        """Return the memory, code size and estimated time of the programs for all signatures so far."""
        return [plan_of(p.program) for p in self._compiled.variants]

    def memory_report(self) -> list[MemoryReport]:
        """Return the report of the memory budget for each signature so far; empty without a budget."""
        return [p.memory_report for p in self._compiled.variants if p.memory_report is not None]

    @property
    def ema(self) -> Any:
        """The AveragedModel of ``ema=``; None without."""
        return self._state.average

    @property
    def loss_scale(self) -> float:
        """The factor on the loss in the next update."""
        scale = self.options.loss_scale
        return self._state.scaling["scale"].item() if self._state.scaling else 1.0 if scale is None else float(scale)

    def state_dict(self) -> dict[str, Any]:
        """Return the state that training needs to resume, besides the model's own ``state_dict``.

        It holds state and options of the optimizers, their step counts, the random state, sums of gradients with the
        number of micro-batches in them, averaged weights, and the loss scale. Tensors are not copied.
        ``graphc.save_state`` writes it to a file.

        Example:
            >>> import graphc as gc
            >>> model = gc.nn.Linear(2, 1)
            >>> step = gc.compile_step(model, gc.nn.MSELoss(), gc.optim.Adam(model.parameters()))
            >>> loss = step(gc.ones(4, 2), gc.zeros(4, 1))
            >>> gc.save_state({"model": model.state_dict(), "step": step.state_dict()}, "checkpoint.npz")
            >>> step.load_state_dict(gc.load_state("checkpoint.npz")["step"])
        """
        return self._state.state_dict()

    def sharded_state_dict(self) -> dict[str, Any]:
        """Return this process's shard of ``state_dict``, for ``graphc.distributed.checkpoint``.

        It is the complete state unless processes shard the state of an optimizer.
        """
        return self._state.state_dict(sharded=True)

    def needs_entry(self, path: Sequence[Any]) -> bool:
        """Return whether ``load_state_dict`` reads the entry at a path of keys of ``state_dict`` in this process."""
        return self._state.needs_entry(path)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resume from the state of ``state_dict``: with the weights of that time, every step gives the same bits.

        Set the random state of the process. Raise StateDictError, with nothing changed, for the state of a step with
        other options.
        """
        self._state.load_state_dict(state_dict)

    @property
    def graphs(self) -> list[Graph]:
        """The unoptimized graphs of all signatures so far."""
        return [p.graph for p in self._compiled.variants]


def _copied(options: StepOptions, state: Mapping[str, Any]) -> CompiledStep:
    step = CompiledStep(options)
    step._state.begin(state)
    return step


def compile_step(
    model: Any,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    *,
    passes: Sequence[Pass] = (),
    target: str = HOST,
    device: Any = None,
    dims: Any = None,
    memory: int | str | None = None,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    norm_type: float = 2.0,
    accumulate: int = 1,
    ema: Any = None,
    loss_scale: Any = None,
    grad_norm: bool = False,
    grads: bool = False,
    precision: str | None = None,
    first_nan: bool | str = False,
    strict_order: bool = False,
) -> CompiledStep:
    """Compile forward pass, loss, backward pass and update into one native call, ``step(x, y)``.
    ``CompiledStep`` describes the call; docs/training.md shows the options at work.

    Args:
        model: a Module, or a graph of ``trace``.
        loss: function of (output, y) that returns a scalar, or a tuple or list that begins with one (None: the model).
        optimizer: one of ``graphc.optim`` (not LBFGS), a list, or a dictionary by names of losses.
        passes, target, device, dims, strict_order: as for ``compile``; ``dims`` names sizes of ``x`` and ``y``.
        memory: limit of temporary memory: bytes, ``"200MB"``, or ``"70%"`` of the need; recomputes values to fit.
        clip_value, clip_norm, norm_type: limit each element of the gradients, then the ``norm_type``-norm of all.
        accumulate: number of calls whose gradients one update averages.
        ema: decay of averaged weights, or an AveragedModel; ``step.ema`` is the AveragedModel.
        loss_scale: factor of the loss in the backward pass: a number, ``"dynamic"`` or a DynamicScale.
        grad_norm, grads: keep the norm before clipping in ``step.last_grad_norm``, the final gradients in ``grad``.
        precision: ``"bf16"`` rounds the factors of large products to bf16.
        first_nan: True raises at the node that makes the first NaN or infinity; ``"all"`` also checks each update.

    Returns:
        The step. A call returns what ``loss`` returns.

    Raises:
        ArgumentError: options that do not fit each other or the model.
        MemoryLimitError: no plan fits ``memory``; it names the least need.
        NonFiniteError: in a call, with ``first_nan``; the step changes nothing.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Linear(1, 1, bias=False)
        >>> step = gc.compile_step(model, gc.nn.MSELoss(), gc.optim.SGD(model.parameters(), lr=0.1))
        >>> x = gc.tensor([[1.0], [2.0]])
        >>> losses = [step(x, 3 * x).item() for _ in range(30)]
        >>> losses[-1] < 1e-6
        True
    """
    scale = DynamicScale() if loss_scale == "dynamic" else loss_scale
    required = as_callable(model), loss, optimizer, tuple(passes), machine_named(target, device, strict_order), dims
    more = clip_norm, clip_value, norm_type, accumulate, ema, scale, grad_norm, grads, precision, first_nan
    return CompiledStep(StepOptions(*required, None if memory is None else Budget.parse(memory), *more))
