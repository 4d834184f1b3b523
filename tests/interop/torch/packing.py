"""Skips tests of packed weights where the machine's schedule reads a matrix where it lies, as with SSE2."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from graphc.interop.aten.graph import AtenGraph, Ref, Step

PRODUCT = AtenGraph(
    "main", ["x", "w", "b"], [Step("y", "aten.addmm.default", (Ref("b"), Ref("x"), Ref("w")))], [Ref("y")]
)


def packed_or_skip(size: int) -> None:
    """Skip the test where the weight of a product of ``size`` x ``size`` is not packed on this machine."""
    if not _is_packed(size):
        pytest.skip("this machine reads such a weight where it lies, not packed")


@functools.cache
def _is_packed(size: int) -> bool:
    torch: Any = pytest.importorskip("torch")
    program: Any = pytest.importorskip("graphc.interop.torch.program")
    x, w, b = torch.zeros(2, size), torch.nn.Parameter(torch.zeros(size, size)), torch.zeros(size)
    with torch.no_grad():
        run = program.TorchProgram(PRODUCT, [x, w, b], [torch.addmm(b, x, w)], {1, 2}, "live")
        run([x, w, b])
    return bool(prepared_arrays(run))


def prepared_arrays(program: Any) -> list[Any]:
    """The arrays that a program has prepared from weights and keeps."""
    return [packed.array for bound in program._weights._bound.values() for packed in bound.prepared]
