"""Every op with sizes that are known at run time: what it gives, bound, is what it gives for these sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills the registry)
from graphc.base.assumptions import Assumptions, assuming
from graphc.base.dtypes import bfloat16x2, bits_of, numbers
from graphc.base.errors import GraphcError
from graphc.base.named_dims import Dim
from graphc.compiled.op_check import sample_graph
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import bind, evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.text import print_kernel
from graphc.ir.kernel.verify import verify_kernel
from graphc.ir.op import REGISTRY, OpDef, Trait
from graphc.ops.autodiff import vjp_graph
from graphc.ops.batching import batched_graph
from tests.ops.named import Naming, every_naming
from tests.ops.one_kernel import decomposed, lower_op

OPS = [op for op in REGISTRY.values() if every_naming(op)]
BATCH, SAMPLES = 3, 6
UNPROVEN = {
    ("conv", (("x", 0, 0), ("x", 1, 3))): "one dimension as the batch and as the window",
    ("winograd_weight", (("x", 0, 0), ("x", 0, 2), ("x", 0, 3))): "the window, which is written out",
    ("winograd_weight", (("x", 0, 2), ("x", 0, 3))): "the window, which is written out",
    ("winograd_output", (("shape", 2),)): "the image without its tiles",
    ("winograd_output", (("shape", 3),)): "the image without its tiles",
    **{("merge_runs", (("x", 0, d),)): "the line, of which runs are counted" for d in (0, 1)},
    ("merge_runs", (("width",),)): "elements of a run",
}
"""Namings that no model has, of which bounds do not prove that they are right."""


FIXED = {
    **dict.fromkeys(("cholesky", "solve", "solve_triangular", "lu", "qr", "eigh"), 2),
    **dict.fromkeys(("dft", "rdft", "irdft"), 1),
}
"""Ops of matrices and lines whose sizes are known in traces, and how many of the last dimensions these are."""


def namings_of(op: OpDef) -> list[Naming]:
    """The namings of an op that are tried."""
    found = [n for n in every_naming(op) if (op.name, tuple(n.places)) not in UNPROVEN]
    return [n for n in found if not any(_is_fixed(op, n, place) for place in n.places)]


def _is_fixed(op: OpDef, naming: Naming, place: tuple[Any, ...]) -> bool:
    if op.name not in FIXED or place[0] != "x":
        return op.name in FIXED
    if "axis" in naming.sample.attrs:
        return place[2] == naming.sample.attrs["axis"]
    return place[2] >= naming.sample.operands[place[1]].ndim - FIXED[op.name]


def same(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    """Equal types, and numbers up to the order of sums."""
    assert len(got) == len(expected), what
    for a, b in zip(got, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        a, b = (bits_of(x) if x.dtype == bfloat16x2.numpy else numbers(x) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5, err_msg=what)


def values_of(graph: Graph, naming: Naming, size: int, batched: bool = False) -> tuple[np.ndarray, ...] | None:
    """The outputs for arrays of that size; None where the op refuses their elements."""
    arrays = naming.arrays(size)
    arrays = [np.stack([a] * BATCH) for a in arrays] if batched else arrays
    for value in graph.inputs[len(arrays) :]:
        count = int(np.prod(value.shape))
        arrays.append(np.linspace(-1, 1, count).reshape(value.shape).astype(value.dtype.numpy))
    try:
        return evaluate(graph, arrays)
    except GraphcError:
        return None


def compare(naming: Naming, change: Callable[[Graph], Graph | None], batched: bool = False) -> None:
    """A graph made from the application with the dimension, bound, against the one made from that with numbers."""
    found = change(naming.graph(naming.dimension))
    if found is None:
        return
    verify_graph(found)
    for size in naming.sizes:
        expected = change(naming.graph(size))
        if expected is None:
            continue  # there is something simpler for this size
        bound = bind(found, {"n": size} if found.dims else {})
        assert [v.type for v in bound.outputs] == [v.type for v in expected.outputs], f"{naming} at {size}"
        wanted = values_of(expected, naming, size, batched)
        if wanted is not None:
            same(values_of(bound, naming, size, batched) or (), wanted, f"{naming} at {size}")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_types_follow_without_a_question(op: OpDef):
    for naming in namings_of(op):
        with assuming(Assumptions()) as assumptions:
            graph = naming.graph(naming.dimension)
        assert not assumptions.found, f"{naming}: {[str(a) for a in assumptions.found.values()]}"
        verify_graph(graph)
        assert parse_graph(print_graph(graph), collect_data(graph)) == graph
        for size in naming.sizes:
            assert bind(graph, {"n": size} if graph.dims else {}) == naming.graph(size)


@pytest.mark.parametrize("op", [op for op in OPS if op.decompose is not None], ids=lambda op: op.name)
def test_decompositions_are_those_of_every_size(op: OpDef):
    for naming in namings_of(op):
        compare(naming, lambda graph: decomposed(graph.outputs[0].node))


@pytest.mark.parametrize("op", [op for op in OPS if op.batch or op.has(Trait.ELEMENTWISE)], ids=lambda op: op.name)
def test_batches_are_those_of_every_size(op: OpDef):
    takes_batches = not op.has(Trait.STATE_WRITE) and not op.has(Trait.RANDOM)
    for naming in namings_of(op) if takes_batches else ():
        compare(naming, lambda graph: batched_graph(graph, BATCH, [True] * len(graph.inputs)), True)


@pytest.mark.parametrize(
    "op",
    [op for op in REGISTRY.values() if (op.batch or op.has(Trait.ELEMENTWISE)) and not op.has(Trait.STATE_WRITE)],
    ids=lambda op: op.name,
)
def test_a_batch_may_have_any_size(op: OpDef):
    count = Dim("v", 1, 9, hint=4)
    for sample in (op.samples() if op.samples else ())[:SAMPLES]:
        graph = sample_graph(op, sample.operands, sample.attrs)
        for flags in ([True] * len(graph.inputs), [i == 0 for i in range(len(graph.inputs))]):
            if not any(flags) or op.has(Trait.RANDOM) or op.has(Trait.WHILE):
                continue
            with assuming(Assumptions()) as assumptions:
                batched_graph(graph, count, flags)
            assert not assumptions.found
            arrays = [np.stack([a] * BATCH) if f else a for a, f in zip(sample.operands, flags, strict=True)]
            fixed = bind(batched_graph(graph, count, flags), {"v": BATCH})
            assert [v.type for v in fixed.outputs] == [v.type for v in batched_graph(graph, BATCH, flags).outputs]
            same(evaluate(fixed, arrays), evaluate(batched_graph(graph, BATCH, flags), arrays), op.name)


def _differentiated(graph: Graph) -> Graph | None:
    wrt = [v for v in graph.inputs if v.dtype.kind == "f"]
    return vjp_graph(graph, wrt) if wrt and any(v.dtype.kind == "f" for v in graph.outputs) else None


@pytest.mark.parametrize("op", [op for op in OPS if op.vjp is not None], ids=lambda op: op.name)
def test_gradients_are_those_of_every_size_without_a_question(op: OpDef):
    for naming in namings_of(op):
        compare(naming, _differentiated)
        graph = naming.graph(naming.dimension)
        with assuming(Assumptions()) as assumptions:
            _differentiated(graph)
        assert not assumptions.found, f"{naming}: {[str(a) for a in assumptions.found.values()]}"


@pytest.mark.parametrize("op", [op for op in OPS if op.lower or op.lower_nest], ids=lambda op: op.name)
def test_kernels_are_right_at_every_size(op: OpDef):
    for naming in namings_of(op):
        node = naming.graph(naming.dimension).outputs[0].node
        if decomposed(node) is not None or 0 in node.result.shape:
            continue
        if any(v.dtype.is_complex for v in node.operands):
            continue  # kernels have real numbers
        kernel = lower_op(op, tuple(v.type for v in node.operands), node.attrs)
        verify_kernel(kernel)
        assert parse_kernel(print_kernel(kernel)) == kernel
        for size in naming.sizes:
            wanted = values_of(naming.graph(size), naming, size)
            if wanted is None:
                continue
            bound = bind_kernel(kernel, {"n": size} if dims_of_kernel(kernel) else {})
            verify_kernel(bound)
            result = np.zeros(wanted[0].shape, wanted[0].dtype)
            arrays = {f"in{i}": np.ascontiguousarray(a) for i, a in enumerate(naming.arrays(size))}
            run_kernel(bound, arrays | {"out": result})
            same([result], wanted, f"{naming} at {size}")
