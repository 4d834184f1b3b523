"""Products of bytes: exact on every target, extreme values included, whatever the number of summed elements."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import int8, uint8
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.contraction.byte_product import byte_conv, byte_matmul
from graphc.ops.dispatch import GraphDispatcher, use
from tests.native import TARGETS, decomposed, run_native, target_or_skip

RANDOM = np.random.default_rng(0)


def codes(dtype: str, *shape: int) -> np.ndarray:
    """Return random codes whose first row is all extreme."""
    info = np.iinfo(dtype)
    result = RANDOM.integers(info.min, info.max + 1, shape).astype(dtype)
    result[0] = info.max if dtype == "uint8" else info.min
    return result


def product_graph(a: np.ndarray, b: np.ndarray, **geometry: tuple[int, ...]) -> Graph:
    graph = Graph("product")
    operands = [graph.add_input(TensorType(t, x.shape), n) for t, x, n in ((uint8, a, "a"), (int8, b, "b"))]
    with use(GraphDispatcher(graph)):
        graph.set_outputs([byte_conv(*operands, **geometry) if geometry else byte_matmul(*operands)])
    return graph


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [(1, 4, 16), (1, 37, 40), (3, 600, 33), (9, 64, 5)])
def test_sums_are_exact_on_all_targets(sizes: tuple[int, int, int], target: str):
    """Pairs of products of extreme bytes exceed 16 bits, in which some instructions saturate."""
    rows, depth, columns = sizes
    a, b = codes("uint8", rows, depth), codes("int8", columns, depth).T.copy()
    graph = decomposed(product_graph(a, b))
    assert all(n.op.name != "byte_matmul" for n in graph.nodes())
    (result,) = run_native(graph, [a, b], target_or_skip(target))[0]
    assert result.dtype == np.int32 and (result == a.astype(np.int64) @ b.astype(np.int64)).all()


@pytest.mark.parametrize("target", TARGETS)
def test_convolutions_are_exact(target: str):
    x, w = codes("uint8", 2, 6, 9, 11), codes("int8", 5, 6, 3, 2)
    graph = decomposed(product_graph(x, w, stride=(2, 1), dilation=(1, 2)))
    (result,) = run_native(graph, [x, w], target_or_skip(target))[0]
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, :, :, ::2].astype(np.int64)
    assert (result == np.einsum("ncijyx,ocyx->noij", windows, w.astype(np.int64))).all()
