"""Writes that are not recorded (under no_grad, to ``detach()`` and ``data``): content changes, the history does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc

pytestmark = pytest.mark.torch

LEFT, RIGHT = [0.3, 0.9, 0.45, 0.7], [0.8, 0.35, 0.6, 0.25]
PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[function.__name__] = function
    return function


@program
def a_detached_result(t, x, y):
    z = x * y
    z.detach().add_(1.0)
    return z * 2


@program
def data_of_a_result(t, x, y):
    z = x * y
    z.data.add_(1.0)
    return z * z


@program
def data_that_is_replaced(t, x, y):
    z = x * y
    z.data = y * 3
    return z * 2


@program
def a_result(t, x, y):
    z = x * y
    with t.no_grad():
        z.add_(1.0)
        z.mul_(2.0)
    z.mul_(y)
    with t.no_grad():
        z[0] = 0.0
    return z * z


@program
def a_part_of_a_result(t, x, y):
    z = x * y
    with t.no_grad():
        z[1:3] = 7.0
    z[1:2].detach().add_(1.0)
    return z * y


@program
def a_view_made_before(t, x, y):
    z = x * y
    part = z[1:3]
    with t.no_grad():
        z.add_(1.0)
    return part * part


@program
def a_copy(t, x, y):
    z = x * y
    with t.no_grad():
        z.copy_(y)
    return z * x


@program
def an_argument_used_before_and_after(t, x, y):
    z = x * 1 + y
    with t.no_grad():
        x.mul_(2.0)
    return z + x * y


@program
def data_of_an_argument(t, x, y):
    x.data = y * 3
    return x * 2 * y


@program
def a_constant(t, x, y):
    z, w = t.zeros(4, dtype=t.float64), x * 2
    with t.no_grad():
        z.copy_(w)
    return z * w


@program
def data_of_a_constant(t, x, y):
    z, w = t.zeros(4, dtype=t.float64), x * 2
    z.data = w
    return z * w


def results(library: Any, function: Callable[..., Any], inside: bool, compiled: bool) -> list[np.ndarray]:
    """The gradients of the sum, asked for outside of the function or inside."""
    leaves = [library.tensor(v, dtype=library.float64, requires_grad=True) for v in (LEFT, RIGHT)]

    def gradients(x: Any, y: Any) -> Any:
        return list(library.autograd.grad(function(library, x, y).sum(), [x, y], allow_unused=True))

    called = gradients if inside else lambda x, y: function(library, x, y)
    called = graphc.compile(called) if compiled else called
    result = called(*leaves)
    if not inside:
        result.sum().backward()
        result = [x.grad for x in leaves]
    return [np.zeros(4) if g is None else g.detach().numpy() for g in result]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_go_to_what_was_there(torch, name: str, inside: bool, compiled: bool):
    expected = results(torch, PROGRAMS[name], inside, False)
    np.testing.assert_allclose(results(graphc, PROGRAMS[name], inside, compiled), expected, rtol=1e-12)


def net_of(library: Any, write: Callable[..., None]) -> Any:
    """A layer whose forward pass writes to its weight."""

    class Net(library.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = library.nn.Parameter(library.tensor([0.3, 0.9, 1.5]))

        def forward(self, x: Any) -> Any:
            before = x.sum() + self.w
            write(library, self.w)
            return before + self.w * x

    return Net()


def clamp(library: Any, w: Any) -> None:
    with library.no_grad():
        w.clamp_(0.5, 1.0)


def normalize(library: Any, w: Any) -> None:
    with library.no_grad():
        w.copy_(w / w.norm())


WRITES = {"clamp": clamp, "data": lambda library, w: w.data.mul_(2.0), "normalize": normalize}


@pytest.mark.parametrize("way", ["eager", "compiled", "step"])
@pytest.mark.parametrize("name", WRITES)
def test_parameters_that_the_forward_pass_writes_are_trained(torch, name: str, way: str):
    results = []
    for library in (torch, graphc):
        net = net_of(library, WRITES[name])
        optimizer = library.optim.SGD(net.parameters(), lr=0.1)
        x = library.tensor([1.0, 2.0, 3.0])
        if way == "step" and library is graphc:
            step = graphc.compile_step(net, lambda result: result.sum(), optimizer)
            losses = [step(x).item() for _ in range(3)]
        else:
            call = graphc.compile(net) if way == "compiled" and library is graphc else net
            losses = []
            for _ in range(3):
                optimizer.zero_grad()
                loss = call(x).sum()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        results.append([losses, net.w.tolist()])
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5)
