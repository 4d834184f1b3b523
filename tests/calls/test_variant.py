"""Programs of compiled functions: the target that their forward and backward code is made for."""

import pickle
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.tensors.structure import flatten
from tests.native import target_or_skip


def test_code_for_a_machine_with_fewer_instructions():
    target_or_skip("avx2")
    model, x = nn.Linear(32, 16).eval(), graphc.rand(4, 32)
    compiled = graphc.compile(model, target="avx2")
    again = pickle.loads(pickle.dumps(compiled))
    for made in (compiled, again):
        with graphc.no_grad():
            np.testing.assert_allclose(made(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)
        (variant,) = made.variants
        assert variant.program.manifest.target.cpu == "x86-64-v3"


def test_backward_programs_are_for_the_same_target():
    target_or_skip("sse2")
    w = graphc.rand(8, 8).requires_grad_()
    f = graphc.compile(lambda x: (x @ w).sum(), target="sse2")
    f(graphc.rand(4, 8)).backward()
    (variant,) = f.variants
    assert variant.backward_program.manifest.target.features == ("sse2",)


def _named(x):
    return x


SAME = {
    "argument": lambda x, k, net: _named(x),
    "arguments in a structure": lambda x, k, net: {"a": [x, (x + 1,)], "b": x},
    "captured": lambda x, k, net: (k, x + k),
    "parameter": lambda x, k, net: (net.weight, net(x)),
    "buffer that is written": lambda x, k, net: (k.add_(1), k),
    "detached": lambda x, k, net: (x.detach(), x * 2),
    "copies": lambda x, k, net: (x.clone(), x + 0),
}


def _values(grad: bool) -> tuple[Any, ...]:
    """Return an argument, a captured tensor, and a layer whose parameters are constant."""
    net: Any = graphc.nn.Linear(3, 3)
    with graphc.no_grad():
        net.weight.fill_(0.5)
        net.bias.fill_(1)
    return graphc.ones(2, 3, requires_grad=grad), graphc.zeros(2, 3), net


def _backward(results: Any) -> None:
    """Compute gradients of the results that have some."""
    if any(r.requires_grad for r in results):
        sum([(r * 3).sum() for r in results if r.requires_grad], graphc.zeros(())).backward()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", SAME)
def test_tensors_from_outside_are_returned_themselves(name, grad):
    """The same objects as in eager mode, in repeated calls, with writes and gradients that reach them."""

    def observed(compile):
        x, k, net = _values(grad)
        outside = [x, k, net.weight]
        function = compile(lambda x: SAME[name](x, k, net))
        seen = []
        for _ in range(3):
            results, _ = flatten(function(x))
            seen.append([next((i for i, t in enumerate(outside) if t is r), None) for r in results])
            _backward(results)
            seen.append([None if t.grad is None else t.grad.tolist() for t in outside])
            with graphc.no_grad():
                for r in results:
                    if any(r is t for t in outside):
                        r.mul_(2)
            seen.append([t.tolist() for t in outside])
        return seen

    assert observed(graphc.compile) == observed(lambda function: function)


VIEWS = {
    "slice": lambda x, k, net: (x[:1], x * 2),
    "chain": lambda x, k, net: x.transpose(0, 1)[1:].reshape(2, 2, 1),
    "captured": lambda x, k, net: {"a": k[:, 1:], "b": (k.unsqueeze(0),)},
    "captured that is written": lambda x, k, net: (k.add_(1), k[0]),
    "captured view": lambda x, k, net: (net.bias[1:], x + 1),
    "parameter": lambda x, k, net: (net.weight.T, net(x)),
    "detached": lambda x, k, net: (x.detach(), net.weight.detach()[0]),
    "without gradients": lambda x, k, net: graphc.no_grad()(lambda: x[0])(),
    "expanded copy": lambda x, k, net: x[:1].expand(4, 3) + 0,
    "reshape that copies": lambda x, k, net: x.transpose(0, 1).reshape(6),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_views_of_tensors_from_outside_share_their_memory(name, grad):
    """Writes to results, and gradients, reach the same tensors as in eager mode, in repeated calls."""

    def observed(compile):
        x, k, net = _values(grad)
        outside = [x, k, net.weight, net.bias]
        function = compile(lambda x: VIEWS[name](x, k, net))
        seen = []
        for _ in range(3):
            results, _ = flatten(function(x))
            seen.append([(r.tolist(), r.requires_grad) for r in results])
            _backward(results)
            with graphc.no_grad():
                for r in results:
                    r.mul_(2)
            seen.append([(t.tolist(), None if t.grad is None else t.grad.tolist()) for t in outside])
        return seen

    assert observed(graphc.compile) == observed(lambda function: function)


def test_arguments_of_all_sizes_and_their_views_are_returned_themselves():
    for dims in ({"x": (graphc.Dim("n"),)}, "auto"):
        function = graphc.compile(lambda x: (x, x[x.shape[0] // 2 :], x + 1), dims=dims)
        for size in (3, 4, 5):
            x = graphc.ones(size)
            same, view, _ = function(x)
            view.zero_()
            assert same is x
            assert x.tolist() == [1] * (size // 2) + [0] * (size - size // 2)


def test_a_written_argument_is_returned_as_a_copy():
    x = graphc.ones(2)
    result = graphc.compile(lambda x: x.mul_(3))(x)
    assert result is not x and result.tolist() == [3, 3] and x.tolist() == [1, 1]
