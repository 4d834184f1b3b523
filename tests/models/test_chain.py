"""Models that read sizes from values in each call, as files: chains of programs, their sizes, states and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ArgumentError, ShapeError, ValueNeededError
from graphc.files import model_content
from graphc.models.chain import Chain
from graphc.models.file_report import report_of
from graphc.models.model_graph import read_graph
from graphc.tensors.tensor_base import front


class Twice(gc.nn.Module):
    """Reads two sizes, of which the second depends on the first, with weights in its first and its last program."""

    def __init__(self) -> None:
        super().__init__()
        gc.manual_seed(0)  # of other weights a call may find nothing, which the trace excludes
        self.linear = gc.nn.Linear(5, 4)
        self.scale = gc.nn.Parameter(gc.full((1,), 3.0))

    def forward(self, x: gc.Tensor) -> dict[str, gc.Tensor]:
        values = self.linear(x).reshape(-1)
        first = values[values > 0]
        return {"first": first * self.scale, "second": first[first > 0.3]}


def _expected(state: dict[str, Any], x: np.ndarray) -> dict[str, np.ndarray]:
    y = (x @ state["linear.weight"].numpy().T + state["linear.bias"].numpy()).reshape(-1)
    first = y[y > 0]
    return {"first": first * state["scale"].numpy(), "second": first[first > 0.3]}


def _random(rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, 5)).astype(np.float32)


def _same(actual: Any, expected: dict[str, np.ndarray]) -> None:
    assert list(actual) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(actual[name], array, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"native": True}, {"precision": "bf16"}])
def test_one_file_serves_all_counts(tmp_path: Path, options: dict[str, Any]) -> None:
    model, path = Twice(), tmp_path / "a.gcm"
    manifest = gc.export(model, _random(3, 0), path=path, dims={"x": (gc.Dim("n"), None)}, **options)
    assert manifest.first.programs == ("forward.0", "forward.1", "forward.2")
    assert [s.sizes for s in manifest.first.segments] == [("count_0",), ("count_1",), ()]
    loaded, sizes = gc.load(path, trust="native" in options), set()
    assert (loaded.seconds is None) == ("native" in options)
    state = model.state_dict()
    for rows in (3, 7, 1):
        result = loaded(_random(rows, rows))
        _same(result, _expected(state, _random(rows, rows)))
        sizes.add(result["first"].shape)
    assert len(sizes) == 3
    assert loaded.plan(n=7).code > 0
    assert report_of(path).good


def test_calls_of_arrays_run_native_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, path = Twice(), tmp_path / "a.gcm"
    gc.export(model, _random(3, 0), path=path, dims={"x": (gc.Dim("n"), None)})
    loaded, state = gc.load(path), model.state_dict()
    loaded(_random(3, 0))
    run = Chain.run
    monkeypatch.setattr(Chain, "run", lambda *_: pytest.fail("the call did not take the short way"))
    for rows in (3, 7, 1):
        _same(loaded(_random(rows, rows)), _expected(state, _random(rows, rows)))
    monkeypatch.setattr(Chain, "run", run)
    _same(loaded(x=_random(4, 1)), _expected(state, _random(4, 1)))
    _same({k: t.numpy() for k, t in loaded(gc.from_numpy(_random(4, 1))).items()}, _expected(state, _random(4, 1)))
    for wrong in (np.ones((2, 4), np.float32), np.ones((2, 5))):
        with pytest.raises((ShapeError, gc.errors.DTypeError)):
            loaded(wrong)


def test_sample_calls_run_all_programs(tmp_path: Path) -> None:
    gc.export(Twice(), _random(4, 0), path=tmp_path / "a.gcm", golden=2, native=True)
    report = gc.selftest(tmp_path / "a.gcm", trust=True)
    assert report.good and [case.calls for case in report.cases] == [2, 2]


def test_weights_are_swapped_in_all_programs(tmp_path: Path) -> None:
    gc.export(Twice(), _random(4, 0), path=tmp_path / "a.gcm")
    loaded = gc.load(tmp_path / "a.gcm")
    loaded(_random(4, 0))
    loaded.swap_weights({name: 2 * tensor for name, tensor in loaded.state_dict().items()})
    _same(loaded(_random(4, 1)), _expected(loaded.state_dict(), _random(4, 1)))


def test_states_are_written_once_in_each_call(tmp_path: Path) -> None:
    norm = gc.nn.BatchNorm1d(5)
    gc.export(lambda x: norm(x)[x > 0], _random(4, 0), path=tmp_path / "a.gcm")
    loaded = gc.load(tmp_path / "a.gcm")
    for count in (1, 2):
        loaded(_random(4, count))
        assert next(t for n, t in loaded.state_dict().items() if "num_batches" in n).item() == count


def test_a_count_that_breaks_an_assumption_of_the_trace_is_refused(tmp_path: Path) -> None:
    def branching(x: gc.Tensor) -> gc.Tensor:
        values = x[x > 0]
        return values.sum() if values.shape[0] > 3 else values

    gc.export(branching, gc.ones(6), path=tmp_path / "a.gcm")
    loaded = gc.load(tmp_path / "a.gcm")
    assert loaded(np.float32([1, 2, 3, 4, -1, -1])) == 10
    with pytest.raises(ShapeError, match=r"traced for count_0 > 3 .*, but this call computes count_0 = 2"):
        loaded(np.float32([1, 2, -3, -4, -1, -1]))
    with pytest.raises(ShapeError, match="dimension 0 of x is 5, not 6"):
        loaded(np.ones(5, np.float32))


def test_a_size_outside_of_its_range_is_refused(tmp_path: Path) -> None:
    def zeros(n: gc.Tensor) -> gc.Tensor:
        return gc.zeros(1).expand(front().size(n, 9, "a size")) + 1

    gc.export(zeros, gc.tensor(4), path=tmp_path / "a.gcm")
    loaded = gc.load(tmp_path / "a.gcm")
    assert loaded(np.array(9)).shape == (9,)
    for wrong in (10, -1):
        with pytest.raises(ShapeError, match=f"count_0 is {wrong}, outside of 0..9"):
            loaded(np.array(wrong))


def test_several_entries_share_weights_with_a_chain(tmp_path: Path) -> None:
    model = Twice()
    entries = {"scaled": gc.Entry(lambda x: x * model.scale, gc.zeros(3)), "both": gc.Entry(model, _random(2, 0))}
    gc.export(entries, path=tmp_path / "a.gcm", root=model)
    loaded = gc.load(tmp_path / "a.gcm")
    assert list(loaded.entries) == ["scaled", "both"] and sorted(loaded.state_dict()) == sorted(model.state_dict())
    _same(loaded.entry("both")(_random(2, 3)), _expected(loaded.state_dict(), _random(2, 3)))


def test_calls_run_on_devices(tmp_path: Path) -> None:
    gc.export(Twice(), _random(4, 0), path=tmp_path / "a.gcm")
    loaded = gc.load(tmp_path / "a.gcm", device="cuda-emu")
    _same(loaded(_random(4, 1)), _expected(loaded.state_dict(), _random(4, 1)))


def test_what_needs_one_graph_is_refused(tmp_path: Path) -> None:
    model, x = Twice(), gc.from_numpy(_random(4, 0))
    refusals = [
        lambda: gc.trace(model, x),
        lambda: gc.export(model, x, path=tmp_path / "a.gcm", derivative=True),
        lambda: gc.export(model, x, path=tmp_path / "a.onnx"),
    ]
    for refused in refusals:
        with pytest.raises(ValueNeededError, match="is a size that only calls know"):
            refused()
    assert not [*tmp_path.iterdir()]
    gc.export(model, x, path=tmp_path / "b.gcm")
    with pytest.raises(ArgumentError, match="so it is 3 graphs, not one"):
        read_graph(model_content.load(tmp_path / "b.gcm"))
