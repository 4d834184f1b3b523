"""The check of finite numbers stops a call before it writes, and costs programs no copies."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.base.errors import ConditionError
from graphc.calls.bound_program import build
from graphc.calls.first_nan.finite_flag import append_check
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.effects.state import state_write
from graphc.ops.pointwise import elementwise as ew
from graphc.passes.pipeline import optimize

BAD = np.nan, np.inf, -np.inf


def _sum(numbers=False):
    """A state that inputs are added to, with its check."""
    graph = Graph("main")
    x = graph.add_input(TensorType(float32, (3, 5)), "x")
    state = graph.add_input(TensorType(float32, (3, 5)), "total", "state", "total")
    with dispatch.use(GraphDispatcher(graph)):
        made = ew.mul(x, 2.0)
        state_write(state, ew.add(state, made))
        graph.set_outputs([made])
    return graph, append_check(graph, [] if numbers else [made], [made] if numbers else [])


@pytest.mark.parametrize("bad", BAD)
def test_nothing_is_written_where_a_number_is_not_finite(bad):
    program = build(_sum()[0])
    total = np.ones((3, 5), np.float32)
    x = np.full((3, 5), 3, np.float32)
    (made,) = program.run([x], (total,))
    assert (made == 6).all() and (total == 7).all()
    for place in np.ndindex(3, 5):
        x[place] = bad
        with pytest.raises(ConditionError, match="not finite"):
            program.run([x], (total,))
        x[place] = 3
        assert (total == 7).all()
    program.run([x], (total,))
    assert (total == 13).all()


def test_of_numbers_only_a_nan_counts():
    program = build(_sum(numbers=True)[0])
    total, x = np.ones((3, 5), np.float32), np.ones((3, 5), np.float32)
    x[1, 1] = np.inf
    program.run([x], (total,))
    assert np.isinf(total[1, 1])
    x[1, 1] = np.nan
    with pytest.raises(ConditionError):
        program.run([x], (total,))
    assert np.isinf(total[1, 1])


def test_what_is_guarded_is_told():
    graph, guarded = _sum()
    assert guarded.checked == tuple(graph.outputs) and guarded.check.op.name == "check_true"
    ((argument, value),) = guarded.writes.items()
    assert argument is graph.inputs[1] and value.node.op.name == "add"


def test_a_state_is_written_in_its_place():
    kernels = [c.kernel for c in Stages(_sum()[0]).lowered.calls]
    assert kernels and not [k for k in kernels if "copy" in k]


def test_the_check_stays_where_indices_are_not_checked(monkeypatch):
    monkeypatch.setenv("GRAPHC_CHECK_INDICES", "off")
    assert [n for n in optimize(_sum()[0]).nodes() if n.op.name == "check_true"]


def _product(rows, inner, columns):
    graph = Graph("main")
    a = graph.add_input(TensorType(float32, (rows, inner)), "a")
    b = graph.add_input(TensorType(float32, (inner, columns)), "b")
    state = graph.add_input(TensorType(float32, (rows, columns)), "w", "state", "w")
    with dispatch.use(GraphDispatcher(graph)):
        result = matmul(a, b)
        state_write(state, ew.sub(state, result))
    append_check(graph, [result])
    return build(graph)


@pytest.mark.parametrize("shape", [(40, 4, 40), (4, 40, 4), (9, 1, 7)])
def test_no_product_that_is_not_finite_is_missed(shape):
    rows, inner, columns = shape
    program, random = _product(*shape), np.random.default_rng(0)
    state = np.zeros((rows, columns), np.float32)
    for size in (1e-3, 1.0, 1e10):
        a, b = random.normal(size=(rows, inner)), random.normal(size=(inner, columns)) * size
        state[:] = 0
        program.run([a.astype(np.float32), b.astype(np.float32)], (state,))
        np.testing.assert_allclose(-state, a @ b, rtol=2e-4, atol=1e-4 * size)
    state[:] = 0
    for number in range(60):
        a = random.normal(size=(rows, inner)).astype(np.float32)
        b = random.normal(size=(inner, columns)).astype(np.float32)
        if number % 2:
            given = (a, b)[number // 2 % 2]
            given.flat[random.integers(given.size)] = BAD[number % 3]
        else:
            a[random.integers(rows)] = 3e38
            b[:, random.integers(columns)] = 3e38
        with pytest.raises(ConditionError):
            program.run([a, b], (state,))
        assert (state == 0).all()
