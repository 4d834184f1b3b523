"""Entries: what they are made of, the mode of their trace, and one name for each tensor that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(3, 4), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.decoder(self.encoder(x))

    def encode(self, x: Any) -> Any:
        return self.encoder(x)


NAMES = {"encoder.weight", "encoder.bias", "decoder.weight", "decoder.bias"}


def names(manifest: Any) -> list[str]:
    return [t.name for t in manifest.weights]


def test_shared_parameters_have_the_name_of_the_model_that_holds_them(tmp_path: Path):
    pair = Pair()
    entries = {"encode": gc.Entry(pair.encoder, X), "decode": gc.Entry(pair.decoder, gc.ones(2, 4))}
    entries["whole"] = gc.Entry(pair, X)
    assert set(names(gc.export(entries, path=tmp_path / "m.gcm"))) == NAMES
    model = gc.load(tmp_path / "m.gcm")
    np.testing.assert_allclose(model.entry("decode")(model(X)), model.entry("whole")(X), rtol=1e-5)


def test_methods_of_one_module_share_its_names(tmp_path: Path):
    pair = Pair()
    entries = {"encode": gc.Entry(pair.encode, X), "all": gc.Entry(pair, X)}
    manifest = gc.export(entries, path=tmp_path / "m.gcm")
    assert set(names(manifest)) == NAMES and manifest.first.uses == ("encoder.weight", "encoder.bias")


def test_a_root_that_is_no_entry_gives_names(tmp_path: Path):
    pair = Pair()
    entries = {"encode": gc.Entry(pair.encoder, X), "decode": gc.Entry(pair.decoder, gc.ones(2, 4))}
    assert set(names(gc.export(entries, path=tmp_path / "m.gcm", root=pair))) == NAMES


def test_without_a_root_names_that_meet_get_that_of_the_entry_before_them(tmp_path: Path):
    pair = Pair()
    entries = {"encode": gc.Entry(pair.encoder, X), "decode": gc.Entry(pair.decoder, gc.ones(2, 4))}
    manifest = gc.export(entries, path=tmp_path / "m.gcm")
    assert set(names(manifest)) == {"encode.weight", "encode.bias", "decode.weight", "decode.bias"}
    model = gc.load(tmp_path / "m.gcm")
    with gc.no_grad():
        np.testing.assert_allclose(model.entry("decode")(model(X)), pair(gc.tensor(X)).numpy(), rtol=1e-5, atol=1e-7)


def test_free_functions_are_entries(tmp_path: Path):
    scale = gc.tensor([1.0, 2.0, 3.0])
    entries = {"scaled": gc.Entry(lambda x: x * scale, X), "pair": gc.Entry(lambda a, b=None: (a + b, None), X, b=X)}
    gc.export(entries, path=tmp_path / "m.gcm")
    model = gc.load(tmp_path / "m.gcm")
    np.testing.assert_allclose(model(X), X * [1, 2, 3])
    total, nothing = model.entry("pair")(X, b=X)
    assert nothing is None and total.tolist() == (2 * X).tolist()


def test_a_graph_is_an_entry(tmp_path: Path):
    net = nn.Linear(3, 2)
    gc.export({"graph": gc.Entry(gc.trace(net, X)), "module": gc.Entry(net, X)}, path=tmp_path / "m.gcm")
    model = gc.load(tmp_path / "m.gcm")
    assert len(model.state_dict()) == 2
    np.testing.assert_array_equal(model(X), model.entry("module")(X))


def test_the_mode_holds_during_the_trace_only(tmp_path: Path):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    net[1].eval()
    entries = {"infer": gc.Entry(net, X, train=False), "learn": gc.Entry(net, X, train=True), "same": gc.Entry(net, X)}
    manifest = gc.export(entries, path=tmp_path / "m.gcm")
    assert [bool(e.writes) for e in manifest.entries] == [False, True, False]
    assert net.training and not net[1].training


def test_state_that_one_entry_writes_is_seen_by_the_others(tmp_path: Path):
    net = nn.BatchNorm1d(3)
    entries = {"infer": gc.Entry(net, X, train=False), "learn": gc.Entry(net, X, train=True)}
    gc.export(entries, path=tmp_path / "m.gcm")
    model = gc.load(tmp_path / "m.gcm")
    for _ in range(3):
        model.entry("learn")(X)
        net(gc.tensor(X))
    np.testing.assert_allclose(model(X), net.eval()(gc.tensor(X)).detach().numpy(), rtol=1e-4, atol=1e-6)


def test_dimensions_are_those_of_each_entry(tmp_path: Path):
    net = nn.Linear(3, 2)
    entries = {
        "batch": gc.Entry(net, X, dims=[(gc.Dim("batch", 1, 9),)]),
        "time": gc.Entry(lambda x: x.cumsum(0), X, dims=[(gc.Dim("batch", 2, 5),)]),
    }
    gc.export(entries, path=tmp_path / "m.gcm")
    model = gc.load(tmp_path / "m.gcm")
    assert model(np.ones((7, 3), np.float32)).shape == (7, 2)
    assert model.entry("time")(np.ones((5, 3), np.float32))[-1].tolist() == [5, 5, 5]
    with pytest.raises(Exception, match="batch"):
        model.entry("time")(np.ones((6, 3), np.float32))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gc.Entry(3), "an entry is a module, a method or a function"),
        (lambda: gc.Entry(nn.Linear, X), "an entry is a module, a method or a function"),
        (lambda: gc.Entry(gc.trace(nn.Linear(3, 2), X), X), "is a graph, which has its types"),
        (lambda: gc.Entry(lambda x: x, X, train=True), "is the mode of a module"),
        (lambda: gc.Entry(gc.trace(nn.Linear(3, 2), X), derivative=True), "has no derivative"),
    ],
)
def test_what_is_no_entry_is_refused(make: Any, message: str):
    with pytest.raises(ArgumentError, match=message):
        make()
    assert repr(gc.Entry(Pair().encode, X)) == "Entry(Pair.encode, 1 examples)"


class Squeezed(nn.Module):
    """Returns another rank for a batch of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        return {"first": y[0]} if x.shape[0] == 1 else {"all": y, "sum": y.sum(0)}


