"""Rewriting ends: a measure falls with every application of a rule, and a second run of a pass changes nothing.

docs/inside/passes.md states the measure of each pass.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.errors import GraphcError
from graphc.ir.graph import rewrite
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import copy
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as e
from graphc.ops.pointwise import math
from graphc.ops.reduction import reduce
from graphc.passes.base import Pass
from graphc.passes.batchnorm import BatchNormFolding, _is_static
from graphc.passes.narrow_products import NarrowProducts
from graphc.passes.pipeline import PIPELINE
from tests.named_graphs import MODELS
from tests.ops.test_every_op import sample_graph
from tests.passes.check_pass import check_equal

UNARY = frozenset(f.op for f in (e.neg, e.abs, e.cast, e.logical_not))
REDUCTIONS = frozenset(f.op for f in (reduce.sum, reduce.prod, reduce.max, reduce.min))
SCALES_AND_SHIFTS = frozenset(f.op for f in (e.add, e.sub, e.mul, e.div))


def size_of_term(value: Value) -> int:
    """Polynomial interpretation of a value: a number above those of its operands, and increasing in each of them.

    A rule of ``canonicalize`` replaces a value by one with a smaller number, so the numbers of all values computed
    from it fall too.
    """
    sizes: dict[Node, int] = {}
    stack = [value.node]
    while stack:
        node = stack[-1]
        missing = [v.node for v in node.operands if v.node not in sizes]
        if missing:
            stack += missing
            continue
        stack.pop()
        sizes[node] = _size(node, [sizes[v.node] for v in node.operands])
    return sizes[value.node]


def _size(node: Node, operands: list[int]) -> int:
    """Interpretation of an op. Elementwise ops at least double, views add 1: a broadcast weighs less behind an op. The
    second factor of two weighs more than the first, and a constant less than all else: constants go last."""
    if node.op is CONSTANT:
        return 1
    if not operands:
        return 2
    if node.op in UNARY:
        return 2 * operands[0]
    if node.op is math.pow.op:
        return 6 * sum(operands) + 3  # x * x takes its place.
    if node.op.has(Trait.ELEMENTWISE):
        weighted = 2 * sum(operands) + (operands[1] if len(operands) == 2 else 0)
        return weighted + (4 if node.op is e.div.op else 3)
    if node.op in REDUCTIONS:
        return 5 * operands[0] + 20  # A cast, a sum with 0 and a reshape take its place.
    if node.op is matmul.op:
        return sum(operands) + 3 * len(node.result.shape)  # Reshapes surround a product of fewer dimensions.
    return sum(operands) + 1


def scales_and_shifts(graph: Graph) -> int:
    """Number of scales and shifts of values that are not fixed: each rule of ``fold-batch-norm`` removes one."""
    nodes = [n for n in graph.nodes() if n.op in SCALES_AND_SHIFTS]
    return sum(any(not _is_static(v) for v in node.operands) for node in nodes)


def convolutions(graph: Graph) -> int:
    """Number of convolutions: ``winograd`` emits none."""
    return sum(n.op.name == "conv" for n in graph.nodes())


def wide_products(graph: Graph) -> int:
    """Number of products with f32 factors: those of ``narrow-products`` are pairs."""
    return sum(n.op.has(Trait.CONTRACTION) and n.operands[0].dtype is float32 for n in graph.nodes())


MEASURES = {"fold-batch-norm": scales_and_shifts, "winograd": convolutions, "narrow-products": wide_products}


class Watch:
    """Checks every replacement of the driver of rewrite rules during a pass."""

    def __init__(self) -> None:
        self.step = ""
        self.emitted_by: dict[Node, str] = {}
        """The op whose decomposition emitted a node."""
        self.decompositions: set[tuple[str, str]] = set()
        """Pairs of an op and one that its decomposition emits and that is decomposed in turn."""
        self.replaced = 0

    def __call__(self, replace: Any, driver: Any, rule: rewrite.Rule, node: Node, values: tuple[Value, ...]) -> None:
        self.replaced += 1
        if self.step == "canonicalize":
            for old, new in zip(node.results, values, strict=True):
                assert new is old or size_of_term(new) < size_of_term(old), rule.title
        elif self.step == "decompose":
            parent = self.emitted_by.get(node)
            assert parent != node.op.name, f"{parent} emits itself more than once"
            if parent is not None:
                self.decompositions.add((parent, node.op.name))
            newest, created = driver.newest, driver.created(values)
            driver.newest = newest
            self.emitted_by.update(dict.fromkeys(created, node.op.name))
        measure = MEASURES.get(self.step, lambda graph: 0)
        before = measure(driver.graph)
        replace(driver, rule, node, values)
        assert self.step not in MEASURES or measure(driver.graph) < before, rule.title

    def run(self, step: Pass, graph: Graph) -> Graph:
        self.step, self.emitted_by = step.name, {}
        return step.run(graph).graph


@pytest.fixture
def watch(monkeypatch):
    watch, replace = Watch(), rewrite._Driver.replace
    monkeypatch.setattr(rewrite._Driver, "replace", lambda *arguments: watch(replace, *arguments))
    return watch


def check_ends(graph: Graph, watch: Watch, steps: tuple[Pass, ...] = PIPELINE) -> None:
    """Run the passes one after the other, each twice, with every replacement checked."""
    for step in steps:
        values = [*graph.inputs, *(v for node in graph.nodes() for v in node.results)]
        splits = step.name == "split-complex" and any(v.dtype.is_complex for v in values)
        graph = watch.run(step, graph)
        text = print_graph(graph)
        if not splits:  # A second run splits the conversions that the first one has left.
            assert print_graph(watch.run(step, copy(graph))) == text, step.name


def test_measures_fall_on_samples_of_all_ops(watch):
    for op in REGISTRY.values():
        for sample in op.samples() if op.samples else ():
            check_ends(sample_graph(op, sample.operands, sample.attrs), watch)
    assert watch.replaced > 300 and watch.decompositions
    emitting = nx.DiGraph(list(watch.decompositions))
    assert nx.is_directed_acyclic_graph(emitting), list(nx.simple_cycles(emitting))


NAMED = sorted((Path(__file__).parent / "named").glob("*.gc"))


@pytest.mark.parametrize("path", NAMED, ids=lambda path: path.stem)
def test_measures_fall_on_models(path, watch):
    check_ends(parse_graph(path.read_text()), watch)


@pytest.mark.parametrize("name", MODELS)
def test_measures_fall_on_models_with_named_dimensions(name, watch):
    check_ends(MODELS[name](), watch)


def test_the_measure_of_narrow_products_falls(watch):
    graph = Graph("products")
    x, w = (graph.add_input(TensorType(float32, (64, 64)), name) for name in "xw")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([matmul(matmul(x, w), matmul(w, x))])
    check_ends(graph, watch, (NarrowProducts(),))
    assert watch.replaced == 3


# ---- random graphs


BINARY = [e.add, e.sub, e.mul, e.div, e.maximum, math.pow]
UNARY_FUNCTIONS = [e.neg, e.abs, math.exp, lambda x: math.pow(x, 2.0), lambda x: e.cast(x, dtype=float32)]
TESTS = [e.lt, e.eq, lambda x, y: e.logical_not(e.ge(x, y)), lambda x, y: e.logical_not(e.eq(x, y))]
VIEWS = [
    lambda x: shape.broadcast_to(x, shape=np.broadcast_shapes(x.shape, (3, 4))),
    lambda x: shape.reshape(x, shape=(1, *x.shape)),
    lambda x: shape.flip(x, axes=(0,)),
    lambda x: shape.transpose(x, permutation=(1, 0)),
    lambda x: shape.slice(x, starts=(1, 0), stops=(3, 4), steps=(1, 1)),
    lambda x: shape.concat(x, x, axis=0),
    lambda x: reduce.sum(x, axes=(0,), keepdims=False),
    lambda x: reduce.max(x, axes=(), keepdims=False),
]


def random_graph(seed: int, nodes: int = 60) -> Graph:
    """Views, broadcasts, constants, elementwise ops, reductions and products of a few shapes, in random order."""
    random, graph = np.random.default_rng(seed), Graph("random")
    numbers: list[Any] = [graph.add_input(TensorType(float32, s), f"x{i}") for i, s in enumerate([(3, 4), (4,), ()])]

    def one_of(options: Any) -> Any:
        return options[random.integers(len(options))]

    forms = [
        lambda x, y: constant(graph, one_of([0.0, -0.0, 1.0, -1.0, 2.0, 0.3]), float32),
        lambda x, y: one_of(BINARY)(x, y),
        lambda x, y: one_of(UNARY_FUNCTIONS)(x),
        lambda x, y: one_of(VIEWS)(x),
        lambda x, y: e.where(one_of(TESTS)(x, y), x, y),
        lambda x, y: matmul(x, shape.transpose(y, permutation=(1, 0))),
        lambda x, y: matmul(shape.reshape(x, shape=(1, *x.shape)), y, transpose_b=True),
    ]
    with use(GraphDispatcher(graph)):
        for _ in range(nodes):
            x, y = one_of(numbers), one_of(numbers)
            with suppress(GraphcError, ValueError):  # Many pairs of shapes do not fit.
                numbers.append(one_of(forms)(x, y))
    graph.set_outputs(numbers[-6:])
    return graph


@pytest.mark.parametrize("seed", range(60))
def test_measures_fall_on_random_graphs(seed, watch):
    check_ends(random_graph(seed), watch)


def random_normalization(seed: int) -> Graph:
    """Scales and shifts of convolutions, some of them of constants, so that their results are vectors too."""
    random, graph = np.random.default_rng(seed), Graph("normalization")
    x = graph.add_input(TensorType(float32, (1, 2, 3, 3)), "x")
    plain = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    with use(GraphDispatcher(graph)):

        def leaf(*extents: int) -> Value:
            return constant(graph, random.uniform(0.5, 2, extents), float32)

        values = [conv(i, leaf(2, 2, 3, 3), **plain) for i in (x, leaf(1, 2, 3, 3), leaf(1, 2, 3, 3))]
        values += [leaf(1, 2, 1, 1), leaf(), conv(x, leaf(2, 2, 1, 1), **plain)]
        for _ in range(10):
            a, b = (values[random.integers(len(values))] for _ in range(2))
            values.append([e.add, e.sub, e.mul, e.div][random.choice(4, p=[0.35, 0.35, 0.2, 0.1])](a, b))
    graph.set_outputs(values[-2:])
    return graph


@pytest.mark.parametrize("seed", range(60))
def test_batch_norm_folding_ends_where_products_are_vectors(seed, watch):
    graph = random_normalization(seed)
    check_ends(copy(graph), watch, (BatchNormFolding(), *PIPELINE))
    check_equal(graph, BatchNormFolding().run(copy(graph)).graph, rtol=1e-3, atol=1e-4)
