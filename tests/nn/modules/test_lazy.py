"""Lazy layers: sizes from the first input or a state dictionary, the class that they become, what a trace says."""

from __future__ import annotations

from typing import Any

import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, StateDictError, TraceError

CASES: list[tuple[str, tuple[Any, ...], tuple[int, ...], tuple[Any, ...]]] = [
    ("Linear", (3,), (2, 5), (5, 3)),
    ("Conv1d", (6, 3), (2, 4, 8), (4, 6, 3)),
    ("Conv2d", (6, 3, 2, 1, 1, 2), (2, 4, 8, 8), (4, 6, 3, 2, 1, 1, 2)),
    ("Conv3d", (6, 3), (4, 5, 5, 5), (4, 6, 3)),
    ("ConvTranspose1d", (6, 3), (2, 4, 8), (4, 6, 3)),
    ("ConvTranspose2d", (6, 3, 2, 1, 1, 2), (4, 8, 8), (4, 6, 3, 2, 1, 1, 2)),
    ("ConvTranspose3d", (6, 3), (1, 4, 3, 3, 3), (4, 6, 3)),
    ("BatchNorm1d", (), (4, 3), (3,)),
    ("BatchNorm2d", (), (4, 3, 2, 2), (3,)),
    ("BatchNorm3d", (), (4, 3, 2, 2, 2), (3,)),
    ("InstanceNorm1d", (1e-3, 0.1, True, True), (3, 5), (3, 1e-3, 0.1, True, True)),
    ("InstanceNorm2d", (), (2, 3, 4, 4), (3,)),
    ("InstanceNorm3d", (), (3, 2, 2, 2), (3,)),
]


@pytest.mark.parametrize(("name", "options", "shape", "sizes"), CASES, ids=[case[0] for case in CASES])
def test_the_first_input_gives_the_sizes(name: str, options: Any, shape: Any, sizes: Any):
    lazy, plain = getattr(nn, f"Lazy{name}")(*options), getattr(nn, name)(*sizes)
    held = list(lazy.parameters())
    x = graphc.randn(*shape)
    y = lazy(x)
    assert type(lazy) is type(plain) and repr(lazy) == repr(plain)
    assert {n: t.shape for n, t in lazy.state_dict().items()} == {n: t.shape for n, t in plain.state_dict().items()}
    assert all(type(p) is nn.Parameter and p is q for p, q in zip(lazy.parameters(), held, strict=True))
    assert y.shape == plain(x).shape
    if held:
        y.sum().backward()
        assert all(p.grad is not None for p in held)


def test_initial_values_are_those_of_the_class():
    lazy = nn.LazyLinear(50)
    assert lazy.has_uninitialized_params() and lazy.weight.shape == (0,)
    lazy.reset_parameters()
    lazy(graphc.ones(1, 100))
    spread = lazy.weight.detach().abs().max().item()
    assert 0.09 < spread <= 0.1 and 0 < lazy.bias.detach().abs().max().item() <= 0.1
    norm = nn.LazyBatchNorm1d()
    norm(graphc.randn(4, 2))
    assert norm.weight.tolist() == [1, 1] and norm.num_batches_tracked.item() == 1


def test_a_model_is_completed_by_one_call_and_then_compiled():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    x = graphc.randn(2, 3, 5, 5)
    with pytest.raises(TraceError, match=r"LazyConv2d takes its sizes .*\n  from   .*\n  try    call the model once"):
        graphc.compile(net)(x)
    optimizer = graphc.optim.SGD(net.parameters(), lr=0.1)
    net(x)
    step = graphc.compile_step(net, nn.functional.cross_entropy, optimizer)
    first = step(x, graphc.tensor([0, 1])).item()
    assert step(x, graphc.tensor([0, 1])).item() < first


def test_a_state_dictionary_gives_the_sizes():
    source = nn.Sequential(nn.Conv2d(4, 6, 3, groups=2), nn.BatchNorm2d(6)).eval()
    with graphc.no_grad():
        source[1].running_mean.add_(1)
    lazy = nn.Sequential(nn.LazyConv2d(6, 3, groups=2), nn.LazyBatchNorm2d()).eval()
    assert str(lazy.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    x = graphc.randn(1, 4, 5, 5)
    assert graphc.equal(lazy(x), source(x)) and repr(lazy) == repr(source)
    with pytest.raises(StateDictError, match="missing"):
        nn.LazyLinear(2).load_state_dict({"bias": graphc.zeros(2)})


def test_groups_must_fit():
    with pytest.raises(AttributeValueError, match="2 groups do not divide 3 channels"):
        nn.LazyConv1d(4, 1, groups=2)(graphc.ones(1, 3, 4))
