"""Statistics of intermediate values of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import graphc as gc
from graphc import nn
from graphc.cli import sources
from graphc.cli.taps import observed, tap, text


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.second(self.first(x).relu())


def test_each_module_tells_of_what_it_has_made(tmp_path: Path):
    model, x = Two(), gc.randn(5, 3)
    gc.export(model, x, path=str(tmp_path / "two.gcm"), dims=[(gc.Dim("n", max=9),)])
    source = sources.open_source(sources.file_options(str(tmp_path / "two.gcm")))
    assert source.graph is not None and list(observed(source.graph)) == ["first", "second"]
    found = tap(source.graph, source.weights, [x.numpy()])
    for name, told, array in zip(("first", "second"), found, (model.first(x), model(x)), strict=True):
        wanted = array.detach().numpy().astype(np.float64)
        assert (told.module, told.dtype, told.shape) == (name, "f32", wanted.shape)
        np.testing.assert_allclose(told.statistics.mean, wanted.mean(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(told.as_json()["max"], wanted.max(), rtol=1e-5)
        assert told.as_json()["nonfinite"] == 0
    assert [line.split()[0] for line in text(found).splitlines()] == ["module", "first", "second"]


def test_a_function_has_no_modules(tmp_path: Path):
    gc.export(lambda x: x + 1, gc.ones(2), path=str(tmp_path / "f.gcm"))
    source = sources.open_source(sources.file_options(str(tmp_path / "f.gcm")))
    assert source.graph is not None and tap(source.graph, source.weights, [np.ones(2, np.float32)]) == []
