"""Parser of CUDA text for the emulated device: its kernels, their parameters, and the number of elements of each."""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import CodeType

from graphc.base.records import dataclass

_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^()]*\)\s*)?(\w+)\s*\(([^{]*)\)\s*\{'
)
_EXTENT = re.compile(r"GC_EXTENT\((\w+), (.*)\);")
_SUFFIX = re.compile(r"\b(\d+)ll\b")
RUN = "gc_run"
"""Name of every kernel in the compiled text, in a separate namespace for each."""


@dataclass(frozen=True)
class KernelText:
    """One kernel of a text. Kernels that differ only in their symbols are built once."""

    symbol: str
    text: str
    """Text of the kernel alone, under the name RUN."""
    prelude: str
    """Text before the first kernel."""
    line: int
    """Line of the complete text at which the kernel starts."""
    parameters: tuple[str, ...]
    """Names of the parameters."""
    extents: tuple[int | CodeType, ...]
    """Number of elements of each parameter: an int, or code that computes it from the integer parameters; -1 if the
    text does not state it."""

    @cached_property
    def digest(self) -> str:
        """Hash of every input of the built code besides the compiler."""
        state = hashlib.sha256(self.prelude.encode())
        state.update(b"\0" + self.text.encode())
        return state.hexdigest()[:32]

    def extents_for(self, arguments: Sequence[int]) -> list[int]:
        """Return the number of elements of each parameter in a call; -1 where it is unknown."""
        values = dict(zip(self.parameters, arguments, strict=True))
        return [extent if isinstance(extent, int) else _evaluated(extent, values) for extent in self.extents]


def kernels_of(text: str) -> tuple[KernelText, ...]:
    """Return the kernels of a text, in order. Only kernels may follow the first one."""
    kernels = list(_KERNEL.finditer(text))
    ends = [*(kernel.start() for kernel in kernels[1:]), None]
    return tuple(_kernel(text, kernels[0].start(), kernel, end) for kernel, end in zip(kernels, ends, strict=False))


def _kernel(text: str, prelude: int, kernel: re.Match[str], end: int | None) -> KernelText:
    names = _parameters(kernel[2])
    body = text[kernel.end() : end]
    extents = dict(_EXTENT.findall(body))
    return KernelText(
        kernel[1],
        f"static __global__ void {RUN}({kernel[2]}) {{{body}",
        text[:prelude],
        text.count("\n", 0, kernel.start(2)) + 1,
        names,
        tuple(_extent(extents.get(name, "")) for name in names),
    )


def _parameters(text: str) -> tuple[str, ...]:
    declarations = re.sub(r"\([^()]*\)", "", text).split(",")
    names = (re.search(r"(\w+)\s*$", declaration) for declaration in declarations)
    return tuple(name[1] for name in names if name)


def _extent(text: str) -> int | CodeType:
    expression = _SUFFIX.sub(r"\1", text)
    if not expression or expression.isdigit():
        return int(expression or -1)
    try:
        called = expression.replace("gc_floor_div<long long>", "_quotient").replace("gc_max<long long>", "_max")
        return compile(called.replace("/", "//"), "extent", "eval")
    except SyntaxError:
        return -1


def _evaluated(code: CodeType, values: Mapping[str, int]) -> int:
    try:
        return int(eval(code, {"__builtins__": {}, "_quotient": operator.floordiv, "_max": max}, dict(values)))
    except (ArithmeticError, NameError, SyntaxError, TypeError, AttributeError):
        return -1
