"""Runs kernels chunk by chunk, in any order, for the tests of threads."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from graphc.base.sizes.size import at as size_at
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.emit import emit_kernel
from graphc.codegen.llvm.module import Item, LlvmModule
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.threads.chunks import Chunking
from graphc.ir.kernel.dims import dims_of_kernel
from graphc.ir.kernel.statements import Kernel
from graphc.runtime.loader import load_object
from tests.native import native_spec


def kernel_code(kernel: Kernel, chunking: Chunking | None, target: Target) -> bytes:
    """Object code that exports one kernel under its own name."""
    declarations: dict[str, Item] = {}
    function = replace(emit_kernel(kernel, target, declarations, chunking), name="entry", local=False)
    head = f'target triple = "{target.triple}"'
    module = LlvmModule((head, *declarations.values(), function, "attributes #0 = { nounwind }"))
    return build_object(module, target, quick=True)


class Chunks:
    """Native code of a kernel, called for single chunks."""

    def __init__(self, kernel: Kernel, chunking: Chunking | None, target: Target):
        self.kernel = kernel
        self.chunking = chunking
        self.library = load_object(kernel_code(kernel, chunking, target), "entry", native_spec(target))

    def run(
        self,
        arrays: Sequence[np.ndarray],
        order: Iterable[int] = (0,),
        chunks: int = 1,
        sizes: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Runs the chunks in this order, each with scratch memory of its own, full of garbage; ``sizes`` of dimensions
        by name."""
        count, dims = len(self.kernel.buffers), dims_of_kernel(self.kernel)
        at = {d: sizes[name] for name, d in dims.items()}
        scratch = [replace(b, size=size_at(b.size, at)) for b in self.kernel.buffers if b.role == "scratch"]
        numbers = [ctypes.c_int64] * (len(dims) + (2 if self.chunking else 0))
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count, *numbers)(self.library.address)
        for chunk in order:
            rooms = [np.full(b.size * b.dtype.itemsize, 0x7F, np.uint8) for b in scratch]
            pointers = [a.ctypes.data for a in (*arrays, *rooms)]
            function(*pointers, *at.values(), *([chunk, chunks] if self.chunking else []))
