"""``Optimizer.step()`` in compiled code: the update rule as part of the graph, with numbers from each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.base.errors import TraceError
from graphc.base.values import key_of
from graphc.guards.number_reads import NumberRead, ReadPlace
from graphc.ops import dispatch
from graphc.optim.settings import GroupRule, OptimizerSettings, is_argument
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer
from graphc.tracing.training import Training


class OptimizerNumber:
    """Fact about a number of a parameter group that each call reads again."""

    def __init__(self, optimizer: Any, index: int, name: str):
        self._optimizer, self._index, self._name = optimizer, index, name
        self.title = f"{name} of group {index} of {type(optimizer).__name__}"
        self.read_at = ""
        self.value = self.now()
        self.key = key_of(self.value)

    def now(self) -> Any:
        """Return the current number as a float; None if the group no longer exists."""
        groups = self._optimizer.param_groups
        number = self._optimizer.number(groups[self._index], self._name) if self._index < len(groups) else None
        return float(number) if isinstance(number, (int, np.number)) else number

    def holds(self) -> bool:
        """Return whether the number still has its traced type."""
        return type(self.now()) is type(self.value)

    def why(self) -> str:
        """Describe the change."""
        return f"{self.title}: {self.value!r} -> {self.now()!r}"


class _Settings(OptimizerSettings):
    """Fact that settings, and the states of the updated parameters, are unchanged, and that no hook runs before the
    step unless hooks are allowed."""

    def __init__(self, optimizer: Any, allows_hooks: bool):
        super().__init__(optimizer)
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


def step_in_trace(optimizer: Any, closure: Any) -> None:
    """Append the update of every parameter that has a gradient. Raise TraceError if the trace cannot contain it."""
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
    update.append({id(p): p.grad for p in params if p.grad is not None})
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

    def append(self, gradients: Mapping[int, Tensor], condition: Any = None) -> None:
        """Append the update by gradients by ``id`` of the parameter. Where ``condition`` is false, nothing changes."""
        changes: list[tuple[Tensor, Any]] = []
        params: list[Tensor] = []
        with no_grad():
            for index, group in enumerate(self.optimizer.param_groups):
                present = [p for p in group["params"] if id(p) in gradients]
                hypers: dict[Any, dict[str, Any]] = {}
                for param in self.optimizer.owned(present):
                    if param.dtype not in hypers:
                        hypers[param.dtype] = self._hyper(index, group, param.dtype)
                    state, hyper = self._state(param, group), hypers[param.dtype]
                    changes += self.optimizer.changes_of(param, gradients[id(param)], state, hyper, condition)
                self.training.stepped(present)
                params += present
            new = {id(target): value for target, value in changes}
            self.optimizer._write([*changes, *self.optimizer.from_others(params, new)])
        self.training.facts.append(self.settings)

    def _state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return the state of a parameter, which the graph takes as arguments."""
        with dispatch.use(dispatch.default()):
            state = self.optimizer.state_of(param, group)
        path = self.training.name_of(self.tracer, param)
        for name, tensor in state.items():
            self.training.bind(self.tracer, tensor, f"optimizer.{path}.{name}", (state, name))
        if state:
            self.settings.add_state(param, state)
        return state

    def _hyper(self, index: int, group: dict[str, Any], dtype: Any) -> dict[str, Any]:
        """Return the numbers of a group, with symbols or arguments of the graph for the ones passed by each call."""
        passed: Any = self.training.passed
        if passed is not None:
            rule = GroupRule(self.optimizer, index, dtype, self.tracer.graph)
            passed.add(rule.inputs)
            return rule.values
        hyper = dict(self.optimizer.hyper(group))
        for name, value in hyper.items():
            if isinstance(value, Tensor):
                self.training.bind(self.tracer, value, f"group{index}.{name}", (group, name))
            elif is_argument(self.optimizer, name, value):
                hyper[name] = self._number(index, group, name)
        return hyper

    def _number(self, index: int, group: dict[str, Any], name: str) -> Any:
        numbers = self.training.numbers
        key = (id(group), f"group.{name}")
        if (number_read := numbers.reads.get(key)) is not None:
            return number_read.symbol
        fact = OptimizerNumber(self.optimizer, index, name)
        location = ReadPlace(id(group), key[1], fact.title)
        if location in numbers.fixed:
            self.training.facts.append(_SameNumber(fact))
            return fact.value
        numbers.reads[key] = NumberRead(location, fact, numbers.record.add(fact.value))
        return numbers.reads[key].symbol

    def count(self) -> None:
        """Count a step, and run the hooks after it."""
        optimizer = self.optimizer
        optimizer.step_count += 1
        for hook in list(optimizer._step_post_hooks.values()):
            hook(optimizer, (None,), {})


class _SameNumber:
    """Fact that a number is unchanged; the graph contains its value because the update rule reads it."""

    def __init__(self, number: OptimizerNumber):
        self._number = number

    def holds(self) -> bool:
        """Return whether the number is unchanged."""
        return key_of(self._number.now()) == self._number.key

    def why(self) -> str:
        """Describe the change."""
        return self._number.why()
