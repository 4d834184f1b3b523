"""Long views: which views of views are stored, and that few of them are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.costs import DEFAULT
from graphc.fusion.vertical import fuse
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import walk
from graphc.ir.kernel.verify import verify_program
from graphc.lowering.program import lower_graph
from graphc.passes.long_views import divides_index, is_written_by_parts, long_views
from graphc.passes.operand_access import domain_axes, operand_reads
from graphc.passes.pipeline import optimize

COSTS = DEFAULT.fusion


def repeated(step, times: int) -> Graph:
    def function(x):
        for _ in range(times):
            x = step(x)
        return x

    return optimize(copy(gc.trace(function, gc.rand(8, 4))))


def test_views_that_are_looked_through_easily_are_not_stored():
    assert not long_views(repeated(lambda x: x.t().reshape(8, 4), COSTS.view_divisions))
    assert not long_views(repeated(lambda x: gc.cat([x, x, x]), 3))


def test_each_of_many_divisions_doubles_an_index():
    stored = long_views(repeated(lambda x: x.t().reshape(8, 4), 30))
    assert 30 // (COSTS.view_divisions + 2) <= len(stored) <= 30 // COSTS.view_divisions
    assert all(n.op.name in ("reshape", "transpose") for n in stored)


def test_each_of_many_joins_doubles_the_reads_of_an_element():
    stored = long_views(repeated(lambda x: gc.cat([x[1:], x[:1]]), 40))
    assert 2 <= len(stored) <= 2 * 40 // (COSTS.view_reads.bit_length() - 2)


def test_a_long_way_through_views_is_cut():
    assert len(long_views(repeated(lambda x: gc.flip(x[:, 1:], (0,)) if x.shape[1] > 1 else x, 3))) == 0
    found = long_views(repeated(lambda x: gc.nn.functional.pad(x, (0, 0, 1, 0))[:-1], 3 * COSTS.view_depth))
    assert 4 <= len(found) <= 7


@pytest.mark.parametrize("step", [lambda x: (x * 1.5).t().reshape(8, 4), lambda x: x.t().reshape(8, 4)])
def test_kernels_hold_few_divisions_after_each_other(step):
    plan = fuse(repeated(step, 40))
    assert len(plan.groups) >= 40 // (2 * COSTS.view_divisions)
    assert max(len(g.nodes) for g in plan.groups) <= 2 * COSTS.view_divisions + 2


def test_what_divides():
    graph = repeated(lambda x: x.t().reshape(8, 4), 1)
    turned, folded = graph.nodes()
    assert not divides_index(operand_reads(turned, domain_axes(turned.result.shape))[0].index)
    assert divides_index(operand_reads(folded, domain_axes(folded.result.shape))[0].index)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_what_is_joined_of_many_parts_is_written_part_by_part(axis: int):
    extents = [i % 3 for i in range(COSTS.parts + 1)]

    def function(x):
        parts = [x * 3 + 1 if e == 2 else x.narrow(axis, i % 2, e) for i, e in enumerate(extents)]
        return gc.cat(parts, axis) * 2

    x = gc.rand(2, 2, 2)
    graph = optimize(copy(gc.trace(function, x)))
    joined = [n for n in graph.nodes() if is_written_by_parts(n)]
    assert len(joined) == 1 and long_views(graph) == set(joined)
    program = lower_graph(graph)
    writers = program.writers(joined[0].result.name)
    assert len(writers) == sum(map(bool, extents)) and len(program.kernels) <= 6
    verify_program(program)
    np.testing.assert_array_equal(run_program(program, [x.numpy()])[0], function(x).numpy())
    np.testing.assert_array_equal(gc.compile(function)(x).numpy(), function(x).numpy())


def test_kernels_do_not_grow_with_the_parts_of_what_they_read():
    def statements(count: int) -> int:
        graph = optimize(copy(gc.trace(lambda *a: gc.tanh(gc.stack(a)).sum(), *(gc.rand(4) for _ in range(count)))))
        return sum(1 for k in lower_graph(graph).kernels for _ in walk(k.body))

    assert statements(COSTS.parts + 1) == statements(8 * COSTS.parts) < statements(COSTS.parts)


def test_joined_parts_become_a_state():
    """Reads of the old state precede its overwriting."""

    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", gc.arange(40.0))

        def forward(self, x):
            self.kept.copy_(gc.cat([self.kept[(7 * i) % 40 : (7 * i) % 40 + 1] + x for i in range(40)]))
            return self.kept.sum()

    eager, compiled = Shifted(), Shifted()
    call = gc.compile(compiled)
    for _ in range(2):
        assert float(call(gc.ones(1))) == float(eager(gc.ones(1)))
        np.testing.assert_array_equal(compiled.kept.numpy(), eager.kept.numpy())


def test_how_far_is_looked_through_views_is_given():
    graph = repeated(lambda x: x.t().reshape(8, 4), COSTS.view_divisions)
    assert long_views(graph, replace(COSTS, view_divisions=2)) and not long_views(graph, COSTS)
    joined = repeated(lambda x: gc.cat([x, x, x]), 1)
    assert long_views(joined, replace(COSTS, parts=2)) == set(joined.nodes())
