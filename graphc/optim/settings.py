"""Dependence of a program on an optimizer's settings, and the numbers that each call passes."""

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
    """Return whether each call of a program passes a number of a group: a present, schedulable one. A number of 0
    disables its term and is part of the program, except for a learning rate."""
    if name not in optimizer.schedulable or isinstance(value, (bool, np.bool_)):
        return False
    return isinstance(value, Tensor) or (isinstance(value, (int, float, np.number)) and (name == "lr" or value != 0))


class OptimizerSettings:
    """Fact that an optimizer's settings are unchanged: the parameters of each group, and all numbers other than
    arguments. The optimizer is referenced weakly."""

    def __init__(self, optimizer: Any, numbers: bool = False):
        """With ``numbers``, no number of a group is an argument."""
        self._optimizer = ref(optimizer)
        self._has_arguments = not numbers
        self._name = type(optimizer).__name__
        self._settings = self._read(optimizer)
        self._last_values = self._values(optimizer)

    def _read(self, optimizer: Any) -> list[Any]:
        groups = []
        for group in optimizer.param_groups:
            settings = optimizer.hyper(group).items()
            constants = {k: _key(v) for k, v in settings if not (self._has_arguments and is_argument(optimizer, k, v))}
            groups.append(([*map(id, group["params"])], constants))
        return groups

    @staticmethod
    def _values(optimizer: Any) -> list[Any]:
        values: list[Any] = []
        for group in optimizer.param_groups:
            values += group.values()
            values += group["params"]
        return values

    def holds(self) -> bool:
        """Return whether the settings are unchanged; nearly always no attribute was assigned at all."""
        optimizer = self._optimizer()
        if optimizer is None:
            return False
        values = self._values(optimizer)
        if len(values) == len(self._last_values) and all(map(is_, values, self._last_values)):
            return True
        if self._read(optimizer) != self._settings:
            return False
        self._last_values = values
        return True

    def why(self) -> str:
        """Describe the change."""
        return f"a parameter or a setting of {self._name} was replaced"


def _key(setting: Any) -> Any:
    return Tensor if isinstance(setting, Tensor) else key_of(setting)


class GroupNumber(NamedTuple):
    """A number of an optimizer's group that is an argument of a program."""

    optimizer: ref[Any]
    """Weak reference to the optimizer; its programs die with it."""
    group: int
    """Index of the group."""
    name: str
    dtype: np.dtype
    """The precision of the argument."""


class GroupRule:
    """The numbers of one parameter group for parameters of one element type: program arguments in that precision, and
    constants of the program."""

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
    """The numbers of optimizers that a call of a program passes after its other inputs, as arrays; unchanged numbers
    reuse the arrays of the previous call."""

    def __init__(self) -> None:
        self._numbers: list[GroupNumber] = []
        self._last_values: list[Any] = []
        """The numbers of the last call, if all were plain floats."""
        self._arrays: list[np.ndarray] = []

    def add(self, numbers: Iterable[GroupNumber]) -> None:
        """Append numbers, in the order of the program's arguments."""
        self._numbers += numbers

    def keys(self) -> list[GroupNumber]:
        """Return the keys of the numbers, equal for the same number of the same optimizer."""
        return list(self._numbers)

    def arrays(self) -> list[np.ndarray]:
        """Return each number as an array without dimensions."""
        values = []
        for weak, group, name, _ in self._numbers:
            optimizer: Any = weak()
            values.append(optimizer.number(optimizer.param_groups[group], name))
        if not (self._last_values and all(map(is_, values, self._last_values))):
            self._arrays = [_array(value, number.dtype) for value, number in zip(values, self._numbers, strict=True)]
            self._last_values = values if all([type(value) is float for value in values]) else []
        return self._arrays


def _array(value: Any, dtype: np.dtype) -> np.ndarray:
    return np.asarray(on_host(value._data) if isinstance(value, Tensor) else value, dtype)
