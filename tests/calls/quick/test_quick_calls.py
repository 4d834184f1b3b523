"""Calls by references: every op, models, the memory of results, states, values that are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls.bindings import Binding, Slot
from graphc.calls.quick.quick_calls import QuickCalls, last_uses
from graphc.checks.op_check import sample_graph
from graphc.codegen.machine.target import host_target
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.parse import parse_graph
from graphc.ir.op import OpDef, Sample
from graphc.nn import functional as F
from graphc.tensors.tensor import Tensor
from tests import native
from tests.calls.quick.held import end
from tests.compiler.graphs import counter
from tests.ops.test_every_op import SAMPLES, assert_agree


def call(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a call, which writes to those arrays that are states."""
    pairs = [*zip(graph.inputs, arrays, strict=True)]
    bound = [a for v, a in pairs if input_class(v) != "input"]
    slots = [Slot(Tensor._wrap(a), None) for a in bound]
    binding = Binding(slots, [True] * len(slots))
    assert binding.holds()
    return QuickCalls(graph, binding, lambda: None).run([a for v, a in pairs if input_class(v) == "input"])


@pytest.mark.sampled(10)
@pytest.mark.parametrize("op,sample", SAMPLES)
def test_both_tiers_agree_on_every_op(op: OpDef, sample: Sample):
    graph = sample_graph(op, sample.operands, sample.attrs)
    quick, full = ([np.array(a) for a in sample.operands] for _ in range(2))
    run = native.Native(native.scheduled(native.lowered(graph), host_target()), host_target())
    outputs, state = native.with_state(graph, run, full)
    results = call(graph, quick)
    assert_agree(results, outputs)
    for value, array in zip(graph.inputs, quick, strict=True):
        if input_path(value) in state:
            assert_agree([array], [state[input_path(value)]])
    for i, result in enumerate(results):
        assert result.flags.c_contiguous and result.flags.writeable
        assert not any(np.shares_memory(result, a) for a in (*quick, *results[:i]))


def test_states_are_written():
    total = np.array([1.0, 2.0, 3.0], np.float32)
    (y,) = call(counter(), [np.ones(3, np.float32), total])
    assert total.tolist() == [2.0, 3.0, 4.0] and y.tolist() == [2.0, 6.0, 12.0]


def test_states_that_change_places():
    graph = parse_graph("""
graph @swap(%a: f32[2] state "a", %b: f32[2] state "b") -> (f32[2]) {
  %c = flip(%b) {axes=[0]} : f32[2]
  %d = state_write(%a, %c) : f32[2]
  %e = flip(%a) {axes=[0]} : f32[2]
  %f = state_write(%b, %e) : f32[2]
  return %a
}
""")
    a, b = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)
    (result,) = call(graph, [a, b])
    assert (a.tolist(), b.tolist(), result.tolist()) == ([4.0, 3.0], [2.0, 1.0], [1.0, 2.0])


def test_values_are_forgotten_after_their_last_use():
    graph = gc.trace(lambda x: ((y := x * x) + y, (x + x).exp()), gc.ones(3))
    first, last = graph.outputs[0].node, graph.outputs[1].node
    assert last_uses(graph) == {first: [first.operands[0]], last: [last.operands[0]]}


class Residual(nn.Module):
    """Convolutions of several kinds around a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv2d(4, 12, 3, padding=1, stride=2)
        self.deep = nn.Conv2d(12, 12, 3, padding=2, dilation=2, groups=12)
        self.norm = nn.BatchNorm2d(12)
        self.up = nn.ConvTranspose2d(12, 4, 2, stride=2)

    def forward(self, x: Any) -> Any:
        y = F.silu(self.norm(self.deep(self.wide(x))))
        return F.max_pool2d(self.up(y) + x, 2)


class Attention(nn.Module):
    """A block of a transformer over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.block = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")

    def forward(self, tokens: Any) -> Any:
        return F.log_softmax(self.block(self.embedding(tokens)), dim=-1)


class Recurrent(nn.Module):
    """Gated units in both directions."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.layers = kind(6, 8, num_layers=2, bidirectional=True)  # type: ignore[call-arg]

    def forward(self, x: Any) -> Any:
        return self.layers(x)[0]


def images() -> Any:
    return gc.rand(2, 4, 8, 8)


def sequence() -> Any:
    return gc.randn(5, 3, 6)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "convolutions": (Residual, images),
    "attention": (Attention, lambda: gc.randint(0, 50, (2, 7))),
    "lstm": (lambda: Recurrent(nn.LSTM), sequence),
    "gru": (lambda: Recurrent(nn.GRU), sequence),
    "f64": (lambda: Residual().double(), lambda: images().double()),
    "bf16": (lambda: Residual().bfloat16(), lambda: images().bfloat16()),
}
TOLERANCE = {"f64": 1e-12, "f32": 2e-5, "bf16": 2e-2}


@gc.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_both_tiers_agree(name: str):
    gc.manual_seed(0)
    make, inputs = MODELS[name]
    model, x = make().eval(), inputs()
    compiled = gc.compile(model, tier="auto")
    first = compiled(x)
    assert isinstance(compiled.variants[-1].calls, QuickCalls)
    end()
    last = compiled(x)
    assert not isinstance(compiled.variants[-1].calls, QuickCalls)
    assert (first.dtype, first.shape) == (last.dtype, last.shape)
    tolerance = TOLERANCE[first.dtype.name]
    quick, full = (t.double().numpy() for t in (first, last))
    np.testing.assert_allclose(quick, full, rtol=tolerance, atol=tolerance * np.abs(full).max())
