"""Runs kernels part by part, in any order, for the tests of threads."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.emit import emit_kernel
from graphc.codegen.llvm.module import Module, Part
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.threads.chunks import Split
from graphc.ir.kernel.statements import Kernel
from graphc.runtime.loader import load_object


def kernel_code(kernel: Kernel, split: Split | None, target: Target) -> bytes:
    """Object code that exports one kernel under its own name."""
    declarations: dict[str, Part] = {}
    function = replace(emit_kernel(kernel, target, declarations, split), name="entry", local=False)
    head = f'target triple = "{target.triple}"'
    module = Module((head, *declarations.values(), function, "attributes #0 = { nounwind }"))
    return build_object(module, target, quick=True)


class Parts:
    """A kernel as native code that is called for single parts."""

    def __init__(self, kernel: Kernel, split: Split | None, target: Target):
        self.kernel = kernel
        self.split = split
        self.library = load_object(kernel_code(kernel, split, target), "entry")

    def run(self, arrays: Sequence[np.ndarray], order: Iterable[int] = (0,), parts: int = 1) -> None:
        """Runs the parts in this order, each with scratch memory of its own, full of garbage."""
        count = len(self.kernel.buffers)
        scratch = [b for b in self.kernel.buffers if b.role == "scratch"]
        numbers = [ctypes.c_int64] * 2 if self.split else []
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count, *numbers)(self.library.address)
        for part in order:
            rooms = [np.full(b.size * b.dtype.itemsize, 0x7F, np.uint8) for b in scratch]
            pointers = [a.ctypes.data for a in (*arrays, *rooms)]
            function(*pointers, *([part, parts] if self.split else []))
