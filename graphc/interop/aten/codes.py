"""Products of dequantized codes in ATen graphs, computed from the codes: exact sums in i32, times both scales.

PyTorch's quantized graphs dequantize both operands of a linear layer or convolution and multiply floats. A graph is
rewritten before it runs: ``linear(dequantize(x), dequantize(w), bias)`` becomes one step on the codes. Steps that
dequantize go where nothing else reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from graphc.base.dtypes import float32, int8, int32, uint8
from graphc.base.sizes.size import is_size
from graphc.interop.aten.graph import AtenGraph, Ref, Step, refs
from graphc.interop.aten.quantized import along, dequantize_per_channel, dequantize_per_tensor, one
from graphc.nn import functional as F
from graphc.nn.functional.byte_products import BYTE, SIGNED, ByteMatrix, convolved, holds_sums
from graphc.tensors.tensor import Tensor

_SPACE = "quantized_decomposed."
_DEQUANTIZE = tuple(f"{_SPACE}dequantize_per_{form}" for form in ("tensor.default", "tensor.tensor", "channel.default"))
_CHANNELS = _DEQUANTIZE[-1]
_CONVOLUTIONS = {"aten.conv1d.default": 1, "aten.conv2d.default": 2, "aten.convolution.default": 0}
_LINEAR, _CONVOLUTION = "graphc.linear_of_codes", "graphc.convolution_of_codes"
"""Targets of steps on codes."""
_MOVES = frozenset({"aten.view.default", "aten.reshape.default", "aten._unsafe_view.default"})
"""Operators that keep the elements of codes with one scale."""
_TURNS = frozenset({"aten.t.default", "aten.permute.default", "aten.transpose.int"})


class _Codes(NamedTuple):
    """Codes that steps dequantize: a value, its scale, its zero point, and whether the scales belong to an axis."""

    value: Any
    scale: Any
    zero: Any
    axis: int | None

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.value, self.scale, self.zero


def with_products_of_codes(graph: AtenGraph) -> AtenGraph:
    """Replace products of dequantized codes by steps on the codes. Return the same graph where there are none."""
    if not any(step.target in _DEQUANTIZE for step in graph.steps):
        return graph
    steps = [new for step, before in _with_earlier(graph) for new in _rewritten(step, before)]
    return AtenGraph(graph.name, graph.inputs, _used(steps, graph), graph.output, graph.constants)


def _with_earlier(graph: AtenGraph) -> Iterator[tuple[Step, Mapping[str, Step]]]:
    earlier: dict[str, Step] = {}
    for step in graph.steps:
        yield step, earlier
        earlier[step.name] = step


def _used(steps: list[Step], graph: AtenGraph) -> list[Step]:
    """Drop steps on codes whose results nothing reads."""
    names, kept = set(refs(graph.output)), []
    for step in reversed(steps):
        if step.name not in names and (step.target in _DEQUANTIZE or step.target in _MOVES | _TURNS):
            continue
        kept.append(step)
        names.update(refs((step.args, step.kwargs)))
    return kept[::-1]


def _rewritten(step: Step, earlier: Mapping[str, Step]) -> list[Step]:
    """Return the steps that take the place of one."""
    product = _operands(step)
    if product is None:
        return [step]
    target, x, w, others = product
    turned = target == _LINEAR and step.target != "aten.linear.default"
    rows, weight = _rows(x, earlier, step), _weight(w, earlier, turned)
    if rows is None or weight is None:
        return [step]
    (before, left) = rows
    arguments = (*left.arguments, *weight.arguments, *others)
    return [*before, Step(step.name, target, arguments, location=step.location)]


def _operands(step: Step) -> tuple[str, Any, Any, tuple[Any, ...]] | None:
    """Return the target on codes of a product, both factors, and further arguments."""
    args = step.args
    if step.kwargs:
        return None
    if step.target == "aten.linear.default":
        return _LINEAR, args[0], args[1], (args[2] if len(args) > 2 else None,)
    if step.target == "aten.addmm.default":
        return _LINEAR, args[1], args[2], (args[0],)
    if step.target == "aten.mm.default":
        return _LINEAR, args[0], args[1], (None,)
    rank = _CONVOLUTIONS.get(step.target)
    if rank is None:
        return None
    if rank:
        args = (*args, *(None, (1,), (0,), (1,), 1)[len(args) - 2 :])
        geometry, groups = args[3:6], args[6]
    else:
        geometry, groups = args[3:6], args[8] if not args[6] else 0
    if groups != 1 or any(isinstance(span, str) for span in geometry):
        return None
    return _CONVOLUTION, args[0], args[1], (args[2], *geometry)


def _dequantized(value: Any, earlier: Mapping[str, Step]) -> _Codes | None:
    """Return the codes of a value that a step dequantizes to f32."""
    step = earlier.get(value.name) if isinstance(value, Ref) else None
    if step is None or step.target not in _DEQUANTIZE or step.kwargs.get("out_dtype") not in (None, float32):
        return None
    dtype = step.args[6 if step.target == _CHANNELS else 5]
    if dtype not in (int8, uint8):
        return None
    return _Codes(*step.args[:3], axis=step.args[3] if step.target == _CHANNELS else None)


def _rows(value: Any, earlier: Mapping[str, Step], of: Step) -> tuple[list[Step], _Codes] | None:
    """Return the codes of the first factor, which have one scale, and the steps that reshape them."""
    moves: list[Step] = []
    while isinstance(value, Ref) and (step := earlier.get(value.name)) and step.target in _MOVES:
        moves.append(step)
        value = step.args[0]
    codes = _dequantized(value, earlier)
    if codes is None or codes.axis is not None:
        return None
    steps = []
    for number, move in enumerate(reversed(moves)):
        name = f"{of.name}.codes{number}"
        steps.append(Step(name, move.target, (codes.value, *move.args[1:]), location=move.location))
        codes = codes._replace(value=Ref(name))
    return steps, codes


def _weight(value: Any, earlier: Mapping[str, Step], turned: bool) -> _Codes | None:
    """Return the codes of a weight [out, ...] with one scale, or one for each output. ``turned`` is its transpose."""
    if turned:
        step = earlier.get(value.name) if isinstance(value, Ref) else None
        if step is None or step.target not in _TURNS or step.args[1:] not in ((), ([1, 0],), ((1, 0),), (0, 1), (1, 0)):
            return None
        value = step.args[0]
    codes = _dequantized(value, earlier)
    return codes if codes is not None and codes.axis in (None, 0) else None


# ---- steps on codes


def _point(zero: Any, x: Tensor) -> Tensor | None:
    """Return a zero point as a tensor, or None for 0."""
    zero = one(zero) if not isinstance(zero, Tensor) or zero.shape.numel() == 1 else zero
    if isinstance(zero, Tensor):
        return zero.to(int32)
    return x.new_full((), zero, dtype=int32) if zero else None


def _factor(x_scale: Any, w_scale: Any) -> Any:
    """Return the product of both scales, in f32: a number, or a number for each output."""
    scales = [one(s) if not isinstance(s, Tensor) or s.shape.numel() == 1 else s for s in (x_scale, w_scale)]
    left, right = (s.to(float32) if isinstance(s, Tensor) else s for s in scales)
    return left * right


def _holds_sums(w: Tensor, zero: Any) -> bool:
    """Check for a weight of known shape [out, ...], the sums of whose products i32 holds."""
    if any(map(is_size, w.shape)):
        return False
    is_signed = w.dtype is int8 and not isinstance(zero, Tensor) and not zero
    return holds_sums(prod(w.shape[1:]), BYTE * (SIGNED if is_signed else BYTE))


def _real_weight(w: Tensor, scale: Any, zero: Any) -> Tensor:
    if isinstance(scale, Tensor) and scale.shape.numel() > 1:
        return dequantize_per_channel(w, scale, zero, 0, 0, 0, w.dtype)
    return dequantize_per_tensor(w, scale, zero, 0, 0, w.dtype)


def linear_of_codes(
    x: Tensor, x_scale: Any, x_zero: Any, w: Tensor, w_scale: Any, w_zero: Any, bias: Tensor | None
) -> Tensor:
    """Multiply rows of codes by a weight of codes [out, in]."""
    if x.ndim < 2 or not _holds_sums(w, w_zero):
        return F.linear(
            dequantize_per_tensor(x, x_scale, x_zero, 0, 0, x.dtype), _real_weight(w, w_scale, w_zero), bias
        )
    total = ByteMatrix.of(w.t(), _point(w_zero, w)).product(x, _point(x_zero, x))
    result = total.to(float32) * _factor(x_scale, w_scale)
    return result if bias is None else result + bias


_PLAIN: dict[int, Callable[..., Tensor]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def convolution_of_codes(
    x: Tensor,
    x_scale: Any,
    x_zero: Any,
    w: Tensor,
    w_scale: Any,
    w_zero: Any,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
) -> Tensor:
    """Convolve images of codes with filters of codes, in one group."""
    rank = w.ndim - 2
    spans = [tuple(v) * rank if len(v) == 1 else tuple(v) for v in (stride, padding, dilation)]
    if x.ndim != w.ndim or rank > 2 or not _holds_sums(w, w_zero):
        image = dequantize_per_tensor(x, x_scale, x_zero, 0, 0, x.dtype)
        return _PLAIN[rank](image, _real_weight(w, w_scale, w_zero), bias, *spans)
    point = _point(w_zero, w)
    point = along(point, w, 0) if point is not None and point.ndim else point
    pairs = tuple((p, p) for p in spans[1])
    total = convolved(x, _point(x_zero, x), w, point, pairs, spans[0], spans[2])
    factor = _factor(x_scale, w_scale)
    result = total.to(float32) * (along(factor, total, 1) if isinstance(factor, Tensor) and factor.ndim else factor)
    return result if bias is None else result + along(bias, total, 1)


STEPS_ON_CODES = {_LINEAR: linear_of_codes, _CONVOLUTION: convolution_of_codes}
"""Functions of the targets that take the place of PyTorch's."""
