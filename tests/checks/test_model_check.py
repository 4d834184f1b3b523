"""check: models pass in both modes, nothing is written to them, and a planted fault names the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.pass_runner import PassRun
from graphc.compiler import stages
from graphc.errors import ArgumentError, ShapeError, TraceError
from graphc.ir.graph.graph import Graph
from graphc.ir.op import REGISTRY
from graphc.nn import functional as F
from tests.calls.narrow import MOST


class Net(nn.Module):
    """A little of everything: products, normalization with state, randomness."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(16, 5)

    def forward(self, x, scale=1.0):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        x = F.dropout(x, 0.3, training=self.training)
        return {"logits": self.fc(x.flatten(1)) * scale, "features": x}


def example() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((3, 2, 4, 4)).astype(np.float32)


@pytest.mark.parametrize("training", [False, True])
def test_models_pass_and_are_left_alone(training: bool):
    net = Net().train(training)
    before = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    random = gc.get_rng_state().numpy().copy()
    report = gc.check(net, example(), 2.0)
    assert report.good, str(report)
    assert [s.stage for s in report.stages] == ["optimized", "lowered", "scheduled", "native"]
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    np.testing.assert_array_equal(gc.get_rng_state().numpy(), random)


def test_functions_and_tensors():
    assert gc.check(lambda a, b: (a @ b, a.sum()), gc.ones(3, 4), gc.ones(4, 2)).good


def test_a_fault_names_the_users_line(monkeypatch: pytest.MonkeyPatch):
    def wrong(graph: Graph, *rest: Any) -> tuple[Graph, list[PassRun]]:
        graph, runs = run_passes(graph, *rest)
        for node in graph.nodes():
            if node.op.name == "exp":
                node.op = REGISTRY["tanh"]
        return graph, runs

    run_passes = stages.run_passes
    monkeypatch.setattr(stages, "run_passes", wrong)

    def f(x):
        y = x * 2
        return gc.exp(y) + 1

    report = gc.check(f, gc.ones(3))
    assert not report.good
    assert "return gc.exp(y) + 1" in str(report) and "tanh(" in str(report)


def test_tolerances():
    assert not gc.check(Net().eval(), example(), rtol=0.0, atol=1e-30).good


def test_what_cannot_be_traced():
    with pytest.raises(TraceError):
        gc.check(lambda x: x if x.sum() > 0 else -x, gc.ones(3))


@pytest.mark.parametrize("precision", MOST)
def test_narrow_weights_pass_every_stage_and_their_error_is_reported(precision: str):
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 64)).eval()
    report = gc.check(net, np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32), precision=precision)
    found = report.precision
    assert report.good and found is not None and found.precision == precision and found.weights == 2
    steps, words = 64 * 80 * 2 + 144 * 4, (64 * 80 + 96 * 64) // 2 + 2 * (2 * 80 + 3 * 64)  # with their scales
    stored = {"int8": steps, "int4": words}.get(precision.removesuffix("_dot"), 2 * 64 * 80 * 2)
    assert found.saved == 2 * 64 * 80 * 4 - stored
    assert 0 < found.of_largest < MOST[precision]
    assert str(found) in str(report) and f"2 weights, {found.saved:,} bytes less" in str(found)


def test_a_model_without_large_weights_loses_nothing():
    report = gc.check(Net().eval(), example(), precision="bf16")
    assert report.precision is not None and report.precision.weights == 0 and report.precision.max_absolute < 1e-5


def test_unknown_precisions():
    with pytest.raises(ArgumentError, match="no precision 'f8'"):
        gc.check(lambda x: x, gc.ones(3), precision="f8")


@pytest.mark.parametrize("precision", [None, "bf16"])
def test_the_program_for_all_sizes_is_checked_at_those_of_the_examples(precision):
    batch, time = gc.Dim("batch", 1, 20), gc.Dim("time", 1, 30)
    model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 4)).eval()
    for shape in ((3, 7, 8), (1, 30, 8)):
        report = gc.check(model, gc.rand(*shape), dims=[(batch, time)], precision=precision)
        assert report.good and [s.stage for s in report.stages] == ["optimized", "lowered", "scheduled", "native"]
    with pytest.raises(ShapeError, match="batch is 21"):
        gc.check(model, gc.rand(21, 7, 8), dims=[(batch, time)])


@pytest.mark.parametrize("precision", [None, "bf16"])
def test_the_program_for_all_numbers_is_checked_at_that_of_the_examples(precision):
    batch, pos = gc.Dim("batch", 1, 20), gc.Dim("pos", 0, 7)
    model = nn.Linear(8, 64)
    for number in (0, 3, 7):
        report = gc.check(
            lambda x, at: model(x)[:, : at["pos"] + 1] * at["pos"],
            gc.rand(3, 8),
            {"pos": number},
            dims=[(batch,), {"pos": pos}],
            precision=precision,
        )
        assert report.good and [s.stage for s in report.stages] == ["optimized", "lowered", "scheduled", "native"]
    with pytest.raises(ArgumentError, match="pos is 8"):
        gc.check(lambda x, pos: x * pos, gc.rand(3, 8), 8, dims=[(batch,), pos])


def test_a_model_that_reads_sizes_is_checked_program_by_program():
    def pick(x: gc.Tensor) -> gc.Tensor:
        found = x[x > 0].exp()
        return found[found > 2] + x.shape[0]

    x = gc.tensor([1.0, -1.0, 0.1, 2.0])
    for dims in (None, {"x": (gc.Dim("n"),)}):
        report = gc.check(pick, x, dims=dims)
        assert report.good and {s.stage.partition(" ")[0] for s in report.stages} == {"0", "1", "2"}
        passes = gc.check(pick, x, dims=dims, passes=True)
        assert passes.good and {line.part for line in passes.lines} == {"forward.0", "forward.1", "forward.2"}
    with pytest.raises(ArgumentError, match="reads sizes from values, so it is several graphs"):
        gc.check(pick, x, precision="bf16")
    with pytest.raises(gc.errors.ValueNeededError, match="--entry forward"):
        gc.check(pick, x, gradients=True)
