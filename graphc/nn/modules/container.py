"""Modules that hold modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from graphc.base.errors import ArgumentError, AttributeValueError, IndexRangeError
from graphc.nn.module import Module, no_module


def place(index: Any, count: int) -> int:
    """``index`` counted from the front; raises IndexRangeError outside of ``count`` entries."""
    number = operator.index(index)
    if not -count <= number < count:
        raise IndexRangeError(f"index {number} is out of range for {count} entries")
    return number % count


class _Numbered(Module):
    """Child modules named 0, 1, 2, ..."""

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
        name = list(self._modules)[place(index, len(self))]
        setattr(self, name, module)

    def __delitem__(self, index: int | slice) -> None:
        members = self._members()
        del members[index if isinstance(index, slice) else place(index, len(members))]
        self._renumber(members)

    def insert(self, index: int, module: Module) -> Self:
        """Puts a module before the one at ``index``; the following ones are renumbered."""
        members = self._members()
        if not -len(members) <= index <= len(members):
            raise IndexRangeError(f"index {index} is out of range for {len(members)} entries")
        members.insert(index, module)
        self._renumber(members)
        return self

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self._renumber([*self._members(), module])
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        self._renumber([*self._members(), *modules])
        return self

    def pop(self, key: int | slice) -> Any:
        """Takes the module at ``key`` out and returns it."""
        taken = self[key]
        del self[key]
        return taken

    def __getitem__(self, index: Any) -> Any:
        members = self._members()
        if isinstance(index, slice):
            return self._of(members[index])
        return members[place(index, len(members))]

    def _of(self, members: list[Any]) -> Any:
        made = type(self)()
        made._renumber(members)
        return made


class Sequential(_Numbered):
    """Calls its modules one after another. Made from modules, or from one OrderedDict of names and modules."""

    def __init__(self, *args: Any):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else None
        for name, module in named if named is not None else ((str(i), m) for i, m in enumerate(args)):
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """The output of the last module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def _checked(self, other: Any, what: str) -> Sequential:
        if not isinstance(other, Sequential):
            raise AttributeValueError(f"Sequential {what} {type(other).__name__}: both sides must be Sequential")
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
        raise ArgumentError(f"{container._get_name()} * {type(count).__name__}: an int is needed")
    if count < 1:
        raise AttributeValueError(f"{container._get_name()} * {count}: a positive number is needed")
    return count


class ModuleList(_Numbered):
    """A list of modules, all of them registered."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(f"ModuleList.extend: {type(modules).__name__} is not iterable")
        return super().extend(modules)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        """Neighbours that look alike once, with their number."""
        lines, first = [], 0
        for text, alike in itertools.groupby(map(repr, self)):
            count = len(list(alike))
            name = f"({first}): " if count == 1 else f"({first}-{first + count - 1}): {count} x "
            lines.append("\n  " + name + text.replace("\n", "\n  "))
            first += count
        return f"{self._get_name()}(" + "".join([*lines, "\n"] if lines else []) + ")"

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self._members(), *other])


class ModuleDict(Module):
    """A dictionary of modules, all of them registered, in insertion order."""

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
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes a module out and returns it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """Names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """Modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds modules under their names; those of the same name are replaced."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(f"ModuleDict.update: {type(modules).__name__} is neither a mapping nor pairs")
        for name, module in dict(modules).items():
            self[name] = module
