"""Note 003: the graph of tensors and functions, modules around functions, functions and modules of one's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
import graphc.nn.modules as M
from graphc import nn
from graphc.autograd import Function, gradcheck


def test_import_paths():
    assert M.Conv2d is nn.Conv2d and M.Module is nn.Module
    assert graphc.autograd.Function is Function
    assert graphc.nn.functional is F


def test_a_tensor_has_data_gradient_creator_and_flag():
    x = graphc.ones(2, requires_grad=True)
    y = x * 2
    assert x.grad_fn is None and y.grad_fn is not None and x.is_leaf and not y.is_leaf
    assert y.detach().grad_fn is None and not y.detach().requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


# ---- operations of one's own, as instances


class AddConstant(Function):
    def __init__(self, constant):
        self.constant = constant

    def forward(self, x):
        return x + self.constant

    def backward(self, grad):
        return grad


class Transpose(Function):
    def __init__(self, dim0, dim1):
        self.dims = dim0, dim1

    def forward(self, x):
        return x.transpose(*self.dims)

    def backward(self, grad):
        return grad.transpose(*self.dims)


class OldReLU(Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x.clamp(min=0)

    def backward(self, grad):
        (x,) = self.saved_tensors
        return grad * (x > 0).float()


def test_instances_run_forward_and_backward():
    x = graphc.tensor([[1.0, -2.0, 3.0]], requires_grad=True)
    y = OldReLU()(Transpose(0, 1)(AddConstant(0.5)(x)))
    assert y.tolist() == [[1.5], [0.0], [3.5]]
    (y * graphc.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    assert x.grad.tolist() == [[1, 0, 3]]


def test_an_instance_serves_one_call():
    f = AddConstant(1.0)
    f(graphc.ones(1))
    with pytest.raises(RuntimeError):
        f(graphc.ones(1))


def test_saved_tensors_are_a_tuple():
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, None, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            assert isinstance(ctx.saved_tensors, tuple)
            x, nothing, y = ctx.saved_tensors
            assert nothing is None
            return grad * y, grad * x

    x, y = graphc.tensor([2.0], requires_grad=True), graphc.tensor([3.0], requires_grad=True)
    Keeps.apply(x, y).backward()
    assert (x.grad.item(), y.grad.item()) == (3, 2)


# ---- the linear function and its module


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad):
        input, weight, bias = ctx.saved_tensors
        found = [None, None, None]
        if ctx.needs_input_grad[0]:
            found[0] = grad.mm(weight)
        if ctx.needs_input_grad[1]:
            found[1] = grad.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            found[2] = grad.sum(0)
        return tuple(found)


class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(graphc.empty(out_features, in_features))
        if bias:
            self.bias = nn.Parameter(graphc.empty(out_features))
        else:
            self.register_parameter("bias", None)
        bound = 1 / math.sqrt(in_features)
        for p in self.parameters():
            p.data.uniform_(-bound, bound)

    def forward(self, input):
        if self.bias is None:
            return LinearFunction.apply(input, self.weight)
        return LinearFunction.apply(input, self.weight, self.bias)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_linear_module_of_ones_own_is_the_one_of_nn(bias, compiled):
    ours, theirs = Linear(4, 3, bias), nn.Linear(4, 3, bias)
    theirs.load_state_dict(ours.state_dict())
    x = graphc.randn(5, 4)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, z = (graphc.compile(ours) if compiled else ours)(a), theirs(b)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-5, atol=1e-6)
    (y**2).sum().backward()
    (z**2).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_the_linear_function_passes_the_gradient_check():
    inputs = [graphc.randn(3, 4).double(), graphc.randn(2, 4).double(), graphc.randn(2).double()]
    assert gradcheck(LinearFunction.apply, [t.requires_grad_() for t in inputs])


# ---- what forward and backward take and give


def test_arguments_with_defaults_may_be_left_out_and_more_nones_returned():
    class Power(Function):
        @staticmethod
        def forward(ctx, x, exponent=2, scale=1.0):
            ctx.save_for_backward(x)
            ctx.numbers = exponent, scale
            return x**exponent * scale

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            exponent, scale = ctx.numbers
            return grad * exponent * x ** (exponent - 1) * scale, None, None

    x = graphc.tensor([3.0], requires_grad=True)
    Power.apply(x).backward()
    assert x.grad.item() == 6
    Power.apply(x, 3, 2.0).backward()
    assert x.grad.item() == 6 + 54


def test_as_many_gradients_come_in_as_results_went_out():
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return 2 * first + 3 * second

    x = graphc.tensor([1.0], requires_grad=True)
    a, b = Split.apply(x)
    (a * 10 + b).backward()
    assert x.grad.item() == 23


@pytest.mark.parametrize("returned", [(), (1, 1, 1)])
def test_a_wrong_number_of_gradients_is_refused(returned):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return tuple(grad for _ in returned)

    x = graphc.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="Wrong"):
        Wrong.apply(x, x).backward()


def test_forward_must_be_there():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError):
        Nothing.apply(graphc.ones(1))


def test_a_function_has_no_parameters_and_a_module_no_backward():
    assert not hasattr(Function, "parameters")
    assert not hasattr(nn.Module, "backward")


# ---- modules and functionals


def test_a_layer_is_its_functional_with_the_parameters_filled_in():
    layer = M.Conv2d(2, 3, 3, padding=1)
    x = graphc.randn(1, 2, 5, 5)
    assert graphc.equal(layer(x), F.conv2d(x, layer.weight, layer.bias, padding=1))


def test_inputs_parameters_and_static_values_are_three_classes_of_a_graph():
    graph = graphc.trace(nn.Sequential(nn.Conv2d(2, 3, 3, stride=2), nn.BatchNorm2d(3)), graphc.randn(1, 2, 7, 7))
    assert {v.node.attrs["cls"] for v in graph.inputs} == {"input", "param", "state"}
    assert "stride=[2,2]" in str(graph)


def test_objects_are_made_called_and_iterated_by_the_usual_methods():
    class Numbers:
        def __init__(self, count):
            self.count = count

        def __call__(self, x):
            return x + self.count

        def __iter__(self):
            self.at = 0
            return self

        def __next__(self):
            if self.at == self.count:
                raise StopIteration
            self.at += 1
            return graphc.full((1,), float(self.at))

    numbers = Numbers(3)
    assert [t.item() for t in numbers] == [1, 2, 3]
    assert numbers(graphc.ones(1)).item() == 4
    assert len(list(nn.Linear(1, 1).parameters())) == 2


def test_the_backward_of_a_module_is_made_of_its_functions():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    y = net(graphc.ones(1, 2))
    seen, open_ = set(), [y.grad_fn]
    while open_:
        node = open_.pop()
        seen.add(node.name())
        open_ += [n for n, _ in node.next_functions if n is not None]
    assert "MatmulBackward" in seen and "AccumulateGrad" in seen
