"""Writes through views reach the base, its gradient history, and its other views."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, GradientError, TraceError
from graphc.ir.graph.interpret import evaluate
from graphc.ir.op import REGISTRY, OpDef, Sample, Trait
from graphc.ops import dispatch

VIEWS = [
    lambda x: x.reshape(-1),
    lambda x: x.t(),
    lambda x: x[1],
    lambda x: x[::2, 1:],
    lambda x: x.t()[1:].unsqueeze(0),
    lambda x: x.detach(),
    lambda x: x.reshape(2, 2, 3)[:, 1],
    lambda x: x.expand(4, 3),
]
ARRAY = np.arange(12.0, dtype=np.float32).reshape(4, 3)


def check_recorded_and_traced(function):
    """Check that a function of ARRAY gives the same in eager mode, recorded and traced."""
    expected = [t.numpy() for t in function(graphc.from_numpy(ARRAY.copy()))]
    recorded = function(graphc.from_numpy(ARRAY.copy()).requires_grad_())
    traced = evaluate(graphc.trace(function, graphc.from_numpy(ARRAY)), [ARRAY])
    for a, b, c in zip(expected, recorded, traced, strict=True):
        np.testing.assert_array_equal(a, b.detach().numpy())
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("view", VIEWS)
def test_eager_recorded_and_traced_agree(view):
    def function(x):
        y = x * 1
        other = y[0]
        part = view(y)
        with graphc.no_grad():
            part.mul_(2)
        if not view(graphc.ones(4, 3, requires_grad=True)).is_leaf:
            view(y).add_(view(y).detach().clone() * x.sum())
        return y, other, part

    check_recorded_and_traced(function)


def test_traced_copies_are_no_views():
    def function(x):
        y = x * 1
        flat = y.t().reshape(-1)  # Needs a copy, in eager mode and so under trace.
        flat.zero_()
        own = y.clone()
        own.zero_()
        assert flat._base is not y and not y.t().is_contiguous() and y.t().stride() == (1, 3)
        return y, flat

    y, flat = evaluate(graphc.trace(function, graphc.from_numpy(ARRAY)), [ARRAY])
    np.testing.assert_array_equal(y, ARRAY)
    assert not flat.any()


def test_diagonals_and_entries_that_are_repeated_once_are_copies():
    x = graphc.zeros(2, 2)
    for result in (x.diag(), x.repeat_interleave(1, 0), x.repeat_interleave(1)):
        result.add_(1)
        assert not x.any()


def test_views_without_gradient_take_no_history():
    w = graphc.ones(3, requires_grad=True)
    y = graphc.zeros(2, 3)
    with pytest.raises(GradientError, match=r"a view from detach\(\) or no_grad\(\)"):
        y.detach()[0].copy_(w)
    with graphc.no_grad():
        row = y[0]
    with pytest.raises(GradientError, match="no_grad"):
        row.copy_(w)


def test_gradient_of_a_replaced_part():
    x = graphc.ones(2, 3, requires_grad=True)
    w = graphc.full((3,), 5.0, requires_grad=True)
    y = x * 2
    y[1] = w
    (y * y).sum().backward()
    assert x.grad.tolist() == [[8, 8, 8], [0, 0, 0]]
    assert w.grad.tolist() == [10, 10, 10]


CHANGES = {
    "squeeze_": (lambda y: y.reshape(4, 1, 3), ()),
    "unsqueeze_": (lambda y: y, (1,)),
    "t_": (lambda y: y, ()),
    "transpose_": (lambda y: y.reshape(2, 2, 3), (0, 2)),
    "as_strided_": (lambda y: y, ((2, 2), (3, 1), 1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_shape_changed_in_place_keeps_memory_and_version(name: str):
    prepare, arguments = CHANGES[name]
    y = prepare(graphc.from_numpy(ARRAY.copy())).clone()
    kept = y
    expected = getattr(y, name[:-1])(*arguments).numpy().copy()
    row, version = y[0], y._version
    assert getattr(y, name)(*arguments) is kept
    np.testing.assert_array_equal(y.numpy(), expected)
    assert y._version == row._version == version + 1
    assert y._base is None and not y._is_view()
    y.mul_(0)
    assert row._version == version + 2
    assert not row.numpy().any()


@pytest.mark.parametrize("name", CHANGES)
def test_a_shape_changed_in_place_is_the_same_recorded_and_traced(name: str):
    prepare, arguments = CHANGES[name]

    def function(x):
        y = prepare(x * 1).clone()
        row = y[0]
        getattr(y, name)(*arguments)
        y.mul_(2)
        row.add_(1)
        return y, row

    check_recorded_and_traced(function)


def test_a_leaf_changes_its_shape_where_nothing_is_recorded():
    x = graphc.ones(3, requires_grad=True)
    with graphc.no_grad():
        x.unsqueeze_(0)
    assert x.is_leaf and x.requires_grad and x.shape == (1, 3)
    (x * x).sum().backward()
    assert x.grad.tolist() == [[2, 2, 2]]


def test_a_kept_gradient_moves_on_with_the_shape():
    x = graphc.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.unsqueeze_(0)
    (y * 3).sum().backward()
    assert y.grad.tolist() == [[3, 3, 3]]


def test_the_shape_of_a_tensor_from_outside_stays_inside_a_trace():
    outside = graphc.ones(3)
    with pytest.raises(TraceError, match="changes the shape of a tensor from outside"):
        graphc.trace(lambda x: outside.unsqueeze_(0) + x, graphc.ones(3))


def test_overlapping_elements_are_not_written_to():
    x = graphc.arange(4.0)
    with pytest.raises(ArgumentError, match="share memory"):
        x.as_strided((3, 2), (1, 1)).add_(1)
    y = graphc.arange(4.0).requires_grad_() * 1
    with pytest.raises((ArgumentError, GradientError), match="share memory"):
        y.as_strided((3, 2), (1, 1)).add_(1)
    with pytest.raises(ArgumentError, match="row-major"):
        graphc.ones(2, 3).t().as_strided((2,), (1,))


def test_a_view_written_over_with_constants_has_no_gradient():
    x = graphc.ones(3, requires_grad=True)
    y = x * 2
    view = y.view(3, 1)
    view.zero_()
    assert y.requires_grad and view.requires_grad
    (y.sum() + view.sum()).backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_diagonals_are_views(offset):
    for x in (graphc.zeros(3, 4), graphc.zeros(4, 3).t(), graphc.zeros(2, 3, 3)[1]):
        x.diagonal(offset).fill_(2.0)
        np.testing.assert_array_equal(x.numpy(), 2.0 * np.eye(x.shape[0], x.shape[1], offset))
    x = graphc.ones(3, 3, requires_grad=True)
    y = x * 1
    y.diagonal(offset).zero_()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 1 - np.eye(3, k=offset))


PARTS = ("real", "imag", "view_as_real", "view_as_complex")
"""Views of whole elements as parts, and of parts as whole ones."""
ALIASING = [
    pytest.param(op, sample, id=f"{op.name}-{i}")
    for op in REGISTRY.values()
    if op.alias is not None and op.samples is not None
    for i, sample in enumerate(op.samples())
    if op.name not in PARTS
]


@pytest.mark.parametrize(("op", "sample"), ALIASING)
def test_every_view_says_how_a_write_to_it_reaches_its_operand(op: OpDef, sample: Sample):
    """As numpy writes through its views; where elements share memory, nothing is written."""
    attrs, array = op.normalize(sample.attrs), sample.operands[0].copy()
    assert op.reference is not None
    view = op.reference(array, **attrs)
    value = ~view if view.dtype == bool else (view + 1).astype(view.dtype)
    places = op.reference(np.arange(array.size).reshape(array.shape), **attrs)
    if len(np.unique(places)) < places.size:
        with pytest.raises(GradientError, match="share memory"):
            op.put_back(graphc.tensor(array), graphc.tensor(value), **attrs)
        return
    expected = array.reshape(-1).copy()
    expected[places.reshape(-1)] = value.reshape(-1)
    result = op.put_back(graphc.tensor(array), graphc.tensor(value), **attrs).numpy()
    np.testing.assert_array_equal(result, expected.reshape(array.shape))


def test_writes_to_parts_reach_the_complex_numbers():
    numbers = np.array([[1 + 2j, 3 - 1j], [0.5j, 4]], np.complex64)
    tensor, array = graphc.tensor(numbers), numbers.copy()
    tensor.real[0].fill_(7.0)
    tensor.imag.mul_(2.0)
    graphc.view_as_real(tensor)[1, :, 1] = 9.0
    array.real[0] = 7
    array.imag *= 2
    array.imag[1] = 9
    np.testing.assert_array_equal(tensor.numpy(), array)
    parts = graphc.view_as_real(tensor)
    graphc.view_as_complex(parts)[0] = 1j
    np.testing.assert_array_equal(parts.numpy()[0], [[0, 1], [0, 1]])
    np.testing.assert_array_equal(tensor.numpy()[0], [1j, 1j])


def test_results_of_other_ops_have_memory_of_their_own():
    """Results that share memory with an operand in the reference are copied if the op is not a view."""
    for op in REGISTRY.values():
        if op.alias is None and op.has(Trait.PURE) and op.samples is not None and op.name not in ("constant", "call"):
            for sample in op.samples():
                arrays = (*sample.operands, *op.evaluate(sample.operands, op.normalize(sample.attrs)))
                if any(a.dtype.name not in ("float32", "float64", "int64", "bool") for a in arrays):
                    continue  # also of elements that no tensor holds
                operands = [graphc.from_numpy(a.copy()) for a in sample.operands]
                output = dispatch.apply(op, operands, sample.attrs)
                for result in output if isinstance(output, tuple) else (output,):
                    assert not any(np.may_share_memory(result.numpy(), t.numpy()) for t in operands), op.name
