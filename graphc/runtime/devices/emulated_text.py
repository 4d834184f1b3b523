"""CUDA text as the emulated device reads it: its kernels, their parameters, and how many elements these have."""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^()]*\)\s*)?(\w+)\s*\(([^{]*)\)\s*\{'
)
_EXTENT = re.compile(r"GC_EXTENT\((\w+), (.*)\);")
_SUFFIX = re.compile(r"\b(\d+)ll\b")
RUN = "gc_run"
"""What every kernel is called in the text that is compiled, in a namespace of its own."""


@dataclass(frozen=True)
class KernelText:
    """One kernel of a text. Kernels that differ in their symbols alone are built once."""

    symbol: str
    text: str
    """Of the kernel alone, under the name RUN."""
    prelude: str
    """What stands before the first kernel of the text."""
    line: int
    """The line of the whole text at which it starts."""
    parameters: tuple[str, ...]
    """Their names."""
    extents: tuple[int | CodeType, ...]
    """How many elements each parameter has: a number, or code that computes it from those parameters that are numbers;
    -1 where the text does not say."""

    @cached_property
    def digest(self) -> str:
        """Of all that its code depends on besides the compiler."""
        state = hashlib.sha256(self.prelude.encode())
        state.update(b"\0" + self.text.encode())
        return state.hexdigest()[:32]

    def extents_for(self, arguments: Sequence[int]) -> list[int]:
        """How many elements each parameter has in a call; -1 where that is not known."""
        values = dict(zip(self.parameters, arguments, strict=True))
        return [extent if isinstance(extent, int) else _evaluated(extent, values) for extent in self.extents]


def kernels_of(text: str) -> tuple[KernelText, ...]:
    """The kernels of a text, in order. Behind the first one there must be nothing but kernels."""
    found = list(_KERNEL.finditer(text))
    ends = [*(kernel.start() for kernel in found[1:]), None]
    return tuple(_kernel(text, found[0].start(), kernel, end) for kernel, end in zip(found, ends, strict=False))


def _kernel(text: str, prelude: int, kernel: re.Match[str], end: int | None) -> KernelText:
    names = _parameters(kernel[2])
    body = text[kernel.end() : end]
    said = dict(_EXTENT.findall(body))
    return KernelText(
        kernel[1],
        f"static __global__ void {RUN}({kernel[2]}) {{{body}",
        text[:prelude],
        text.count("\n", 0, kernel.start(2)) + 1,
        names,
        tuple(_extent(said.get(name, "")) for name in names),
    )


def _parameters(text: str) -> tuple[str, ...]:
    parts = re.sub(r"\([^()]*\)", "", text).split(",")
    names = (re.search(r"(\w+)\s*$", part) for part in parts)
    return tuple(found[1] for found in names if found)


def _extent(text: str) -> int | CodeType:
    expression = _SUFFIX.sub(r"\1", text)
    if not expression or expression.isdigit():
        return int(expression or -1)
    try:
        return compile(expression.replace("gc_floor_div<long long>", "_quotient").replace("/", "//"), "extent", "eval")
    except SyntaxError:
        return -1


def _evaluated(code: CodeType, values: Mapping[str, int]) -> int:
    try:
        return int(eval(code, {"__builtins__": {}, "_quotient": operator.floordiv}, dict(values)))
    except (ArithmeticError, NameError, SyntaxError, TypeError, AttributeError):
        return -1
