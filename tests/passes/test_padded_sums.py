"""Sums of padded parts: what is joined, that it gives the same bits, and that gradients of slices are such sums."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.machine.costs import DEFAULT
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator, copy
from graphc.ir.graph.verify import verify_graph
from graphc.ir.kernel.statements import walk
from graphc.lowering.program import lower_graph
from graphc.passes.padded_sums import JoinPaddedParts
from graphc.passes.pipeline import optimize
from tests.passes.graph_text import graph_of

PARTS = DEFAULT.fusion.parts
MANY = PARTS + 4


def padded(places: list[int], size: int, width: int = 1, first: str = "") -> Graph:
    """The sum of parts of ``width`` rows put at places of a [size, 2] tensor, all parts being slices of an input."""
    lines = [f"graph @g(%x: f32[{len(places) * width},2], %y: f32[{size},2]) -> (f32[{size},2]) {{"]
    total = first
    for i, place in enumerate(places):
        stop = (i + 1) * width
        lines += [
            f"%s{i} = slice(%x) {{starts=[{i * width},0], stops=[{stop},2], steps=[1,1]}} : f32[{width},2]",
            f"%p{i} = pad(%s{i}) {{low=[{place},0], high=[{size - width - place},0], interior=[0,0]}} : f32[{size},2]",
        ]
        if total:
            lines.append(f"%a{i} = add({total}, %p{i}) : f32[{size},2]")
        total = f"%a{i}" if total else f"%p{i}"
    lines.append(f"return {total}")
    return graph_of("\n".join(lines) + "\n}")


def joined(graph: Graph, count: int = 1) -> list[int]:
    """Runs the pass and compares the bits; gives the numbers of operands of concatenations."""
    source = copy(graph)
    result = JoinPaddedParts().run(graph)
    verify_graph(result.graph)
    assert result.changed == count
    random = np.random.default_rng(0)
    arguments = [random.standard_normal(v.shape).astype(np.float32) for v in source.inputs]
    arguments[0][::2] = -0.0
    arguments[1][:3] = -0.0
    expected, output = (Evaluator().run(g, arguments)[0] for g in (source, result.graph))
    np.testing.assert_array_equal(output.view(np.uint32), expected.view(np.uint32))
    assert JoinPaddedParts().run(copy(result.graph)).changed == 0
    return [len(n.operands) for n in result.graph.nodes() if n.op.name == "concat"]


def test_parts_are_joined_in_the_order_of_their_places():
    assert joined(padded(list(range(MANY))[::-1], MANY)) == [MANY]


def test_zeros_lie_between_parts_and_around_them():
    assert joined(padded([3 * i + 1 for i in range(MANY)], 3 * MANY + 2, 2)) == [2 * MANY + 1]


def test_parts_without_elements_leave_zeros():
    assert joined(padded([i % 5 for i in range(MANY)], 8, width=0)) == [1]


def test_sums_of_padded_empty_tensors_are_compiled():
    def function(x: Any) -> Any:
        return sum(gc.nn.functional.pad(x, (i % 5, 5 - i % 5)) for i in range(MANY))

    np.testing.assert_array_equal(gc.compile(function)(gc.zeros(0)).numpy(), np.zeros(5))


def test_what_was_added_before_stays():
    assert joined(padded(list(range(MANY)), MANY, first="%y")) == [MANY]


def test_parts_that_overlap_are_joined_apart():
    assert joined(padded([*range(MANY), *range(MANY)], MANY)) == [MANY, MANY]


@pytest.mark.parametrize("places", [list(range(PARTS)), [0] * MANY], ids=["few", "all the same"])
def test_what_is_left_as_it_is(places: list[int]):
    assert joined(padded(places, MANY), 0) == []


def test_terms_that_are_made_larger_by_the_sum_are_left():
    rows = "\n".join(
        f"""%p{i} = pad(%s) {{low=[{i},0], high=[{MANY - i - 1},0], interior=[0,0]}} : f32[{MANY},1]
        %a{i} = add(%{f"a{i - 1}" if i else "y"}, %p{i}) : f32[{MANY},2]"""
        for i in range(MANY)
    )
    text = f"""graph @g(%x: f32[1,2], %y: f32[{MANY},2]) -> (f32[{MANY},2]) {{
        %s = slice(%x) {{starts=[0,0], stops=[1,1], steps=[1,1]}} : f32[1,1]
        {rows}
        return %a{MANY - 1}
    }}"""
    assert joined(graph_of(textwrap.dedent(text))) == [MANY]


def gradients(length: int) -> Graph:
    def function(x: Any, y: Any) -> Any:
        total = y
        for i in range(length):
            total = gc.tanh(total * x[:, i])
        return gc.autograd.grad(total.sum(), [x, y])

    x, y = gc.rand(3, length, requires_grad=True), gc.rand(3, requires_grad=True)
    return optimize(gc.trace(function, x, y))


def test_gradients_of_slices_are_written_once():
    sizes = {}
    for length in (2 * PARTS, 8 * PARTS):
        graph = gradients(length)
        assert not any(n.op.name == "pad" for n in graph.nodes())
        program = lower_graph(graph)
        sizes[length] = sum(1 for k in program.kernels for _ in walk(k.body)) / length
    assert sizes[8 * PARTS] < 1.2 * sizes[2 * PARTS]


def test_gradients_of_slices_in_steps_are_joined():
    """A step backwards writes the gradients of all elements of a vector once, not once for each element."""
    sizes = {}
    for length in (2 * PARTS, 4 * PARTS):

        def loss(w: Any) -> Any:
            step = lambda state, _: ([s * w[i] for i, s in enumerate(state)], None)  # noqa: E731
            return sum(gc.scan(step, [w[0]] * len(w), length=9)[0])

        graph = optimize(gc.trace(gc.grad(loss), gc.rand(length)))
        steps = [n.attrs["body"] for n in graph.nodes() if n.op.name == "scan"]
        assert steps and not any(n.op.name == "pad" for step in steps for n in step.nodes())
        sizes[length] = sum(1 for k in lower_graph(graph).kernels for _ in walk(k.body)) / length
    assert sizes[4 * PARTS] < 1.2 * sizes[2 * PARTS]


def test_compiled_gradients_of_slices_are_those_of_eager_mode():
    w = gc.rand(MANY, 3, requires_grad=True)

    def function(x: Any) -> Any:
        for i in range(MANY):
            x = gc.tanh(x * w[i] + 0.1)
        return x.sum()

    results = []
    for call in (function, gc.compile(function)):
        w.grad = None
        call(gc.ones(3)).backward()
        assert w.grad is not None
        results.append(w.grad.numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-7)


def test_parts_of_sizes_that_are_known_at_run_time_stay():
    lines = ["dim n = 1..8 hint 4", "graph @g(%x: f32[n], %y: f32[64]) -> (f32[64]) {"]
    for i in range(MANY):
        lines.append(f"%p{i} = pad(%x) {{low=[{i}], high=[{64 - i} - n], interior=[0]}} : f32[64]")
        lines.append(f"%a{i} = add({f'%a{i - 1}' if i else '%y'}, %p{i}) : f32[64]")
    graph = graph_of("\n".join([*lines, f"return %a{MANY - 1}", "}"]))
    assert JoinPaddedParts().run(copy(graph)).changed == 0
