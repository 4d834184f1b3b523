"""The writer: names of nodes and constants, values from around, calls that must not be one operator, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import UnsupportedError
from graphc.interop.onnx_export.table import RULES
from graphc.interop.onnx_export.writer import GraphWriter, Model
from graphc.ir.graph.graph import Graph
from graphc.nn import functional as F
from graphc.ops.define_op import define_op
from graphc.ops.pointwise import elementwise as ew
from tests.interop.onnx_export.runtimes import check, onnx


def writer() -> GraphWriter:
    return GraphWriter(Model(20, RULES, {}, lambda graph: (), {}))


def test_nodes_are_named_by_module_and_operator():
    w = writer()
    w.module = "encoder.layers.0.linear"
    assert w.add("Gemm", "a", "b") == "/encoder/layers.0/linear/Gemm_output_0"
    assert w.add("Gemm", "a", "b") == "/encoder/layers.0/linear/Gemm_1_output_0"
    assert w.add("TopK", "a", "k", outputs=2)[1] == "/encoder/layers.0/linear/TopK_output_1"
    w.module = ""
    w.add("Add", "a", "b", axis=None)
    assert w.nodes[-1].name == "/Add" and not w.nodes[-1].attrs


def test_a_name_that_is_taken_gets_a_number_until_it_is_free():
    model = writer().model
    assert [model.unique(name) for name in ("a", "a", "a_1", "a")] == ["a", "a_1", "a_1_1", "a_2"]


def test_equal_small_constants_are_one_and_large_ones_are_not():
    w = writer()
    assert w.constant(0.5, gc.float32) == w.constant(0.5, gc.float32) != w.constant(0.5, gc.float64)
    assert w.ints(1, 2) == w.constant(np.array([1, 2])) != w.constant(np.array([1, 2], np.int32))
    large = np.zeros(1000)
    assert w.constant(large) != w.constant(large)


def test_an_op_that_is_composed_is_written_as_what_it_is_made_of(tmp_path: Path):
    assert "Log" in check(lambda x: gc.lgamma(x), (gc.rand(3) + 1,), tmp_path / "f.onnx")


@pytest.mark.usefixtures("own_ops")
def test_an_op_of_a_user_is_what_it_decomposes_to_or_an_error(tmp_path: Path):
    options: Any = {"reference": lambda x: x * 2, "samples": lambda: []}
    twice = define_op("twice_for_onnx", "2 x.", "x", lambda x: x, decompose=lambda x: ew.add(x, x), **options)
    assert check(lambda x: twice(x), (gc.rand(3),), tmp_path / "f.onnx") == ["Add"]
    other = define_op("other_for_onnx", "2 x.", "x", lambda x: x, lower=lambda c, index, x: c.load(x, index), **options)
    with pytest.raises(UnsupportedError, match=r"no operator for other_for_onnx\n  where  other_for_onnx\(%x: f32"):
        gc.export(lambda x: other(x), gc.rand(3), path=tmp_path / "g.onnx")


def test_a_result_that_nothing_reads_needs_no_operator(tmp_path: Path):
    def function(x: Any) -> Any:
        _, _unread = F.max_pool1d(x, 2, return_indices=True)
        return F.max_pool1d(x, 2)

    assert check(function, (gc.randn(1, 2, 6),), tmp_path / "f.onnx") == ["MaxPool"]


def test_a_call_that_writes_to_what_is_read_outside_is_written_by_its_nodes(tmp_path: Path):
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            y = x * 2
            part = y[:, :2]
            F.relu(part, inplace=True)
            return y, part

    assert "Relu" in check(Net(), (gc.randn(3, 4),), tmp_path / "f.onnx")


def test_a_number_from_outside_is_a_constant(tmp_path: Path):
    factor = gc.tensor(2.5)
    assert check(lambda x: F.relu(x) * factor, (gc.randn(3),), tmp_path / "f.onnx")[0] == "Relu"


def test_shared_weights_are_there_once(tmp_path: Path):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(5, 4)
            self.head = nn.Linear(4, 5, bias=False)
            self.head.weight = self.words.weight

        def forward(self, x: Any) -> Any:
            return self.head(self.words(x))

    assert check(Tied(), (gc.tensor([1, 3]),), tmp_path / "f.onnx") == ["Gather", "Gemm"]
    assert [t.name for t in onnx.load(tmp_path / "f.onnx").graph.initializer] == ["words.weight"]


def test_an_error_says_op_module_line_and_what_to_do(tmp_path: Path):
    class Noisy(nn.Module):
        def forward(self, x: Any) -> Any:
            return F.max_pool1d(x, 2) + gc.grad(lambda a: F.max_pool1d(a, 2).sum())(x)[:, ::2]

    message = (
        r"max_pool_grad\n  where  max_pool_grad\(%.*\n  from   0, .*test_writer.py:\d+: return F.*"
        r"\n  try    use other operations there, or export to a \.gcm file, which holds all of graphc's"
    )
    with pytest.raises(UnsupportedError, match=message):
        gc.export(nn.Sequential(Noisy()), gc.ones(1, 4), path=tmp_path / "f.onnx")


def test_a_graph_that_is_applied_twice_is_written_twice():
    graph = Graph("twice")
    a = graph.add_input(gc.trace(lambda x: x, gc.ones(2)).inputs[0].type, "a")
    graph.set_outputs([a])
    w = writer()
    assert w.inline(graph, ["one"]) == ["one"] and w.inline(graph, ["two"]) == ["two"]
