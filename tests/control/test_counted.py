"""Loops by a counter become scans over slices: what is computed stays the same, and so do gradients."""

import numpy as np
import pytest

import graphc as gc


def _scan_of(function, *args):
    (node,) = [n for n in gc.trace(function, *args).nodes() if n.op.name == "scan"]
    return node


def _row(x, i):
    return x.index_select(0, i.reshape(1)).squeeze(0)


def _put(x, i, row):
    return x.index_copy(0, i.reshape(1), row.unsqueeze(0))


def _squares(x):
    return gc.while_loop(
        lambda s: s[0] < 5, lambda s: (s[0] + 1, _put(s[1], s[0], _row(x, s[0]) ** 2)), (gc.tensor(0), x * 0)
    )[1]


def _backwards(x):
    return gc.while_loop(
        lambda s: s[0] >= 0, lambda s: (s[0] - 1, _put(s[1], s[0], _row(s[1], s[0]).sin())), (gc.tensor(4), x)
    )[1]


def _every_second(x):
    return gc.fori_loop(0, 2, lambda i, s: _put(s, 2 * i + 1, _row(s, 2 * i + 1) * 3), x)


def _added(x):
    def step(s):
        return s[0] + 1, s[1].index_add(0, s[0].reshape(1), _row(x, 4 - s[0]).unsqueeze(0))

    return gc.while_loop(lambda s: s[0] < 5, step, (gc.tensor(0), x))[1]


def _timed(x):
    return gc.fori_loop(0, 5, lambda i, s: s * _row(x, i) + i, x[0])


CASES = {
    # carries, sequences, and whether the scan runs backwards
    "a read and a write of all rows": (_squares, 0, 1, False),
    "rows in place, from the last one on": (_backwards, 0, 1, True),
    "rows that leave others as they are": (_every_second, 0, 1, False),
    "sums with another order": (_added, 0, 2, False),
    "a counter that is also a number": (_timed, 1, 2, False),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_take_and_return_slices(name):
    function, carries, sequences, reverse = CASES[name]
    x = gc.tensor(np.random.default_rng(0).normal(size=(5, 3)))
    attrs = _scan_of(function, x).attrs
    assert (attrs["carries"], attrs["sequences"], attrs["reverse"]) == (carries, sequences, reverse)
    np.testing.assert_allclose(gc.compile(function)(x).numpy(), function(x).numpy(), rtol=1e-13)
    gradient = gc.grad(lambda x: function(x).cos().sum())
    np.testing.assert_allclose(gc.compile(gradient)(x).numpy(), gradient(x).numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    "step",
    [
        lambda i, s: _put(s, i + 1, _row(s, i) * 2),  # reads another row
        lambda i, s: _put(s, i // 2, _row(s, i)),  # writes rows twice
        lambda i, s: _put(s, i, s.sum(0)),  # reads all rows
        lambda i, s: _put(s, (i + 2) % 5, _row(s, (i + 2) % 5) * 2),  # no linear function
    ],
)
def test_other_steps_keep_the_whole_tensor(step):
    def function(x):
        return gc.fori_loop(0, 4, step, x)

    x = gc.tensor(np.random.default_rng(0).normal(size=(5, 3)))
    assert _scan_of(function, x).attrs["carries"] >= 1
    np.testing.assert_allclose(gc.compile(function)(x).numpy(), function(x).numpy(), rtol=1e-13)


def test_final_counters_unchanged_carries_and_stacked_counters_are_known():
    def function(x):
        def step(carry, row):
            i, total, same = carry
            return (i + 2, total + row.sum() * same, same), i

        (i, total, same), numbers = gc.scan(step, (gc.tensor(1), x.sum() * 0, x[0, 0]), x)
        same += 1
        return i, total, same, numbers, x

    x = gc.ones(5, 3)
    assert _scan_of(function, x).attrs["carries"] == 1
    i, total, same, numbers, after = gc.compile(function)(x)
    assert (int(i), float(total), float(same)) == (11, 15, 2)
    assert numbers.tolist() == [1, 3, 5, 7, 9] and after.tolist() == x.tolist()


def test_an_index_out_of_range_is_an_error_as_before():
    def function(x):
        return gc.fori_loop(0, 6, lambda i, s: s + x[i], x[0] * 0)

    with pytest.raises(gc.errors.IndexRangeError, match="index 5"):
        gc.compile(function)(gc.ones(5, 3))


def test_a_loop_with_random_numbers_draws_the_same_ones():
    def function(x):
        return gc.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + gc.rand(3)), (gc.tensor(0), x))[1]

    x = gc.zeros(3)
    gc.manual_seed(1)
    eager, following = function(x), gc.rand(2)
    gc.manual_seed(1)
    compiled = gc.compile(function)
    np.testing.assert_allclose(compiled(x).numpy(), eager.numpy(), rtol=1e-6)
    assert gc.rand(2).tolist() == following.tolist()


@pytest.mark.parametrize("first", [0, 1])
def test_what_a_step_cuts_off_decides_whether_the_room_is_left_out(first):
    def step(i, s):
        return gc.constant_pad_nd(s, (0, 1), 9.0).index_add(0, i.reshape(1), gc.ones(1) * i)[first : first + 5]

    x = gc.tensor(np.random.default_rng(0).random(5).astype(np.float32))
    attrs = _scan_of(lambda x: gc.fori_loop(0, 3, step, x), x).attrs
    assert attrs["carries"] == first
    expected = x.numpy()
    for i in range(3):
        expected = np.append(expected, np.float32(9))
        expected[i] += i
        expected = expected[first : first + 5]
    np.testing.assert_allclose(gc.compile(lambda x: gc.fori_loop(0, 3, step, x))(x).numpy(), expected, rtol=1e-6)


def test_a_loop_that_computes_nothing_is_left_out():
    def function(x):
        return gc.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 2, s[1]), (gc.tensor(1), x))

    x = gc.tensor([1.0, 2.0])
    assert all(node.op.name != "scan" for node in gc.trace(function, x).nodes())
    i, same = gc.compile(function)(x)
    assert int(i) == 5 and same.tolist() == [1, 2]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("stride", [1, -1])
def test_stacked_counters_keep_the_order_of_the_loop(reverse, stride):
    def function(x):
        def step(carry, _):
            i, total = carry
            return (i + stride, total * 0.5 + x[i]), i

        return gc.scan(step, (gc.tensor(0 if stride > 0 else 4), x[0]), length=5, reverse=reverse)

    x = gc.tensor(np.random.default_rng(0).random(5))
    (_, total), numbers = gc.compile(function)(x)
    assert numbers.tolist() == [*range(5)][:: stride * (-1 if reverse else 1)]
    assert total.item() == function(x)[0][1].item()
