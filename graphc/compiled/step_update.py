"""The update rule of an optimizer as a part of a training step's graph."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import HookError
from graphc.base.mutation_epoch import EPOCH
from graphc.compiled.bindings import Slot
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops.define import as_type
from graphc.ops.state import state_write
from graphc.tensors.structure import (
    flatten,
)
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import run_gradient_hook
from graphc.tracing.tracer import Tracer


class GroupNumber(NamedTuple):
    """A number of an optimizer's group that is an argument of the program."""

    group: int
    """Number of the group."""
    name: str
    dtype: np.dtype


class GroupRule:
    """The numbers of one parameter group: those that are arguments of the program, in the precision of the group's
    parameters, and those that are part of it."""

    def __init__(self, optimizer: Any, index: int, graph: Graph):
        group = optimizer.param_groups[index]
        self.values: dict[str, Any] = dict(optimizer.hyper(group))
        self.inputs: list[GroupNumber] = []
        """The numbers that are arguments, in order."""
        wide = any(p.dtype is float64 for p in group["params"])
        dtype = float64 if wide else float32
        for name in optimizer.schedulable:
            value = self.values.get(name)
            if _is_static(value):
                continue
            argument = graph.add_input(TensorType(dtype), f"group{index}.{name}")
            self.values[name] = Tensor._wrap(argument)
            self.inputs.append(GroupNumber(index, name, dtype.numpy))


def _is_static(value: Any) -> bool:
    """Numbers that are absent or 0 are part of the program, which then does without what they switch off."""
    return not isinstance(value, Tensor) and (not isinstance(value, (int, float)) or value == 0)


class OptimizerSettings:
    """What a program depends on of the optimizer: its parameters, and all numbers that are no arguments."""

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer
        self._settings = self._read(optimizer)
        self._seen = self._values(optimizer)

    @staticmethod
    def _read(optimizer: Any) -> tuple[Any, ...]:
        found = []
        for group in optimizer.param_groups:
            kept = {k: v for k, v in optimizer.hyper(group).items() if k not in optimizer.schedulable or _is_static(v)}
            found.append((tuple(map(id, group["params"])), flatten(kept)[1]))
        return tuple(found)

    @staticmethod
    def _values(optimizer: Any) -> list[Any]:
        values: list[Any] = []
        for group in optimizer.param_groups:
            values += group.values()
            values += group["params"]
        return values

    def holds(self) -> bool:
        """Whether they are as they were; nearly always nothing was assigned at all."""
        optimizer = self._optimizer
        values = self._values(optimizer)
        if len(values) == len(self._seen) and all(map(is_, values, self._seen)):
            return True
        if self._read(optimizer) != self._settings:
            return False
        self._seen = values
        return True

    def why(self) -> str:
        """What has changed."""
        return "a parameter or a setting of the optimizer was replaced"


class UpdatedParameters:
    """That what stands in the place of each parameter which a program updates is the parameter of the optimizer."""

    def __init__(self, pairs: Sequence[tuple[Slot, Tensor]]):
        self._pairs = pairs
        self._counted = all(slot.counted for slot, _ in pairs)
        self._seen = -1
        """The mutation epoch when ``holds`` looked last and was true."""

    def holds(self) -> bool:
        """Whether no parameter was replaced in the model."""
        epoch = EPOCH[0]
        if self._seen == epoch and self._counted:
            return True
        if not all([slot.tensor() is parameter for slot, parameter in self._pairs]):
            return False
        self._seen = epoch
        return True


def state_path(argument: Value, name: str) -> str:
    return f"optimizer.{argument.node.attrs['path']}.{name}"


def taken_writes(graph: Graph, parameters: Iterable[Value]) -> dict[Value, Value]:
    """What parameters hold after the forward pass; its writes of them go, for the update writes them, once."""
    contents = {parameter: parameter for parameter in parameters}
    for node in list(graph.nodes()):
        if node.op.has(Trait.STATE_WRITE) and node.operands[0] in contents:
            contents[node.operands[0]] = node.operands[1]
            graph.erase(node)
    return contents


def append_update(
    tracer: Tracer, optimizer: Any, param: Any, values: tuple[Value, Value, Value], rule: GroupRule
) -> None:
    """Appends the update of one parameter, from what it holds then, and its state."""
    argument, content, gradient = values
    state = {}
    for name, tensor in optimizer.state_of(param).items():
        path = state_path(argument, name)
        state[name] = tracer.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, "state", path)
    images = {name: Tensor._wrap(value) for name, value in state.items()}
    new, new_state = optimizer.update(Tensor._wrap(content), _hooked(tracer, param, gradient), images, rule.values)
    _write(tracer, argument, new)
    for name, value in state.items():
        _write(tracer, value, new_state[name])


def _hooked(tracer: Tracer, param: Any, gradient: Value) -> Any:
    """The gradient of a parameter after its hooks, which each step runs."""
    found = Tensor._wrap(gradient)
    for hook in list((param._hooks or {}).values()):
        found = run_gradient_hook(tracer, "hook of a parameter", hook, found)
    for hook in list((param._post_hooks or {}).values()):
        after = functools.partial(_accumulated, param, hook)
        found = run_gradient_hook(tracer, "hook after accumulation", after, found)
    return found


def _accumulated(param: Any, hook: Any, gradient: Tensor) -> Tensor:
    """What a hook leaves in ``grad``, which is the gradient while it runs."""
    before, param._grad, version = param._grad, gradient.clone(), param._version
    try:
        hook(param)
        found = param._grad
    finally:
        param._grad = before
    if found is None or param._version != version:
        raise HookError(
            "compile_step: a hook after accumulation has written to the parameter or removed its gradient, while the "
            "step goes on to update it",
            remedy="change `grad` only; or loss.backward() and optimizer.step() in a loop",
        )
    return found


def _write(tracer: Tracer, argument: Value, tensor: Tensor) -> None:
    tensor = tracer.local(tensor)
    value = as_type(tensor, argument.dtype)._data
    if value is not argument:
        emit(tracer.graph, state_write.op, (argument, value), {}, name=f"{argument.name}.next")
