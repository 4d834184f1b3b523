"""Pickles refer to public paths only, whichever module defines a class."""

from __future__ import annotations

import copy
import inspect
import pickle
import pickletools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.public import KEPT, new, path_of, resolve
from graphc.errors import ArtifactError
from graphc.nn.utils import parametrizations
from graphc.optim import lr_scheduler

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Mine(nn.Module):
    """A module of a user."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        """One layer."""
        return self.layer(x)


class Reducing(nn.Module):
    """A module that says itself how it is pickled."""

    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def __reduce__(self) -> Any:
        return Reducing, (self.width + 1,)


def classes_in(data: bytes) -> set[str]:
    """``module name`` of whatever a pickle of protocol 0 names."""
    return {str(argument) for op, argument, _ in pickletools.genops(data) if op.name == "GLOBAL"}


def make_objects() -> Iterator[tuple[str, Any]]:
    gc.manual_seed(0)
    layers = [nn.Linear(2, 2), nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.LSTM(2, 2), nn.MultiheadAttention(4, 2)]
    model = nn.Sequential(*layers, nn.ModuleList([nn.ReLU()]), nn.ParameterList([nn.Parameter(gc.rand(2))]))
    optimizer = gc.optim.Adam(model.parameters())
    yield "model", model
    yield "normed", parametrizations.weight_norm(nn.Linear(2, 2))
    yield "state", model.state_dict()
    yield "tensor", gc.rand(3)
    yield "parameter", nn.Parameter(gc.rand(3))
    yield "optimizer", optimizer
    yield "schedule", lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)
    yield "generator", gc.Generator()
    yield "dtype", gc.float32
    yield "device", gc.device("cpu")


OBJECTS = dict(make_objects())


@pytest.mark.parametrize("name", OBJECTS)
def test_pickles_name_no_module_that_may_move(name: str):
    named = {text for text in classes_in(pickle.dumps(OBJECTS[name], protocol=0)) if text.startswith("graphc")}
    known = {"graphc.nn.utils.parametrize _Parametrized"} if name == "normed" else set()  # import paths of PyTorch
    assert named <= {"graphc.public new", "graphc.public call"} | known


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_module_comes_back_with_every_protocol(protocol: int):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
    again = pickle.loads(pickle.dumps(model, protocol))
    x = gc.rand(5, 3)
    np.testing.assert_array_equal(again(x).detach().numpy(), model(x).detach().numpy())
    assert type(again[0]) is nn.Linear and isinstance(again[0].weight, nn.Parameter)
    again[0].weight = nn.Parameter(gc.zeros(4, 3))
    assert type(again._modules) is type(model._modules)
    assert type(pickle.loads(pickle.dumps(model.state_dict(), protocol))) is type(model.state_dict())


def test_modules_of_users_are_named_by_their_own_module():
    named = classes_in(pickle.dumps(Mine(), protocol=0))
    assert f"{Mine.__module__} Mine" in named
    assert "graphc.public new" in named  # the layer inside


def test_a_reduce_of_ones_own_is_kept():
    assert pickle.loads(pickle.dumps(Reducing(3))).width == 4
    assert copy.copy(Reducing(3)).width == 4


def test_copies_are_as_before():
    model = Mine()
    shallow, deep = copy.copy(model), copy.deepcopy(model)
    assert shallow.layer is model.layer and shallow._parameters is model._parameters
    assert deep.layer is not model.layer
    np.testing.assert_array_equal(deep.layer.weight.detach().numpy(), model.layer.weight.detach().numpy())


def test_classes_say_where_their_source_is():
    assert "class Linear(" in inspect.getsource(nn.Linear)
    assert "class Adam(" in inspect.getsource(gc.optim.Adam)


@pytest.mark.parametrize(
    ("cls", "path"),
    [
        (nn.Linear, "graphc.nn.Linear"),
        (gc.Tensor, "graphc.Tensor"),
        (nn.Parameter, "graphc.nn.Parameter"),
        (gc.optim.SGD, "graphc.optim.SGD"),
        (lr_scheduler.OneCycleLR, "graphc.optim.lr_scheduler.OneCycleLR"),
        (type(nn.Linear(1, 1).state_dict()), "StateDict"),
        (Mine, None),
        (dict, None),
    ],
)
def test_the_path_of_a_class(cls: type, path: str | None):
    assert path_of(cls) == path
    if path is not None:
        assert resolve(path) is cls
        assert type(new(path)) is cls


def test_every_kept_name_is_there():
    for name in KEPT:
        assert callable(resolve(name))


@pytest.mark.parametrize("name", ["graphc.nn.Lineal", "graphc.nothing.Linear", "os.system", "nothing"])
def test_a_name_that_is_not_there_is_refused_with_the_version(name: str):
    with pytest.raises(ArtifactError, match=rf"a pickle holds {name}, which graphc {gc.__version__} does not have"):
        resolve(name)
