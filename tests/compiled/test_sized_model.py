"""Model files whose inputs have named dimensions."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.compiled import sized_model
from graphc.errors import ArgumentError, CompileError, ShapeError
from graphc.files import manifest

BATCH, TIME = gc.Dim("batch", 1, 64, hint=4), gc.Dim("time", 1, 100, hint=8)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gcm"


class Counting(nn.Module):
    """Writes to a state and returns what several outputs are made of."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.register_buffer("seen", gc.zeros(()))

    def forward(self, x, mask):
        self.seen += x.shape[0]
        return {"y": self.fc(x) * mask.unsqueeze(-1), "mean": x.mean(1), "seen": self.seen.clone()}


def check(loaded, model):
    for batch, time in ((1, 1), (2, 5), (64, 3), (3, 100)):
        x, mask = np.random.rand(batch, time, 8).astype(np.float32), np.ones((batch, time), np.float32)
        found = loaded(x, mask=mask)
        with gc.no_grad():
            expected = model(gc.tensor(x), gc.tensor(mask))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value.numpy(), rtol=1e-5, atol=1e-6)


def test_a_loaded_model_takes_all_sizes(path):
    model = Counting().eval()
    made = gc.export(
        model, gc.ones(2, 3, 8), gc.ones(2, 3), path=path, dims={"x": (BATCH, TIME), "mask": (BATCH, TIME)}
    )
    assert [str(s) for s in made.inputs] == ["x: f32[batch,time,8]", "mask: f32[batch,time]"]
    assert [d.name for d in made.dims] == ["batch", "time"] and not made.assumptions
    assert manifest.load(path).manifest == made
    loaded = gc.load(path)
    check(loaded, model)
    assert loaded.plan(batch=2, time=3).arena <= loaded.plan(batch=64, time=100).arena
    with pytest.raises(ArgumentError, match="no dimension rows"):
        loaded.plan(rows=2)


def test_where_there_is_no_program_for_all_sizes_each_has_its_own(path, monkeypatch):
    compile_graph = sized_model.compile_graph

    def refuse(graph, target):
        if graph.dims:
            raise CompileError("not for all")
        return compile_graph(graph, target)

    monkeypatch.setattr(sized_model, "compile_graph", refuse)
    monkeypatch.setenv("GRAPHC_PROGRAMS", "2")
    model = Counting().eval()
    gc.export(model, gc.ones(2, 3, 8), gc.ones(2, 3), path=path, dims=[(BATCH, TIME), (BATCH, TIME)])
    loaded = gc.load(path)
    check(loaded, model)
    check(loaded, model)
    assert loaded.seconds and loaded.plan(batch=2, time=3).signature[0] == "x: f32[2,3,8]"


def test_sizes_that_do_not_fit_are_told_by_name(path):
    gc.export(nn.Linear(8, 4), gc.ones(2, 8), path=path, dims=[(BATCH,)])
    loaded = gc.load(path)
    with pytest.raises(ShapeError, match=r"batch is 65, outside of 1\.\.64"):
        loaded(np.ones((65, 8), np.float32))
    with pytest.raises(ShapeError):
        loaded(np.ones((5, 7), np.float32))
    with pytest.raises(ArgumentError):
        loaded(np.ones((5, 8), np.float32), np.ones(3, np.float32))


def test_what_a_trace_assumed_is_kept_and_checked(path):
    def f(x):
        return x * 2 if x.shape[0] > 10 else x + 1

    made = gc.export(f, gc.ones(3), path=path, dims=[(BATCH,)])
    assert [str(a).partition(" (asked at")[0] for a in made.assumptions] == ["batch <= 10"]
    assert "test_sized_model.py" in made.assumptions[0].place
    loaded = gc.load(path)
    assert loaded(np.ones(10, np.float32)).tolist() == [2.0] * 10
    with pytest.raises(ShapeError, match=r"f was traced for batch <= 10 .*and is called with batch = 11"):
        loaded(np.ones(11, np.float32))


def test_a_file_without_dimensions_says_nothing_of_them(path):
    gc.export(nn.Linear(8, 4), gc.ones(2, 8), path=path)
    assert b'"dims"' not in path.read_bytes() and b'"assumptions"' not in path.read_bytes()


def test_a_graph_is_written_with_its_dimensions(path):
    graph = gc.trace(lambda x: x * 2 if x.shape[0] > 2 else x, gc.ones(4), dims=[(BATCH,)])
    made = gc.export(graph, path=path)
    assert [(d.low, d.high) for d in made.dims] == [(3, 64)] and not made.assumptions
    loaded = gc.load(path)
    assert loaded(np.ones(3, np.float32)).tolist() == [2.0] * 3
    with pytest.raises(ShapeError, match="batch is 2"):
        loaded(np.ones(2, np.float32))
