"""Modules that contain modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from graphc.base.errors import ArgumentError, AttributeValueError, IndexRangeError
from graphc.nn.module import Module, no_module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


def normalized_index(index: Any, count: int) -> int:
    """Count ``index`` from the front; raise IndexRangeError outside of ``count`` entries."""
    integer = operator.index(index)
    if not -count <= integer < count:
        raise IndexRangeError(f"index {integer} is out of range for {count} entries")
    return integer % count


class _Numbered(Module):
    """Base of containers whose child modules are named 0, 1, 2, ..."""

    def _renumber(self, modules: Iterable[Module]) -> None:
        members = list(modules)
        for module in members:
            if not isinstance(module, Module):
                raise no_module(self._get_name(), module)
        self._modules.clear()
        for i, module in enumerate(members):
            self._modules[str(i)] = module

    def _members(self) -> list[Any]:
        return list(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members())

    def __setitem__(self, index: int, module: Module) -> None:
        name = list(self._modules)[normalized_index(index, len(self))]
        setattr(self, name, module)

    def __delitem__(self, index: int | slice) -> None:
        members = self._members()
        del members[index if isinstance(index, slice) else normalized_index(index, len(members))]
        self._renumber(members)

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at ``index``, and renumber the following ones."""
        members = self._members()
        if not -len(members) <= index <= len(members):
            raise IndexRangeError(f"index {index} is out of range for {len(members)} entries")
        members.insert(index, module)
        self._renumber(members)
        return self

    def append(self, module: Module) -> Self:
        """Append a module."""
        self._renumber([*self._members(), module])
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules."""
        self._renumber([*self._members(), *modules])
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove the module at ``key`` and return it."""
        removed = self[key]
        del self[key]
        return removed

    def __getitem__(self, index: Any) -> Any:
        members = self._members()
        if isinstance(index, slice):
            return self._of(members[index])
        return members[normalized_index(index, len(members))]

    def _of(self, members: list[Any]) -> Any:
        container = type(self)()
        container._renumber(members)
        return container


class Sequential(_Numbered):
    """Calls its modules one after another. Takes the modules, or one OrderedDict of names and modules.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Sequential(gc.nn.Linear(3, 4), gc.nn.ReLU(), gc.nn.Linear(4, 2))
        >>> model(gc.ones(1, 3)).shape
        (1, 2)
        >>> model[1]
        ReLU()
    """

    def __init__(self, *args: Any):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else None
        for name, module in named if named is not None else ((str(i), m) for i, m in enumerate(args)):
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """Return the output of the last module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def _checked(self, other: Any, symbol: str) -> Sequential:
        if not isinstance(other, Sequential):
            raise AttributeValueError(f"Sequential {symbol} {type(other).__name__}: both sides must be Sequential")
        return other

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self._members(), *self._checked(other, "+")._members())

    def __iadd__(self, other: Any) -> Self:
        return self.extend(self._checked(other, "+=")._members())

    def __mul__(self, count: int) -> Sequential:
        return Sequential(*self._members() * _times(self, count))

    def __rmul__(self, count: int) -> Sequential:
        return self * count

    def __imul__(self, count: int) -> Self:
        self._renumber(self._members() * _times(self, count))
        return self


def _times(container: Module, count: Any) -> int:
    if not isinstance(count, int):
        raise ArgumentError(f"{container._get_name()} * {type(count).__name__}: the factor must be an int")
    if count < 1:
        raise AttributeValueError(f"{container._get_name()} * {count}: the factor must be positive")
    return count


class ModuleList(_Numbered):
    """A list of registered modules.

    Example:
        >>> import graphc as gc
        >>> layers = gc.nn.ModuleList(gc.nn.Linear(2, 2) for _ in range(3))
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(f"ModuleList.extend: {type(modules).__name__} is not iterable")
        return super().extend(modules)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        """Show a run of neighbours with equal text once, with their number."""
        lines, first = [], 0
        for text, run in itertools.groupby(map(repr, self)):
            count = len(list(run))
            name = f"({first}): " if count == 1 else f"({first}-{first + count - 1}): {count} x "
            lines.append("\n  " + name + text.replace("\n", "\n  "))
            first += count
        return f"{self._get_name()}(" + "".join([*lines, "\n"] if lines else []) + ")"

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self._members(), *other])


class ModuleDict(Module):
    """A dictionary of registered modules, in insertion order.

    Example:
        >>> import graphc as gc
        >>> heads = gc.nn.ModuleDict({"class": gc.nn.Linear(4, 3), "box": gc.nn.Linear(4, 2)})
        >>> heads["box"](gc.ones(4)).shape
        (2,)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return (name, module) pairs."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules under their names, replacing modules of the same name."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(f"ModuleDict.update: {type(modules).__name__} is neither a mapping nor pairs")
        for name, module in dict(modules).items():
            self[name] = module