@pytest.mark.parametrize("options", [{}, {"native": True}])
@pytest.mark.parametrize("batch", [1, 4])
def test_a_file_has_both_sides_of_a_size_of_one(tmp_path: Path, batch: int, options: dict[str, Any]):
    model, path = Squeezed(), tmp_path / "a.gcm"
    manifest = gc.export(model, gc.ones(batch, 3), path=path, dims={"x": (gc.Dim("n"), None)}, golden=True, **options)
    assert [e.name for e in manifest.entries] == ["forward", "forward.0"]
    assert [e.name for e in manifest.public] == ["forward"] and manifest.first.paths == ("forward.0",)
    loaded = gc.load(path, trust="native" in options)
    for n in (batch, 1, 3, 1, 4):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        expected = model(gc.from_numpy(x))
        result = loaded(x)
        assert list(result) == list(expected) == list(loaded(gc.from_numpy(x)))
        for name, tensor in expected.items():
            np.testing.assert_allclose(result[name], tensor.detach().numpy(), rtol=1e-5, atol=1e-6)
        assert len(loaded.run([x])) == len(expected)
    assert gc.selftest(path, trust="native" in options).good
    loaded.swap_weights({name: 2 * tensor for name, tensor in loaded.state_dict().items()})
    for n in (1, 2):
        x = np.ones((n, 3), np.float32)
        expected = 2 * model(gc.from_numpy(x))["first" if n == 1 else "sum"]
        np.testing.assert_allclose(loaded(x)["first" if n == 1 else "sum"], expected.detach().numpy(), rtol=1e-5)
    with pytest.raises(gc.errors.ShapeError):
        loaded(np.ones((2, 4), np.float32))


def test_a_side_that_the_model_refuses_is_left_out(tmp_path: Path):
    def function(x: gc.Tensor) -> gc.Tensor:
        if x.shape[0] == 1:
            raise ValueError("one row")
        return x * 2

    def both(x: gc.Tensor) -> gc.Tensor:
        return x.reshape(3) if x.shape[0] == 1 else x.expand(5, 3)  # fails for all sizes but 1 and 5

    size = {"x": (gc.Dim("n"), None)}
    with pytest.raises(ValueError, match="one row"):
        gc.export(function, gc.ones(2, 3), path=tmp_path / "a.gcm", dims=size)
    assert gc.export(both, gc.ones(1, 3), path=tmp_path / "a.gcm", dims=size).first.paths == ()
    assert gc.load(tmp_path / "a.gcm")(np.ones((1, 3), np.float32)).shape == (3,)
