"""The update rule of an optimizer as a part of a training step's graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import DType, float32, float64
from graphc.base.mutation_epoch import EPOCH
from graphc.compiled.bindings import Slot
from graphc.compiled.step_gradients import write
from graphc.compiled.update import is_static
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import elementwise as ew
from graphc.tensors.structure import (
    flatten,
)
from graphc.tensors.tensor import Tensor
from graphc.tracing.tracer import Tracer


class GroupNumber(NamedTuple):
    """A number of an optimizer's group that is an argument of the program."""

    optimizer: Any
    group: int
    """Number of the group."""
    name: str
    dtype: np.dtype


class GroupRule:
    """The numbers of one parameter group for the parameters of one element type: those that are arguments of the
    program, in that precision, and those that are part of it."""

    def __init__(self, optimizer: Any, index: int, dtype: DType, graph: Graph):
        group = optimizer.param_groups[index]
        self.values: dict[str, Any] = dict(optimizer.hyper(group))
        self.inputs: list[GroupNumber] = []
        """The numbers that are arguments, in order."""
        dtype = float64 if dtype is float64 else float32
        for name in optimizer.schedulable:
            value = self.values.get(name)
            if _is_part(name, value):
                continue
            argument = graph.add_input(TensorType(dtype), f"group{index}.{name}")
            self.values[name] = Tensor._wrap(argument)
            self.inputs.append(GroupNumber(optimizer, index, name, dtype.numpy))


def _is_part(name: str, value: Any) -> bool:
    """Whether a schedulable number is part of the program."""
    return value is None or is_static(name, value)


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
            kept = {k: v for k, v in optimizer.hyper(group).items() if k not in optimizer.schedulable or _is_part(k, v)}
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
    """The path of a state of the optimizer in graphs."""
    return f"optimizer.{argument.node.attrs['path']}.{name}"


def taken_writes(graph: Graph, parameters: Iterable[Value], updates: bool) -> dict[Value, Value]:
    """What arguments hold after the forward pass; writes of parameters go where the update writes them, once."""
    contents = {parameter: parameter for parameter in parameters}
    for node in list(graph.nodes()):
        if node.op.has(Trait.STATE_WRITE):
            if node.operands[0] in contents and updates:
                graph.erase(node)
            contents[node.operands[0]] = node.operands[1]
    return contents


def append_update(
    tracer: Tracer, optimizer: Any, param: Any, values: tuple[Value, Value, Any], rule: GroupRule, finite: Any = None
) -> Value:
    """Appends the update of one parameter, from what it holds then, and its state; returns what it holds after it.

    ``finite`` says, where it is given, whether anything is updated at all."""
    argument, content, gradient = values
    state = {}
    for name, tensor in optimizer.state_of(param).items():
        path = state_path(argument, name)
        state[name] = tracer.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, "state", path)
    images = {name: Tensor._wrap(value) for name, value in state.items()}
    new, new_state = optimizer.update(Tensor._wrap(content), gradient, images, rule.values)
    if finite is not None:
        new = ew.where(finite, new, Tensor._wrap(content))
        new_state = {name: ew.where(finite, new_state[name], image) for name, image in images.items()}
    after = write(tracer, argument, new)
    for name, value in state.items():
        write(tracer, value, new_state[name])
    return after
