"""Errors of code that asks for values in a trace name what fits the construct in which it asks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ConditionError, RecompileWarning, TraceError


def if_statement(x):
    if x.sum() > 0:
        return x
    return -x


def elif_statement(x):
    if x.ndim > 5:
        return x
    elif x.sum() > 3:
        return x + 1
    return x


def while_statement(x):
    while x.norm() > 1:
        x = x / 2
    return x


def early_end(x):
    for _ in range(10):
        x = x * 1.1
        if x.norm() > 5:
            break
    return x


def conditional_expression(x):
    return x if x.mean() > 0 else -x


def negated(x):
    return x if not x.any() else -x


def conjunction(x):
    if x.ndim == 2 and x.sum() > 0:
        return x
    return -x


def assertion(x):
    assert x.sum() > 0, "not positive"
    return x


def negated_assertion(x):
    assert not gc.isnan(x).any()
    return x


def loop_bound(x):
    for _ in range(int(x.sum())):
        x = x + 1
    return x


def item(x):
    return x * x.max().item()


def as_list(x):
    return gc.tensor(x.tolist())


def array(x):
    return np.median(x)


def nonzero(x):
    return gc.nonzero(x)


def mask(x):
    return x[x > 0]


def filtered(x):
    return [row for row in x if row.sum() > 0]


def format_string(x):
    return f"{x.sum():.3f}"


def largest(x):
    return max(x.sum(), x.mean())


def in_order(x):
    return sorted(x, key=lambda row: row.sum())[0]


def member(x):
    return x if 3 in x else -x


def stretch(x):
    return x[:, : int(x.sum())]


def index_stretch(x):
    n = x.sum().long()
    return x[:, :n]


def list_index(x):
    return [1, 2, 3][x.sum().long()] * x


def python_math(x):
    return x * math.sqrt(x.sum())


def matched(x):
    match x.ndim:
        case 2 if x.sum() > 0:
            return x
    return -x


EXPECTED = {
    if_statement: "graphc.cond",
    elif_statement: "graphc.where",
    while_statement: "graphc.while_loop",
    early_end: "graphc.while_loop",
    conditional_expression: "graphc.cond",
    negated: "graphc.where",
    conjunction: "graphc.cond",
    assertion: "graphc.assert_true",
    negated_assertion: "graphc.assert_true",
    loop_bound: "graphc.fori_loop",
    item: "use the tensor itself",
    as_list: "graphc.opaque",
    array: "graphc.opaque",
    nonzero: "masked_fill",
    mask: "masked_fill",
    filtered: "masked_fill",
    format_string: "graphc.debug",
    largest: "graphc.maximum",
    in_order: "graphc.sort",
    member: r"\(x == value\).any\(\)",
    stretch: "graphc.arange",
    index_stretch: "graphc.arange",
    list_index: "graphc.switch",
    python_math: "graphc.sqrt",
    matched: "graphc.cond",
}


@pytest.mark.parametrize("function", EXPECTED, ids=lambda f: f.__name__)
def test_the_error_names_the_construct(function):
    x = gc.arange(6.0).reshape(2, 3)
    with pytest.raises(TraceError, match=EXPECTED[function]) as caught:
        gc.trace(function, x) if function in (nonzero, mask) else gc.compile(function)(x)
    remedy = str(caught.value).rpartition("try")[2]
    assert remedy.endswith("outside of the traced function")
    others = {"graphc.while_loop", "graphc.assert_true", "graphc.fori_loop", "graphc.debug", "graphc.arange"}
    assert not [name for name in others - {EXPECTED[function]} if name in remedy]


def test_without_source_the_advice_goes_by_what_was_asked():
    space: dict = {}
    exec("def f(x):\n    return x if x.sum() > 0 else -x", space)
    with pytest.raises(TraceError, match=r"graphc\.where"):
        gc.compile(space["f"])(gc.ones(2))


def test_what_is_advised_exists_or_is_a_method():
    with pytest.raises(TraceError, match=r"graphc\.gather"):
        gc.compile(list_index)(gc.ones(2))
    assert callable(gc.gather) and callable(gc.assert_true)


def test_assert_true_stops_before_anything_is_written():
    class Model(gc.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", gc.zeros(()))

        def forward(self, x):
            self.count += 1
            gc.assert_true((x > 0).all(), "the input is not positive")
            return x * self.count

    model = Model()
    compiled = gc.compile(model)
    np.testing.assert_array_equal(compiled(gc.ones(3)).numpy(), np.ones(3, np.float32))
    with pytest.raises(ConditionError, match="the input is not positive") as caught:
        compiled(gc.tensor([1.0, -1.0]))
    assert isinstance(caught.value, AssertionError)
    assert model.count.item() == 1
    np.testing.assert_array_equal(compiled(gc.ones(3)).numpy(), np.full(3, 2, np.float32))


def test_assert_true_of_many_elements_names_the_first():
    with pytest.raises(ConditionError, match=r"small[\s\S]*element \[0,1\]"):
        gc.assert_true(gc.tensor([[True, False], [False, True]]), "small")


def test_assert_true_takes_conditions_only():
    with pytest.raises(TypeError, match="takes a bool tensor, got f32"):
        gc.assert_true(gc.ones(2))
    with pytest.raises(TypeError, match="takes a bool tensor, got bool"):
        gc.assert_true(True)  # pyright: ignore[reportArgumentType]


def test_assertions_in_scans_hold_for_every_step():
    def step(h, x):
        gc.assert_true(x > 0, "a slice is not positive")
        return h + x, h

    run = gc.compile(lambda xs: gc.scan(step, gc.zeros(()), xs)[0])
    assert run(gc.ones(5)).item() == 5
    with pytest.raises(ConditionError, match="a slice is not positive"):
        run(gc.tensor([1.0, 1.0, -1.0, 1.0, 1.0]))


def test_assertions_that_cannot_fail_are_left_out():
    @gc.compile
    def f(x):
        gc.assert_true(gc.ones(3) > 0, "none")
        return x + 1

    np.testing.assert_array_equal(f(gc.zeros(2)).numpy(), np.ones(2, np.float32))


def test_a_loop_over_a_named_dimension_names_scan():
    def total(x):
        h = gc.zeros(3)
        for row in x:
            h = h + row
        return h

    compiled = gc.compile(total, dims=[(gc.Dim("time", max=8),)])
    with pytest.warns(RecompileWarning, match=r"graphc\.scan"):
        assert compiled(gc.ones(4, 3)).tolist() == [4, 4, 4]
