"""Indexing by ints, slices, None, Ellipsis, integer tensors and masks, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError, TraceError
from graphc.ir.graph.interpret import evaluate

ARRAY = np.arange(120.0).reshape(4, 5, 6)
INDEX = np.array([[2, 0], [-1, 1]])
BASIC = [
    0,
    -1,
    np.s_[1:3],
    np.s_[::2, 1:-1],
    np.s_[..., 3],
    np.s_[1, ..., None],
    np.s_[None, 2, :, ::3],
    np.s_[:, None, -2],
    np.s_[3:1],
    np.s_[10:, :2],
    np.s_[1:100],
    (),
    np.s_[...],
]
ADVANCED = [
    INDEX,
    np.s_[:, INDEX],
    np.s_[..., INDEX],
    np.s_[1:3, INDEX, ::2],
    np.s_[INDEX, INDEX],
    np.s_[:, INDEX, INDEX],
    np.s_[INDEX, :, INDEX],
    np.s_[INDEX, 1:3, np.array([0, 5])],
    np.s_[None, INDEX],
    ARRAY > 50,
    np.s_[np.array([True, False, True, False])],
    np.s_[:, np.array([True, False, True, False, True]), 2:4],
]


def to_tensors(index):
    if isinstance(index, tuple):
        return tuple(map(to_tensors, index))
    return graphc.from_numpy(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_basic_indices_are_views(index):
    x = graphc.from_numpy(ARRAY.copy())
    view = x[index]
    np.testing.assert_array_equal(view.numpy(), ARRAY[index])
    assert view.shape == np.asarray(ARRAY[index]).shape
    if view.numel():
        assert view._base is x and np.shares_memory(view.numpy(), x.numpy())


@pytest.mark.parametrize("index", ADVANCED, ids=range(len(ADVANCED)))
def test_index_tensors_copy(index):
    x = graphc.from_numpy(ARRAY.copy())
    selected = x[to_tensors(index)]
    np.testing.assert_array_equal(selected.numpy(), ARRAY[index])
    assert selected._base is None


def test_lists_and_scalars_as_indices():
    x = graphc.from_numpy(ARRAY)
    np.testing.assert_array_equal(x[[1, 3]].numpy(), ARRAY[[1, 3]])
    np.testing.assert_array_equal(x[graphc.tensor(2)].numpy(), ARRAY[2])
    np.testing.assert_array_equal(x[range(2)].numpy(), ARRAY[:2])
    assert x[[]].shape == (0, 5, 6)
    np.testing.assert_array_equal(x[: graphc.tensor(2)].numpy(), ARRAY[:2])


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED], ids=range(len(BASIC) + len(ADVANCED)))
@pytest.mark.parametrize("recorded", [False, True])
def test_assignment(index, recorded):
    expected = ARRAY.copy()
    value = np.random.default_rng(0).standard_normal(ARRAY[index].shape)
    expected[index] = value
    x = graphc.from_numpy(ARRAY.copy())
    if recorded:
        x = x.requires_grad_() * 1
    x[to_tensors(index)] = graphc.from_numpy(value)
    np.testing.assert_array_equal(x.detach().numpy(), expected)
    x[to_tensors(index)] = -1
    expected[index] = -1
    np.testing.assert_array_equal(x.detach().numpy(), expected)


def test_the_last_of_several_values_stays():
    x = graphc.zeros(3)
    x[graphc.tensor([1, 1, 2])] = graphc.tensor([5.0, 6.0, 7.0])
    assert x.tolist() == [0, 6, 7]
    y = graphc.zeros(3, dtype=graphc.bool_)
    y[graphc.tensor([0, 2])] = True
    assert y.tolist() == [True, False, True]


@pytest.mark.parametrize("index", [*BASIC[:8], *ADVANCED[:9]], ids=range(17))
def test_traced_indexing(index):
    def function(x, *tensors):
        rest = iter(tensors)

        def fill(item):
            if isinstance(item, tuple):
                return tuple(map(fill, item))
            return next(rest) if isinstance(item, np.ndarray) else item

        index_tensors = fill(index)
        y = x * 1
        rest = iter(tensors)
        y[fill(index)] = -2.0
        return x[index_tensors], y

    arrays = [i for i in (index if isinstance(index, tuple) else (index,)) if isinstance(i, np.ndarray)]
    tensors = [graphc.from_numpy(a) for a in arrays]
    x = graphc.from_numpy(ARRAY)
    graph = graphc.trace(function, x, *tensors)
    selected, changed = evaluate(graph, [ARRAY, *arrays])
    np.testing.assert_array_equal(selected, ARRAY[index])
    expected = ARRAY.copy()
    expected[index] = -2
    np.testing.assert_array_equal(changed, expected)


def test_traced_masks():
    x = graphc.from_numpy(ARRAY)

    def fill(x):
        y = x * 1
        y[x > 50] = 0.0
        y[graphc.tensor([True, False, False, False])] = 7.0
        return y

    expected = ARRAY.copy()
    expected[ARRAY > 50] = 0
    expected[0] = 7
    np.testing.assert_array_equal(evaluate(graphc.trace(fill, x), [ARRAY])[0], expected)
    with pytest.raises(TraceError, match="boolean mask is a size that only calls know"):
        graphc.trace(lambda x: x[x > 50], x)


def test_accumulation_counts_repeated_positions():
    x = graphc.zeros(3)
    x.index_put_((graphc.tensor([1, 1, 2]),), graphc.tensor([5.0, 6.0, 7.0]), accumulate=True)
    assert x.tolist() == [0, 11, 7]


def test_writing_back_a_part_writes_once():
    x = graphc.zeros(2, 2)
    x[0] += 1
    assert x._version == 1


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED[:9]], ids=range(len(BASIC) + 9))
def test_gradients(index):
    x = graphc.from_numpy(ARRAY.copy() / 50).requires_grad_()
    (x[to_tensors(index)] ** 2).sum().backward()
    expected = np.zeros_like(ARRAY)
    np.add.at(expected, index, 2 * ARRAY[index] / 50)
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_gradient_of_an_assigned_value():
    def function(x, v):
        y = x * 1
        y[1:, graphc.tensor([0, 2])] = v
        return y * y

    x = graphc.from_numpy(np.arange(6.0).reshape(2, 3)).requires_grad_()
    v = graphc.from_numpy(np.array([[3.0, 4.0]])).requires_grad_()
    assert gradcheck(function, (x, v))


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (4, IndexRangeError, "index 4 is out of range for dimension 0 of size 4"),
        (np.s_[0, 0, 0, 0], IndexRangeError, "4 indices for a tensor with 3 dimensions"),
        (np.s_[..., ...], IndexRangeError, "one Ellipsis"),
        (np.s_[::-1], AttributeValueError, "step of a slice must be 1 or more"),
        (1.5, ArgumentError, "float cannot be an index"),
        (True, ArgumentError, "a bool cannot be an index"),
        (graphc.tensor([0.5]), IndexRangeError, "must be integers or booleans, got f32"),
        (graphc.tensor([7, 0]), IndexRangeError, r"index 7 \(at \[0\]\) is out of range[\s\S]*-4 to 3"),
        (graphc.tensor([-5, 0]), IndexRangeError, r"index -5 \(at \[0\]\) is out of range[\s\S]*-4 to 3"),
    ],
)
def test_wrong_indices(index, error, message):
    with pytest.raises(error, match=message):
        graphc.from_numpy(ARRAY)[index]


def test_wrong_values():
    with pytest.raises(ShapeError):
        graphc.zeros(2, 3)[0] = graphc.ones(2)
    with pytest.raises(ShapeError, match="does not broadcast to the indexed shape"):
        graphc.zeros(3)[graphc.tensor([0, 1])] = graphc.ones(3)
    with pytest.raises(IndexRangeError, match="mask of shape"):
        graphc.zeros(3)[graphc.tensor([True, False])] = 1.0


def test_masks_and_index_tensors_that_do_not_fit():
    x = graphc.zeros(3, 1)
    with pytest.raises(IndexRangeError, match=r"mask of shape \[1\]"):
        x[..., graphc.tensor([True]), 0]
    with pytest.raises(IndexRangeError, match="broadcast"):
        x[graphc.tensor([0, 1, 2]), graphc.tensor([0, 0])]
    with pytest.raises(ArgumentError, match="a bool cannot be an index"):
        x[x.sum() > 0]


def test_the_last_of_several_values_stays_even_beside_infinity():
    x = graphc.zeros(2)
    x[graphc.tensor([0, 0])] = graphc.tensor([float("inf"), 1.0])
    assert x.tolist() == [1.0, 0.0]


# ---- repeated indices: the last update stays, in every mode

PLACES = np.array([0, 4, 0, 2, 4, 0])
UPDATES = np.arange(1.0, 7.0)
REPEATED = {
    "assignment": lambda x, i, v: _assigned(x, i, v),
    "index_put": lambda x, i, v: x.index_put((i,), v),
    "index_put of two dimensions": lambda x, i, v: x.reshape(5, 1).index_put((i, i * 0), v).reshape(5),
    "index_copy": lambda x, i, v: x.index_copy(0, i, v),
    "scatter": lambda x, i, v: x.scatter(0, i, v),
    "scatter in place": lambda x, i, v: x.clone().scatter_(0, i, v),
}


def _assigned(x, i, v):
    x = x.clone()
    x[i] = v
    return x


@pytest.mark.parametrize("how", REPEATED)
@pytest.mark.parametrize("constant", [False, True])
def test_the_last_of_several_updates_stays_in_compiled_code(how, constant):
    indices = graphc.tensor(PLACES)
    function = (lambda x, i, v: REPEATED[how](x, indices, v)) if constant else REPEATED[how]
    compiled = graphc.compile(function)
    results = []
    for call in (function, compiled):
        x = graphc.full((5,), 9.0, requires_grad=True)
        v = graphc.tensor(UPDATES.astype(np.float32), requires_grad=True)
        y = call(x, indices, v)
        y.backward(graphc.tensor([1.0, 2, 3, 4, 5]))
        results.append((y.tolist(), x.grad.tolist(), v.grad.tolist()))
    assert results[0] == results[1]
    assert results[0] == ([6, 9, 4, 9, 5], [0, 2, 0, 4, 0], [1, 5, 1, 3, 5, 1])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float64"])
def test_a_value_for_repeated_indices_is_put_once(dtype):
    kind, i = getattr(graphc, dtype), graphc.tensor([0, 0, 1])
    for function in (
        lambda x, i: x.scatter(0, i, 1),
        lambda x, i: x.index_fill(0, i, 1),
        lambda x, i: _assigned(x, i, 1),
        lambda x, i: x.index_copy(0, i, graphc.ones(3, dtype=kind)),
    ):
        for call in (function, graphc.compile(function)):
            assert call(graphc.zeros(3, dtype=kind), i).tolist() == [1, 1, 0]


def test_unpooling_of_repeated_indices_keeps_the_last():
    def unpool(x, i):
        return graphc.nn.functional.max_unpool1d(x, i, 2)

    x, i = graphc.tensor([[[1.0, 2.0]]]), graphc.tensor([[[3, 3]]])
    for call in (unpool, graphc.compile(unpool)):
        assert call(x, i).tolist() == [[[0, 0, 0, 2]]]


def test_a_filled_value_counts_each_element_once_in_its_gradient():
    for call in (lambda x, i, v: x.index_fill(0, i, v), graphc.compile(lambda x, i, v: x.index_fill(0, i, v))):
        x, v = graphc.zeros(3, requires_grad=True), graphc.tensor(5.0, requires_grad=True)
        call(x, graphc.tensor([0, 0, -2]), v).backward(graphc.tensor([10.0, 20.0, 30.0]))
        assert (x.grad.tolist(), v.grad.item()) == ([0, 0, 30], 30)


def test_the_tangent_of_an_update_that_did_not_stay_is_left_out():
    i = graphc.tensor([0, 0, 1])
    put = lambda x, v: x.scatter(0, i, v)  # noqa: E731
    _, tangent = graphc.func.jvp(put, (graphc.zeros(3), graphc.ones(3)), (graphc.ones(3), graphc.tensor([1.0, 2, 3])))
    assert tangent.tolist() == [2, 3, 1]


def test_an_exported_model_keeps_the_last_update(tmp_path):
    def put(x, i, v):
        return _assigned(x, i, v)

    graphc.export(
        put, graphc.zeros(5), graphc.tensor(PLACES), graphc.tensor(UPDATES.astype(np.float32)), path=tmp_path / "m.gcm"
    )
    loaded = graphc.load(tmp_path / "m.gcm")(np.zeros(5, np.float32), PLACES, UPDATES.astype(np.float32))
    assert loaded.tolist() == [6, 0, 4, 0, 5]


class Cursor(graphc.nn.Module):
    """Reads at a place that a buffer without dimensions holds."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("place", graphc.tensor(1))

    def forward(self, x: graphc.Tensor) -> graphc.Tensor:
        return x[self.place] * 2 + x[:, self.place].sum()


