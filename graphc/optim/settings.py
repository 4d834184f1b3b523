"""What a program depends on of an optimizer, and which of its numbers each call gives."""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from graphc.base.dtypes import DType, float32, float64
from graphc.base.values import key_of
from graphc.ir.types import TensorType
from graphc.tensors.placement import on_host
from graphc.tensors.tensor import Tensor


def is_argument(optimizer: Any, name: str, value: Any) -> bool:
    """Whether each call of a program gives a number of a group: one that schedules change, and that is there. One that
    is 0 switches off what it scales, and is part of the program; a rate switches nothing off."""
    if name not in optimizer.schedulable or isinstance(value, (bool, np.bool_)):
        return False
    return isinstance(value, Tensor) or (isinstance(value, (int, float, np.number)) and (name == "lr" or value != 0))


class OptimizerSettings:
    """What a program depends on of an optimizer: the parameters of each group, and all numbers that are no
    arguments. The optimizer may go away."""

    def __init__(self, optimizer: Any):
        self._optimizer = ref(optimizer)
        self._name = type(optimizer).__name__
        self._settings = self._read(optimizer)
        self._seen = self._values(optimizer)

    @staticmethod
    def _read(optimizer: Any) -> list[Any]:
        found = []
        for group in optimizer.param_groups:
            kept = {k: _key(v) for k, v in optimizer.hyper(group).items() if not is_argument(optimizer, k, v)}
            found.append(([*map(id, group["params"])], kept))
        return found

    @staticmethod
    def _values(optimizer: Any) -> list[Any]:
        values: list[Any] = []
        for group in optimizer.param_groups:
            values += group.values()
            values += group["params"]
        return values

    def holds(self) -> bool:
        """Whether they are as they were; nearly always nothing was assigned at all."""
        optimizer = self._optimizer()
        if optimizer is None:
            return False
        values = self._values(optimizer)
        if len(values) == len(self._seen) and all(map(is_, values, self._seen)):
            return True
        if self._read(optimizer) != self._settings:
            return False
        self._seen = values
        return True

    def why(self) -> str:
        """What has changed."""
        return f"a parameter or a setting of {self._name} was replaced"


def _key(setting: Any) -> Any:
    return Tensor if isinstance(setting, Tensor) else key_of(setting)


class GroupNumber(NamedTuple):
    """A number of an optimizer's group that is an argument of a program."""

    optimizer: ref[Any]
    """May go away, and its programs with it."""
    group: int
    """Number of the group."""
    name: str
    dtype: np.dtype
    """The precision in which it is given."""


class GroupRule:
    """The numbers of one parameter group for the parameters of one element type: those that are arguments of the
    program, in that precision, and those that are part of it."""

    def __init__(self, optimizer: Any, index: int, dtype: DType, graph: Any):
        self.values: dict[str, Any] = dict(optimizer.hyper(optimizer.param_groups[index]))
        self.inputs: list[GroupNumber] = []
        """The numbers that are arguments, in order."""
        dtype = float64 if dtype is float64 else float32
        for name in optimizer.schedulable:
            if name in self.values and is_argument(optimizer, name, self.values[name]):
                argument = graph.add_input(TensorType(dtype), f"group{index}.{name}")
                self.values[name] = Tensor._wrap(argument)
                self.inputs.append(GroupNumber(ref(optimizer), index, name, dtype.numpy))


class GivenNumbers:
    """The numbers that one call of a program gives, as arrays: those of the call before where they are the same."""

    def __init__(self) -> None:
        self._numbers: list[GroupNumber] = []
        self._given: list[Any] = []
        """The numbers of the last call, where they were plain ones."""
        self._arrays: list[np.ndarray] = []

    def add(self, numbers: Iterable[GroupNumber]) -> None:
        """More of them, in the order of the program's arguments."""
        self._numbers += numbers

    def keys(self) -> list[GroupNumber]:
        """What they are, equal for the same number of the same optimizer."""
        return list(self._numbers)

    def arrays(self) -> list[np.ndarray]:
        """Each as an array without dimensions."""
        given = [_now(number) for number in self._numbers]
        if not (self._given and all(map(is_, given, self._given))):
            self._arrays = [_array(value, number.dtype) for value, number in zip(given, self._numbers, strict=True)]
            self._given = given if all([type(value) is float for value in given]) else []
        return self._arrays


def _now(number: GroupNumber) -> Any:
    optimizer: Any = number.optimizer()
    return optimizer.number(optimizer.param_groups[number.group], number.name)


def _array(value: Any, dtype: np.dtype) -> np.ndarray:
    return np.asarray(on_host(value._data) if isinstance(value, Tensor) else value, dtype)
