"""Files that earlier versions wrote load, and give the numbers that they gave."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArtifactError
from graphc.ir.graph.parse import parse_graph
from tests.compatibility.make import FILES, make_model

VERSIONS = sorted(path.name for path in FILES.iterdir())


@pytest.fixture(params=VERSIONS)
def folder(request: pytest.FixtureRequest) -> Path:
    return FILES / request.param


@pytest.fixture
def expected(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "expected.npz") as arrays:
        return dict(arrays)


def unpickled(path: Path) -> Any:
    return pickle.loads(path.read_bytes())


def check(model: Any, expected: dict[str, np.ndarray]) -> None:
    with gc.no_grad():
        np.testing.assert_allclose(model(gc.tensor(expected["x"])).numpy(), expected["y"], rtol=1e-5, atol=1e-6)


def test_there_are_files_of_the_first_version_and_of_this_one():
    assert {"0.1.0", gc.__version__} <= set(VERSIONS)
    assert {path.name for path in (FILES / "0.1.0").iterdir()} >= {"model.gcm", "module.pkl", "state.npz"}


@pytest.mark.parametrize(("name", "atol"), [("model.gcm", 1e-6), ("model_int8.gcm", 0.05)])
def test_model_files_load_and_give_the_same(folder: Path, expected: dict[str, np.ndarray], name: str, atol: float):
    if folder.name == "0.1.0":
        with pytest.raises(ArtifactError, match=r"format of graphc 0\.1\.0"):
            gc.load(folder / name)
        return
    np.testing.assert_allclose(gc.load(folder / name)(expected["x"]), expected["y"], rtol=1e-5, atol=atol)


def test_the_text_of_a_graph_is_read(folder: Path):
    graph = parse_graph((folder / "graph.gc").read_text(encoding="utf-8"))
    assert [v.shape for v in graph.outputs] == [(2, 4)]


def test_a_pickled_module_computes_the_same_and_compiles(folder: Path, expected: dict[str, np.ndarray]):
    model = unpickled(folder / "module.pkl")
    assert isinstance(model, nn.Sequential) and not model.training
    check(model, expected)
    check(gc.compile(model), expected)
    assert list(model.state_dict()) == list(expected["names"])


def test_a_pickled_module_trains_on(folder: Path, expected: dict[str, np.ndarray]):
    model = unpickled(folder / "module.pkl").train()
    step = gc.compile_step(model, nn.functional.cross_entropy, gc.optim.SGD(model.parameters(), lr=0.1))
    x, y = gc.tensor(expected["x"]), gc.tensor([0, 1])
    gc.manual_seed(0)  # the model drops elements
    losses = [step(x, y).item() for _ in range(20)]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


def test_pickled_recurrent_layers_run(folder: Path):
    layers = unpickled(folder / "recurrent.pkl")
    x = layers["embedding"](gc.tensor([[0, 4, 2]]))
    output, _ = layers["lstm"](x)
    attended, _ = layers["attention"](x, x, x)
    assert (output.shape, attended.shape) == ((1, 3, 3), (1, 3, 4))
    assert isinstance(layers["scale"][0], nn.Parameter)


def test_a_pickled_optimizer_steps_on(folder: Path):
    optimizer = unpickled(folder / "optimizer.pkl")
    assert isinstance(optimizer, gc.optim.Adam)
    parameter = optimizer.param_groups[0]["params"][0]
    before = parameter.detach().numpy().copy()
    parameter.grad = gc.ones_like(parameter)
    optimizer.step()
    assert np.abs(parameter.detach().numpy() - before).max() > 1e-4
    assert float(optimizer.state[parameter]["step"]) == 3


@pytest.mark.parametrize("name", ["state.pkl", "state.npz", "state.safetensors"])
def test_state_dictionaries_load(folder: Path, expected: dict[str, np.ndarray], name: str):
    if name.endswith(".safetensors"):
        pytest.importorskip("safetensors")
    state = unpickled(folder / name) if name.endswith(".pkl") else gc.load_state(folder / name)
    model = make_model().eval()
    assert not np.allclose(model(gc.tensor(expected["x"])).detach().numpy(), expected["y"])
    model.load_state_dict(state)
    check(model, expected)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_checkpoints_load(folder: Path, expected: dict[str, np.ndarray], suffix: str):
    if suffix == ".safetensors":
        pytest.importorskip("safetensors")
    checkpoint = gc.load_state(folder / f"checkpoint{suffix}")
    assert checkpoint["epoch"] == 3
    model = make_model().eval()
    model.load_state_dict(checkpoint["model"])
    check(model, expected)
    optimizer = gc.optim.Adam(model.parameters(), lr=1.0)
    optimizer.load_state_dict(checkpoint["optimizer"])
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
    first = next(iter(model.parameters()))
    assert float(optimizer.state[first]["step"]) == 2


def test_a_pickle_that_names_what_is_gone_is_refused_by_name_and_version():
    data = pickle.dumps(nn.Linear(1, 1)).replace(b"graphc.nn.Linear", b"graphc.nn.Lineal")
    with pytest.raises(ArtifactError, match=rf"graphc\.nn\.Lineal, which graphc {gc.__version__} does not have"):
        pickle.loads(data)
