"""Modules that contain parameters: ParameterList, ParameterDict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from graphc.base.errors import ArgumentError, HookError
from graphc.nn.module import Module
from graphc.nn.modules.container import normalized_index
from graphc.nn.parameter import Parameter
from graphc.tensors.tensor import Tensor

__all__ = ["ParameterDict", "ParameterList"]


def _as_member(value: Any) -> Any:
    """Turn tensors into parameters; return anything else unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _describe(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    return f"{type(value).__name__} containing: [{value.dtype} of size {size}]"


class ParameterList(Module):
    """A list of registered parameters. Tensors become parameters; other objects are stored unchanged."""

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(normalized_index(index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        name = str(normalized_index(index, self._size))
        if isinstance(value, Tensor) or name not in self._parameters:
            setattr(self, name, _as_member(value))
        else:
            delattr(self, name)
            setattr(self, name, value)

    def append(self, value: Any) -> Self:
        """Append a value."""
        setattr(self, str(self._size), _as_member(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Append values."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise ArgumentError(f"ParameterList.extend: expected an iterable, got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_describe(value)}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise HookError("a ParameterList cannot be called", remedy="use its parameters in forward() of a module")


class ParameterDict(Module):
    """A dictionary of registered parameters. Tensors become parameters; other objects are stored unchanged."""

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _attribute(key: str) -> str:
        # Keys may be names of methods, e.g. "values".
        return key if key not in dir(ParameterDict) else f"{key}_parameter"

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise ArgumentError(f"ParameterDict: a key must be a string, got {type(key).__name__}")
        name = self._attribute(key)
        if name in self._parameters and not isinstance(value, Tensor):
            delattr(self, name)
        setattr(self, name, _as_member(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``, which is set to ``default`` first if it is missing."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``, or ``default``."""
        return self[key] if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Remove a value and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the newest (key, value) pair and return it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all entries."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return another dictionary of the same parameters."""
        return ParameterDict(dict(self.items()))

    @staticmethod
    def fromkeys(keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Create a dictionary with the same value for every key."""
        return ParameterDict({key: default for key in keys})

    def keys(self) -> Iterable[str]:
        """Return the keys in insertion order."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """Return the values in insertion order."""
        return [self[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return (key, value) pairs in insertion order."""
        return [(key, self[key]) for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Add the pairs of a mapping, or of an iterable of pairs."""
        if not isinstance(parameters, (Mapping, ParameterDict, Iterable)):
            raise ArgumentError(f"ParameterDict.update: {type(parameters).__name__} is neither a mapping nor pairs")
        pairs = parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        for key, value in pairs:
            self[key] = value

    def __or__(self, other: Any) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Any) -> ParameterDict:
        merged = ParameterDict(other)
        merged.update(self)
        return merged

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value)}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise HookError("a ParameterDict cannot be called", remedy="use its parameters in forward() of a module")
