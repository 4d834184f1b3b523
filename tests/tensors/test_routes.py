"""Views whose arguments were looked at before are what they were the first time."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.eager import dispatcher as eager
from graphc.errors import ArgumentError, GradientError, IndexRangeError, ShapeError
from graphc.ir.op import REGISTRY
from graphc.ops import dispatch
from graphc.tensors import routes

CALLS = {
    "view": lambda x: x.view(-1),
    "view of a shape": lambda x: x.view((2, 6)),
    "view of a list": lambda x: x.view([6, 2]),
    "reshape": lambda x: x.reshape(3, -1),
    "flatten": lambda x: x.flatten(start_dim=0),
    "unflatten": lambda x: x.unflatten(1, (1, 3)),
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "transpose": lambda x: x.transpose(0, 1),
    "transpose by names": lambda x: x.transpose(dim0=1, dim1=0),
    "permute": lambda x: x.permute((1, 0)),
    "movedim": lambda x: x.movedim(0, 1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.squeeze(0),
    "expand": lambda x: x.expand(2, -1, -1),
    "expand to what it is": lambda x: x.expand(1, 4, 3),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "select": lambda x: x.select(0, 2),
    "diagonal": lambda x: x.diagonal(),
    "detach": lambda x: x.detach(),
    "index": lambda x: x[1:, None, 0],
    "one element": lambda x: x[3, 2],
    "split": lambda x: x.split(3),
    "split by sizes": lambda x: x.split([1, 0, 3]),
    "chunk": lambda x: x.chunk(2, dim=1),
    "unbind": lambda x: x.unbind(1),
}


def parts(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def operands():
    """Tensors of the same elements: one that owns them, views that lie in memory otherwise, and one with gradients."""
    x = graphc.tensor(np.arange(12.0, dtype=np.float32).reshape(4, 3))
    yield x
    yield x.t().clone().t()
    yield graphc.tensor(np.arange(24.0, dtype=np.float32).reshape(4, 6) // 2)[:, ::2]
    yield x.clone().requires_grad_()
    yield x.clone().requires_grad_() * 1
    with graphc.no_grad():
        yield (x.clone().requires_grad_() * 1)[:]


def seen(x, part) -> tuple:
    """Return facts about a view: memory, base, steps from the base, tape nodes, gradient flags."""
    data = part._data
    place = data.__array_interface__["data"][0] - x._data.__array_interface__["data"][0]
    view = part._view
    steps = [] if view is None else [(op.name, attrs) for op, attrs in view.steps]
    base = None if part._base is None else part._base is (x if x._base is None else x._base)
    nodes, node = [], part.grad_fn
    while node is not None:
        nodes.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    alike = part._counter is x._counter
    layout = (place, data.shape, data.strides) if view is not None and data.size else data.shape
    writeable = data.flags.writeable
    return layout, writeable, part.dtype, base, steps, nodes, part.requires_grad, part._detached, alike


@pytest.mark.parametrize("name", CALLS)
def test_a_repeated_view_is_as_the_first_one(name):
    call = CALLS[name]

    def what(x):
        try:
            return [seen(x, part) for part in parts(call(x))]
        except ShapeError as error:  # a view that these strides do not have
            return str(error)

    given, first = list(operands()), []
    for x in given:
        routes.forget()
        first.append(what(x))
    for _ in range(3):
        assert [what(x) for x in given] == first
    with graphc.no_grad():
        assert all(part._detached or part._view is None for x in given[3:5] for part in parts(call(x)))


@pytest.mark.parametrize("name", CALLS)
def test_writes_through_repeated_views_reach_the_base_and_its_gradient(name):
    call = CALLS[name]
    expanded = name == "expand"

    def written() -> list:
        leaf = graphc.tensor(np.arange(12.0, dtype=np.float32).reshape(4, 3), requires_grad=True)
        x = leaf * 2
        other = x[0]
        for part in parts(call(x)):
            if part.numel() and not part._detached and not expanded:
                part.mul_(3)
        (x * x).sum().backward()
        return [x.detach().numpy(), other.detach().numpy(), leaf.grad.numpy(), x._version]

    routes.forget()
    first = written()
    for a, b in zip(first, written(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_arguments_that_are_equal_but_of_other_kinds_are_looked_at():
    x = graphc.ones(4, 3)
    for _ in range(2):
        x.unsqueeze(1), x.transpose(0, 1), x.split(1), x.view(2, 6)
        for wrong in (lambda: x.unsqueeze(1.0), lambda: x.transpose(0, 1.0), lambda: x.split(1.0)):
            with pytest.raises(ArgumentError):
                wrong()
        with pytest.raises(ArgumentError):
            x.view((2.0, 6))
        with pytest.raises(ArgumentError):
            x.split(4, ("dim", 1))
        with pytest.raises(IndexRangeError):
            x.unsqueeze(5)
        assert len(x.split(4, dim=1)) == 1


def test_what_was_a_copy_for_some_strides_is_a_view_for_others():
    x = graphc.arange(6).reshape(2, 3)
    for _ in range(3):
        assert x.reshape(6)._base is not None and x.t().reshape(6)._view is None
        assert x.t().reshape(6).tolist() == [0, 3, 1, 4, 2, 5]
        with pytest.raises(ShapeError):
            x.t().view(6)


def test_changes_of_the_shape_in_place_keep_other_views():
    for _ in range(3):
        x = graphc.arange(6)
        before = x.view(2, 3)
        x.unsqueeze_(0)
        assert x.shape == (1, 6) and x.view(3, 2).shape == (3, 2)
        x.view(3, 2)[2, 1] = 9
        assert before[1, 2].item() == 9 and x[0, 5].item() == 9


def test_a_stale_view_takes_over_the_history_of_its_base():
    for _ in range(3):
        w = graphc.ones(2, 3, requires_grad=True)
        x = w * 1
        row = x[0]
        x.mul_(5)
        row.unsqueeze(0).sum().backward()
        assert w.grad.tolist() == [[5, 5, 5], [0, 0, 0]]


def test_tensors_of_inference_mode_stay_what_they_are():
    x = graphc.ones(2, 3)
    for _ in range(2):
        with graphc.inference_mode():
            assert x.view(-1)._counter is x._counter and graphc.ones(2, 3).view(-1)._counter is None
        assert not x.view(-1)._detached


def test_tangents_and_volatile_variables_go_along():
    for _ in range(2):
        value, tangent = graphc.func.jvp(lambda x: x.t().unsqueeze(0), (graphc.ones(2, 3),), (graphc.ones(2, 3) * 2,))
        assert value.shape == tangent.shape == (1, 3, 2) and tangent.sum().item() == 12
        variable = graphc.autograd.Variable(graphc.ones(2, 3), volatile=True)
        assert variable.t().volatile


def test_in_reference_mode_nothing_is_remembered():
    with eager.references():
        for _ in range(2):
            graphc.ones(5, 7).t().view(7, 5)[0]
        assert not routes._KNOWN
    graphc.ones(5, 7).t()
    assert routes._KNOWN


def test_a_class_of_the_user_sees_each_call():
    class Loud(graphc.Tensor):
        calls = 0

        def reshape(self, *sizes, **named):
            Loud.calls += 1
            return super().reshape(*sizes, **named)

    x = graphc.Tensor._make_subclass(Loud, graphc.ones(2, 3))
    for _ in range(3):
        assert x.view(6).shape == (6,)
    assert Loud.calls == 3


def test_other_dispatchers_see_each_operation():
    class Watching(eager.EagerDispatcher):
        def __init__(self):
            super().__init__()
            self.seen = []

        def call(self, function, operands, attrs):
            self.seen.append(getattr(function, "op", function).name)
            return super().call(function, operands, attrs)

        apply = call

    x = graphc.ones(2, 3)
    x.t(), x.t()
    watching = Watching()
    with dispatch.use(watching):
        x.t(), x.t()
    assert watching.seen == ["transpose", "transpose"]


def test_no_more_calls_are_remembered_than_there_is_place_for(monkeypatch):
    monkeypatch.setattr(routes, "_MOST", 4)
    routes.forget()
    for size in range(1, 10):
        assert graphc.ones(size, 2).t().shape == (2, size)
        assert len(routes._KNOWN) <= 4


def test_a_recorded_view_needs_memory_that_counts_writes():
    with graphc.inference_mode():
        x = graphc.ones(2, 3)
    for _ in range(2):
        with pytest.raises(GradientError, match="inference mode"):
            (x.view(-1) * graphc.ones(6, requires_grad=True)).sum()


def test_references_of_views_share_memory_and_take_arrays_of_one_element():
    for op in REGISTRY.values():
        for sample in op.samples() if op.samples and op.alias is not None else ():
            array = sample.operands[0]
            result = op.reference(array, **op.normalize(sample.attrs))
            assert type(result) is np.ndarray and (not result.size or np.may_share_memory(result, array)), op.name
