"""State dictionaries: contents, loading, the report of everything that does not fit, hooks, extra state."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import StateDictError


def net() -> nn.Module:
    return nn.Sequential(OrderedDict(fc=nn.Linear(2, 3), bn=nn.BatchNorm1d(3)))


NAMES = ["fc.weight", "fc.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]


def test_contents():
    m = net()
    m.register_parameter("none", None)
    m.register_buffer("hidden", graphc.ones(1), persistent=False)
    state = m.state_dict()
    assert list(state) == NAMES
    assert not state["fc.weight"].requires_grad and type(state["fc.weight"]) is graphc.Tensor
    assert state._metadata == {"": {"version": 1}, "fc": {"version": 1}, "bn": {"version": 2}}
    assert m.state_dict(keep_vars=True)["fc.weight"] is m.fc.weight


def test_entries_share_memory():
    m = net()
    state = m.state_dict()
    with graphc.no_grad():
        m.fc.weight.fill_(7)
    assert state["fc.weight"].tolist() == [[7, 7]] * 3


def test_prefix_and_destination():
    destination = OrderedDict(first=1)
    assert nn.Linear(1, 1).state_dict(destination=destination, prefix="x.") is destination
    assert list(destination) == ["first", "x.weight", "x.bias"]


def test_copy_keeps_the_versions():
    state = net().state_dict()
    assert state.copy()._metadata == state._metadata and list(state.copy()) == NAMES


def test_load_copies_in_place():
    a, b = net(), net()
    weight = a.fc.weight
    report = a.load_state_dict(b.state_dict())
    assert repr(report) == str(report) == "<All keys matched successfully>"
    assert a.fc.weight is weight and weight.requires_grad
    np.testing.assert_array_equal(weight.detach().numpy(), b.fc.weight.detach().numpy())
    with graphc.no_grad():
        b.fc.weight.fill_(0)
    assert (weight.detach().numpy() != 0).any()


def test_load_arrays_and_other_types():
    m = nn.Linear(2, 1)
    m.load_state_dict({"weight": np.array([[1.0, 2.0]]), "bias": graphc.tensor([3])})
    assert m.weight.tolist() == [[1, 2]] and m.bias.tolist() == [3]
    assert m.weight.dtype is graphc.float32


def test_report_of_everything_that_is_wrong():
    m = net()
    state = m.state_dict()
    del state["fc.bias"], state["bn.weight"]
    state["fc.weight"] = graphc.zeros(5, 2)
    state["extra"] = state["fc.old.weight"] = graphc.zeros(1)
    state["bn.bias"] = [1, 2, 3]
    with pytest.raises(StateDictError) as caught:
        m.load_state_dict(state)
    lines = [line.strip() for line in str(caught.value).splitlines()]
    assert lines == [
        "loading the state dictionary into Sequential failed:",
        "missing keys: 'fc.bias', 'bn.weight'",
        "unexpected keys: 'extra', 'fc.old.weight'",
        "fc.weight: size mismatch: [5, 2] in the state dictionary, [3, 2] in the model",
        "bn.bias: expected a tensor, got list",
    ]
    assert isinstance(caught.value, RuntimeError)


def test_not_strict_still_reports_and_still_checks_sizes():
    m = nn.Linear(2, 1)
    report = m.load_state_dict({"weight": graphc.ones(1, 2), "other": graphc.ones(1)}, strict=False)
    assert report.missing_keys == ["bias"] and report.unexpected_keys == ["other"]
    assert repr(report) == "IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['other'])"
    assert m.weight.tolist() == [[1, 1]]
    with pytest.raises(RuntimeError, match="size mismatch"):
        m.load_state_dict({"weight": graphc.ones(2, 2)}, strict=False)


def test_one_element_for_none():
    m = nn.Module()
    m.s = nn.Parameter(graphc.tensor(1.0))
    m.load_state_dict({"s": graphc.tensor([5.0])})
    assert m.s.item() == 5


def test_only_mappings():
    with pytest.raises(TypeError, match="expected a mapping"):
        net().load_state_dict([1])


def test_assign_takes_the_entries():
    m = nn.BatchNorm1d(2)
    m.weight.requires_grad_(False)
    entries = {k: v.clone().double() if v.is_floating_point() else v.clone() for k, v in m.state_dict().items()}
    m.load_state_dict(entries, assign=True)
    assert m.weight.dtype is graphc.float64 and isinstance(m.weight, nn.Parameter) and not m.weight.requires_grad
    assert m.bias.requires_grad
    assert m.running_mean is entries["running_mean"]


def test_extra_state():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

    m = nn.Sequential(Counter())
    m[0].n = 5
    state = m.state_dict()
    assert list(state) == ["0._extra_state"]
    other = nn.Sequential(Counter())
    other.load_state_dict(state)
    assert other[0].n == 5
    with pytest.raises(StateDictError, match=r"missing keys: '0._extra_state'"):
        other.load_state_dict({})
    with pytest.raises(StateDictError, match="unexpected keys: '_extra_state'"):
        nn.ReLU().load_state_dict({"_extra_state": 1})


def test_saving_hooks():
    m = net()
    seen = []
    m.fc.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append((module, prefix, keep_vars)))
    m.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.__delitem__("bn.bias"))
    assert "bn.bias" not in m.state_dict()
    assert seen == [(m.fc, "fc.", False)]
    m.register_state_dict_post_hook(lambda module, state, prefix, metadata: state)
    with pytest.raises(RuntimeError, match="returned a value"):
        m.state_dict()


def test_loading_hooks():
    m = nn.Sequential(nn.Linear(1, 1))

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "weight"] = state.pop(prefix + "w")

    m[0].register_load_state_dict_pre_hook(rename)
    order = []
    m[0].register_load_state_dict_post_hook(lambda module, keys: order.append("child"))
    m.register_load_state_dict_post_hook(lambda module, keys: order.append("parent") or keys.missing_keys.clear())
    given = {"0.w": graphc.ones(1, 1)}
    report = m.load_state_dict(given)
    assert order == ["child", "parent"] and report.missing_keys == []
    assert m[0].weight.item() == 1 and list(given) == ["0.w"]
    m.register_load_state_dict_post_hook(lambda module, keys: 1)
    with pytest.raises(AssertionError, match="returned a value"):
        m.load_state_dict({"0.w": graphc.ones(1, 1)})


def test_state_goes_to_torch_and_back(torch):
    ours = net()
    theirs = torch.nn.Sequential(OrderedDict(fc=torch.nn.Linear(2, 3), bn=torch.nn.BatchNorm1d(3)))
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    a = ours.eval()(graphc.tensor(x)).detach().numpy()
    np.testing.assert_allclose(a, theirs.eval()(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)
    report = ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    assert not report.missing_keys and not report.unexpected_keys


def test_the_state_of_a_pytorch_module_is_loaded(torch):
    theirs, ours = torch.nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
    theirs(torch.randn(4, 3))
    result = ours.load_state_dict(theirs.state_dict())
    assert not result.missing_keys and ours.weight.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(ours.running_mean.numpy(), theirs.running_mean.numpy())
    assert ours.num_batches_tracked.item() == 1
    ours.load_state_dict({**dict(theirs.named_parameters()), **dict(theirs.named_buffers())})
    with pytest.raises(StateDictError, match="size mismatch"):
        ours.load_state_dict(torch.nn.BatchNorm1d(4).state_dict())


@pytest.mark.parametrize(
    ("dtype", "assign"),
    [(d, a) for d in ("float16", "bfloat16", "float64") for a in (False, True)] + [("int16", False)],
)
def test_the_state_of_a_pytorch_module_of_another_type_is_loaded_exactly(torch, dtype: str, assign: bool):
    theirs, ours = torch.nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    values = torch.tensor([2.0, -3.0, 100.0]).to(getattr(torch, dtype))
    state = {**theirs.state_dict(), "weight": values, "running_var": values}
    ours.load_state_dict(state, assign=assign)
    assert ours.weight.tolist() == ours.running_var.tolist() == values.double().tolist()
    half = np.float16([0.1, 2, 3])
    ours.load_state_dict({**ours.state_dict(), "weight": half})
    assert ours.weight.tolist() == half.astype(np.float64).tolist()
