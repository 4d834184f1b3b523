"""Note 000: tensors, variables, parameters and buffers; functions and modules; hooks; the order of a forward call."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import graphc
from graphc import nn
from graphc.autograd import Function, Variable
from graphc.errors import HookError


def test_a_tensor_is_what_operations_take_and_give():
    x = graphc.empty(3, 5)
    assert graphc.is_tensor(x) and x.shape == (3, 5)
    assert graphc.is_tensor(x + x) and not graphc.is_tensor([1.0])
    assert graphc.typename(x) == "graphc.float32"


def test_a_variable_holds_data_creator_and_gradient():
    x = Variable(graphc.ones(2, 2), requires_grad=True)
    y = (x + 2) ** 2
    assert x.creator is None and x.grad_fn is None and x.grad is None
    assert y.creator is y.grad_fn and y.grad_fn is not None
    y.mean().backward()
    assert graphc.is_tensor(x.grad) and x.grad.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert x.data.tolist() == [[1, 1], [1, 1]] and not x.data.requires_grad


def test_a_variable_shares_the_memory_of_its_tensor():
    t = graphc.zeros(3)
    v = Variable(t)
    v.add_(1)
    assert t.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("a", "b"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_result_requires_gradients_if_any_operand_does(a, b):
    x, y = Variable(graphc.ones(2), requires_grad=a), Variable(graphc.ones(2), requires_grad=b)
    assert (x * y).requires_grad is (a or b)


def test_a_result_is_volatile_if_any_operand_is():
    weight = Variable(graphc.ones(2), requires_grad=True)
    x = Variable(graphc.ones(2), volatile=True)
    y = (x * weight).sum()
    assert x.volatile and y.volatile and not weight.volatile
    assert not y.requires_grad and y.grad_fn is None
    assert not (y + weight).requires_grad
    assert not Variable(graphc.ones(2), requires_grad=True, volatile=True).requires_grad
    assert (weight * 2).requires_grad


def test_a_volatile_input_keeps_a_whole_model_from_being_recorded():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    assert not net(Variable(graphc.ones(1, 3), volatile=True)).requires_grad
    assert net(Variable(graphc.ones(1, 3))).requires_grad


def test_a_parameter_is_a_tensor_that_registers_itself():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(graphc.ones(2))
            self.hidden = graphc.zeros(2)
            self.register_buffer("seen", graphc.zeros(1))

    net = Net()
    assert isinstance(net.weight, graphc.Tensor) and net.weight.requires_grad
    assert [name for name, _ in net.named_parameters()] == ["weight"]
    assert [name for name, _ in net.named_buffers()] == ["seen"]
    assert type(net.seen) is graphc.Tensor
    assert sorted(net.state_dict()) == ["seen", "weight"]


def test_a_function_computes_with_tensors_that_are_not_recorded():
    seen = []

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = x * x
            seen.append((y.requires_grad, y.grad_fn))
            return y

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            seen.append(grad.requires_grad)
            return 2 * x * grad

    x = graphc.tensor([3.0], requires_grad=True)
    y = Square.apply(x)
    assert y.requires_grad and y.grad_fn.name() == "SquareBackward"
    y.backward()
    assert seen == [(False, None), False]
    assert x.grad.item() == 6


def test_modules_contain_modules():
    vgg = nn.Sequential(
        OrderedDict(
            features=nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            classifier=nn.Sequential(nn.Flatten(), nn.Linear(8, 3)),
        )
    )
    assert vgg(graphc.randn(2, 1, 4, 4)).shape == (2, 3)
    assert [n for n, _ in vgg.named_children()] == ["features", "classifier"]
    assert len(list(vgg.parameters())) == 4


class Monitored(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) * 2


def test_a_forward_hook_watches_outputs():
    net, seen = Monitored(), []
    handle = net.inner.register_forward_hook(lambda m, args, output: seen.append((m, len(args), output.shape)))
    net(graphc.ones(3, 2))
    assert seen == [(net.inner, 1, (3, 2))]
    handle.remove()
    net(graphc.ones(3, 2))
    assert len(seen) == 1


def test_a_tensor_hook_handles_the_gradient():
    x = Variable(graphc.ones(2), requires_grad=True)
    y = x * 3
    seen = []
    handle = y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    assert seen == [[1, 1]]
    y = x * 3
    x.grad = None
    y.register_hook(lambda grad: grad * 10)
    y.sum().backward()
    assert x.grad.tolist() == [30, 30]


@pytest.mark.filterwarnings("ignore")
def test_a_backward_hook_sees_gradients_of_inputs_and_outputs():
    net, seen = Monitored(), []
    net.inner.register_backward_hook(lambda m, grad_input, grad_output: seen.append(grad_output[0].tolist()))
    net(graphc.ones(1, 2)).sum().backward()
    assert seen == [[[2, 2]]]


@pytest.mark.parametrize("kind", ["register_forward_pre_hook", "register_forward_hook"])
def test_in_strict_mode_no_hook_may_change_anything(kind):
    net, x = Monitored(), graphc.ones(1, 2)

    def replace(module, *given):
        return given[-1]

    def write(module, *given):
        target = given[-1][0] if isinstance(given[-1], tuple) else given[-1]
        with graphc.no_grad():
            target.add_(1)

    for hook in (replace, write):
        with getattr(net, kind)(hook):
            net(x.clone())
            with graphc.hooks.strict(), pytest.raises(HookError, match="only look"):
                net(x.clone())


def test_today_hooks_may_replace_inputs_and_outputs():
    net = nn.Identity()
    net.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    net.register_forward_hook(lambda m, args, output: output * 10)
    assert net(graphc.ones(1)).tolist() == [20]


def make_chain(log):
    """A module with an inner module and a function that write down every station of a call."""

    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            log.append("function forward")
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Inner(nn.Module):
        def forward(self, x):
            log.append("inner forward")
            y = Double.apply(x)
            log.append("inner forward returns")
            return y

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def __call__(self, *args):
            log.append("call")
            result = super().__call__(*args)
            log.append("call returns")
            return result

        def forward(self, x):
            log.append("forward")
            y = self.inner(x)
            log.append("forward returns")
            return y

    net = Outer()
    net.register_forward_hook(lambda m, args, output: log.append("hook"))
    net.inner.register_forward_hook(lambda m, args, output: log.append("inner hook"))
    return net


STATIONS = ["call", "forward", "inner forward", "function forward", "inner forward returns", "inner hook"]
STATIONS += ["forward returns", "hook", "call returns"]


def test_the_stations_of_a_forward_call():
    log = []
    assert make_chain(log)(graphc.ones(1)).item() == 2
    assert log == STATIONS


def test_the_stations_are_the_same_under_trace():
    log = []
    net = make_chain(log)
    graphc.trace(net, graphc.ones(1))
    assert log == STATIONS
