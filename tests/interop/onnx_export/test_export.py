"""export to .onnx: twelve families in other runtimes, names, named dimensions, what the file says, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.version import VERSION
from graphc.errors import ArgumentError, GradientError, UnsupportedError
from graphc.interop.onnx_export import protobuf
from graphc.interop.onnx_export.export import export_model
from graphc.nn import functional as F
from graphc.tensors.structure import flatten
from tests.families.test_families import FAMILIES
from tests.interop.onnx_export.runtimes import (
    TOLERANCE,
    by_reference,
    by_runtime,
    check,
    distance,
    onnx,
    operators,
)

SMALL = ("mlp", "gru", "bert", "vit")
"""Families that the reference of onnx, which is slow, computes."""
OPSETS = (20, 23)


class Net(nn.Module):
    """Two layers in a list, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 3)])
        self.register_buffer("offset", gc.ones(3))

    def forward(self, features: Any) -> Any:
        return self.layers[1](F.relu(self.layers[0](features))) + self.offset


def family(name: str) -> tuple[Any, list[Any]]:
    gc.manual_seed(0)
    return FAMILIES[name].build(gc).eval(), [gc.from_numpy(a.copy()) for a in FAMILIES[name].inputs]


def wanted(model: Any, inputs: list[Any]) -> list[np.ndarray]:
    with gc.no_grad():
        return [t.numpy() for t in flatten(model(*inputs))[0]]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_runs_in_onnxruntime(name: str, opset: int, tmp_path: Path):
    model, inputs = family(name)
    gc.export(model, *inputs, path=tmp_path / "net.onnx", opset=opset)
    result = by_runtime(tmp_path / "net.onnx", [t.numpy() for t in inputs])
    assert distance(result, wanted(model, inputs)) < TOLERANCE


@pytest.mark.sampled(50)
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_comes_back_as_it_was(name: str, opset: int, tmp_path: Path):
    model, inputs = family(name)
    gc.export(model, *inputs, path=tmp_path / "net.onnx", opset=opset)
    module = gc.from_onnx(tmp_path / "net.onnx")
    assert distance(wanted(module, inputs), wanted(model, inputs)) < TOLERANCE
    assert distance(wanted(gc.compile(module), inputs), wanted(model, inputs)) < TOLERANCE
    parameters = {name for name, p in model.named_parameters() if p.ndim > 1}
    assert parameters & dict(module.named_parameters()).keys(), "weights keep their names"


@pytest.mark.parametrize("name", SMALL)
def test_a_family_computes_in_the_reference_of_onnx_what_it_does_here(name: str, tmp_path: Path):
    model, inputs = family(name)
    gc.export(model, *inputs, path=tmp_path / "net.onnx")
    result = by_reference(tmp_path / "net.onnx", [t.numpy() for t in inputs])
    assert distance(result, wanted(model, inputs)) < TOLERANCE


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_takes_batches_of_any_size(name: str, tmp_path: Path):
    model, inputs = family(name)
    batch, axis = gc.Dim("batch", max=64), 1 if name == "gru" else 0
    dims = [(None,) * axis + (batch,) for _ in inputs]
    gc.export(model, *inputs, path=tmp_path / "net.onnx", dims=dims)
    twice = [gc.cat([t, t], axis) for t in inputs]
    result = by_runtime(tmp_path / "net.onnx", [t.numpy() for t in twice])
    assert distance(result, wanted(model, twice)) < TOLERANCE


