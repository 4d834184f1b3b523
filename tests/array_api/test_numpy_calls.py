"""Functions of numpy with tensors: gradients that are kept, and those of which it is said that they are lost."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api.numpy_calls import FUNCTIONS, METHODS, UFUNCS, apply_function, apply_ufunc
from graphc.base.errors import GradientError, TraceError

VALUES = np.array([[0.5, 1.5, 2.5], [3.5, 0.25, 0.75]], np.float32)
OTHER = np.array([[2.0, 1.0, 3.0], [0.5, 4.0, 1.0]], np.float32)

CALLS = {
    "exp": lambda x: np.exp(x),
    "arctan2": lambda x: np.arctan2(x, OTHER),
    "an array first": lambda x: np.add(OTHER, x),
    "a list": lambda x: np.add(x, [1.0, 2.0, 3.0]),
    "operator of an array": lambda x: OTHER * x,
    "operator of a number of numpy": lambda x: np.float32(2) ** x,
    "power": lambda x: np.power(x, 3),
    "fmax": lambda x: np.fmax(x, OTHER),
    "logaddexp2": lambda x: np.logaddexp2(OTHER, x),
    "matmul": lambda x: np.matmul(x, OTHER.T),
    "concatenate": lambda x: np.concatenate([x, OTHER, x], axis=1),
    "stack": lambda x: np.stack([x, x], axis=-1),
    "mean": lambda x: np.mean(x, 0),
    "sum": lambda x: np.sum(x, axis=1, keepdims=True),
    "sum in another type": lambda x: np.sum(x, axis=0, dtype=np.float64),
    "var": lambda x: np.var(x),
    "std": lambda x: np.std(x, axis=1, ddof=1),
    "max": lambda x: np.max(x, axis=1),
    "amin": lambda x: np.amin(x),
    "prod": lambda x: np.prod(x),
    "cumsum": lambda x: np.cumsum(x),
    "cumprod": lambda x: np.cumprod(x, axis=0),
    "sort": lambda x: np.sort(x),
    "sort flattened": lambda x: np.sort(x, axis=None),
    "clip": lambda x: np.clip(x, 1, 2),
    "clip above": lambda x: np.clip(x, None, 2),
    "where": lambda x: np.where(VALUES > 1, x, 0),
    "dot": lambda x: np.dot(x, OTHER.T),
    "dot with a number": lambda x: np.dot(x, 2.0),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, OTHER),
    "outer": lambda x: np.outer(x, OTHER),
    "tensordot": lambda x: np.tensordot(x, OTHER, axes=([1], [1])),
    "transpose": lambda x: np.transpose(x),
    "transpose by axes": lambda x: np.transpose(x, (1, 0)),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "reshape": lambda x: np.reshape(x, (3, -1)),
    "reshape to a vector": lambda x: np.reshape(x, -1),
    "ravel": lambda x: np.ravel(x),
    "squeeze": lambda x: np.squeeze(np.expand_dims(x, 0)),
    "squeeze an axis": lambda x: np.squeeze(np.expand_dims(x, 0), 0),
    "flip": lambda x: np.flip(x, 1),
    "roll": lambda x: np.roll(x, 1),
    "tile": lambda x: np.tile(x, 2),
    "repeat": lambda x: np.repeat(x, 2, axis=1),
    "diff": lambda x: np.diff(x),
    "tril": lambda x: np.tril(x),
    "broadcast_to": lambda x: np.broadcast_to(x, (4, 2, 3)),
    "broadcast_to a vector": lambda x: np.broadcast_to(x[0, 0], 3),
    "take_along_axis": lambda x: np.take_along_axis(
        x, gc.tensor([[0], [2]]) if isinstance(x, gc.Tensor) else PLACES, 1
    ),
}
PLACES = np.array([[0], [2]])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_function_keeps_the_gradient(call):
    x = gc.tensor(VALUES, requires_grad=True)
    found = call(x)
    wanted = np.asarray(call(VALUES))
    assert type(found) is gc.Tensor and found.requires_grad and found.shape == wanted.shape
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-5)
    weights = gc.tensor(np.arange(1.0, 1.0 + wanted.size).reshape(wanted.shape), dtype=found.dtype)
    (found * weights).sum().backward()
    steps = np.zeros(VALUES.shape)
    for place in np.ndindex(VALUES.shape):
        up, down = VALUES.astype(np.float64), VALUES.astype(np.float64)
        up[place], down[place] = up[place] + 1e-5, down[place] - 1e-5
        steps[place] = np.sum((call(up) - call(down)) * weights.numpy()) / 2e-5
    np.testing.assert_allclose(x.grad.numpy(), steps, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_function_is_compiled(call):
    x = gc.tensor(VALUES)
    np.testing.assert_allclose(gc.compile(call)(x).numpy(), np.asarray(call(VALUES)), rtol=1e-5)


LOST = {
    "norm": lambda x: np.linalg.norm(x),
    "median": lambda x: np.median(x),
    "a method of a ufunc": lambda x: np.add.reduce(x),
    "a function of two results": lambda x: np.divmod(x, 2),
    "a sum where": lambda x: np.sum(x, where=VALUES > 1),
    "into an array": lambda x: np.add(x, 1, out=np.zeros((2, 3), np.float32)),
    "a sort of a kind": lambda x: np.sort(x, kind="mergesort"),
    "isclose": lambda x: np.isclose(x, OTHER),
}


@pytest.mark.parametrize("call", LOST.values(), ids=LOST)
def test_numpy_computes_the_rest_and_refuses_what_has_a_gradient(call):
    np.testing.assert_allclose(np.asarray(call(gc.tensor(VALUES))), np.asarray(call(VALUES)), rtol=1e-6)
    with pytest.raises(GradientError, match=r"numpy.* would lose the gradient"):
        call(gc.tensor(VALUES, requires_grad=True))


@pytest.mark.parametrize("call", LOST.values(), ids=LOST)
def test_numpy_computes_nothing_of_traced_tensors(call):
    with pytest.raises(TraceError, match="needs the values of a traced tensor"):
        gc.compile(call)(gc.tensor(VALUES))


def test_an_array_is_written_to_by_numpy():
    array = VALUES.copy()
    array += gc.ones(3)
    assert array.tolist() == (VALUES + 1).tolist()
    with pytest.raises(GradientError):
        array += gc.ones(3, requires_grad=True)


def test_questions_of_shape_are_answered_in_a_trace():
    def shaped(x):
        assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6 and np.size(x, 1) == 3
        return np.zeros_like(x) + np.full_like(x, 2.0)

    assert gc.compile(shaped)(gc.tensor(VALUES, requires_grad=True)).tolist() == [[2.0] * 3] * 2


def test_arrays_of_the_standard_stay_such_and_promote_as_it_says():
    x, scalar = xp.asarray(VALUES), xp.asarray(1.0, dtype=xp.float64)
    for found in (np.exp(x), np.add(x, scalar), np.mean(x), np.concatenate([x, x]), np.fmax(x, 1.0)):
        assert type(found) is xp.Array
    assert np.add(x, scalar).dtype is gc.float64
    assert np.add(gc.tensor(VALUES), gc.tensor(1.0, dtype=gc.float64)).dtype is gc.float32


def test_results_without_a_gradient_are_given_for_tensors_that_have_one():
    x = gc.tensor(VALUES, requires_grad=True)
    assert np.argmax(x).item() == 3 and np.isnan(x).any().item() is False
    assert np.count_nonzero(x > 1).item() == 3 and [f.shape for f in np.nonzero(x > 1)] == [(3,), (3,)]


def test_a_tensor_is_no_argument_of_ones_that_it_does_not_know():
    with pytest.raises(TypeError):
        np.add(gc.tensor(VALUES), "text")
    with pytest.raises(TypeError):
        np.mean(gc.tensor(VALUES), nonsense=1)


def test_the_tables_name_functions_of_numpy():
    assert all(hasattr(np, name) for name in (*FUNCTIONS, *UFUNCS, *METHODS))
    assert all(name in xp.__all__ for name in UFUNCS.values())


def test_the_protocols_are_those_of_numpy():
    x = gc.tensor(VALUES)
    assert apply_ufunc(np.negative, "__call__", (x,), {}).tolist() == (-VALUES).tolist()
    assert apply_function(np.sum, (x,), {}).item() == VALUES.sum()
