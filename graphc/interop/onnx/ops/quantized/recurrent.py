"""Rule of ONNX Runtime's LSTM with quantized weights, into which ``quantize_dynamic`` turns every LSTM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.interop.onnx.ops.quantized.quantization import dequantized, dynamically_rounded
from graphc.interop.onnx.ops.recurrent import LSTM, Options, run
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.tensors.tensor import Tensor


@op("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    sequence_lens: Tensor | None,
    initial_h: Tensor | None,
    initial_c: Tensor | None,
    p: Tensor | None,
    w_scale: Tensor,
    w_zero: Tensor,
    r_scale: Tensor,
    r_zero: Tensor,
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
    options = Options(*common, input_forget=bool(input_forget), rounded=dynamically_rounded)
    w, r = _weight(w, w_scale, w_zero), _weight(r, r_scale, r_zero)
    return run(LSTM, options, x, w, r, b, sequence_lens, (initial_h, initial_c), p)


def _weight(codes: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """Return the weight [directions, 4 * hidden, inputs] of codes [directions, inputs, 4 * hidden]."""
    scale, zero = (t.reshape(codes.shape[0], 1, -1) for t in (scale, zero))
    return dequantized(codes, scale, zero).transpose(1, 2)
