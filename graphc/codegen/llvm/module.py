"""LLVM module as a list of functions, which can be built together or separately."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from graphc.base.records import dataclass
from graphc.codegen.machine.target import Target

Parameter = tuple[str, str]
"""Type with attributes, and register."""


@dataclass(frozen=True)
class Function:
    """One function of a module."""

    name: str
    parameters: tuple[Parameter, ...]
    body: str
    """Lines between the braces."""
    result: str = "void"
    attributes: str = "#0"
    local: bool = True
    """Whether only functions of the same module see it."""
    calls: bool = False
    """Whether it calls others of the module, so that it needs their declarations."""
    quick: bool = False
    """Whether it is built without optimisation."""

    @property
    def text(self) -> str:
        """Definition of the function."""
        return self.definition("internal " if self.local else "")

    def definition(self, linkage: str) -> str:
        """Return the definition with a linkage or visibility, which ends with a blank."""
        parameters = ", ".join(f"{kind} {register}" for kind, register in self.parameters)
        return f"define {linkage}{self.result} @{self.name}({parameters}) {self.attributes} {{\n{self.body}\n}}"

    @property
    def declaration(self) -> str:
        """Declaration for modules that do not define the function.

        NOTE: not as hidden, because LLVM would then assume that it is near, and take its address by an offset of 32
        bits.
        """
        kinds = ", ".join(kind for kind, _ in self.parameters)
        return f"declare {self.result} @{self.name}({kinds}) {self.attributes}"


Item = str | Function
"""A function, or text outside of functions: declarations, constants, attributes."""


def text_of(item: Item) -> str:
    """Return the LLVM text of an item."""
    return item if isinstance(item, str) else item.text


@dataclass(frozen=True)
class LlvmModule:
    """Items of a module in the order of its text."""

    items: tuple[Item, ...]

    @property
    def text(self) -> str:
        """LLVM text of the module."""
        return "\n".join(map(text_of, self.items))

    @property
    def functions(self) -> list[Function]:
        """Functions, in order."""
        return [p for p in self.items if isinstance(p, Function)]

    @property
    def outside(self) -> str:
        """Text outside of functions."""
        return "\n".join(p for p in self.items if isinstance(p, str))


_GLOBAL = re.compile(r"@([-$.\w]+)")
_DEFINED = re.compile(r"^@([-$.\w]+) = (?!external)", re.MULTILINE)


def prefixed(module: LlvmModule, prefix: str) -> LlvmModule:
    """Return the same module with ``prefix`` before all names that it defines, which become local."""
    own = {f.name for f in module.functions} | set(_DEFINED.findall(module.outside))

    def text(source: str) -> str:
        return _GLOBAL.sub(lambda name: f"@{prefix}{name[1]}" if name[1] in own else name[0], source)

    def item(source: Item) -> Item:
        if isinstance(source, str):
            return text(source)
        return replace(source, name=prefix + source.name, body=text(source.body), local=True)

    return LlvmModule(tuple(map(item, module.items)))


def for_target(module: LlvmModule, target: Target) -> LlvmModule:
    """Return the same module with functions for the processor of a target, whatever the module is built for."""
    processor = f'"target-cpu"="{target.cpu or "generic"}" "target-features"="{target.features}"'

    def item(source: Item) -> Item:
        return source if isinstance(source, str) else replace(source, attributes=f"{source.attributes} {processor}")

    return LlvmModule(tuple(map(item, module.items)))


def joined(modules: Iterable[LlvmModule]) -> LlvmModule:
    """Return the items of several modules that define different names, with equal texts outside of functions only
    once."""
    items = [item for module in modules for item in module.items]
    return LlvmModule(tuple(dict.fromkeys(items)))
