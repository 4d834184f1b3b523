"""Splitting of an LLVM module into units, which are built concurrently, cached one by one and linked together."""

from __future__ import annotations

import re

from graphc.base.records import dataclass
from graphc.codegen.llvm.module import Function, LlvmModule

UNIT_LINES = 40
"""Lines from which a local function is a unit of its own. Building a unit costs as much as 40 lines."""
_NAME_BYTES = 64
_FILLER = "graphc_unit_"
_CONSTANT = " = internal constant "
_GLOBAL = re.compile(r"@([-$.\w]+)")


@dataclass(frozen=True)
class Unit:
    """Module that is built by itself. Its text is equal for functions that differ in their name alone."""

    text: str
    """Text, in which ``placeholder`` is the name of the function."""
    name: str = ""
    """Name of its only function; empty for units of functions that keep their names."""
    quick: bool = False
    """Whether it is built without optimisation."""

    @property
    def is_shared(self) -> bool:
        """Whether other programs may have the same unit: a kernel, not a function that calls those of its program."""
        return bool(self.name)

    @property
    def placeholder(self) -> str:
        """Name of the function in ``text``, at least as long as its own."""
        return _placeholder(self.name)

    @property
    def named_text(self) -> str:
        """Text with the function's own name."""
        return self.text.replace(f"@{self.placeholder}(", f"@{self.name}(") if self.name else self.text

    def named(self, code: bytes) -> bytes:
        """Return object code of ``text`` as that of ``named_text``: names end with a zero byte in tables of symbols."""
        placeholder = self.placeholder.encode()
        return code.replace(placeholder, self.name.encode().ljust(len(placeholder), b"\0")) if self.name else code


def _placeholder(name: str) -> str:
    return _FILLER.ljust(-(-max(len(name), 1) // _NAME_BYTES) * _NAME_BYTES, "_")


def split_module(module: LlvmModule) -> list[Unit]:
    """Return units that together hold the functions of a module: one for those that are visible from outside and for
    short ones, one for those that are built without optimisation, and one for each of the others. The split depends on
    nothing else, so that equal programs give equal bytes on all machines."""
    functions = {f.name: f for f in module.functions}
    quick = [f for f in module.functions if f.quick]
    moved = [f for f in module.functions if f.local and not f.quick and f.body.count("\n") >= UNIT_LINES]
    group_of = dict.fromkeys(functions, "") | {f.name: "quick" for f in quick} | {f.name: f.name for f in moved}
    first = [f for f in module.functions if not group_of[f.name]]
    used = {f.name: set(_GLOBAL.findall(f.body)) for f in module.functions}
    calls = ((group_of[name], callee) for name, callees in used.items() for callee in callees & functions.keys())
    hidden = {callee for group, callee in calls if group_of[callee] != group}

    def texts(group: list[Function]) -> list[str]:
        return [f.definition("hidden ") if f.local and f.name in hidden else f.text for f in group]

    units = [Unit(_text(module, functions, first, used, texts(first), is_first=True))]
    if quick:
        units.append(Unit(_text(module, functions, quick, used, texts(quick)), quick=True))
    for f in moved:
        placeholder = _placeholder(f.name)
        definition = f.definition("hidden ").replace(f"@{f.name}(", f"@{placeholder}(", 1)
        units.append(Unit(_text(module, functions, [f], used, [definition]), f.name))
    return units


def _text(
    module: LlvmModule,
    functions: dict[str, Function],
    own: list[Function],
    used: dict[str, set[str]],
    definitions: list[str],
    is_first: bool = False,
) -> str:
    """Return the text of a module with these definitions, and with the items and declarations that they use. The first
    one has all items but unused constants."""
    names = set[str]().union(*(used[f.name] for f in own))
    items = [item for item in module.items if isinstance(item, str) and item]
    outside = [item for item in items if _is_used(item, names) or (is_first and _CONSTANT not in item)]
    callees = sorted((names & functions.keys()) - {f.name for f in own})
    return "\n".join([*outside, *(functions[name].declaration for name in callees), *definitions, ""])


def _is_used(item: str, names: set[str]) -> bool:
    """Return whether text outside of functions names nothing, or something of these names."""
    own = _GLOBAL.findall(item)
    return not own or not names.isdisjoint(own)
