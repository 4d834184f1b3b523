"""Declarations of named dimensions, and what does not fit them."""

import pytest

import graphc as gc
from graphc.errors import ArgumentError, ShapeError
from tests.calls.sized import BATCH, TIME, ones, same


@pytest.mark.parametrize(
    ("dims", "shapes", "error", "message"),
    [
        ({"z": (BATCH,)}, [(2, 3), (2,)], ArgumentError, "dims names an argument 'z', which f does not have"),
        ({"x": (BATCH, TIME, 3)}, [(2, 3), (2,)], ShapeError, "dims names 3 dimensions of x, which has 2"),
        ({"x": (BATCH,), "y": (BATCH,)}, [(2, 3), (3,)], ShapeError, "dimension 0 of y is 3, not 2 = batch"),
        ({"x": (BATCH,)}, [(65, 3), (3,)], ShapeError, "batch is 65, outside of 1..64"),
        ({"x": (BATCH, 4)}, [(2, 3), (3,)], ShapeError, "dimension 1 of x is 3, not 4 as dims says"),
        ({"x": (TIME,), "y": (gc.Dim("time", 1, 9),)}, [(2, 3), (3,)], ArgumentError, "two dimensions are named time"),
        ({"x": (None, None)}, [(2, 3), (3,)], ArgumentError, "dims names no dimension"),
        ({"x": ("batch",)}, [(2, 3), (3,)], ArgumentError, "dims may hold dimensions, ints and None, got str"),
        ("some", [(2, 3), (3,)], ArgumentError, "dims is 'some'"),
        (7, [(2, 3), (3,)], ArgumentError, "got int"),
        ({"x": {"a": (BATCH,)}}, [(2, 3), (3,)], ArgumentError, "dims nests the dimensions of x, which is a tensor"),
        ({"x": (BATCH,), 0: (BATCH,)}, [(2, 3), (3,)], ArgumentError, "dims names argument 'x' twice"),
        ({2: (BATCH,)}, [(2, 3), (3,)], ArgumentError, "dims names an argument 2, which f does not have"),
    ],
)
def test_declarations_that_do_not_fit_are_refused(dims, shapes, error, message):
    def f(x, y):
        return x.sum() + y.sum()

    with pytest.raises(error) as caught:
        gc.compile(f, dims=dims)(*(ones(*shape) for shape in shapes))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "dims",
    [
        {"state": (BATCH,)},
        {"state": {"h": (BATCH,), "c": [(BATCH, None), (BATCH,)]}},
        [{"h": BATCH}],
        {0: {"c": ((BATCH,), (BATCH,)), "h": (BATCH,)}},
    ],
)
def test_nested_arguments_have_dimensions(dims, traces):
    @gc.compile(dims=dims)
    def f(state):
        return state["h"].sum() + state["c"][0].sum() + state["c"][1].sum()

    whole = isinstance(dims, dict)
    for size in (2, 3):
        c = [ones(size, 4), ones(size)] if whole else [ones(1), ones(1)]
        assert f({"h": ones(size, 4), "c": c}).item() == (9 * size if whole else 4 * size + 2)
    assert len(traces) == 1


def test_keyword_arguments_have_dimensions(traces):
    @gc.compile(dims={"mask": (BATCH,), "x": (BATCH,)})
    def f(x, *, mask=None):
        return x if mask is None else x * mask

    for size in (2, 3, 4):
        same(f(ones(size), mask=ones(size) * 2), ones(size) * 2)
        same(f(x=ones(size)), ones(size))
    assert len(traces) == 2
