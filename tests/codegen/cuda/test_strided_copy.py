"""The kernels that make strided arrays dense."""

from __future__ import annotations

from graphc.codegen.cuda.nvrtc import compile_cubin
from graphc.codegen.cuda.strided_copy import TYPES, strided_copies, symbol


def test_there_is_one_for_each_width_of_elements():
    found = compile_cubin(strided_copies()).kernels
    assert set(found) == {symbol(itemsize) for itemsize in TYPES}
    assert all(kernel.spilled == 0 for kernel in found.values())
