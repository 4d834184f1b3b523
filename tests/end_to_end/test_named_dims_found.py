"""Programs with named dimensions that the net of sizes found: values and gradients of one program at many sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ShapeError
from graphc.nn import functional as F

B, T = gc.Dim("batch", 1, 40, hint=6), gc.Dim("time", 1, 40, hint=8)
SIZES = [(6, 8), (1, 1), (40, 40), (2, 3), (7, 16), (17, 33), (3, 15)]


class Found(NamedTuple):
    """A function, the shapes of its arguments, and how many programs it may take."""

    function: Callable[..., Any]
    shapes: tuple[tuple[Any, ...], ...]
    programs: int = 1


def shape_at(shape, batch, time):
    sizes = {"batch": batch, "time": time}
    return tuple(sizes.get(str(n), n) for n in shape)


def given(shapes, batch, time):
    random = np.random.default_rng(batch * 100 + time)
    return [
        gc.tensor(random.standard_normal(shape_at(s, batch, time)).astype(np.float32)).requires_grad_() for s in shapes
    ]


def results(call, arguments):
    result = call(*arguments)
    result = [t for t in (result if isinstance(result, (tuple, list)) else (result,)) if t is not None]
    roots = [t for t in result if t.requires_grad]
    weights = [gc.cos(gc.arange(t.numel()).reshape(t.shape)).to(t.dtype) for t in roots]
    gradients = gc.autograd.grad(roots, arguments, weights, allow_unused=True) if roots else ()
    return [t.detach().numpy() for t in result], [None if g is None else g.numpy() for g in gradients]


def close(result, expected, title):
    assert len(result) == len(expected)
    for a, b in zip(result, expected, strict=True):
        assert (a is None) == (b is None), title
        if b is not None:
            assert a.shape == b.shape and a.dtype == b.dtype, title
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=title)


def _written_to_nothing(x, a):
    y = x.clone()
    y[16:-15][0:1:4] = a
    return y[16:-15]


FOUND = {
    "gradients of what is left of an argument": Found(lambda x: x[gc.tensor([0]), None, gc.tensor([-1])], ((B, T, 3),)),
    "gradients of half of an argument": Found(lambda x: gc.cat([x, x])[x.shape[0] // 2 :][: x.shape[0]], ((B,),)),
    "gradients of every second row": Found(lambda x: x[:, ::2], ((B, T, 4),)),
    "numbers at equal distances": Found(
        lambda x: x * gc.linspace(0, 1, x.shape[0]) + gc.logspace(0, 1, x.shape[0]), ((B,),)
    ),
    "numbers up to a size": Found(lambda x: x * gc.linspace(-1, x.shape[0] - 1, x.shape[0], dtype=gc.float64), ((B,),)),
    "attention of a named width": Found(lambda q, k: F.scaled_dot_product_attention(q, k, k), ((2, T, B), (2, 5, B))),
    "roots of sizes": Found(lambda x: x / np.sqrt(x.shape[0]) + x * (x.shape[0] + 1) ** 0.5, ((B,),)),
    "rows that move round": Found(lambda x: x.roll(1, 0) + x.roll(2, 2), ((B, T, 5),)),
    "lookups by zeros": Found(lambda x: gc.gather(x, 0, gc.zeros(x.shape[0], 3, dtype=gc.int64)), ((B, 3),)),
    "a quotient that is a number": Found(lambda x: x.reshape(-1) if x.shape[0] // 30 == 0 else x * 2, ((B,),), 2),
    "a write to nothing": Found(_written_to_nothing, ((B,), ()), 2),
    "gradients of means over named dimensions": Found(lambda x: x.mean(), ((B, T),)),
}


@pytest.mark.parametrize("name", FOUND)
def test_one_program_is_as_eager_mode_at_all_sizes(name):
    function, shapes, programs = FOUND[name]
    call = gc.compile(function, dims=list(shapes))
    for batch, time in SIZES:
        arguments, title = given(shapes, batch, time), f"{name} at {batch}, {time}"
        for result, expected in zip(results(call, arguments), results(function, arguments), strict=True):
            close(result, expected, title)
    assert len(call.variants) <= programs


FROM_NOTHING = {
    "means": lambda x: x.mean(0) + x.mean(),
    "variances": lambda x: x.std(0, correction=0),
    "losses": lambda x: F.mse_loss(x, x * 2),
    "softmax of rows": lambda x: x.softmax(1) + F.log_softmax(x, 1),
    "lookups": lambda x: x * F.embedding(gc.arange(x.shape[0]) % 3, gc.arange(9.0).reshape(3, 3)),
    "halves": lambda x: gc.cat([x.narrow(0, 0, x.shape[0] // 2), x]),
    "products of rows": lambda x: gc.einsum("ij,kj->ik", x, x),
    "sums of products": lambda x: gc.einsum("ij,ij->i", x, x * 2),
}


@pytest.mark.parametrize("name", FROM_NOTHING)
def test_dimensions_that_may_be_0_need_no_program_of_their_own(name):
    function, n = FROM_NOTHING[name], gc.Dim("n", 0, 40, hint=6)
    call = gc.compile(function, dims=[(n,)])
    for size in (6, 0, 1, 2, 7, 16, 33, 40):
        x = gc.tensor(np.random.default_rng(size).standard_normal((size, 3)).astype(np.float32)).requires_grad_()
        for result, expected in zip(results(call, [x]), results(function, [x]), strict=True):
            close(result, expected, f"{name} at {size}")
    assert len(call.variants) == 1


HELD = {
    "a length that is asked for again": (lambda x: gc.logcumsumexp(x, -1), ((B, T),), (5, 7)),
    "one dimension below the other": (
        lambda x, y: x[: y.shape[0]] + 1 if y.shape[0] <= x.shape[0] else x,
        ((T,), (B,)),
        (4, 9),
    ),
    "a multiple": (lambda x: x if x.shape[0] % 4 else x[::2], ((T, B),), (3, 12)),
    "a number": (lambda x: x * 2 if x.shape[0] == 8 else x, ((T, B),), (13, 8)),
}


@pytest.mark.parametrize("native", [False, True], ids=["", "native"])
@pytest.mark.parametrize("name", HELD)
def test_what_a_trace_assumed_holds_in_its_file(name, native, tmp_path):
    function, shapes, sizes = HELD[name]
    path, examples = tmp_path / "f.gcm", given(shapes, 6, 8)
    with gc.no_grad():
        manifest = gc.export(function, *examples, path=path, dims=list(shapes), native=native)
        assert manifest.assumptions
        loaded = gc.load(path, trust=native)
        arguments = given(shapes, *sizes)
        close([loaded(*[a.numpy() for a in map(gc.Tensor.detach, arguments)])], [function(*arguments).numpy()], name)
        compiled = gc.compile(function, dims=list(shapes))
        batch, time = (40, 7) if name == "a length that is asked for again" else sizes
        assert loaded.plan(batch=batch, time=time).arena == compiled.plan(*given(shapes, batch, time)).arena


@pytest.mark.parametrize("size", [0, 1, 3, 5])
def test_a_padding_of_nothing_is_computed_itself(size):
    def function(x):
        rows = x[3:3] if size < 5 else x[3:]
        return (rows + rows)[1:]

    x, y = (gc.ones(size).requires_grad_() for _ in range(2))
    function(x).sum().backward()
    gc.compile(function)(y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_a_file_says_sizes_that_only_what_was_assumed_keeps_from_being_negative(tmp_path):
    path = tmp_path / "f.gcm"
    gc.export(lambda x: (x[1:], x[:, : x.shape[1] // 3 * -1]), gc.ones(6, 8), path=path, dims=[(B, T)])
    loaded = gc.load(path)
    assert [a.shape for a in loaded(np.ones((2, 16), np.float32))] == [(1, 16), (2, 11)]


def test_quotients_by_what_may_be_0_are_kept_in_files(tmp_path):
    n, path = gc.Dim("n", 0, 9, hint=3), tmp_path / "f.gcm"
    manifest = gc.export(lambda x: x * 2 if 8 // x.shape[0] == 2 else x, gc.ones(3), path=path, dims=[(n,)])
    assert any("8 // n" in str(a) for a in manifest.assumptions)
    loaded = gc.load(path)
    assert loaded(np.ones(4, np.float32)).tolist() == [2.0] * 4
    with pytest.raises(ShapeError, match="was traced for"):
        loaded(np.ones(0, np.float32))


def test_a_traced_graph_whose_types_need_what_was_assumed_is_compiled():
    graph = gc.trace(lambda x, y: x[: y.shape[0]] + 1, gc.rand(8), gc.rand(6), dims=[(T,), (B,)])
    call = gc.compile(graph)
    assert call(gc.ones(9), gc.ones(5)).tolist() == [2.0] * 5


def test_sizes_divided_by_negative_ones_are_what_they_are_of_numbers():
    def function(x, y):
        return x * (x.shape[0] // (y.shape[0] - 8)) + (x.shape[0] % (y.shape[0] - 8))

    call = gc.compile(function, dims=[(T,), (B,)])
    for time, batch in ((20, 12), (20, 5), (7, 9), (40, 1), (21, 6)):
        x, y = gc.rand(time), gc.ones(batch)
        np.testing.assert_allclose(call(x, y).numpy(), function(x, y).numpy(), rtol=1e-5)
    assert len(call.variants) == 2
