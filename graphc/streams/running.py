"""Common parts of all streams: a module of one tick whose states are buffers, and its compiled calls."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import Any, Self

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.calls.function import compile
from graphc.nn.module import Module
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor


class Named:
    """A function with other names for its parameters."""

    def __init__(self, function: Callable[..., Any], names: Sequence[str]):
        self._function = function
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(identifier(name), kind) for name in names])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.__signature__.bind(*args, **kwargs)
        return self._function(*bound.args)

    @staticmethod
    def bound(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name. Raise ArgumentError if they do not fit."""
        try:
            return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise ArgumentError(f"the examples do not fit the model: {error}") from error


def identifier(name: str) -> str:
    """Return a name that parameters can have."""
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return f"input_{plain}" if not plain.isidentifier() or iskeyword(plain) else plain


class StepModule(Module):
    """A module whose states are buffers ``state_NAME`` that begin with known arrays."""

    def __init__(self, initial: Mapping[str, np.ndarray]):
        super().__init__()
        self._initial = {name: np.array(array) for name, array in initial.items()}
        for name, array in self._initial.items():
            self.register_buffer(_path(name), from_numpy(array.copy()))

    @property
    def states(self) -> list[str]:
        """Names of the states."""
        return [*self._initial]

    def buffer(self, name: str) -> Tensor:
        """Return the buffer of a state."""
        return getattr(self, _path(name))

    def reset(self) -> None:
        """Put all states back to those before the first tick."""
        for name, array in self._initial.items():
            self.buffer(name).copy_(from_numpy(array))


def _path(name: str) -> str:
    return f"state_{name.replace('.', '_')}"


class Running:
    """A module of a tick with its states, compiled."""

    def __init__(self, module: Any, flush_denormals: bool = False):
        self.module = module
        """The module of a tick, for ``gc.export`` and ``gc.build_library``."""
        self.flush_denormals = flush_denormals
        """Whether ticks take denormal numbers for zeros."""
        self.compiled = compile(module, flush_denormals=flush_denormals)

    @property
    def state(self) -> dict[str, np.ndarray]:
        """Copies of all states by name; they can be put back."""
        return {name: np.array(self.module.buffer(name).numpy()) for name in self.module.states}

    @state.setter
    def state(self, arrays: Mapping[str, np.ndarray]) -> None:
        if not isinstance(arrays, Mapping) or {*arrays} != {*self.module.states}:
            raise ArgumentError(
                "the arrays are not the states of this stream", remedy="pass what stream.state returned"
            )
        for name, array in arrays.items():
            buffer = self.module.buffer(name)
            array = np.ascontiguousarray(array).reshape(np.shape(array))
            if array.shape != buffer.shape or array.dtype != buffer.dtype.numpy:
                expected, got = (f"{x.dtype}{list(x.shape)}" for x in (buffer.detach().numpy(), array))
                raise ArgumentError(f"state {name} is {expected}, got {got}", remedy="pass what stream.state returned")
            buffer.copy_(from_numpy(array))

    def reset(self) -> None:
        """Begin a new sequence."""
        self.module.reset()

    def copied(self) -> Any:
        """Return a copy of the module at the start of a sequence."""
        module = copy.deepcopy(self.module)
        module.reset()
        return module

    def fresh(self) -> Self:
        """Return another stream of the same program, at the start of a sequence."""
        raise NotImplementedError
