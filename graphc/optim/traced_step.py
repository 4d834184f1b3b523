"""``Optimizer.step()`` in compiled code: the update rule as part of the graph, with numbers from each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from graphc.base.errors import TraceError, ValueNeededError
from graphc.base.sizes.symbolic import is_symbolic
from graphc.guards.attributes import not_recording, recorder
from graphc.guards.code_reads import unwatched
from graphc.ops import dispatch
from graphc.optim.settings import GivenNumbers, GroupRule, OptimizerSettings
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.repeated_rule import RepeatedRule
from graphc.tracing.tracer import Tracer
from graphc.tracing.training import Training

UPDATE = "update."
"""Prefix of the names of nodes that compute the update of an optimizer."""


class _Settings(OptimizerSettings):
    """Fact that settings, and the states of the updated parameters, are unchanged, and that no hook runs before the
    step unless hooks are allowed."""

    def __init__(self, optimizer: Any, allows_hooks: bool, numbers: bool = False):
        super().__init__(optimizer, numbers)
        self._allows_hooks = allows_hooks
        self._states: list[tuple[Tensor, Any]] = []

    def add_state(self, param: Tensor, state: Any) -> None:
        """Add the state of a parameter the graph updates."""
        self._states.append((param, state))

    def holds(self) -> bool:
        """Return whether settings and states are unchanged."""
        optimizer: Any = self._optimizer()
        if optimizer is None or (optimizer._step_pre_hooks and not self._allows_hooks):
            return False
        find = optimizer.state.get
        for param, state in self._states:
            if find(param) is not state:
                return False
        return super().holds()

    def why(self) -> str:
        """Describe the change."""
        return f"a parameter, the state or a setting of {self._name} was replaced"


def step_in_trace(optimizer: Any, closure: Any = None, *, condition: Any = None) -> None:
    """Append the update of every parameter that has a gradient; where ``condition`` is false, nothing changes. Raise
    TraceError if the trace cannot contain it."""
    tracer = front()
    training = tracer.training if isinstance(tracer, Tracer) else None
    name = type(optimizer).__name__
    if training is None:
        raise TraceError(
            f"{name}.step() runs in a trace where it would take effect only once, during the trace",
            remedy="compile the full training function and call it with the batch, or use step = "
            "graphc.compile_step(model, loss, optimizer)",
        )
    if closure is not None or not optimizer.is_compilable:
        raise TraceError(
            f"{name}.step() evaluates the loss a variable number of times, which compiled code cannot",
            remedy=f"call {name}.step(closure) outside, with a closure that calls a compiled function",
        )
    if optimizer._step_pre_hooks:
        raise TraceError(
            f"{name}.step() has pre-hooks, which cannot run in the middle of a native call",
            remedy="use register_step_post_hook, or call optimizer.step() outside of the compiled function",
        )
    params = [p for group in optimizer.param_groups for p in group["params"]]
    update = _Update(optimizer, tracer, training)
    update.append({id(p): p.grad for p in params if p.grad is not None}, condition)
    training.after.append(update.count)


def apply_in_trace(optimizer: Any, gradients: Mapping[int, Tensor], condition: Any) -> None:
    """Append the update by these gradients; see ``Optimizer.apply_gradients``."""
    tracer: Any = front()
    _Update(optimizer, tracer, tracer.training).append(gradients, condition)


class _Update:
    """The update of one optimizer in a trace."""

    def __init__(self, optimizer: Any, tracer: Any, training: Training):
        self.optimizer = optimizer
        self.tracer = tracer
        self.training = training
        self.settings = _Settings(optimizer, training.step is not None)
        self._is_of_library = _is_of_library(optimizer)
        training.optimizers.append(optimizer)
        if (reads := recorder()) is not None:
            reads.reach(optimizer.rule, "")

    def append(self, gradients: Mapping[int, Tensor], condition: Any = None) -> None:
        """Append the update by gradients by ``id`` of the parameter. Where ``condition`` is false, nothing changes."""
        if condition is None:
            self.training.require_finite(self.tracer, gradients.values())
        former = self.tracer.locate((None, UPDATE))
        try:
            self._append(gradients, condition)
        finally:
            self.tracer.locate(former)

    def _append(self, gradients: Mapping[int, Tensor], condition: Any) -> None:
        with no_grad():
            try:
                params, changes = self._changes(gradients, condition, self._rule)
            except ValueNeededError:
                # NOTE: the rule decides by the value of a number, so the program holds for the present numbers.
                self.settings = _Settings(self.optimizer, self.training.step is not None, numbers=True)
                params, changes = self._changes(gradients, condition, lambda index, _: self._group(index))
            new = {id(target): value for target, value in changes}
            self._run(self.optimizer._write, [*changes, *self.optimizer.from_others(params, new)])
        if condition is not None:
            self.training.overflowing.update(f"grad.{self.training.name_of(self.tracer, p)}" for p in params)
        self.training.facts.append(self.settings)

    def _changes(
        self, gradients: Mapping[int, Tensor], condition: Any, rule: Callable[[int, Any], dict[str, Any]]
    ) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
        """Return the parameters with a gradient, and pairs of a tensor and its new value. ``rule`` returns the numbers
        of a group for parameters of an element type."""
        changes: list[tuple[Tensor, Any]] = []
        params: list[Tensor] = []
        for index, group in enumerate(self.optimizer.param_groups):
            present = [p for p in group["params"] if id(p) in gradients]
            computes: dict[Any, Callable[..., Any]] = {}
            for param in self.optimizer.owned(present):
                if param.dtype not in computes:
                    computes[param.dtype] = self._compute(rule(index, param.dtype), condition)
                state = self._run(self._state, param, group)
                changes += computes[param.dtype](param, gradients[id(param)], state)
            self.training.stepped(present)
            params += present
        return params, changes

    def _compute(self, hyper: dict[str, Any], condition: Any) -> Callable[..., Any]:
        """Return a function of a parameter, its gradient and its state that returns their changes."""
        if self._is_of_library:
            repeated = RepeatedRule(self.tracer, UPDATE, self.optimizer.changes_of, hyper, condition)
            return partial(unwatched, repeated)
        changes_of: Callable[..., Any] = self.optimizer.changes_of
        return lambda param, gradient, state: changes_of(param, gradient, state, hyper, condition)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that runs no code of a user except that of the optimizer."""
        return unwatched(function, *arguments) if self._is_of_library else function(*arguments)

    def _state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return the state of a parameter, which the graph takes as arguments."""
        with dispatch.use(dispatch.default()), not_recording():
            entries = len(self.optimizer.state.get(param, ()))
            state = self.optimizer.state_of(param, group)
        if len(state) > entries and (reads := recorder()) is not None:
            reads.again(self.optimizer.rule, "state")
        path = self.training.name_of(self.tracer, param)
        for name, tensor in state.items():
            self.training.bind(self.tracer, tensor, f"optimizer.{path}.{name}", (state, name))
        if state:
            self.settings.add_state(param, state)
        return state

    def _group(self, index: int) -> dict[str, Any]:
        return self.optimizer.hyper(self.optimizer.param_groups[index])

    def _rule(self, index: int, dtype: Any) -> dict[str, Any]:
        """Return the numbers of a group, as arguments of the graph where each call passes them."""
        rules, key = self.training.memory, ("rule", id(self.optimizer), index, dtype)
        if key not in rules:
            rules[key] = GroupRule(self.optimizer, index, dtype, self.tracer.graph)
            self.training.passed = self.training.passed or GivenNumbers()
            self.training.passed.add(rules[key].inputs)
        # NOTE: what the function itself sets or writes is not the number at the start of a call.
        inside = {n: v for n, v in self._group(index).items() if is_symbolic(v) or id(v) in self.tracer.captured}
        return {**rules[key].values, **inside}

    def count(self) -> None:
        """Count a step, and run the hooks after it."""
        optimizer = self.optimizer
        optimizer.step_count += 1
        for hook in list(optimizer._step_post_hooks.values()):
            hook(optimizer, (None,), {})


def _is_of_library(optimizer: Any) -> bool:
    """Check whether no code of a user computes the updates."""
    rule = optimizer.rule
    code = (type(optimizer), type(rule), optimizer.changes_of, optimizer.new_values, rule.new_values, rule.update)
    return all(c.__module__.partition(".")[0] == "graphc" for c in code)
