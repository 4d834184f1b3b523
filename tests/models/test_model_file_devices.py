"""Model files and devices: files hold no code for them, and are loaded for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, CompileError, DeviceError
from tests.models.model_files import refuse_all_sizes

DEVICE = "cuda-emu"


class Counting(nn.Module):
    """Writes a state in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.register_buffer("count", gc.zeros(()))

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        self.count += 1
        return self.fc(x) + self.count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "net.gcm"


@pytest.mark.parametrize("place", ["cpu", DEVICE])
def test_a_file_is_loaded_for_a_device_and_for_the_cpu(place: str, path: Path):
    model, x = Counting(), gc.randn(4, 6)
    expected = model.fc(x).detach().numpy()
    gc.export(model.to(place), x.to(place), path=path)
    for loaded in (gc.load(path), gc.load(path, device=DEVICE)):
        for number in (1, 2, 3, 4):
            np.testing.assert_allclose(loaded(x.numpy()), expected + number, rtol=1e-5)
        assert loaded.states["count"] == 4


def test_results_lie_where_the_inputs_do(path: Path):
    model, x = nn.Linear(6, 3), gc.randn(4, 6)
    gc.export(model, x, path=path)
    loaded = gc.load(path, device=DEVICE)
    assert isinstance(loaded(x.numpy()), np.ndarray) and loaded(x).is_cpu
    assert loaded(x.to(DEVICE)).device == DEVICE
    with pytest.raises(ArgumentError, match="is on cuda-emu, but the model was loaded for the CPU") as info:
        gc.load(path)(x.to(DEVICE))
    assert "device='cuda-emu'" in str(info.value)


def test_named_dimensions(path: Path):
    model = nn.Linear(6, 3)
    gc.export(model, gc.zeros(2, 6), path=path, dims={"input": (gc.Dim("rows", 1, 9), None)})
    loaded = gc.load(path, device=DEVICE)
    for rows in (1, 4, 9):
        x = gc.randn(rows, 6)
        np.testing.assert_allclose(loaded(x.numpy()), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert loaded.plan(rows=4).signature


def test_a_program_for_each_size_where_there_is_none_for_all(path: Path, monkeypatch: pytest.MonkeyPatch):
    model = nn.Linear(6, 3)
    gc.export(model, gc.zeros(2, 6), path=path, dims={"input": (gc.Dim("rows", 1, 9), None)})
    refuse_all_sizes(monkeypatch)
    loaded, x = gc.load(path, device=DEVICE), gc.randn(5, 6)
    np.testing.assert_allclose(loaded(x.numpy()), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_file_holds_no_code_for_devices(path: Path):
    with pytest.raises(ArgumentError, match="holds no code for sm_90") as info:
        gc.export(nn.Linear(6, 3), gc.zeros(2, 6), path=path, native=True, target="sm_90")
    assert "graphc.load(path, device='cuda')" in str(info.value) and not path.exists()


def test_where_there_is_no_such_device(path: Path):
    gc.export(nn.Linear(6, 3), gc.zeros(2, 6), path=path)
    with pytest.raises(CompileError, match="sm_90") as info:
        gc.load(path, target="sm_90")
    assert "device='cuda'" in str(info.value)
    if not gc.cuda.is_available():
        with pytest.raises(DeviceError):
            gc.load(path, device="cuda")
