"""Calls: those of watched functions in a trace, with values in the place of tensors; the trace itself is as without."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.errors import GraphcError
from graphc.interop.onnx_export.calls import ExportedCall, observed
from graphc.ir.graph.graph import Value, input_path
from graphc.nn import functional as F
from graphc.nn.functional.recurrent import recurrent_layer
from graphc.tensors import composite
from graphc.tracing.trace import trace_function


def calls(function: Any, *arguments: Any, watched: Any = (F.relu, composite.relu, F.linear)) -> list[ExportedCall]:
    with gc.no_grad(), observed(watched) as observer:
        traced = trace_function(function, arguments)
    return observer.of(traced.graph)


def test_a_call_knows_its_arguments_its_nodes_and_its_results():
    net = nn.Linear(3, 2)
    (call,) = calls(net, gc.ones(4, 3))
    assert call.function is F.linear
    assert [input_path(call[name]) for name in ("weight", "bias")] == ["weight", "bias"]
    made = [n.op.name for n in call.graph.nodes() if call.first <= n.id < call.last]
    assert made == ["matmul", "add"]
    assert call.results == list(call.graph.outputs)


def test_defaults_are_arguments_too_and_numbers_stay_numbers():
    (call,) = calls(lambda x: F.leaky_relu(x), gc.ones(2), watched=[F.leaky_relu])
    assert call["negative_slope"] == 0.01 and call["inplace"] is False and isinstance(call["input"], Value)


def test_a_call_stands_before_those_inside_of_it():
    result = calls(lambda x: F.relu(F.relu(x)), gc.ones(2))
    assert [c.function for c in result] == [F.relu, composite.relu] * 2


def test_names_bound_elsewhere_are_seen_and_methods_through_what_they_call():
    rectified = F.relu
    assert [c.function for c in calls(lambda x: rectified(x).relu(), gc.ones(2))] == [
        *(F.relu, composite.relu),
        composite.relu,
    ]


def test_calls_in_the_body_of_a_loop_belong_to_its_graph():
    net = nn.GRU(3, 2)
    (call,) = calls(net, gc.ones(4, 1, 3), watched=[recurrent_layer])
    assert all(isinstance(v, Value) for v in (*call["state"], call["x"], call["weight_hh"]))
    assert len(call.results) == 2

    def scans(x: Any) -> Any:
        return gc.scan(lambda carry, row: (F.relu(carry), row), gc.ones(2), x)

    with gc.no_grad(), observed([F.relu]) as observer:
        graph = trace_function(scans, (gc.ones(3, 2),)).graph
    (body,) = [n.attrs["body"] for n in graph.nodes() if "body" in n.attrs]
    assert not observer.of(graph) and len(observer.of(body)) == 1


def test_tensors_that_a_call_does_not_use_stay_tensors():
    unused = gc.ones(3)

    def ignore_second(x: Any, ignored: Any) -> Any:
        return x + 1

    (call,) = calls(lambda x: ignore_second(x, unused), gc.ones(2), watched=[ignore_second])
    assert call["ignored"] is unused and isinstance(call["x"], Value)


def test_arguments_that_are_none_stay_none():
    (call,) = calls(lambda x: F.instance_norm(x, running_mean=None), gc.ones(1, 2, 4), watched=[F.instance_norm])
    assert call["running_mean"] is None
    attention = F.scaled_dot_product_attention
    (call,) = calls(lambda x: attention(x, x, x, None), gc.ones(2, 3), watched=[attention])
    assert call["attn_mask"] is None


def test_what_is_written_in_place_has_the_value_of_before():
    def function(x: Any) -> Any:
        y = x + 1
        F.relu(y, inplace=True)
        return y

    call = calls(function, gc.ones(2), watched=[F.relu])[0]
    assert call["input"].node.op.name == "add" and call.results[0] is not call["input"]


def test_the_trace_is_the_one_without_an_observer():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4), nn.LSTM(4, 2))
    x = gc.ones(5, 3)

    def text() -> str:
        return str(gc.trace(net, x))

    before = text()
    with observed([F.relu, F.linear, F.layer_norm, recurrent_layer]):
        assert text() == before


def test_a_call_that_raises_has_no_results_and_the_next_ones_are_seen():
    def function(x: Any) -> Any:
        try:
            F.linear(x, gc.ones(2, 5))
        except GraphcError:
            return F.linear(x, gc.ones(2, 3))

    result = calls(function, gc.ones(4, 3))
    outputs = list(result[0].graph.outputs)
    assert sorted((c.results for c in result), key=str) == sorted([[None], outputs], key=str)


def test_eager_calls_are_none_of_a_trace():
    with observed([F.relu]) as observer:
        F.relu(gc.ones(2))
        graph = gc.trace(lambda x: x + 1, gc.ones(2))
    assert not observer.of(graph)


def test_a_profiler_goes_on_afterwards():
    seen: list[str] = []

    def profiler(frame: Any, event: str, argument: Any) -> None:
        seen.append(event)

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        with pytest.raises(ZeroDivisionError), observed([F.relu]):
            _ = 1 / 0
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert seen
