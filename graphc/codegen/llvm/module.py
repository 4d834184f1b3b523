"""An LLVM module as the list of its functions, which can be built together or apart."""

from __future__ import annotations

from dataclasses import dataclass

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
        """What declares it where another module of the program defines it."""
        kinds = ", ".join(kind for kind, _ in self.parameters)
        return f"declare hidden {self.result} @{self.name}({kinds}) {self.attributes}"


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
