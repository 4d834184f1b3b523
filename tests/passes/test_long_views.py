"""Long views: which views of views are stored, and that few of them are."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc.ir.graph import Graph
from graphc.ir.interpret import copy
from graphc.passes.access import domain_axes, operand_reads
from graphc.passes.fuse import fuse
from graphc.passes.long_views import DIVISIONS, VIEWS, WAYS, divides_index, long_views
from graphc.passes.pipeline import optimize


def repeated(step, times: int) -> Graph:
    def function(x):
        for _ in range(times):
            x = step(x)
        return x

    return optimize(copy(gc.trace(function, gc.rand(8, 4))))


def test_views_that_are_looked_through_easily_are_not_stored():
    assert not long_views(repeated(lambda x: x.t().reshape(8, 4), DIVISIONS))
    assert not long_views(repeated(lambda x: gc.cat([x, x, x]), 4))


def test_each_of_many_divisions_doubles_an_index():
    stored = long_views(repeated(lambda x: x.t().reshape(8, 4), 30))
    assert 30 // (DIVISIONS + 2) <= len(stored) <= 30 // DIVISIONS
    assert all(n.op.name in ("reshape", "transpose") for n in stored)


def test_each_of_many_joins_doubles_the_reads_of_an_element():
    stored = long_views(repeated(lambda x: gc.cat([x[1:], x[:1]]), 40))
    assert 2 <= len(stored) <= 2 * 40 // (WAYS.bit_length() - 2)


def test_a_long_way_through_views_is_cut():
    assert len(long_views(repeated(lambda x: gc.flip(x[:, 1:], (0,)) if x.shape[1] > 1 else x, 3))) == 0
    found = long_views(repeated(lambda x: gc.nn.functional.pad(x, (0, 0, 1, 0))[:-1], 3 * VIEWS))
    assert 4 <= len(found) <= 7


@pytest.mark.parametrize("step", [lambda x: (x * 1.5).t().reshape(8, 4), lambda x: x.t().reshape(8, 4)])
def test_kernels_hold_few_divisions_after_each_other(step):
    plan = fuse(repeated(step, 40))
    assert len(plan.groups) >= 40 // (2 * DIVISIONS)
    assert max(len(g.nodes) for g in plan.groups) <= 2 * DIVISIONS + 2


def test_what_divides():
    graph = repeated(lambda x: x.t().reshape(8, 4), 1)
    turned, folded = graph.nodes()
    assert not divides_index(operand_reads(turned, domain_axes(turned.result.shape))[0].index)
    assert divides_index(operand_reads(folded, domain_axes(folded.result.shape))[0].index)
