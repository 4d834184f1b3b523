"""Note 002: the MNIST net, what Module keeps and checks, registration of members, apply, hooks, training by hand."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import graphc
import graphc.nn.functional as F
from graphc import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = x.view(-1, 320)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, training=self.training)
        x = self.fc2(x)
        return F.log_softmax(x)


def batch(count=4):
    graphc.manual_seed(1)
    return graphc.randn(count, 1, 28, 28), graphc.randint(0, 10, (count,))


def test_the_net_gives_log_probabilities_and_warns_of_the_missing_dimension():
    with pytest.warns(UserWarning, match="dim"):
        y = Net()(batch()[0])
    assert y.shape == (4, 10)
    assert graphc.allclose(y.exp().sum(1), graphc.ones(4), atol=1e-5)


@pytest.mark.parametrize(("shape", "dim"), [((3,), 0), ((3, 4), 1), ((2, 3, 4), 0), ((2, 3, 4, 5), 1)])
def test_the_dimension_that_is_guessed(shape, dim):
    x = graphc.randn(*shape)
    with pytest.warns(UserWarning, match=f"dim={dim}"):
        guessed = F.log_softmax(x)
    assert graphc.equal(guessed, F.log_softmax(x, dim=dim))


@pytest.mark.filterwarnings("ignore:log_softmax")
@pytest.mark.parametrize("compiled", [False, True])
def test_training_lowers_the_loss(compiled):
    graphc.manual_seed(0)
    net = Net().eval()
    x, y = batch(8)
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
    if compiled:
        step = graphc.compile_step(net, F.nll_loss, optimizer)
        losses = [step(x, y).item() for _ in range(8)]
    else:
        losses = []
        for _ in range(8):
            optimizer.zero_grad()
            loss = F.nll_loss(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0] * 0.8


def test_only_what_init_registers_is_trained():
    names = [n for n, _ in Net().named_parameters()]
    layers = ("conv1", "conv2", "fc1", "fc2")
    assert names == [f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")]


# ---- what Module keeps


def test_the_tables_of_a_module():
    m = nn.Module()
    for table in ("_parameters", "_buffers", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks", "_modules"):
        assert isinstance(getattr(m, table), OrderedDict) and not getattr(m, table)
    assert m.training is True and nn.Module.dump_patches is False
    assert hasattr(m, "_backend")


def test_forward_must_be_written():
    with pytest.raises(NotImplementedError):
        nn.Module()(1)


class Unready(nn.Module):
    def __init__(self, what):
        setattr(self, "member", what)  # noqa: B010


@pytest.mark.parametrize("make", [lambda: nn.Parameter(graphc.ones(1)), lambda: nn.Linear(1, 1)])
def test_nothing_is_assigned_before_init(make):
    with pytest.raises(AttributeError, match="__init__"):
        Unready(make())


def test_a_buffer_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self):
            self.register_buffer("b", graphc.ones(1))

    with pytest.raises(AttributeError):
        Early()


class TestRegisterParameter:
    def test_before_init(self):
        class Early(nn.Module):
            def __init__(self):
                self.register_parameter("w", nn.Parameter(graphc.ones(1)))

        with pytest.raises(AttributeError, match="__init__"):
            Early()

    def test_none_is_kept(self):
        m = nn.Module()
        m.register_parameter("w", None)
        assert m.w is None and "w" in m._parameters and not list(m.parameters())

    def test_another_object(self):
        with pytest.raises(TypeError, match="w"):
            nn.Module().register_parameter("w", graphc.ones(1))

    def test_the_result_of_an_operation(self):
        w = nn.Parameter(graphc.ones(1))
        derived = w * 2
        derived.__class__ = nn.Parameter
        with pytest.raises(ValueError, match="w"):
            nn.Module().register_parameter("w", derived)

    def test_a_module_is_refused_with_a_hint(self):
        # The note's second method; only the first one, setattr, registers a module.
        with pytest.raises(TypeError, match=r"add_module|setattr"):
            nn.Module().register_parameter("conv", nn.Conv2d(1, 1, 1))


def test_modules_in_a_plain_dictionary_are_not_registered_until_they_are_attributes():
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.local = {i + 1: nn.Linear(2, 2) for i in range(4)}
            self.whole = nn.Linear(2, 2)

    net = Parts()
    assert len(list(net.parameters())) == 2
    for i in net.local:
        setattr(net, f"local_{i}", net.local[i])
    assert len(list(net.parameters())) == 10
    assert net.local_1 is net.local[1]


# ---- assignment


def test_a_name_moves_between_the_tables():
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(graphc.ones(1))
    assert "x" in m._parameters and "x" not in m.__dict__
    with pytest.raises(TypeError, match="x"):
        m.x = 5
    m.x = None
    assert m._parameters["x"] is None
    m.y = nn.Linear(1, 1)
    m.y = nn.Parameter(graphc.ones(1))
    assert "y" in m._parameters and "y" not in m._modules
    with pytest.raises(TypeError, match="y"):
        m.y = nn.Linear(1, 1)
    del m.y
    m.y = nn.Linear(1, 1)
    assert "y" in m._modules and "y" not in m._parameters


def test_a_child_is_replaced_by_a_module_or_none_only():
    m = nn.Module()
    m.child = nn.ReLU()
    with pytest.raises(TypeError, match="child"):
        m.child = 3
    m.child = nn.Tanh()
    assert isinstance(m.child, nn.Tanh)
    m.child = None
    assert m.child is None and "child" in m._modules


def test_a_buffer_is_replaced_by_a_tensor_or_none_only():
    m = nn.Module()
    m.register_buffer("seen", graphc.zeros(1))
    with pytest.raises(TypeError, match="seen"):
        m.seen = 3
    m.seen = graphc.ones(2)
    assert m._buffers["seen"].tolist() == [1, 1]
    m.seen = None
    assert m.seen is None


def test_a_parameter_of_a_registered_name_reaches_the_register():
    # As printed in the note, the line that registers stands behind a raise and is never reached.
    m = nn.Module()
    m.register_parameter("w", None)
    m.w = nn.Parameter(graphc.ones(1))
    assert m._parameters["w"].tolist() == [1]


# ---- apply and conversion


def test_apply_visits_children_first_and_returns_the_module():
    net, order = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU())), []
    assert net.apply(lambda m: order.append(type(m).__name__)) is net
    assert order == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_the_inner_apply_changes_parameters_gradients_and_buffers():
    m = nn.BatchNorm1d(2)
    weight = m.weight
    m.weight.grad = graphc.ones(2)
    assert m._apply(lambda t: t.double() if t.is_floating_point() else t) is m
    assert m.weight is weight and m.weight.dtype is graphc.float64
    assert m.weight.grad.dtype is graphc.float64 and m.running_mean.dtype is graphc.float64
    assert m.num_batches_tracked.dtype is graphc.int64


def test_apply_is_not_what_updates_parameters():
    # The note says so of apply; optimizers do it.
    net = nn.Linear(1, 1)
    before = net.weight.item()
    net.apply(lambda m: None)
    assert net.weight.item() == before
    net(graphc.ones(1, 1)).backward()
    optim.SGD(net.parameters(), lr=1.0).step()
    assert net.weight.item() == pytest.approx(before - 1)


def test_cpu_moves_everything_and_cuda_says_that_there_is_none():
    net = nn.Linear(1, 1)
    assert net.cpu() is net
    with pytest.raises(Exception, match="cuda"):
        net.cuda()


# ---- hooks


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "backward"])
def test_a_handle_removes_its_hook(kind):
    m = nn.Linear(1, 1)
    handle = getattr(m, f"register_{kind}_hook")(lambda *a: None)
    table = getattr(m, f"_{kind}_hooks")
    assert list(table) == [handle.id]
    handle.remove()
    handle.remove()
    assert not table


# ---- training by hand


def test_a_loss_and_a_descent_of_ones_own_with_a_rate_that_falls_by_epoch():
    graphc.manual_seed(0)
    net = nn.Linear(2, 1)
    x = graphc.randn(16, 2)
    y = x @ graphc.tensor([[1.0], [-2.0]]) + 0.5

    def loss(found, wanted):
        return ((found - wanted) ** 2).mean() + 1e-4 * sum((p**2).sum() for p in net.parameters())

    losses = []
    for epoch in range(60):
        rate = 0.2 * 0.98**epoch
        value = loss(net(x), y)
        net.zero_grad()
        value.backward()
        with graphc.no_grad():
            for p in net.parameters():
                p -= rate * p.grad
        losses.append(value.item())
    assert losses[-1] < 0.01 * losses[0]


def test_rates_per_parameter_and_by_epoch():
    net = nn.Linear(2, 1)
    groups = [{"params": [net.weight], "lr": 0.1}, {"params": [net.bias], "lr": 0.01}]
    optimizer = optim.SGD(groups, lr=1.0)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1))
    net(graphc.ones(1, 2)).sum().backward()
    optimizer.step()
    schedule.step()
    assert [g["lr"] for g in optimizer.param_groups] == [0.05, 0.005]


def test_a_backward_of_ones_own():
    class Clipped(graphc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad.clamp(-0.1, 0.1)

    x = graphc.ones(2, requires_grad=True)
    (Clipped.apply(x) * graphc.tensor([5.0, -5.0])).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.1, -0.1])