def test_nodes_weights_inputs_and_outputs_are_named_as_in_the_model(tmp_path: Path):
    manifest = gc.export(Net(), gc.ones(2, 4), path=tmp_path / "net.onnx", dims=[(gc.Dim("batch"),)])
    model = onnx.load(tmp_path / "net.onnx")
    assert [n.name for n in model.graph.node] == ["/layers.0/Gemm", "/Relu", "/layers.1/Gemm", "/Add"]
    assert [n.metadata_props[0].value for n in model.graph.node if n.metadata_props] == ["layers.0", "layers.1"]
    assert [n.metadata_props[0].key for n in model.graph.node if n.metadata_props] == [protobuf.MODULE] * 2
    weights = {"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "offset"}
    assert {t.name for t in model.graph.initializer} == weights
    (input_port,), (output_port,) = model.graph.input, model.graph.output
    assert (input_port.name, output_port.name, model.graph.name) == ("features", "output", "Net")
    assert [d.dim_param or d.dim_value for d in input_port.type.tensor_type.shape.dim] == ["batch", 4]
    assert [d.dim_param or d.dim_value for d in output_port.type.tensor_type.shape.dim] == ["batch", 3]
    assert (model.producer_name, model.producer_version) == ("graphc", VERSION)
    assert [str(s) for s in manifest.inputs] == ["features: f32[batch,4]"]


def test_the_opset_is_20_or_what_is_asked_for(tmp_path: Path):
    for opset in (None, protobuf.OLDEST, 22):
        gc.export(Net(), gc.ones(2, 4), path=tmp_path / "net.onnx", opset=opset)
        assert onnx.load(tmp_path / "net.onnx").opset_import[0].version == (opset or protobuf.USUAL)
    with pytest.raises(ArgumentError, match=r"opset 7 cannot be written\n  try    use an opset from 18 to"):
        gc.export(Net(), gc.ones(2, 4), path=tmp_path / "net.onnx", opset=7)


def test_outputs_are_named_by_their_places(tmp_path: Path):
    def model(x: Any, *, scale: Any) -> Any:
        return {"logits": x * scale, "boxes": (x, -x, x * scale)}

    gc.export(model, gc.ones(2), scale=gc.ones(2), path=tmp_path / "net.onnx")
    loaded = onnx.load(tmp_path / "net.onnx").graph
    assert [v.name for v in loaded.input] == ["x", "scale"]
    assert [v.name for v in loaded.output] == ["logits", "boxes.0", "boxes.1", "boxes.2"]
    x, scale = np.float32([1, 2]), np.float32([3, 4])
    assert [a.tolist() for a in by_reference(tmp_path / "net.onnx", [x, scale])] == [[3, 8], [1, 2], [-1, -2], [3, 8]]


def test_an_output_may_be_called_as_an_input_is(tmp_path: Path):
    gc.export(lambda x: {"x": x + 1, "y": x}, gc.ones(2), path=tmp_path / "net.onnx")
    result = by_reference(tmp_path / "net.onnx", [np.float32([1, 2])])
    assert [a.tolist() for a in result] == [[2, 3], [1, 2]]


def test_a_graph_is_written_op_by_op(tmp_path: Path):
    net, x = Net(), gc.ones(2, 4)
    gc.export(gc.trace(net, x), path=tmp_path / "net.onnx")
    assert operators(tmp_path / "net.onnx")[:2] == ["Transpose", "MatMul"]
    assert distance(by_reference(tmp_path / "net.onnx", [x.numpy()]), wanted(net, [x])) < TOLERANCE


def test_exporting_leaves_what_compile_sees_as_it_was(tmp_path: Path):
    net, x = Net(), gc.ones(2, 4)
    before = str(gc.trace(net, x))
    gc.export(net, x, path=tmp_path / "net.onnx")
    assert str(gc.trace(net, x)) == before


def test_sizes_are_computed_by_the_model(tmp_path: Path):
    batch, time = gc.Dim("batch"), gc.Dim("time", min=2)

    def model(x: Any) -> Any:
        rows = x.shape[0] * x.shape[1]
        positions = gc.arange(x.shape[1])
        half = x[:, : x.shape[1] // 2].mean(1) / x.shape[1]
        return (x + positions.reshape(-1, 1)).reshape(rows, 3), half, F.pad(x, (0, 0, 1, x.shape[0]))

    gc.export(model, gc.ones(2, 4, 3), path=tmp_path / "net.onnx", dims=[(batch, time)])
    shapes = [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in _outputs(tmp_path)]
    assert shapes == [["batch*time", 3], ["batch", 3], ["batch", "batch + time + 1", 3]]
    x = gc.randn(3, 7, 3)
    assert distance(by_reference(tmp_path / "net.onnx", [x.numpy()]), wanted(model, [x])) < TOLERANCE


def _outputs(folder: Path) -> Any:
    return onnx.load(folder / "net.onnx").graph.output


def test_what_is_assumed_of_sizes_stands_in_the_file(tmp_path: Path):
    def model(x: Any, y: Any) -> Any:
        return x + y if x.shape[0] == y.shape[0] else x

    dims = [(gc.Dim("rows", hint=4),), (gc.Dim("others", hint=4),)]
    gc.export(model, gc.ones(4), gc.ones(4), path=tmp_path / "net.onnx", dims=dims)
    loaded = onnx.load(tmp_path / "net.onnx")
    assert "==" in loaded.metadata_props[0].value
    (name,) = {d.dim_param for v in loaded.graph.input for d in v.type.tensor_type.shape.dim}
    assert name in ("rows", "others")


def test_branches_and_loops_are_if_loop_and_scan(tmp_path: Path):
    def branches(x: Any) -> Any:
        return gc.cond(x.sum() > 0, lambda a: F.softmax(a, 0), lambda a: a * 2, (x,))

    def loops(x: Any) -> Any:
        return gc.while_loop(lambda a: a.sum() < 100, lambda a: F.relu(a) * 2 + 1, x)

    def scans(x: Any) -> Any:
        return gc.scan(lambda carry, row: (carry + row, F.gelu(carry)), gc.zeros(3), x)

    def counts(x: Any) -> Any:
        return gc.fori_loop(0, 3, lambda i, a: a * 2 + i, x)

    for x in (gc.randn(4, 3), gc.ones(4, 3), -gc.ones(4, 3)):
        assert "If" in check(branches, (x,), tmp_path / "net.onnx")
        assert "Loop" in check(loops, (x,), tmp_path / "net.onnx")
        assert "Scan" in check(scans, (x,), tmp_path / "net.onnx")
        check(counts, (x,), tmp_path / "net.onnx")
    bodies = [a.g for n in onnx.load(tmp_path / "net.onnx").graph.node for a in n.attribute if a.HasField("g")]
    assert all(b.node for b in bodies)


class Counter(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", gc.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Counter(),
            r"the model changes its buffers, and ONNX has no mutable buffers \(calls\)[\s\S]*self\.calls \+= 1",
        ),
        (nn.Sequential(nn.BatchNorm1d(4)).train(), r"changes its buffers[\s\S]*model\.eval\(\)"),
        (nn.Sequential(nn.Dropout(0.5)).train(), r"changes its buffers[\s\S]*model\.eval\(\)"),
        (lambda x: gc.grad(lambda a: F.max_pool1d(a, 2).sum())(x), r"no operator for max_pool_grad[\s\S]*\.gcm file"),
    ],
)
def test_what_onnx_cannot_hold_is_refused_with_the_line_and_a_way_out(tmp_path: Path, model: Any, message: str):
    with pytest.raises(UnsupportedError, match=message):
        gc.export(model, gc.ones(2, 4), path=tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


def test_the_error_names_the_module(tmp_path: Path):
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.as_strided((x.shape[0],), (1,), 0)

    with pytest.raises(UnsupportedError, match=r"from   0, .*test_export\.py:\d+: return x\.as_strided"):
        gc.export(nn.Sequential(Inner()), gc.ones(3), path=tmp_path / "net.onnx", dims=[(gc.Dim("n"),)])


def test_derivatives_can_be_exported(tmp_path: Path):
    def model(x: Any) -> Any:
        return gc.grad(lambda a: F.gelu(a @ gc.ones(4, 4)).sum())(x)

    try:
        result = check(model, (gc.randn(2, 4),), tmp_path / "net.onnx")
    except GradientError:
        pytest.fail("the gradient is part of the graph")
    assert "MatMul" in result


def test_custom_functions_are_what_their_forward_is(tmp_path: Path):
    class Double(gc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return F.relu(x) * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    assert check(lambda x: Double.apply(x) + 1, (gc.randn(2, 4),), tmp_path / "net.onnx") == ["Relu", "Mul", "Add"]


def test_arrays_are_examples_too(tmp_path: Path):
    export_model(Net(), [np.ones((2, 4), np.float32)], {}, tmp_path / "net.onnx")
    assert operators(tmp_path / "net.onnx") == ["Gemm", "Relu", "Gemm", "Add"]
