"""Opaque functions: Python in the middle of compiled code, gradient included."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, GradientError, ShapeError, TraceError


def numpy_softplus(x):
    return gc.from_numpy(np.log1p(np.exp(x.detach().numpy())))


def test_functions_see_the_values_of_each_call():
    seen = []

    @gc.opaque(results=lambda x: x)
    def look(x):
        seen.append(x.tolist())
        return x + len(seen)

    compiled = gc.compile(lambda x: look(x * 2) * 10)
    assert [compiled(gc.tensor([float(i)])).item() for i in range(3)] == [10, 40, 70]
    assert seen == [[0], [2], [4]]
    assert look(gc.tensor([5.0])).item() == 9, "in eager mode it is the function itself"


def test_results_are_learned_from_a_run_on_zeros():
    @gc.opaque
    def parts(x, scale, *, names):
        return {"sum": x.detach().numpy().sum() * scale, names[0]: [x.argmax(), x.numpy().astype(np.int32)]}

    x = gc.tensor([[1.0, 5.0], [2.0, 3.0]])
    result = gc.compile(lambda x: parts(x, 2.0, names=("rest",)))(x)
    assert result["sum"].item() == 22 and result["rest"][0].item() == 1
    assert result["rest"][1].dtype is gc.int32 and result["rest"][1].tolist() == [[1, 5], [2, 3]]


def test_functions_that_cannot_run_on_zeros_need_results():
    @gc.opaque
    def inverse(x):
        return np.linalg.inv(x.numpy())

    with pytest.raises(TraceError, match=r"was run on zeros[\s\S]*LinAlgError[\s\S]*results="):
        gc.compile(inverse)(gc.eye(3))
    known = gc.opaque(lambda x: np.linalg.inv(x.numpy()), results=lambda x: x)
    np.testing.assert_allclose(gc.compile(known)(gc.eye(3) * 2).numpy(), np.eye(3) / 2)


def test_order_of_calls_is_that_of_the_function():
    seen = []
    first = gc.opaque(lambda x: seen.append("first"), results=lambda x: None)
    second = gc.opaque(lambda x: seen.append("second"), results=lambda x: None)

    @gc.compile
    def f(x):
        second(x)
        first(x.sum())
        second(x * 2)
        return x

    for _ in range(3):
        f(gc.ones(3))
    assert seen == ["second", "first", "second"] * 3


def test_gradients_go_through_operations_of_graphc():
    @gc.opaque(results=lambda x: x)
    def scaled(x):
        factor = 2.0 if x.sum().item() > 0 else 3.0
        return x * factor

    compiled = gc.compile(lambda x: (scaled(x) ** 2).sum())
    for start, factor in ((1.0, 4.0), (-1.0, 9.0)):
        x = gc.tensor([start, start], requires_grad=True)
        compiled(x).backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * factor * x.detach().numpy())


def test_errors_are_those_of_the_function():
    calls = []

    @gc.opaque(results=lambda x: x)
    def check(x):
        calls.append(1)
        if x.max().item() > 1:
            raise LookupError("too large")
        return x

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", gc.zeros(()))

        def forward(self, x):
            self.count += 1
            return check(x) + self.count

    model = Counting()
    compiled = gc.compile(model)
    assert compiled(gc.zeros(2)).tolist() == [1, 1]
    with pytest.raises(LookupError, match="too large"):
        compiled(gc.full((2,), 2.0))
    assert model.count.item() == 1 and len(calls) == 2, "nothing is written, and it is called once"
    assert compiled(gc.zeros(2)).tolist() == [2, 2]


def test_results_of_another_shape_are_refused():
    shapes = [3]
    grow = gc.opaque(lambda x: gc.zeros(shapes[0]), results=lambda x: gc.zeros(3))
    compiled = gc.compile(lambda x: grow(x))
    compiled(gc.ones(1))
    shapes[0] = 4
    with pytest.raises(ShapeError, match=r"returned f32\[4\], the compiled code takes f32\[3\]"):
        compiled(gc.ones(1))


def test_gradients_that_would_be_lost_are_refused():
    weight = gc.ones(2, requires_grad=True)
    hidden = gc.opaque(lambda x: x * weight, results=lambda x: x)
    with pytest.raises(GradientError, match="would not carry the gradient"):
        gc.compile(lambda x: hidden(x).sum())(gc.ones(2, requires_grad=True))


def test_what_cannot_call_python_says_so(tmp_path):
    opaque = gc.opaque(numpy_softplus, results=lambda x: x)
    with pytest.raises(TraceError, match=r"numpy_softplus runs in Python"):
        gc.trace(lambda x: opaque(x), gc.ones(2))
    with pytest.raises(TraceError, match=r"numpy_softplus runs in Python"):
        gc.export(lambda x: opaque(x), gc.ones(2), path=str(tmp_path / "m.gcm"))
    with pytest.raises(TraceError, match="a step of a loop"):
        gc.compile(lambda x: gc.scan(lambda h, r: (opaque(r), r), gc.zeros(2), x))(gc.ones(3, 2))


@pytest.mark.parametrize("threads", [1, 2])
def test_with_threads(threads):
    before = gc.get_num_threads()
    gc.set_num_threads(threads)
    try:
        opaque = gc.opaque(lambda x: x.numpy()[:, ::-1].copy(), results=lambda x: x)
        compiled = gc.compile(lambda x: (opaque(gc.exp(x) + 1) @ gc.exp(x).t()).sum(0))
        gc.manual_seed(0)
        x = gc.randn(300, 200) * 0.1
        e = np.exp(x.numpy())
        np.testing.assert_allclose(compiled(x).numpy(), ((e + 1)[:, ::-1] @ e.T).sum(0), rtol=1e-4)
    finally:
        gc.set_num_threads(before)


def test_code_that_writes_to_states_cannot_call_itself():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", gc.zeros(()))

        def forward(self, x):
            self.count += 1
            return again(x) + self.count

    depth = []

    @gc.opaque(results=lambda x: x)
    def again(x):
        depth.append(1)
        return compiled(x) if len(depth) < 3 else x

    model = Counting()
    compiled = gc.compile(model)
    with gc.no_grad(), pytest.raises(ArgumentError, match="calls the compiled code that calls it"):
        compiled(gc.zeros(2))
    assert model.count.item() == 0


def test_what_is_no_function():
    with pytest.raises(ArgumentError, match="opaque: function must be a function, got int"):
        gc.opaque(3)  # type: ignore[arg-type]  # pyright: ignore
    with pytest.raises(ArgumentError, match="opaque: results must be a function, got Tensor"):
        gc.opaque(results=gc.ones(2))


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_gradients_that_are_asked_for_reach_leaves_that_no_operation_has_seen(scale: float):
    compiled = gc.compile(lambda x: gc.opaque(lambda x: x * scale, results=lambda x: x)(x) * 3)
    x = gc.ones(3, requires_grad=True)
    (gradients,) = gc.autograd.grad(compiled(x).sum(), x)
    assert gradients.tolist() == [3 * scale] * 3
