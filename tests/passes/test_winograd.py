"""The Winograd pass: which convolutions change, equal numbers, one padding, and the option that turns it off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.dtypes import float32, int8
from graphc.base.sizes.named_dims import Dim
from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import target_named
from graphc.compiler.stages import Stages
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy
from graphc.ir.types import TensorType
from graphc.ops.contraction.convolution import conv
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import cast
from graphc.passes.pipeline import optimize
from graphc.passes.winograd import Winograd
from tests.lowering.sized import check
from tests.passes.check_pass import check_equal

PLAIN = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}


def convolution(side: int, channels: int = 64, kernel: int = 3, live: bool = False, batch: int = 1, **attrs) -> Graph:
    """One convolution to as many channels, by weights that are constant or a parameter."""
    graph = Graph("net")
    x = graph.add_input(TensorType(float32, (batch, channels, side, side)), "x")
    shape = (channels, channels // attrs.get("groups", 1), kernel, kernel)
    random = np.random.default_rng(0)
    if live:
        w = graph.add_input(TensorType(float32, shape), "w", "param", "w")
    else:
        w = constant(graph, random.standard_normal(shape) / np.sqrt(9 * channels), float32)
    with use(GraphDispatcher(graph)):
        graph.set_outputs([conv(x, w, **{**PLAIN, **attrs})])
    return graph


def names(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes() if n.op.name not in ("constant", "input")]


@pytest.mark.parametrize(("side", "tile"), [(28, 4), (14, 2), (13, 2), (57, 4)])
def test_large_enough_ones_change(side: int, tile: int):
    before = convolution(side, 128)
    after = optimize(copy(before))
    assert names(after) == ["pad", "winograd_input", "matmul", "winograd_output"]
    assert [n.attrs["tile"] for n in after.nodes() if "tile" in n.attrs] == [tile, tile]
    check_equal(before, after, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("side", "dilation", "tile"), [(28, 4, 4), (23, 2, 4), (19, 3, 4), (14, 2, 4)])
def test_dilated_ones_change(side: int, dilation: int, tile: int):
    around = ((dilation, dilation),) * 2
    before = convolution(side, 128, batch=2, dilation=(dilation, dilation), padding=around)
    after = optimize(copy(before))
    assert names(after) == ["pad", "winograd_input", "matmul", "winograd_output"]
    assert [n.attrs["tile"] for n in after.nodes() if "tile" in n.attrs] == [tile, tile]
    check_equal(before, after, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    "given",
    [
        {"channels": 4},
        {"side": 4},
        {"kernel": 5},
        {"stride": (2, 2)},
        {"dilation": (2, 1)},
        {"dilation": (9, 9), "padding": ((0, 0), (0, 0))},
        {"groups": 2},
    ],
    ids=str,
)
def test_others_stay(given: dict):
    graph = optimize(convolution(**{"side": 28, **given}))
    assert "conv" in names(graph) and "winograd_input" not in names(graph)


def test_weights_that_are_not_constant_are_transformed_by_each_call():
    before = convolution(28, 128, live=True)
    after = optimize(copy(before))
    assert names(after) == ["pad", "winograd_input", "winograd_weight", "matmul", "winograd_output"]
    check_equal(before, after, rtol=1e-4, atol=5e-4)


def test_weights_that_are_computed_from_constants_are_transformed_once():
    graph = Graph("net")
    x = graph.add_input(TensorType(float32, (1, 128, 28, 28)), "x")
    codes = constant(graph, np.random.default_rng(0).integers(-127, 128, (128, 128, 3, 3)), int8)
    with use(GraphDispatcher(graph)):
        graph.set_outputs([conv(x, cast(codes, dtype=float32), **PLAIN)])
    before = copy(graph)
    after = optimize(graph)
    assert names(after) == ["pad", "winograd_input", "matmul", "winograd_output"]
    check_equal(before, after, rtol=1e-4, atol=1e-1)


def test_the_option_turns_it_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_WINOGRAD", "off")
    assert names(optimize(convolution(28))) == ["pad", "conv"]


def test_a_second_run_changes_nothing():
    graph = optimize(convolution(28))
    assert Winograd().run(graph).changed == 0


def test_the_costs_of_the_target_decide():
    graph = convolution(28)
    never = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, winograd_advantage=100.0))
    assert names(optimize(graph, costs=never)) == ["pad", "conv"]
    target = replace(target_named("avx2"), costs=never)
    assert names(Stages(graph, target=target).optimized) == ["pad", "conv"]


class Block(nn.Module):
    """Two convolutions with what usually surrounds them."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(channels, channels, 3, padding=1)
        self.two = nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation)

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        return (self.two(self.one(x).relu()) + x).relu()


@pytest.mark.parametrize(("side", "batch", "dilation"), [(12, 1, 1), (13, 2, 1), (15, 9, 1), (23, 2, 2)])
def test_native_code_with_what_follows(side: int, batch: int, dilation: int, tmp_path: Path):
    """Whole tiles and cut ones; bias, residual and ReLU in the kernel that transforms back."""
    model, x = Block(32, dilation).eval(), gc.randn(batch, 32, side, side)
    gc.export(model, x, path=tmp_path / "block.gcm")
    run = gc.load(tmp_path / "block.gcm")
    with gc.no_grad():
        expected = model(x).numpy()
    got = run(x.numpy())
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-5)


def test_batches_of_any_size_change_and_sides_known_at_run_time_stay():
    batch = convolution(8, channels=16, batch=Dim("batch", 1, 9, hint=8))
    graph = optimize(batch, costs=replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, winograd_advantage=0)))
    assert "winograd_input" in names(graph)
    check(graph, [{"batch": 1}, {"batch": 3}])
    sides = optimize(convolution(Dim("side", 28, 64, hint=56)))
    assert "winograd_input" not in names(sides)
