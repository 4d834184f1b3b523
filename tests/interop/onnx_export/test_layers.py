"""Layers: a functional call is one operator, which computes what the call does, or what it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphc as gc
from graphc.interop.onnx_export.layers import ENTRIES
from graphc.nn import functional as F
from tests.interop.onnx_export.runtimes import check

gc.manual_seed(0)
X, IMAGE, LINE, VOLUME = gc.randn(3, 4), gc.randn(2, 4, 6, 6), gc.randn(2, 4, 9), gc.randn(1, 2, 4, 4, 4)
SQUARE, FOUR, WHOLE = gc.randn(4, 4), gc.rand(4), gc.randint(0, 4, (3, 2))
KERNEL, GROUPED, CUBE = gc.randn(4, 4, 3, 3), gc.randn(4, 2, 3), gc.randn(4, 2, 2, 2, 2)
UP, UP_LINE, UP_CUBE = gc.randn(4, 4, 3, 3), gc.randn(4, 4, 2), gc.randn(2, 4, 2, 2, 2)
GRID = gc.rand(2, 3, 3, 2) * 2.2 - 1.1

CASES: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "relu": ("Relu", F.relu, (X,)),
    "the method relu": ("Relu", lambda x: x.relu(), (X,)),
    "relu in place": ("Relu", lambda x: F.relu(x + 0.0, inplace=True), (X,)),
    "leaky_relu": ("LeakyRelu", lambda x: F.leaky_relu(x, 0.1), (X,)),
    "elu": ("Elu", lambda x: F.elu(x, 1.3), (X,)),
    "selu": ("Selu", F.selu, (X,)),
    "celu": ("Celu", lambda x: F.celu(x, 0.7), (X,)),
    "prelu": ("PRelu", F.prelu, (IMAGE, FOUR)),
    "gelu": ("Gelu", F.gelu, (X,)),
    "gelu with tanh": ("Gelu", lambda x: F.gelu(x, "tanh"), (X,)),
    "mish": ("Mish", F.mish, (X,)),
    "hardsigmoid": ("HardSigmoid", F.hardsigmoid, (X * 4,)),
    "hardswish": ("HardSwish", F.hardswish, (X * 4,)),
    "hardtanh": ("Clip", F.hardtanh, (X,)),
    "relu6": ("Clip", F.relu6, (X * 5,)),
    "softplus": ("Softplus", F.softplus, (X,)),
    "softsign": ("Softsign", F.softsign, (X,)),
    "hardshrink": ("Shrink", F.hardshrink, (X,)),
    "softshrink": ("Shrink", F.softshrink, (X,)),
    "softmax": ("Softmax", lambda x: F.softmax(x, 1), (X,)),
    "softmax in another type": ("Softmax", lambda x: F.softmax(x, 0, dtype=gc.float64), (X,)),
    "log_softmax": ("LogSoftmax", lambda x: F.log_softmax(x, -1), (X,)),
    "layer_norm": ("LayerNormalization", lambda x, w, b: F.layer_norm(x, (4,), w, b), (X, FOUR, FOUR)),
    "layer_norm without weights": ("LayerNormalization", lambda x: F.layer_norm(x, (3, 4)), (X,)),
    "batch_norm": ("BatchNormalization", F.batch_norm, (IMAGE, FOUR, FOUR)),
    "group_norm": ("InstanceNormalization", lambda x, w: F.group_norm(x, 2, w, w), (IMAGE, FOUR)),
    "instance_norm": ("InstanceNormalization", F.instance_norm, (IMAGE,)),
    "linear": ("Gemm", F.linear, (X, SQUARE, FOUR)),
    "linear without a bias": ("Gemm", F.linear, (X, SQUARE)),
    "linear in three dimensions": ("MatMul", F.linear, (LINE.transpose(1, 2), SQUARE, FOUR)),
    "conv1d": ("Conv", lambda *a: F.conv1d(*a, padding="same", groups=2), (LINE, GROUPED, FOUR)),
    "conv2d": ("Conv", lambda *a: F.conv2d(*a, 2, 1), (IMAGE, KERNEL, FOUR)),
    "conv2d without a bias": ("Conv", F.conv2d, (IMAGE, KERNEL)),
    "conv2d without a batch": ("Conv", lambda x, w, b: F.conv2d(x[0], w, b), (IMAGE, KERNEL, FOUR)),
    "conv3d": ("Conv", F.conv3d, (VOLUME, CUBE, FOUR)),
    "conv_transpose1d": ("ConvTranspose", lambda *a: F.conv_transpose1d(*a, stride=3), (LINE, UP_LINE, FOUR)),
    "conv_transpose2d": ("ConvTranspose", lambda *a: F.conv_transpose2d(*a, 2, 1, 1), (IMAGE, UP, FOUR)),
    "conv_transpose3d": ("ConvTranspose", lambda *a: F.conv_transpose3d(*a, stride=2), (VOLUME, UP_CUBE, FOUR)),
    "mean": ("ReduceMean", lambda x: x.mean((1, 2)), (IMAGE,)),
    "mean of all": ("ReduceMean", lambda x: x.mean(), (IMAGE,)),
    "norm": ("ReduceL2", lambda x: x.norm(dim=1), (X,)),
    "norm of order 1": ("ReduceL1", lambda x: x.norm(1, dim=1, keepdim=True), (X,)),
    "embedding": ("Gather", lambda i, w: F.embedding(i, w, padding_idx=0), (WHOLE, SQUARE)),
    "gather": ("GatherElements", lambda x, i: x.gather(1, i), (X, WHOLE)),
    "topk": ("TopK", lambda x: x.topk(2), (X,)),
    "sort": ("TopK", lambda x: x.sort(descending=True), (X,)),
    "max_pool2d": ("MaxPool", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (IMAGE,)),
    "max_pool2d with indices": ("MaxPool", lambda x: F.max_pool2d(x, 2, return_indices=True), (IMAGE,)),
    "max_pool3d": ("MaxPool", lambda x: F.max_pool3d(x, 3, 1), (VOLUME,)),
    "avg_pool3d": ("AveragePool", lambda x: F.avg_pool3d(x, 2), (VOLUME,)),
    "avg_pool2d": ("AveragePool", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (IMAGE,)),
    "adaptive_avg_pool2d to one": ("GlobalAveragePool", lambda x: F.adaptive_avg_pool2d(x, 1), (IMAGE,)),
    "adaptive_avg_pool2d to a divisor": ("AveragePool", lambda x: F.adaptive_avg_pool2d(x, 3), (IMAGE,)),
    "adaptive_avg_pool2d to another size": ("Einsum", lambda x: F.adaptive_avg_pool2d(x, 4), (IMAGE,)),
    "interpolate": ("Resize", lambda x: F.interpolate(x, scale_factor=2), (IMAGE,)),
    "interpolate to the same size": ("Resize", lambda x: F.interpolate(x, scale_factor=1.1), (IMAGE,)),
    "interpolate to the double size": ("Resize", lambda x: F.interpolate(x, scale_factor=2.1), (IMAGE,)),
    "interpolate linearly to the same size": (
        "Resize",
        lambda x: F.interpolate(x, scale_factor=(1.1, 1.5), mode="bilinear"),
        (IMAGE,),
    ),
    "interpolate to a size": ("Resize", lambda x: F.interpolate(x, size=(9, 5), mode="nearest-exact"), (IMAGE,)),
    "interpolate linearly": ("Resize", lambda x: F.interpolate(x, size=5, mode="linear"), (LINE,)),
    "interpolate bilinearly": ("Resize", lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), (IMAGE,)),
    "interpolate with corners": ("Resize", lambda x: F.interpolate(x, (3, 11), None, "bilinear", True), (IMAGE,)),
    "interpolate bicubically": ("Resize", lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), (IMAGE,)),
    "interpolate trilinearly": ("Resize", lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), (VOLUME,)),
    "pad by reflection": ("Pad", lambda x: F.pad(x, (1, 2, 2, 1), "reflect"), (IMAGE,)),
    "pad by the edge": ("Pad", lambda x: F.pad(x, (1, 2, 2, 1), "replicate"), (IMAGE,)),
    "pad in a circle": ("Pad", lambda x: F.pad(x, (1, 2, 2, 1), "circular"), (IMAGE,)),
    "pad by a constant": ("Pad", lambda x: F.pad(x, (1, -1), value=2.0), (IMAGE,)),
    "pixel_shuffle": ("DepthToSpace", lambda x: F.pixel_shuffle(x, 2), (IMAGE,)),
    "grid_sample": ("GridSample", F.grid_sample, (IMAGE, GRID)),
    "grid_sample of the nearest": ("GridSample", lambda x, g: F.grid_sample(x, g, "nearest", "border"), (IMAGE, GRID)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_call_is_an_operator_that_computes_the_same(name: str, tmp_path: Path):
    operator, function, arguments = CASES[name]
    result = check(function, arguments, tmp_path / "f.onnx")
    assert operator in result
    if not name.startswith(("linear in", "adaptive", "group", "conv2d without a batch", "max_pool2d with")):
        assert len(result) <= 2, f"nothing beside it: {result}"


@pytest.mark.parametrize(
    ("operator", "opset", "function", "arguments"),
    [
        ("RMSNormalization", 23, lambda x: F.rms_norm(x, (4,), eps=1e-5), (X,)),
        ("GroupNormalization", 21, lambda x, w: F.group_norm(x, 2, w), (IMAGE, FOUR)),
        ("Gelu", 20, F.gelu, (X,)),
    ],
)
def test_an_operator_is_used_from_its_opset_on(
    tmp_path: Path, operator: str, opset: int, function: Any, arguments: tuple[Any, ...]
):
    assert operator in check(function, arguments, tmp_path / "new.onnx", opset)
    assert operator not in check(function, arguments, tmp_path / "old.onnx", opset - 1)


def test_local_response_norm_is_lrn(tmp_path: Path):
    # The reference of onnx takes neighbours on one side only.
    result = check(lambda x: F.local_response_norm(x, 3), (IMAGE,), tmp_path / "f.onnx", reference=False)
    assert result == ["LRN"]


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: F.softplus(x, beta=2.0), "Softplus"),
        (lambda x: F.linear(x.to(gc.int64), SQUARE.to(gc.int64)), "Gemm"),
        (lambda x: F.local_response_norm(x.reshape(1, 3, 4), 2), "LRN"),
        (lambda x: x.norm(3.0, dim=1), "ReduceL1"),
        (lambda x: x.gather(1, gc.tensor([[0], [1]])), "GatherElements"),
        (lambda x: F.pixel_shuffle(x.reshape(1, 4, 1, 3)[0], 2), "DepthToSpace"),
        (lambda x: F.interpolate(x.reshape(1, 3, 4), size=2, mode="area"), "Resize"),
    ],
)
def test_what_the_operator_cannot_do_is_written_as_what_it_is_made_of(tmp_path: Path, function: Any, operator: str):
    result = check(function, (X,), tmp_path / "f.onnx")
    assert result and operator not in result


def test_a_call_whose_inner_values_are_read_elsewhere_is_written_as_its_nodes(tmp_path: Path):
    """An operator would hide them."""
    seen = []

    def function(x: Any) -> Any:
        result = F.embedding(x, SQUARE.requires_grad_(False))
        seen.append(result)
        return F.softmax(result, -1) + result

    assert check(function, (WHOLE,), tmp_path / "f.onnx") == ["Gather", "Softmax", "Add"]


def test_each_function_of_the_table_has_a_case():
    written = {operator for operator, *_ in CASES.values()} | {"LRN", "RMSNormalization", "GroupNormalization"}
    named = {name for entry in ENTRIES for name in entry.operator.split(", ")}
    assert named <= written
