"""Module: registration rules, attributes, calls, conversion, text, copies."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.autograd import forward_ad
from graphc.base import module_path
from graphc.errors import ArgumentError, DTypeError, MemberError, MemberNameError, ShapeError


class Late(nn.Module):
    """Assigns before Module.__init__ ran."""

    def __init__(self, name: str, value: object):
        setattr(self, name, value)


@pytest.mark.parametrize("value", [nn.Parameter(graphc.ones(1)), nn.ReLU(), nn.Buffer(graphc.ones(1))])
def test_assignment_before_init(value: object):
    with pytest.raises(AttributeError, match=r"before Module.__init__ ran") as caught:
        Late("x", value)
    assert "super().__init__()" in str(caught.value)


@pytest.mark.parametrize("method", ["register_parameter", "register_buffer", "add_module"])
def test_registration_before_init(method: str):
    class Early(nn.Module):
        def __init__(self):
            getattr(self, method)("x", None)

    with pytest.raises(MemberError, match=r"before Module.__init__ ran"):
        Early()


def test_unexpected_constructor_arguments():
    class Net(nn.Module):
        def __init__(self):
            super().__init__(3, depth=4)

    with pytest.raises(TypeError, match=r"unexpected arguments \['3', 'depth=4'\]"):
        Net()


def test_register_parameter():
    m = nn.Module()
    p = nn.Parameter(graphc.ones(2))
    m.register_parameter("p", p)
    m.register_parameter("none", None)
    assert m.p is p and m.none is None
    assert [n for n, _ in m.named_parameters()] == ["p"]
    with pytest.raises(TypeError, match="Tensor is not a Parameter"):
        m.register_parameter("q", graphc.ones(2))
    with pytest.raises(TypeError, match="Linear is a Module") as caught:
        m.register_parameter("q", nn.Linear(1, 1))
    assert "add_module('q'" in str(caught.value)


def test_register_parameter_that_was_computed():
    p = nn.Parameter(graphc.ones(2))
    computed = p * 2
    computed.__class__ = nn.Parameter
    with pytest.raises(ValueError, match="was computed from others"):
        nn.Module().register_parameter("p", computed)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (3, TypeError, "must be a string, got int 3"),
        ("a.b", KeyError, "contains a dot"),
        ("", KeyError, "empty name"),
        ("forward", KeyError, "has an attribute of this name already"),
    ],
)
@pytest.mark.parametrize("method", ["register_parameter", "register_buffer", "add_module"])
def test_names(method: str, name: object, error: type, message: str):
    with pytest.raises(error, match=message):
        getattr(nn.Module(), method)(name, None)


def test_name_errors_read_well():
    with pytest.raises(MemberNameError) as caught:
        nn.Module().register_buffer("a.b", None)
    assert str(caught.value).startswith("buffer name 'a.b' contains a dot\n  try")


def test_a_name_of_another_kind_is_taken():
    m = nn.Module()
    m.register_buffer("b", graphc.ones(1))
    with pytest.raises(MemberNameError):
        m.register_parameter("b", None)
    m.register_buffer("b", graphc.zeros(1))
    assert m.b.item() == 0


def test_assignment_moves_a_name_between_kinds():
    m = nn.Module()
    m.x = 5
    m.x = nn.Parameter(graphc.ones(1))
    assert "x" in m._parameters and "x" not in m.__dict__
    del m.x
    m.register_buffer("x", graphc.ones(1))
    m.x = nn.Parameter(graphc.ones(1))
    assert "x" in m._parameters and "x" not in m._buffers
    del m.x
    m.x = nn.ReLU()
    m.x = nn.Parameter(graphc.ones(1))
    assert "x" in m._parameters and "x" not in m._modules
    del m.x
    m.register_buffer("x", graphc.ones(1))
    m.x = nn.ReLU()
    assert "x" in m._modules and "x" not in m._buffers


def test_wrong_values_for_registered_names():
    m = nn.Linear(1, 1)
    m.child = nn.ReLU()
    m.register_buffer("b", graphc.ones(1))
    with pytest.raises(TypeError, match=r"Linear.weight is a parameter and cannot become a Tensor"):
        m.weight = graphc.ones(1)
    with pytest.raises(TypeError, match=r"Linear.weight is a parameter and cannot become a ReLU"):
        m.weight = nn.ReLU()
    with pytest.raises(TypeError, match=r"Linear.child is a child module and cannot become a int"):
        m.child = 3
    with pytest.raises(TypeError, match=r"Linear.b is a buffer and cannot become a list"):
        m.b = [1]
    m.weight = m.child = m.b = None
    assert m.weight is None and m.child is None and m.b is None
    assert "weight" in m._parameters and "child" in m._modules and "b" in m._buffers


def test_plain_tensors_and_containers_are_not_registered():
    m = nn.Module()
    m.hidden = graphc.ones(2)
    m.layers = {"k": nn.Linear(1, 1)}
    assert list(m.parameters()) == [] and list(m.buffers()) == [] and list(m.children()) == []
    setattr(m, "layer", m.layers["k"])  # noqa: B010
    assert len(list(m.parameters())) == 2


def test_buffers():
    m = nn.Module()
    m.a = nn.Buffer(graphc.ones(1))
    m.b = nn.Buffer(graphc.ones(1), persistent=False)
    m.register_buffer("c", None)
    assert list(m.state_dict()) == ["a"]
    m.b = graphc.zeros(2)
    assert m.b.shape == (2,) and "b" in m._non_persistent_buffers_set
    with pytest.raises(TypeError, match="ndarray is not a tensor"):
        m.register_buffer("d", np.ones(1))


def test_missing_attribute():
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wight'") as caught:
        nn.Linear(1, 1).wight  # noqa: B018
    assert caught.value.name == "wight"
    assert not hasattr(nn.ReLU(), "x")


def test_delete():
    m = nn.Linear(1, 1)
    m.extra = 3
    del m.bias, m.extra
    assert "bias" not in m._parameters
    with pytest.raises(AttributeError):
        del m.bias


def test_dir():
    names = dir(nn.Sequential(nn.ReLU()))
    assert "training" in names and "0" not in names
    assert "weight" in dir(nn.Linear(1, 1))


def test_forward_is_required():
    class Net(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match='module Net does not define "forward"'):
        Net()(graphc.ones(1))


def test_call_passes_everything_on():
    class Net(nn.Module):
        def forward(self, x, *rest, scale=1, **more):
            return x * scale, rest, more

    y, rest, more = Net()(graphc.ones(1), 2, scale=3, z=4)
    assert y.item() == 3 and rest == (2,) and more == {"z": 4}


def test_path_of_the_running_module():
    paths = []

    class Leaf(nn.Module):
        def forward(self, x):
            paths.append(module_path.current_path())
            return x

    net = nn.Sequential(Leaf(), nn.Sequential(Leaf()))
    net(graphc.ones(1))
    assert paths == ["0", "1.0"]
    assert module_path.scope() is None


def test_path_is_left_after_an_exception():
    class Broken(nn.Module):
        def forward(self, x):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        nn.Sequential(Broken())(graphc.ones(1))
    assert module_path.scope() is None


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x):
        return self.inner(x)  # the line


class Asks(nn.Module):
    def forward(self, x):
        return x.other


def test_errors_name_the_module_and_the_line():
    for call in (Outer(), lambda x: graphc.trace(Outer(), x), graphc.compile(Outer())):
        with pytest.raises(ShapeError) as caught:
            call(graphc.ones(2, 5))
        assert caught.value.origin is not None and caught.value.origin.startswith("inner, ")
        assert caught.value.origin.endswith(": return self.inner(x)  # the line")


def test_a_class_is_no_module():
    with pytest.raises(ArgumentError, match=r"ReLU is a class\n  try    pass an instance: ReLU\(\.\.\.\)"):
        nn.Sequential(nn.Linear(2, 2), nn.ReLU)
    with pytest.raises(ArgumentError, match="int is not a Module"):
        nn.Sequential(nn.Linear(2, 2), 3)


def test_lists_are_no_tensors():
    remedy = r"\n  try    pass a tensor, such as graphc\.tensor\(\.\.\.\)"
    with pytest.raises(ArgumentError, match=r"Linear, argument 0: list is no tensor\n  from   inner, .*" + remedy):
        Outer()([1.0, 2.0, 3.0])
    with pytest.raises(AttributeError, match="no attribute 'other'") as caught:
        Asks()([1])
    assert not isinstance(caught.value, ArgumentError) and caught.value.__cause__ is None
    with pytest.raises(ArgumentError, match=r"cross_entropy: numpy\.ndarray is no tensor"):
        nn.functional.cross_entropy(graphc.ones(2, 3), np.array([0, 1]))


def test_module_and_functional_share_parameters():
    conv = nn.Conv2d(1, 2, 3)
    x = graphc.randn(1, 1, 5, 5)
    np.testing.assert_array_equal(
        conv(x).detach().numpy(), nn.functional.conv2d(x, conv.weight, conv.bias).detach().numpy()
    )


def test_to_keeps_parameter_identity():
    m = nn.BatchNorm1d(2)
    before = m.weight
    m(graphc.randn(4, 2)).sum().backward()
    assert m.to(graphc.float64) is m
    assert m.weight is before and m.weight.dtype is graphc.float64 and m.weight.requires_grad
    assert m.weight.grad.dtype is graphc.float64
    assert m.running_mean.dtype is graphc.float64 and m.num_batches_tracked.dtype is graphc.int64
    m.float()
    assert m.weight.dtype is graphc.float32
    assert m.to("cpu").to(graphc.ones(1, dtype=graphc.float64)).weight.dtype is graphc.float64
    assert m.to("cpu", graphc.float32).weight.dtype is graphc.float32
    assert m.double().type(graphc.float32).num_batches_tracked.dtype is graphc.float32
    assert m.cpu() is m


def test_to_rejects():
    with pytest.raises(DTypeError, match="cannot become"):
        nn.Linear(1, 1).to(graphc.int64)
    with pytest.raises(ArgumentError, match="there is no device 'gpu'"):
        nn.Linear(1, 1).to("gpu")
    with pytest.raises(ArgumentError, match="unknown argument"):
        nn.Linear(1, 1).to(devise="cpu")


def test_private_apply_visits_children_first_and_skips_none():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 2))
    seen = []

    def fn(t):
        seen.append(t.shape)
        return t * 2

    before = net[0].weight.item()
    assert net._apply(fn) is net
    assert seen == [(1, 1), (2, 1), (2,)]
    assert net[0].weight.item() == 2 * before


def test_text():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(1, 2)
            self.b = nn.Sequential(nn.ReLU())
            self.c = None

        def extra_repr(self) -> str:
            return "width=2"

    expected = (
        "Net(\n  width=2\n  (a): Linear(in_features=1, out_features=2, bias=True)\n"
        "  (b): Sequential(\n    (0): ReLU()\n  )\n)"
    )
    assert repr(Net()) == expected
    assert repr(nn.Module()) == "Module()"


def hook(module, args, output):
    return None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_keep_hooks_and_values(copied: object):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    net.register_forward_hook(hook)
    other = copied(net)
    assert list(other._forward_hooks.values()) == [hook]
    assert not other.training and not other[1].training
    x = graphc.randn(3, 2)
    np.testing.assert_array_equal(net(x).detach().numpy(), other(x).detach().numpy())
    with graphc.no_grad():
        other[0].weight.fill_(0)
    assert (net[0].weight.detach().numpy() != 0).any()
    assert all(p.requires_grad for p in other.parameters())


def test_first_class_attributes():
    m = nn.Module()
    assert m.dump_patches is False and m.training is True
    for table in ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks"):
        assert len(getattr(m, table)) == 0


def test_compile_in_place():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
    x = graphc.randn(5, 3)
    expected = copy.deepcopy(net)(x)
    net.compile()
    assert "CompiledSequentialBackward" in repr(net(x).grad_fn)
    assert graphc.allclose(net.eval()(x), net[2](net[1](net[0](x))), atol=1e-5)
    assert graphc.allclose(net.train()(x), expected, atol=1e-5)
    assert net[1].num_batches_tracked.item() == 2
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other._compiled is None
    assert graphc.allclose(nn.Sequential(net, nn.Identity())(x), expected, atol=1e-5)
    assert "matmul" in str(graphc.trace(net, x))


def test_parameters_become_narrow():
    layer = nn.Linear(1, 1)
    assert layer.half().weight.dtype is graphc.float16 and layer.bfloat16().bias.dtype is graphc.bfloat16


def test_memory_that_is_empty_or_shared():
    net = nn.Linear(3, 2)
    weight = net.weight
    assert net.to_empty(device="cpu") is net and net.weight is weight and weight.shape == (2, 3)
    nn.init.ones_(weight)
    assert not weight.is_shared()
    assert net.share_memory() is net and weight.is_shared() and weight.tolist() == [[1, 1, 1], [1, 1, 1]]
    child = os.fork()
    if not child:
        with graphc.no_grad():
            weight.fill_(5)
        os._exit(0)
    os.waitpid(child, 0)
    assert weight.tolist() == [[5, 5, 5], [5, 5, 5]]
    step = graphc.compile_step(net, nn.functional.mse_loss, graphc.optim.SGD(net.parameters(), lr=0.1))
    step(graphc.ones(1, 3), graphc.zeros(1, 2))
    assert weight.is_shared() and weight[0, 0].item() != 5


class _Encoded(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = graphc.compile(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5)))
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        return self.out(self.enc(x))


class _Plain(_Encoded):
    def __init__(self):
        super().__init__()
        self.enc = self._modules["enc"]


def test_a_compiled_module_is_registered_as_the_child_that_it_wraps():
    graphc.manual_seed(0)
    model = _Encoded()
    graphc.manual_seed(0)
    plain = _Plain()
    assert [n for n, _ in model.named_parameters()] == [n for n, _ in plain.named_parameters()]
    assert list(model.state_dict()) == list(plain.state_dict())
    assert [n for n, _ in model.named_modules()] == [n for n, _ in plain.named_modules()]
    assert repr(model) == repr(plain).replace("_Plain", "_Encoded")
    assert type(model.enc) is not type(plain.enc) and model.get_submodule("enc.0") is model._modules["enc"][0]
    x = graphc.rand(6, 4)
    loss = (model(x) ** 2).sum()
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.eval(), plain.eval()
    assert not any(m.training for m in model.modules())
    plain.load_state_dict(model.state_dict())
    np.testing.assert_allclose(model(x).tolist(), plain(x).tolist(), rtol=1e-5)
    np.testing.assert_allclose(graphc.compile(model)(x).tolist(), plain(x).tolist(), rtol=1e-5)
    assert model.double()(x.double()).dtype is graphc.float64


def test_the_attribute_of_a_compiled_child_is_replaced_and_removed():
    model = _Encoded()
    compiled = model.enc
    model.enc = nn.Identity()
    assert type(model.enc) is nn.Identity and len(list(model.parameters())) == 2
    model.enc = compiled
    assert model.enc is compiled and len(list(model.parameters())) == 6
    model.enc = None
    assert model.enc is None and model._modules["enc"] is None
    model.enc = compiled
    del model.enc
    assert not hasattr(model, "enc") and list(model._modules) == ["out"]
    with pytest.raises(ArgumentError, match=r"module.compile\(\)"):
        nn.Sequential(compiled)


def test_a_copy_of_a_module_with_a_compiled_child_shares_nothing():
    model = _Encoded().eval()
    other = copy.deepcopy(model)
    assert type(other.enc) is type(model.enc) and other.enc is not model.enc
    x = graphc.rand(6, 4)
    before = model(x).tolist()
    with graphc.no_grad():
        for p in other.parameters():
            p.mul_(2.0)
    assert model(x).tolist() == before != other(x).tolist()
    np.testing.assert_allclose(other(x).tolist(), graphc.compile(other)(x).tolist(), rtol=1e-5)


def test_a_module_that_is_compiled_in_place_takes_tangents_along():
    net = nn.Linear(3, 2)
    net.compile()
    with forward_ad.dual_level():
        out = net(forward_ad.make_dual(graphc.ones(1, 3), graphc.ones(1, 3)))
        tangent = forward_ad.unpack_dual(out).tangent
    np.testing.assert_allclose(tangent.detach().numpy(), net.weight.detach().numpy().sum(1)[None], rtol=1e-6)


def test_arrays_as_inputs_of_layers():
    net, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LSTM(4, 2)), np.ones((5, 3), np.float32)
    for call in (net, graphc.compile(net)):
        outputs, _ = call(x)
        assert isinstance(outputs, graphc.Tensor) and graphc.allclose(outputs, net(graphc.tensor(x))[0])
        outputs.sum().backward()
    linear = nn.Linear(3, 4)
    for call in (linear, graphc.compile(linear)):
        assert graphc.allclose(call(input=x), linear(graphc.tensor(x)))
    linear.register_forward_pre_hook(lambda _, args, kwargs: seen.append(kwargs["input"]), with_kwargs=True)
    seen: list[object] = []
    linear(input=x)
    assert isinstance(seen[0], graphc.Tensor)
    lstm, states = nn.LSTM(3, 2), graphc.zeros(1, 2)
    outputs, _ = lstm(x, hx=(states, states))  # tuples stay as they are
    assert graphc.allclose(outputs, lstm(input=x)[0])
    assert nn.Embedding(4, 2)(np.array([1, 2])).shape == (2, 2)
    assert nn.ReLU()(np.ones(2)).dtype is graphc.float64  # as of graphc.tensor(array)


def test_a_forward_of_the_user_gets_arrays_as_they_are():
    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def forward(self, state: np.ndarray) -> graphc.Tensor:
            return self.layer(graphc.from_numpy(state).float())

    class Net(Policy):
        def forward(self, state: np.ndarray) -> graphc.Tensor:
            return self.layer(state).relu()

    class Imported(nn.Module):
        @property
        def forward(self) -> Callable[..., float]:
            return np.sum

    class Method(nn.Module):
        def forward(self, x: graphc.Tensor) -> graphc.Tensor:
            return x.relu()

    assert Policy()(np.ones(2)).shape == Net()(np.ones(2, np.float32)).shape == (1,)
    assert Imported()(np.ones(2)) == 2
    with pytest.raises(ArgumentError, match=r"Method, argument 0: numpy.ndarray is no tensor\n"):
        Method()(np.ones(2))
    with pytest.raises(ArgumentError, match=r"Method, argument x: numpy.ndarray is no tensor\n"):
        Method()(x=np.ones(2))
