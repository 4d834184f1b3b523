"""An LLVM module as the list of its functions, which can be built together or apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

Parameter = tuple[str, str]
"""Type with attributes, and register."""


@dataclass(frozen=True)
class Function:
    """One function of a module."""

    name: str
    parameters: tuple[Parameter, ...]
    body: str
    """The lines between the braces."""
    result: str = "void"
    attributes: str = "#0"
    local: bool = True
    """Whether it is seen by other functions of the module only."""
    calls: bool = False
    """Whether it calls others of the module, so that it needs their declarations."""

    @property
    def text(self) -> str:
        """Its definition."""
        return self.definition("internal " if self.local else "")

    def definition(self, linkage: str) -> str:
        """Its definition with a linkage or visibility, which ends with a blank."""
        parameters = ", ".join(f"{kind} {register}" for kind, register in self.parameters)
        return f"define {linkage}{self.result} @{self.name}({parameters}) {self.attributes} {{\n{self.body}\n}}"

    @property
    def declaration(self) -> str:
        """What declares it where another module of the program defines it.

        NOTE: not as hidden, which would say that it is near: an address is then taken by an offset of 32 bits."""
        kinds = ", ".join(kind for kind, _ in self.parameters)
        return f"declare {self.result} @{self.name}({kinds}) {self.attributes}"


Item = str | Function
"""A function, or text that stands outside of functions: declarations, constants, attributes."""


def text_of(item: Item) -> str:
    """The LLVM text of an item."""
    return item if isinstance(item, str) else item.text


@dataclass(frozen=True)
class Module:
    """The items of a module in the order of its text."""

    items: tuple[Item, ...]

    @property
    def text(self) -> str:
        """The LLVM text."""
        return "\n".join(map(text_of, self.items))

    @property
    def functions(self) -> list[Function]:
        """The functions, in order."""
        return [p for p in self.items if isinstance(p, Function)]

    @property
    def outside(self) -> str:
        """What stands outside of functions."""
        return "\n".join(p for p in self.items if isinstance(p, str))


_GLOBAL = re.compile(r"@([-$.\w]+)")
_DEFINED = re.compile(r"^@([-$.\w]+) = (?!external)", re.MULTILINE)


def prefixed(module: Module, prefix: str) -> Module:
    """The same module with ``prefix`` before the names of all that it defines, which is seen in the module only."""
    own = {f.name for f in module.functions} | set(_DEFINED.findall(module.outside))

    def text(found: str) -> str:
        return _GLOBAL.sub(lambda name: f"@{prefix}{name[1]}" if name[1] in own else name[0], found)

    def item(found: Item) -> Item:
        if isinstance(found, str):
            return text(found)
        return replace(found, name=prefix + found.name, body=text(found.body), local=True)

    return Module(tuple(map(item, module.items)))


def joined(modules: Iterable[Module]) -> Module:
    """The items of several modules that define different names; what they say alike outside of functions is there
    once."""
    items = [item for module in modules for item in module.items]
    return Module(tuple(dict.fromkeys(items)))
