"""Rule of ONNX Runtime's LSTM with quantized weights, into which ``quantize_dynamic`` turns every LSTM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import float32
from graphc.base.records import dataclass
from graphc.interop.onnx.ops.quantized.byte_weights import point_of
from graphc.interop.onnx.ops.quantized.quantization import dynamic_steps
from graphc.interop.onnx.ops.recurrent import LSTM, Options, run
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.nn.functional.byte_products import ByteMatrix
from graphc.tensors.tensor import Tensor


@op("DynamicQuantizeLSTM", domain=MICROSOFT, values=True)
def dynamic_quantize_lstm(
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    sequence_lens: Value | None,
    initial_h: Value | None,
    initial_c: Value | None,
    p: Value | None,
    w_scale: Value,
    w_zero: Value,
    r_scale: Value,
    r_zero: Value,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> Any:
    """Compute an LSTM that rounds its input, and its state in each step, to 256 levels over their range.

    Weights are the transposes of LSTM's. Scales and zero points belong to directions, or to gates of directions.
    """
    common = (activations, activation_alpha, activation_beta, clip, direction, 0)
    options = Options(*common, input_forget=bool(input_forget), multiply=_product)
    inputs, states = _weights(w, w_scale, w_zero), _weights(r, r_scale, r_zero)
    bias, lens, h, c, peepholes = (None if v is None else v.tensor for v in (b, sequence_lens, initial_h, initial_c, p))
    return run(LSTM, options, x.tensor, inputs, states, bias, lens, (h, c), peepholes)


@dataclass(frozen=True)
class _Weight:
    """Codes of a weight, and their scale, or a scale for each column."""

    matrix: ByteMatrix
    scale: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the transpose, which is that of LSTM's weight."""
        return tuple(self.matrix.codes.shape[::-1])


def _weights(codes: Value, scale: Value, zero: Value) -> list[_Weight]:
    """Return the weight of each direction."""
    points = point_of(zero)
    return [
        _Weight(ByteMatrix.of(codes.tensor[i], None if points is None else points[i]), scale.tensor[i])
        for i in range(codes.shape[0])
    ]


def _product(x: Tensor, weight: _Weight, bias: Tensor | None) -> Tensor:
    """Multiply rows, rounded to 256 levels over their range, by a weight."""
    codes, scale, zero = dynamic_steps(x)
    result = weight.matrix.product(codes, zero).to(float32) * (scale * weight.scale)
    return result if bias is None else result + bias
