"""Steps and states of a tick."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import StreamError
from graphc.nn import functional as F
from graphc.streams.plan import Plan
from graphc.tracing.trace import trace_sized
from tests.streams.cases import CausalConv


def plan_of(function: Any, *shape: int, axis: int) -> Plan:
    """Return an empty plan of 8 ticks of 8 samples."""
    time = gc.Dim("time")
    dims = {0: tuple(time if i == axis else None for i in range(len(shape)))}
    graph = trace_sized(function, (gc.zeros(*shape),), {}, dims).graph
    return Plan(graph, next(iter(graph.dims.values())), 64, 8)


def test_sizes_are_compared_at_a_long_sequence():
    plan = plan_of(lambda x: F.max_pool1d(x, 2), 1, 3, 16, axis=2)
    value, result = plan.graph.inputs[0], plan.graph.outputs[0]
    assert [plan.depends(n) for n in value.shape] == [False, False, True]
    assert plan.axes(result) == [2]
    assert [plan.size(n) for n in result.shape] == [1, 3, 32]
    assert (plan.block_of(value.shape[2]), plan.block_of(result.shape[2])) == (8, 4)
    assert plan.length_for(result, 1000) == 2048


def test_states_are_named_after_modules():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([CausalConv(1, 1, 3), CausalConv(1, 1, 3), nn.Conv1d(1, 1, 2)])

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return x

    stream = gc.stream(Net(), gc.zeros(1, 1, 8), dim=2)
    assert {name: array.shape for name, array in stream.state.items() if "history" in name} == {
        "blocks_0_conv_history": (1, 1, 2),
        "blocks_1_conv_history": (1, 1, 2),
        "blocks_2_history": (1, 1, 1),
    }


def test_equal_delays_need_no_state():
    stream = gc.stream(lambda x: x[..., 2:] * x[..., 2:].exp(), gc.zeros(1, 1, 8), dim=2)
    assert not any("history" in name for name in stream.state)


def test_a_faster_branch_waits():
    stream = gc.stream(lambda x: x[..., :-2] - x[..., 2:], gc.zeros(1, 1, 8), dim=2)
    x = np.arange(10, dtype=np.float32).reshape(1, 1, 10) ** 2
    assert stream.delay == 2
    assert np.array_equal(stream(x).numpy()[..., 2:], x[..., :-2] - x[..., 2:])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[..., ::2] + x[..., : x.shape[-1] // 2], "a share of the sequence"),
        (lambda x: gc.randn_like(x) + x, "draws random numbers"),
    ],
)
def test_errors_name_the_op_and_its_line(function: Any, message: str):
    with pytest.raises(StreamError, match=message) as caught:
        gc.stream(function, gc.zeros(1, 1, 8), dim=2)
    assert "test_plan.py" in str(caught.value)
    assert "try " in str(caught.value)


def test_an_op_that_nobody_reads_needs_no_rule():
    def forward(x: Any) -> Any:
        x.sort(-1)
        return x + 1

    assert gc.stream(forward, gc.zeros(1, 1, 8), dim=2).delay == 0
