"""Every op with sizes that are known at run time: what it gives, bound, is what it gives for these sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills the registry)
from graphc.base.dtypes import bfloat16x2, bits_of, numbers
from graphc.base.errors import GraphcError
from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import UndecidedSize
from graphc.checks.op_check import sample_graph
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
from tests.ops.named import Naming, Place, every_naming
from tests.ops.one_kernel import decomposed, is_complex, lower_op, split

OPS = [op for op in REGISTRY.values() if every_naming(op)]
BATCH, SAMPLES = 3, 6
UNPROVEN = {("lu", (("x", 0, 2),)): "offsets of columns, which are products of two sizes"}
"""Namings of which bounds do not prove that indices of kernels are right."""


def _of_matrices(naming: Naming, place: Place) -> bool:
    return place[2] >= naming.sample.operands[place[1]].ndim - 2


def _of_a_line(naming: Naming, place: Place) -> bool:
    return place[0] != "x" or place[2] == naming.sample.attrs["axis"]


WRITTEN_OUT: dict[str, Callable[[Naming, Place], bool]] = {
    **dict.fromkeys(("cholesky", "solve", "solve_triangular", "lu", "qr", "eigh"), _of_matrices),
    "winograd_weight": _of_matrices,
    **dict.fromkeys(("dft", "rdft", "merge_runs"), _of_a_line),
}
"""Ops that are written out for numbers, and of which sizes: of these they may ask, and programs are made for each size.
Their types, but for those of qr, and their batches are those of every size."""


def may_ask(naming: Naming) -> bool:
    """Whether a naming names a size for which its op is written out."""
    of = WRITTEN_OUT.get(naming.op.name)
    return of is not None and any(of(naming, place) for place in naming.places)


@contextmanager
def decided(naming: Naming) -> Iterator[None]:
    """Inside, nothing depends on the size, where it must not; where it may, the rest is left out when it does."""
    try:
        yield
    except UndecidedSize:
        if not may_ask(naming):
            raise


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
    result = change(naming.graph(naming.dimension))
    if result is None:
        return
    verify_graph(result)
    for size in naming.sizes:
        expected = change(naming.graph(size))
        if expected is None:
            continue  # there is something simpler for this size
        bound = bind(result, {"n": size} if result.dims else {})
        assert [v.type for v in bound.outputs] == [v.type for v in expected.outputs], f"{naming} at {size}"
        expected_result = values_of(expected, naming, size, batched)
        if expected_result is not None:
            same(values_of(bound, naming, size, batched) or (), expected_result, f"{naming} at {size}")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_types_follow_without_a_question(op: OpDef):
    for naming in every_naming(op):
        with assuming(Assumptions()) as assumptions:
            graph = naming.graph(naming.dimension)
        if op.name == "qr" and may_ask(naming) and assumptions.found:
            continue  # how many columns Q has is the smaller one of two sizes
        assert not assumptions.found, f"{naming}: {[str(a) for a in assumptions.found.values()]}"
        verify_graph(graph)
        assert parse_graph(print_graph(graph), collect_data(graph)) == graph
        for size in naming.sizes:
            assert bind(graph, {"n": size} if graph.dims else {}) == naming.graph(size)


@pytest.mark.parametrize("op", [op for op in OPS if op.decompose is not None], ids=lambda op: op.name)
def test_decompositions_are_those_of_every_size(op: OpDef):
    for naming in every_naming(op):
        with decided(naming):
            compare(naming, lambda graph: decomposed(graph.outputs[0].node))


@pytest.mark.parametrize("op", [op for op in OPS if op.batch or op.has(Trait.ELEMENTWISE)], ids=lambda op: op.name)
def test_batches_are_those_of_every_size(op: OpDef):
    takes_batches = not op.has(Trait.STATE_WRITE) and not op.has(Trait.RANDOM)
    for naming in every_naming(op) if takes_batches else ():
        with decided(naming) if op.name == "qr" else nullcontext():
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
    wrt = [v for v in graph.inputs if v.dtype.kind in "fc"]
    return vjp_graph(graph, wrt) if wrt and any(v.dtype.kind in "fc" for v in graph.outputs) else None


@pytest.mark.sampled(50)
@pytest.mark.parametrize("op", [op for op in OPS if op.vjp is not None], ids=lambda op: op.name)
def test_gradients_are_those_of_every_size_without_a_question(op: OpDef):
    for naming in every_naming(op):
        with decided(naming):
            compare(naming, _differentiated)
            graph = naming.graph(naming.dimension)
            with assuming(Assumptions()) as assumptions:
                _differentiated(graph)
            assert not assumptions.found, f"{naming}: {[str(a) for a in assumptions.found.values()]}"


@pytest.mark.sampled(50)
@pytest.mark.parametrize("op", [op for op in OPS if op.lower or op.lower_nest], ids=lambda op: op.name)
def test_kernels_are_right_at_every_size(op: OpDef):
    for naming in every_naming(op):
        if (op.name, tuple(naming.places)) not in UNPROVEN:
            with decided(naming):
                _check_kernel(naming)


def _check_kernel(naming: Naming) -> None:
    node = naming.graph(naming.dimension).outputs[0].node
    if decomposed(node) is not None or 0 in node.result.shape:
        return
    if is_complex(node) or not (node.op.lower or node.op.lower_nest):
        return  # kernels have real numbers
    kernel = lower_op(naming.op, tuple(v.type for v in node.operands), node.attrs)
    verify_kernel(kernel)
    assert parse_kernel(print_kernel(kernel)) == kernel
    for size in naming.sizes:
        expected = values_of(naming.graph(size), naming, size)
        arrays = naming.arrays(size)
        if expected is None or (naming.op.name == "qr" and _lacks_rank(arrays[0])):
            continue
        bound = bind_kernel(kernel, {"n": size} if dims_of_kernel(kernel) else {})
        verify_kernel(bound)
        result = np.zeros(expected[0].shape, expected[0].dtype)
        run_kernel(bound, {f"in{i}": np.ascontiguousarray(a) for i, a in enumerate(arrays)} | {"out": result})
        same([result], expected, f"{naming} at {size}")


def _lacks_rank(matrices: np.ndarray) -> bool:
    """Whether entries that are repeated make matrices of which factors are a choice."""
    return bool(np.any(np.linalg.matrix_rank(matrices) < min(matrices.shape[-2:])))


@pytest.mark.parametrize("op", [op for op in OPS if op.complex is not None], ids=lambda op: op.name)
def test_real_and_imaginary_parts_are_those_of_every_size(op: OpDef):
    for naming in every_naming(op):
        with decided(naming):
            compare(naming, _parts)


def _parts(graph: Graph) -> Graph | None:
    node = graph.outputs[0].node
    return split(node) if is_complex(node) else None


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_what_is_written_out_for_numbers_does_ask(name: str):
    assert any(_asks(naming) for naming in every_naming(REGISTRY[name]) if may_ask(naming))


def _asks(naming: Naming) -> bool:
    """Whether the gradient, the kernel or the parts of an op depend on the size."""
    try:
        graph = naming.graph(naming.dimension)
        if naming.op.vjp is not None:
            _differentiated(graph)
        _parts(graph)
        _check_kernel(naming)
    except UndecidedSize:
        return True
    return False
