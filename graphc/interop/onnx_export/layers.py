"""Functional calls of layers as ONNX operators: activations, normalizations, products, pooling, resizing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import float32, int64, uint8
from graphc.base.sizes.size import always, is_size
from graphc.interop.onnx_export.calls import ExportedCall
from graphc.interop.onnx_export.products import top
from graphc.interop.onnx_export.shaping import reshaped
from graphc.interop.onnx_export.sizes import same
from graphc.interop.onnx_export.writer import CallRule, GraphWriter, is_small
from graphc.ir.graph.graph import Value
from graphc.nn import functional as F
from graphc.nn.functional import activation, pooling
from graphc.nn.functional.convolution import same_padding
from graphc.nn.functional.resampling import ignores_scale
from graphc.nn.functional.spatial import per_dimension, symmetric
from graphc.tensors import composite
from graphc.tensors.methods.ordering import Ordering, take_along
from graphc.tensors.methods.shaping import Shaping

CallResults = Sequence[Any] | None


class LayerRule(NamedTuple):
    """Function for which ONNX has an operator."""

    function: Callable[..., Any]
    operator: str
    since: int
    """First opset in which the call becomes the operator. In earlier opsets the call is written node by node."""
    rule: CallRule
    condition: str = ""
    """Condition under which the operator fits, if not always."""
    users: str = ""
    """Functions that users call, where they do not call this function themselves."""


def _is_float(value: Any) -> bool:
    return isinstance(value, Value) and value.dtype.kind == "f"


def _is_empty(value: Value) -> bool:
    return any(not is_size(n) and n == 0 for n in value.shape)


def unary(op: str, x: str = "input", names: Any = None, fixed: Any = None) -> CallRule:
    """Return a rule for an operator on one floating-point tensor.

    ``names`` maps attributes to arguments of the call, ``fixed`` holds constant attributes.
    """

    def write(w: GraphWriter, call: ExportedCall) -> CallResults:
        attrs: dict[str, Any] = {key: float(call[name]) for key, name in (names or {}).items()} | (fixed or {})
        return [w.add(op, w.value(call[x]), **attrs)] if _is_float(call[x]) else None

    return write


def _along(op: str) -> CallRule:
    """Return a rule for softmax or its logarithm."""

    def write(w: GraphWriter, call: ExportedCall) -> CallResults:
        x, rank = call["x"], len(call["x"].shape)
        if not rank or _is_empty(x):
            return None
        operand = w.value(x) if call["dtype"] in (None, x.dtype) else w.cast(w.value(x), call["dtype"])
        return [w.add(op, operand, axis=call["dim"] % rank)]

    return write


def _masked_softmax(w: GraphWriter, call: ExportedCall) -> CallResults:
    """Write Softmax with zeros where all elements along the axis are minus infinity, for which Softmax gives NaN."""
    x, axis = call["x"], call["dim"] % len(call["x"].shape)
    if _is_empty(x):
        return None
    operand, least = w.value(x), w.constant(-np.inf, x.dtype)
    top_one = w.add("ReduceMax", operand, w.ints(axis), keepdims=1)
    powers = w.add("Softmax", operand, axis=axis)
    return [w.add("Where", w.add("Equal", top_one, least), w.constant(0, x.dtype), powers)]


def _prelu(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, weight = call["input"], call["weight"]
    slope = (*weight.shape, *(1 for _ in x.shape[2:])) if len(x.shape) > 1 else weight.shape
    return [w.add("PRelu", w.value(x), reshaped(w, w.value(weight), weight.shape, slope))]


def _celu(w: GraphWriter, call: ExportedCall) -> CallResults:
    x = call["input"]
    return [w.add("Celu", w.value(x), alpha=float(call["alpha"]))] if x.dtype is float32 else None


def _gelu(w: GraphWriter, call: ExportedCall) -> CallResults:
    approximation = call["approximate"] if call["approximate"] != "none" else None
    return [w.add("Gelu", w.value(call["x"]), approximate=approximation)] if _is_float(call["x"]) else None


def _softplus(w: GraphWriter, call: ExportedCall) -> CallResults:
    is_default = call["beta"] == 1 and call["threshold"] >= 20 and _is_float(call["x"])
    return [w.add("Softplus", w.value(call["x"]))] if is_default else None


def _shrink(soft: bool) -> CallRule:
    return lambda w, call: (
        [w.add("Shrink", w.value(call["input"]), lambd=float(call["lambd"]), bias=float(call["lambd"] if soft else 0))]
        if _is_float(call["input"]) and call["lambd"] >= 0
        else None
    )


# ---- normalizations


def _or_constant(w: GraphWriter, call: ExportedCall, name: str, shape: Sequence[int], value: float = 1.0) -> str:
    """Return a parameter, or constants in its place."""
    parameter = call[name]
    if parameter is not None:
        return w.value(parameter)
    return w.constant(np.full(tuple(shape), value, call["input"].dtype.numpy))


def _layer_norm(op: str) -> CallRule:
    def write(w: GraphWriter, call: ExportedCall) -> CallResults:
        x, shape = call["input"], tuple(call["normalized_shape"])
        if any(map(is_size, shape)) or call["eps"] is None:
            return None
        inputs = [w.value(x), _or_constant(w, call, "weight", shape)]
        if call.arguments.get("bias") is not None:
            inputs.append(w.value(call["bias"]))
        return [w.add(op, *inputs, axis=-len(shape), epsilon=float(call["eps"]))]

    return write


def _batch_norm(w: GraphWriter, call: ExportedCall) -> CallResults:
    x = call["input"]
    if call["training"] or is_size(x.shape[1]) or not all(isinstance(call[n], Value) for n in _RUNNING):
        return None
    shape = (x.shape[1],)
    parameters = [_or_constant(w, call, "weight", shape), _or_constant(w, call, "bias", shape, 0.0)]
    running = [w.value(call[name]) for name in _RUNNING]
    return [w.add("BatchNormalization", w.value(x), *parameters, *running, epsilon=float(call["eps"]))]


_RUNNING = ("running_mean", "running_var")


def _group_norm(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, groups, epsilon = call["input"], int(call["num_groups"]), float(call["eps"])
    if len(x.shape) < 3 or is_size(x.shape[1]):
        return None
    channels = (x.shape[1],)
    if w.opset >= _GROUPS_BY_CHANNEL:
        parameters = [_or_constant(w, call, "weight", channels), _or_constant(w, call, "bias", channels, 0.0)]
        return [w.add("GroupNormalization", w.value(x), *parameters, num_groups=groups, epsilon=epsilon)]
    ones, zeros = (w.constant(np.full(groups, value, x.dtype.numpy)) for value in (1, 0))
    groups_of_rows = w.add("Reshape", w.value(x), w.ints(0, groups, -1))
    normalized = w.add("InstanceNormalization", groups_of_rows, ones, zeros, epsilon=epsilon)
    normalized = reshaped(w, normalized, (x.shape[0], groups, 1), x.shape)
    wide = (*channels, *(1 for _ in x.shape[2:]))
    for name, op in (("weight", "Mul"), ("bias", "Add")):
        if call[name] is not None:
            normalized = w.add(op, normalized, reshaped(w, w.value(call[name]), channels, wide))
    return [normalized]


_GROUPS_BY_CHANNEL = 21
"""First opset whose GroupNormalization has a scale per channel."""


def _instance_norm(w: GraphWriter, call: ExportedCall) -> CallResults:
    x = call["input"]
    if not call["use_input_stats"] or is_size(x.shape[1]):
        return None
    shape = (x.shape[1],)
    parameters = [_or_constant(w, call, "weight", shape), _or_constant(w, call, "bias", shape, 0.0)]
    return [w.add("InstanceNormalization", w.value(x), *parameters, epsilon=float(call["eps"]))]


def _local_response(w: GraphWriter, call: ExportedCall) -> CallResults:
    if call["size"] % 2 == 0 or call["input"].dtype is not float32 or len(call["input"].shape) != 4:
        return None
    attrs = {"size": int(call["size"]), **{k: float(call[n]) for k, n in _RESPONSE.items()}}
    return [w.add("LRN", w.value(call["input"]), **attrs)]


_RESPONSE = {"alpha": "alpha", "beta": "beta", "bias": "k"}


# ---- products


def _linear(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, weight, bias = (call[name] for name in ("input", "weight", "bias"))
    if len(x.shape) != 2 or len(weight.shape) != 2 or not _is_float(x) or x.dtype is not weight.dtype:
        return None
    if bias is not None and bias.dtype is not x.dtype:
        return None
    inputs = [w.value(v) for v in (x, weight, bias) if v is not None]
    return [w.add("Gemm", *inputs, transB=1)]


def _convolution(rank: int) -> CallRule:
    """Return a rule for Conv from the arguments of the call.

    A graph would add the bias separately, and has 3D convolutions as sums of 2D ones.
    """

    def write(w: GraphWriter, call: ExportedCall) -> CallResults:
        x, weight, padding = call["input"], call["weight"], call["padding"]
        if len(x.shape) != rank + 2 or not _is_float(x) or x.dtype is not weight.dtype:
            return None
        kernel = [int(n) for n in weight.shape[2:]]
        strides, dilations = (per_dimension(call[name], rank, name) for name in ("stride", "dilation"))
        if isinstance(padding, str):
            pairs = same_padding(tuple(kernel), dilations) if padding == "same" else ((0, 0),) * rank
        else:
            pairs = symmetric(per_dimension(padding, rank, "padding"))
        low, high = zip(*pairs, strict=True)
        inputs = [w.value(v) for v in (x, weight, call["bias"]) if v is not None]
        attrs = {"kernel_shape": kernel, "strides": list(strides), "pads": [*low, *high], "dilations": list(dilations)}
        return [w.add("Conv", *inputs, **attrs, group=int(call["groups"]))]

    return write


def _convolution_transposed(rank: int) -> CallRule:
    def write(w: GraphWriter, call: ExportedCall) -> CallResults:
        x, weight = call["input"], call["weight"]
        if len(x.shape) != rank + 2 or not _is_float(x) or x.dtype is not weight.dtype:
            return None
        names = ("stride", "dilation", "padding", "output_padding")
        strides, dilations, pads, extra = (list(per_dimension(call[name], rank, name)) for name in names)
        if any(e >= s for e, s in zip(extra, strides, strict=True)):
            return None
        inputs = [w.value(v) for v in (x, weight, call["bias"]) if v is not None]
        attrs: dict[str, Any] = {"kernel_shape": [int(n) for n in weight.shape[2:]], "strides": strides}
        attrs |= {"pads": pads * 2, "dilations": dilations, "group": int(call["groups"])}
        return [w.add("ConvTranspose", *inputs, **attrs, output_padding=extra if any(extra) else None)]

    return write


def _mean(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, rank = call["x"], len(call["x"].shape)
    dims = call["dim"]
    axes = tuple(range(rank)) if dims is None or dims == () else (dims,) if isinstance(dims, int) else tuple(dims)
    if not axes or call["dtype"] not in (None, x.dtype) or _is_empty(x):
        return None
    axes_name = w.ints(*sorted(a % rank for a in axes))
    return [w.add("ReduceMean", w.value(x), axes_name, keepdims=int(call["keepdim"]))]


def _norm(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, rank, dims = call["x"], len(call["x"].shape), call["dim"]
    axes = tuple(range(rank)) if dims is None or dims == () else (dims,) if isinstance(dims, int) else tuple(dims)
    if call["p"] not in (1, 2) or not axes or not _is_float(x) or _is_empty(x):
        return None
    axes_name = w.ints(*sorted(a % rank for a in axes))
    return [w.add(f"ReduceL{int(call['p'])}", w.value(x), axes_name, keepdims=int(call["keepdim"]))]


# ---- look-ups


def _embedding(w: GraphWriter, call: ExportedCall) -> CallResults:
    index = call["input"]
    if call["max_norm"] is not None or not isinstance(index, Value):
        return None
    indices = w.cast(w.value(index), int64) if is_small(index.dtype) else w.value(index)
    return [w.add("Gather", w.value(call["weight"]), indices, axis=0)]


def _take_along(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, index = call["x" if "x" in call.arguments else "self"], call["index"]
    if not isinstance(index, Value) or not x.shape or len(x.shape) != len(index.shape):
        return None
    axis = call["dim"] % len(x.shape)
    if any(not same(a, b) for d, (a, b) in enumerate(zip(x.shape, index.shape, strict=True)) if d != axis):
        return None
    indices = w.cast(w.value(index), int64) if is_small(index.dtype) else w.value(index)
    return [w.add("GatherElements", w.value(x), indices, axis=axis)]


def _topk(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, rank = call["self"], len(call["self"].shape)
    if not rank or is_small(x.dtype):
        return None
    return top(w, w.value(x), w.ints(int(call["k"])), call["dim"] % rank, call["largest"])


def _sort(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, rank = call["self"], len(call["self"].shape)
    if not rank or is_small(x.dtype):
        return None
    axis = call["dim"] % rank
    return top(w, w.value(x), w.vector(w.at((x.shape[axis],))), axis, call["descending"])


# ---- pooling and resizing


def _global_average(w: GraphWriter, call: ExportedCall) -> CallResults:
    if any(is_size(n) or n != 1 for n in call["output_shape"]) or not _is_float(call["x"]):
        return None
    return [w.add("GlobalAveragePool", w.value(call["x"]))]


def _largest(w: GraphWriter, call: ExportedCall) -> CallResults:
    """Write MaxPool with indices. ONNX counts them through the whole tensor, graphc through a plane."""
    if not call["return_indices"] or len(call["x"].shape) != call["rank"] + 2 or not _is_float(call["x"]):
        return None
    node = next((n for n in call.graph.nodes() if call.first <= n.id < call.last and "kernel" in n.attrs), None)
    sizes = w.at(tuple(call["x"].shape[2:]))
    if node is None or any(map(is_size, sizes)):
        return None
    low, high = zip(*node.attrs["padding"], strict=True)
    attrs = {"strides": list(node.attrs["stride"]), "dilations": list(node.attrs["dilation"]), "pads": [*low, *high]}
    attrs["kernel_shape"] = list(node.attrs["kernel"])
    values, indices = w.add("MaxPool", w.value(call["x"]), outputs=2, **attrs)
    return [values, w.add("Mod", indices, w.ints(int(np.prod(sizes))))]


def _volumes(op: str) -> CallRule:
    """Return a rule for pooling of volumes, which a graph would pool by planes, then by depth."""

    def write(w: GraphWriter, call: ExportedCall) -> CallResults:
        arguments = call.arguments
        others = ("ceil_mode", "return_indices", "divisor_override")
        if len(call["input"].shape) != 5 or any(arguments.get(name) for name in others) or not _is_float(call["input"]):
            return None
        kernel = per_dimension(call["kernel_size"], 3, "kernel_size")
        stride = kernel if call["stride"] is None else per_dimension(call["stride"], 3, "stride")
        attrs: dict[str, Any] = {"kernel_shape": list(kernel), "strides": list(stride)}
        attrs["pads"] = list(per_dimension(call["padding"], 3, "padding")) * 2
        if "dilation" in arguments:
            attrs["dilations"] = list(per_dimension(arguments["dilation"], 3, "dilation"))
        counted = int(arguments["count_include_pad"]) if "count_include_pad" in arguments else None
        return [w.add(op, w.value(call["input"]), **attrs, count_include_pad=counted)]

    return write


def _interpolate(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, mode, size, scale = (call[name] for name in ("input", "mode", "size", "scale_factor"))
    if mode not in _RESIZE or x.dtype is uint8 or not _is_float(x):
        return None
    rank = len(x.shape) - 2
    attrs = dict(_RESIZE[mode])
    if mode not in ("nearest", "nearest-exact"):
        attrs["coordinate_transformation_mode"] = "align_corners" if call["align_corners"] else "half_pixel"
    target = call.results[0].shape[2:]
    if size is None and not call["recompute_scale_factor"]:
        factors = list((scale,) * rank if isinstance(scale, (int, float)) else scale)
        for i in range(rank):
            if ignores_scale(mode, x.dtype, x.shape[2:], target, i):
                factors[i] = 1 if always("==", target[i], x.shape[2 + i]) else 2
        factors_name = w.constant(np.array([1, 1, *factors], np.float32))
        return [w.add("Resize", w.value(x), "", factors_name, **attrs)]
    return [w.add("Resize", w.value(x), "", "", w.vector(w.at((*x.shape[:2], *target))), **attrs)]


def _nearest(coordinates: str, choice: str) -> dict[str, Any]:
    return {"mode": "nearest", "coordinate_transformation_mode": coordinates, "nearest_mode": choice}


_RESIZE: dict[str, dict[str, Any]] = {
    "nearest": _nearest("asymmetric", "floor"),
    "nearest-exact": _nearest("half_pixel", "round_prefer_ceil"),
    "linear": {"mode": "linear"},
    "bilinear": {"mode": "linear"},
    "trilinear": {"mode": "linear"},
    "bicubic": {"mode": "cubic", "cubic_coeff_a": -0.75},
}


def _padded(w: GraphWriter, call: ExportedCall) -> CallResults:
    x, pad, mode = call["input"], tuple(call["pad"]), _PADDING.get(call["mode"])
    if mode is None or any(is_size(p) or p < 0 for p in pad) or (mode == "wrap" and w.opset < 19):
        return None
    low, high = [0] * len(x.shape), [0] * len(x.shape)
    for i, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        low[-1 - i], high[-1 - i] = int(before), int(after)
    return [w.add("Pad", w.value(x), w.ints(*low, *high), mode=mode)]


_PADDING = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pixel_shuffle(w: GraphWriter, call: ExportedCall) -> CallResults:
    if len(call["input"].shape) != 4:
        return None
    attrs = {"blocksize": int(call["upscale_factor"]), "mode": "CRD"}
    return [w.add("DepthToSpace", w.value(call["input"]), **attrs)]


def _grid_sample(w: GraphWriter, call: ExportedCall) -> CallResults:
    mode = call["mode"]
    mode = mode if mode == "nearest" or w.opset < 20 else "linear"
    attrs = {"mode": mode, "padding_mode": call["padding_mode"], "align_corners": int(bool(call["align_corners"]))}
    return [w.add("GridSample", w.value(call["input"]), w.value(call["grid"]), **attrs)]


_SELU = {"alpha": activation.SELU_ALPHA, "gamma": activation.SELU_SCALE}
_FLOATS, _PLAIN = "floats", "no ceil_mode"
_ALIKE = "as many indices as elements in the other dimensions"

ENTRIES: tuple[LayerRule, ...] = (
    LayerRule(composite.relu, "Relu", 18, unary("Relu", "x"), _FLOATS),
    LayerRule(F.leaky_relu, "LeakyRelu", 18, unary("LeakyRelu", names={"alpha": "negative_slope"}), _FLOATS),
    LayerRule(F.elu, "Elu", 18, unary("Elu", names={"alpha": "alpha"}), _FLOATS),
    LayerRule(F.selu, "Selu", 18, unary("Selu", fixed=_SELU), _FLOATS),
    LayerRule(F.celu, "Celu", 18, _celu, "f32"),
    LayerRule(F.prelu, "PRelu", 18, _prelu),
    LayerRule(composite.gelu, "Gelu", 20, _gelu),
    LayerRule(F.mish, "Mish", 18, unary("Mish")),
    LayerRule(F.hardsigmoid, "HardSigmoid", 18, unary("HardSigmoid", fixed={"alpha": 1 / 6, "beta": 0.5}), _FLOATS),
    LayerRule(F.hardswish, "HardSwish", 18, unary("HardSwish"), _FLOATS),
    LayerRule(composite.softplus, "Softplus", 18, _softplus, "beta 1"),
    LayerRule(F.softsign, "Softsign", 18, unary("Softsign"), _FLOATS),
    LayerRule(F.hardshrink, "Shrink", 18, _shrink(soft=False)),
    LayerRule(F.softshrink, "Shrink", 18, _shrink(soft=True)),
    LayerRule(composite.softmax, "Softmax", 18, _along("Softmax")),
    LayerRule(
        composite.masked_softmax, "Softmax", 18, _masked_softmax, "Where for masked rows", "attention with masks"
    ),
    LayerRule(composite.log_softmax, "LogSoftmax", 18, _along("LogSoftmax")),
    LayerRule(F.layer_norm, "LayerNormalization", 18, _layer_norm("LayerNormalization")),
    LayerRule(F.rms_norm, "RMSNormalization", 23, _layer_norm("RMSNormalization"), "eps is given"),
    LayerRule(F.batch_norm, "BatchNormalization", 18, _batch_norm, "in evaluation mode"),
    LayerRule(F.group_norm, "GroupNormalization", 18, _group_norm, "three dimensions; before 21 InstanceNormalization"),
    LayerRule(F.instance_norm, "InstanceNormalization", 18, _instance_norm, "by the input's statistics"),
    LayerRule(F.local_response_norm, "LRN", 18, _local_response, "an odd size, four dimensions, f32"),
    LayerRule(F.linear, "Gemm", 18, _linear, "two dimensions; else MatMul and Add"),
    *(LayerRule(f, "Conv", 18, _convolution(i)) for i, f in enumerate((F.conv1d, F.conv2d, F.conv3d), 1)),
    *(
        LayerRule(f, "ConvTranspose", 18, _convolution_transposed(i), "less output_padding than stride")
        for i, f in enumerate((F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d), 1)
    ),
    LayerRule(composite.mean, "ReduceMean", 18, _mean),
    LayerRule(composite.norm, "ReduceL1, ReduceL2", 18, _norm, "p is 1 or 2"),
    LayerRule(F.embedding, "Gather", 18, _embedding, "no max_norm"),
    LayerRule(take_along, "GatherElements", 18, _take_along, _ALIKE, "Tensor.median, kthvalue"),
    LayerRule(Shaping.gather, "GatherElements", 18, _take_along, _ALIKE),
    LayerRule(Ordering.topk, "TopK", 18, _topk),
    LayerRule(Ordering.sort, "TopK", 18, _sort),
    LayerRule(
        pooling.average_parts, "GlobalAveragePool", 18, _global_average, "to one element", "F.adaptive_avg_pool2d"
    ),
    LayerRule(pooling.maximum_windows, "MaxPool", 18, _largest, "with indices; without, it is the op", "F.max_pool2d"),
    LayerRule(F.max_pool3d, "MaxPool", 18, _volumes("MaxPool"), _PLAIN),
    LayerRule(F.avg_pool3d, "AveragePool", 18, _volumes("AveragePool"), _PLAIN),
    LayerRule(F.interpolate, "Resize", 18, _interpolate, "all modes but area, floats"),
    LayerRule(F.pad, "Pad", 18, _padded, "reflect, replicate, and from 19 on circular; a constant is the op"),
    LayerRule(F.pixel_shuffle, "DepthToSpace", 18, _pixel_shuffle, "four dimensions"),
    LayerRule(F.grid_sample, "GridSample", 18, _grid_sample),
)
