"""Compiled modules and functions: variants, live state, eager autograd."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc import nn
from graphc.autograd import Function
from graphc.codegen.machine.target import host_target
from graphc.errors import ArgumentError, CompileError, GradientError, ShapeError, TraceError
from graphc.guards.watch_words import layout
from tests.calls.narrow import MOST, NARROW


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x, scale=1.0):
        return F.log_softmax(self.fc2(self.drop(F.relu(self.norm(self.fc1(x))))) * scale, dim=-1)


def batch(rows: int = 8, seed: int = 0) -> graphc.Tensor:
    return graphc.from_numpy(np.random.default_rng(seed).standard_normal((rows, 6)).astype(np.float32))


def close(a: graphc.Tensor, b: graphc.Tensor, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.fixture
def net() -> Net:
    graphc.manual_seed(0)
    return Net()


def test_training_mode_agrees_with_eager_mode(net):
    twin = copy.deepcopy(net)
    compiled = graphc.compile(twin)
    for step in range(3):
        x = batch(seed=step).requires_grad_()
        x_twin = x.detach().clone().requires_grad_()
        graphc.manual_seed(step)
        expected = net(x)
        state = graphc.get_rng_state()
        graphc.manual_seed(step)
        found = compiled(x_twin)
        assert graphc.get_rng_state().equal(state)
        close(found, expected)
        (expected[:, 0].sum() * 3).backward()
        (found[:, 0].sum() * 3).backward()
        close(x_twin.grad, x.grad, 1e-4)
    assert len(compiled.variants) == 1
    for (name, p), q in zip(net.named_parameters(), twin.parameters(), strict=True):
        close(p.grad, q.grad, 1e-4), name
    for p, q in zip(net.buffers(), twin.buffers(), strict=True):
        close(p, q)


def test_variants_by_signature(net):
    compiled = graphc.compile(net)
    x = batch()
    compiled(x)
    compiled(x + 1)
    assert len(compiled.variants) == 1
    compiled(batch(4))
    compiled(x, scale=2.0)
    compiled(x, scale=2.0)
    assert len(compiled.variants) == 3
    with graphc.no_grad():
        compiled(x)
    assert len(compiled.variants) == 4
    net.eval()
    close(compiled(x), net(x))
    assert len(compiled.variants) == 5
    net.fc1.requires_grad_(False)
    assert compiled(x).requires_grad
    assert len(compiled.variants) == 6
    with pytest.raises(ShapeError, match="input with 6 features"):
        compiled(graphc.ones(2, 5))


def test_parameters_are_those_of_the_live_model(net):
    net.eval()
    compiled = graphc.compile(net)
    x = batch()
    close(compiled(x), net(x))
    with graphc.no_grad():
        net.fc2.weight.mul_(2)
    close(compiled(x), net(x))
    net.load_state_dict({k: v + 0.25 for k, v in net.state_dict().items()})
    close(compiled(x), net(x))
    net.fc2.weight = nn.Parameter(graphc.ones(3, 16))
    close(compiled(x), net(x))
    assert len(compiled.variants) == 1
    net.fc2 = nn.Linear(16, 4)
    assert compiled(x).shape == (8, 4)
    net.drop = nn.Tanh().eval()
    close(compiled(x), net(x))
    optimizer = graphc.optim.SGD(net.parameters(), lr=0.1)
    compiled(x).sum().backward()
    optimizer.step()
    close(compiled(x), net(x))


@pytest.mark.parametrize("precision", MOST)
def test_narrow_weights_follow_the_live_model(precision: str):
    graphc.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 64)).eval()
    compiled = graphc.compile(model, precision=precision)
    x = graphc.from_numpy(np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32))

    def error() -> float:
        with graphc.no_grad():
            expected = model(x)
            return float((compiled(x) - expected).abs().max() / expected.abs().max())

    most = MOST[precision]
    assert 0 < error() < most and 0 < error() < most
    with graphc.no_grad():
        model[0].weight.mul_(-3)
        model[2].bias.add_(5)
    assert 0 < error() < most
    model[2].weight = nn.Parameter(graphc.eye(64, 80))
    assert error() < most
    model.load_state_dict({k: v * 0.5 for k, v in model.state_dict().items()})
    assert 0 < error() < most
    optimizer = graphc.optim.SGD(model.parameters(), lr=0.5)
    model(x).sum().backward()
    optimizer.step()
    assert 0 < error() < most
    assert len(compiled.variants) == 1
    (program,) = {id(v.program): v.program for v in compiled.variants}.values()
    narrow = NARROW.get(precision, precision)
    stored = [spec.dtype for spec in program.bound if math.prod(spec.shape) > 600]
    assert stored.count(narrow) == 2 and "f32" not in stored


def test_narrow_weights_have_no_gradients():
    model = nn.Linear(64, 80)
    with pytest.raises(GradientError, match="computes no gradients"):
        graphc.compile(model, precision="bf16")(graphc.ones(2, 64))
    model.requires_grad_(False)
    assert graphc.compile(model, precision="bf16")(graphc.ones(2, 64)).shape == (2, 80)
    with pytest.raises(ArgumentError, match="no precision 'f64'"):
        graphc.compile(model, precision="f64")

    @graphc.compile(precision="f16")
    def twice(x):
        return x * 2

    assert twice(graphc.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_frozen_weights_are_folded_until_they_change(net):
    net.eval()
    frozen = graphc.compile(net, freeze=True)
    x = batch()
    with graphc.no_grad():
        close(frozen(x), net(x))
        first = frozen.variants[0]
        assert not first.binding.slots, "all weights are constants"
        close(frozen(x), net(x))
        assert frozen.variants == [first]
        net.fc1.weight.mul_(2.0)
        net.norm.running_mean.add_(0.5)
        close(frozen(x), net(x))
        assert len(frozen.variants) == 1 and frozen.variants[0] is not first
        net.fc2.weight = nn.Parameter(graphc.ones(3, 16))
        close(frozen(x), net(x))
        net.load_state_dict(Net().state_dict())
        close(frozen(x), net(x))


@pytest.mark.parametrize("write", ["in place", "data", "parameter", "state"])
def test_frozen_weights_are_watched_by_the_native_call(write: str):
    net = nn.Linear(16, 3).eval()
    x = graphc.ones(2, 16)
    changes = {
        "in place": lambda: net.weight.mul_(2.0),
        "data": lambda: setattr(net.weight, "data", graphc.ones(3, 16)),
        "parameter": lambda: setattr(net, "bias", nn.Parameter(graphc.ones(3))),
        "state": lambda: net.load_state_dict(nn.Linear(16, 3).state_dict()),
    }
    with graphc.no_grad():
        frozen = graphc.compile(net, freeze=True)
        for _ in range(3):
            for _ in range(4):
                close(frozen(x), net(x))
            if None not in layout():  # this interpreter tells of changes
                assert frozen.variants[0].shortcut() is not None, "no Python between the call and the native code"
            changes[write]()
            close(frozen(x), net(x))


def test_frozen_models_still_write_their_state(net):
    twin = copy.deepcopy(net)
    frozen = graphc.compile(twin, freeze=True)
    with graphc.no_grad():
        for step in range(2):
            graphc.manual_seed(step)
            expected = net(batch(seed=step))
            graphc.manual_seed(step)
            close(frozen(batch(seed=step)), expected)
    close(twin.norm.running_mean, net.norm.running_mean)
    assert len(frozen.variants) == 1


def test_frozen_weights_have_no_gradients(net):
    net.eval()
    with pytest.raises(GradientError, match="compiled with freeze=True, which computes no gradients"):
        graphc.compile(net, freeze=True)(batch())
    with pytest.raises(GradientError, match="precision='bf16', freeze=True"):
        graphc.compile(net, freeze=True, precision="bf16")(batch())


def test_frozen_and_narrow():
    model = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 64)).eval()
    narrow = graphc.compile(model, freeze=True, precision="f16")
    with graphc.no_grad():
        close(narrow(graphc.ones(2, 64)), model(graphc.ones(2, 64)), 1e-2)
        model[0].weight.mul_(0.5)
        close(narrow(graphc.ones(2, 64)), model(graphc.ones(2, 64)), 1e-2)


def test_module_attributes_are_reachable(net):
    compiled = graphc.compile(net)
    assert compiled.fc1 is net.fc1 and len(list(compiled.parameters())) == 6
    compiled.eval()
    assert not net.training
    assert repr(compiled).startswith("compiled(Net(")


def test_functions():
    offset = graphc.ones(3)

    @graphc.compile()
    def function(x, *rest, power, **more):
        """Doc."""
        return {"a": x**power + offset, "b": (rest[0] * 2, power)}, more["y"] @ x.t()

    x = graphc.from_numpy(np.random.default_rng(0).standard_normal((2, 3)))
    result, product = function(x, x + 1, power=2, y=x)
    close(result["a"], x**2 + 1, 1e-12)
    close(result["b"][0], (x + 1) * 2, 1e-12)
    assert result["b"][1] == 2
    close(product, x @ x.t(), 1e-12)
    assert function.__name__ == "function" and function.__doc__ == "Doc."
    offset += 1
    close(function(x, x, power=2, y=x)[0]["a"], x**2 + 2, 1e-12)


def test_captured_parameters_get_gradients():
    w = graphc.ones(3, requires_grad=True)
    function = graphc.compile(lambda x: (x * w).sum())
    x = graphc.arange(3.0)
    function(x).backward()
    function(x).backward()
    assert w.grad.tolist() == [0, 2, 4]


def test_outputs_without_gradient():
    function = graphc.compile(lambda x: (x * 2, x.argmax(), x.detach() + 1, x > 0))
    x = graphc.tensor([1.0, -2.0], requires_grad=True)
    outputs = function(x)
    assert [o.requires_grad for o in outputs] == [True, False, False, False]
    outputs[0].sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_part_of_the_outputs_may_be_used():
    function = graphc.compile(lambda x: (x * 2, x * x))
    x = graphc.tensor([1.0, -2.0], requires_grad=True)
    function(x)[1].sum().backward()
    assert x.grad.tolist() == [2, -4]


def test_compiled_functions_inside_larger_graphs(net):
    net.eval()
    compiled = graphc.compile(net)
    w = graphc.ones(6, requires_grad=True)
    (compiled(batch() * w)[:, 0] ** 2).sum().backward()
    found, w.grad = w.grad, None
    (net(batch() * w)[:, 0] ** 2).sum().backward()
    close(found, w.grad, 1e-4)
    assert graphc.trace(lambda x: compiled(x) * 2, batch()).name == "main"


def test_versions_of_what_backward_reads_are_checked():
    function = graphc.compile(lambda x, w: x * w)
    x, w = graphc.ones(2), graphc.ones(2, requires_grad=True)
    y = function(x, w)
    x.add_(1)
    with pytest.raises(GradientError, match="an argument of the compiled main, f32"):
        y.sum().backward()
    y = function(x, w)
    y.sum().backward()
    with pytest.raises(GradientError, match="run backward once"):
        y.sum().backward()


def test_second_derivatives_outside_and_inside():
    x = graphc.tensor([2.0], requires_grad=True)
    function = graphc.compile(lambda x: (x**3).sum())
    (first,) = graphc.autograd.grad(function(x), x, create_graph=True)
    assert graphc.autograd.grad(first, x)[0].item() == pytest.approx(12)
    inside = graphc.compile(graphc.grad(lambda x: (x**3).sum()))
    (second,) = graphc.autograd.grad(inside(x), x)
    assert inside(x).item() == pytest.approx(12) and second.item() == pytest.approx(12)


def test_custom_functions():
    class Clip(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, g):
            return g * 0.5

    x = graphc.tensor([-3.0, 0.5], requires_grad=True)
    y = graphc.compile(lambda x: Clip.apply(x * 2))(x)
    y.sum().backward()
    assert y.tolist() == [-1, 1] and x.grad.tolist() == [1, 1]


def test_state_outside_of_modules_is_written_back():
    count = graphc.zeros(2)

    def function(x):
        count.add_(x)
        return count * 2

    compiled = graphc.compile(function)
    version = count._version
    assert compiled(graphc.ones(2)).tolist() == [2, 2]
    assert compiled(graphc.ones(2)).tolist() == [4, 4]
    assert count.tolist() == [2, 2] and count._version == version + 2
    assert len(compiled.variants) == 1


def test_strided_arguments_and_arrays():
    function = graphc.compile(lambda x, y: x - y)
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert function(graphc.from_numpy(array).t(), array.T * 1).tolist() == [[0, 0]] * 3


def test_what_cannot_be_compiled():
    with pytest.raises(ArgumentError, match="can be compiled, not int"):
        graphc.compile(3)
    with pytest.raises(TraceError, match="needs the values"):
        graphc.compile(lambda x: x if x.sum() > 0 else -x)(graphc.ones(2))
    with pytest.raises(AttributeError):
        _ = graphc.compile(lambda x: x).missing


def test_a_class_in_the_place_of_a_module():
    optimizer = graphc.optim.SGD(graphc.nn.Linear(1, 1).parameters(), lr=0.1)
    for call in (
        lambda: graphc.compile(graphc.nn.Linear),
        lambda: graphc.compile_step(graphc.nn.Linear(1, 1), graphc.nn.MSELoss, optimizer),
    ):
        with pytest.raises(ArgumentError, match="is a class"):
            call()


def _twice(x):
    return x * 2


@graphc.compile
def decorated(x):
    return x + 1


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda c: pickle.loads(pickle.dumps(c))])
def test_a_compiled_module_is_copied_and_pickled_as_what_it_was_made_of(copied):
    compiled = graphc.compile(nn.Linear(3, 2), precision="bf16")
    x = graphc.rand(4, 3)
    with graphc.no_grad():
        expected = compiled(x).tolist()
        other = copied(compiled)
        assert other(x).tolist() == expected and other.variants[0].weights.precision == "bf16"
        shares = other.weight is compiled.weight
        assert shares == (copied is copy.copy)
        other.weight.mul_(2.0)
        assert (compiled(x).tolist() == expected) != shares
        assert other(x).tolist() != expected


def test_compiled_functions_are_copied_and_pickled():
    x = graphc.ones(2)
    compiled = graphc.compile(_twice)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert other is not compiled and other(x).tolist() == [2, 2]
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated)(x).tolist() == [2, 2]


def test_a_copied_training_step_has_a_model_and_an_optimizer_of_its_own():
    model = nn.Linear(3, 1)
    step = graphc.compile_step(model, nn.functional.mse_loss, graphc.optim.Adam(model.parameters(), lr=0.1))
    x, y = graphc.rand(4, 3), graphc.rand(4, 1)
    step(x, y)
    other, before = copy.deepcopy(step), model.weight.tolist()
    assert other.optimizer.param_groups[0]["params"][0] is other.model.weight
    assert other(x, y).item() == step(x, y).item()
    assert other.model.weight.tolist() == model.weight.tolist() != before


def test_what_no_result_depends_on_gets_no_gradient():
    net, other = nn.Linear(2, 2), nn.Linear(2, 2)
    x, y = graphc.ones(1, 2).requires_grad_(), graphc.ones(1, 2).requires_grad_()

    def function(x, y):
        other(y)
        return net(x) + (y * 2).detach() + graphc.floor(x)

    graphc.compile(function)(x, y).sum().backward()
    assert y.grad is None and all(p.grad is None for p in other.parameters())
    assert x.grad is not None and all(p.grad is not None for p in net.parameters())


@pytest.mark.parametrize("door", [graphc.compile, lambda m, target: graphc.compile(target=target)(m)])
def test_unknown_and_foreign_targets(door):
    with pytest.raises(CompileError, match="unknown target 'pdp11'"):
        door(nn.Linear(2, 2), target="pdp11")
    foreign = "neon" if host_target().triple.startswith("x86_64") else "avx2"
    with pytest.raises(CompileError, match="does not run here"):
        door(nn.Linear(2, 2), target=foreign)