def test_a_place_in_a_buffer_is_read_at_each_call():
    model = Cursor()
    fast, x = graphc.compile(model), graphc.arange(9.0).reshape(3, 3)
    for change in (lambda p: p, lambda p: p.add_(1), lambda p: p.fill_(0), lambda p: p.sub_(1)):
        change(model.place)
        assert fast(x).tolist() == model(x).tolist()
    assert len(fast.variants) == 1


WRITES = {
    "slice": lambda t, x, y: x.__setitem__(slice(3, 3), y[:0]),
    "a number": lambda t, x, y: x.__setitem__(slice(3, 3), y[0]),
    "added": lambda t, x, y: x.__setitem__(slice(3, 3), x[3:3] + y[:0]),
    "copied": lambda t, x, y: x[3:3].copy_(y[:0]),
    "scaled": lambda t, x, y: x[1:1].mul_(y[0]),
    "filled": lambda t, x, y: x[2:2].fill_(y[0]),
    "view of a view": lambda t, x, y: x.reshape(1, 5)[:, 2:2].reshape(0).copy_(y[:0]),
    "no index": lambda t, x, y: x.__setitem__(t.zeros(0, dtype=t.int64), y[:0]),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("leaf", [False, True], ids=["constant", "with gradient"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_no_elements_counts_for_gradients(torch, name: str, leaf: bool, compiled: bool):
    results = []
    for library in (torch, graphc):
        x, y = library.arange(5.0), library.ones(5, requires_grad=True)
        if leaf:
            x.requires_grad_()

        def function(x, y, library=library):
            content = x * 1
            WRITES[name](library, content, y)
            return content * 2

        result = (graphc.compile(function) if compiled and library is graphc else function)(x, y)
        result.sum().backward()
        results.append([result.tolist(), *[None if t.grad is None else t.grad.tolist() for t in (x, y)]])
    assert results[0] == results[1]


def test_a_view_of_nothing_is_a_view_as_others_are():
    x = graphc.arange(5.0)
    view = x[3:3]
    view.copy_(graphc.ones(0, requires_grad=True))
    assert view.requires_grad and x.requires_grad


@pytest.mark.parametrize(
    "index",
    [
        (np.array([1, 0, 3]), slice(None), np.array([4, 0, 2])),
        (slice(None), np.array([1, 0, 3]), slice(None), np.array([[1], [0]])),
        (slice(1, 4), np.array([[1], [4]]), slice(0, 3, 2), np.array([0, -2])),
        (np.array([0, 2]), np.array([1]), slice(None), np.array([[3, 1], [0, 0]])),
    ],
)
def test_assignment_at_index_tensors_with_dimensions_between_them(index):
    x = np.arange(4 * 5 * 5 * 6, dtype=np.float32).reshape(4, 5, 5, 6)
    value = -np.arange(x[index].size, dtype=np.float32).reshape(x[index].shape)
    expected, assigned = x.copy(), graphc.tensor(x.copy())
    expected[index] = value
    assigned[index] = graphc.tensor(value)
    np.testing.assert_array_equal(assigned.numpy(), expected)
    assigned[index] = graphc.tensor(7.0)
    expected[index] = 7
    np.testing.assert_array_equal(assigned.numpy(), expected)


def test_an_assignment_at_index_tensors_apart_has_gradients():
    index = (graphc.tensor([1, 0]), slice(None), graphc.tensor([0, 2]))
    x, value = graphc.rand(2, 3, 4, requires_grad=True), graphc.rand(2, 3, requires_grad=True)
    y = x * 1
    y[index] = value
    (y * y).sum().backward()
    assert x.grad is not None and value.grad is not None
    np.testing.assert_allclose(value.grad.numpy(), 2 * value.detach().numpy())
    mask = np.ones((2, 3, 4), np.float32)
    mask[[1, 0], :, [0, 2]] = 0
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy() * mask)
