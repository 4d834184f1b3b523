"""Arguments of rules other than tensors."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.elements import FLOAT
from graphc.interop.onnx.run import Runner
from graphc.interop.onnx.values import Value
from tests.interop.onnx.alike import module_of

TEXT = """(float[2] x, bool c) => (float y) {
    y = If(c) <then_branch = t () => (float a) { a = Neg(x) }, else_branch = e () => (float b) { b = Identity(x) }>
}"""


def _call() -> Call:
    runner = Runner(module_of(TEXT).graph)
    values = {"x": Value.of(gc.ones(2)), "c": Value.of(np.True_)}
    return Call(runner.graph.nodes[0], runner, values, [values["c"]])


def test_graphs_of_a_node_run_with_what_is_around() -> None:
    call = _call()
    (found,) = call.run(call.graph("then_branch"))
    assert found.element is FLOAT and found.tensor.tolist() == [-1, -1]


def test_a_call_knows_inputs_and_results() -> None:
    call = _call()
    assert call.outputs == 1 and call.element(0).name == "BOOL"


def test_what_is_kept_is_made_once() -> None:
    call, made = _call(), []
    for _ in range(2):
        call.kept(lambda: made.append(1) or "kept")
    assert made == [1] and call.kept(lambda: "other") == "kept"


def test_another_graph_runs_beside() -> None:
    call = _call()
    inner = call.runner_of(call.graph("else_branch"))
    (found,) = inner.run({"x": Value.of(gc.zeros(2))}, [])
    assert found.tensor.tolist() == [0, 0]
