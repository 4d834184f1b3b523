"""Rules of com.microsoft's operators for models with linear attention: recurrences, causal convolutions and gates."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.interop.onnx.ops import attention
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.nn import functional as F
from graphc.nn.functional.spatial import padded
from graphc.tensors.free_functions import cat
from graphc.tensors.tensor import Tensor


@op("LinearAttention", domain=MICROSOFT)
def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_state: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    call: Any,
    state_window: int = 0,
    **attributes: Any,
) -> Any:
    """Compute LinearAttention of ONNX."""
    if state_window:
        raise UnsupportedError("com.microsoft.LinearAttention with state_window")
    return attention.linear_attention(query, key, value, past_state, decay, beta, call=call, **attributes)


@op("CausalConvWithState", domain=MICROSOFT)
def causal_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    past_state: Tensor | None = None,
    *,
    activation: str = "none",
    channels_last: int = 0,
    dilation: int = 1,
    ndim: int = 1,
    **extensions: int,
) -> tuple[Tensor, Tensor]:
    """Convolve each channel without access to later steps. Also returns the last steps, for the next call.

    Inputs and states are [batch, channels, time], for ``channels_last`` [batch, time, channels] with any number of axes
    of channels.
    """
    odd = [name for name, value in extensions.items() if value not in (0, -1)]
    if odd or ndim != 1:
        raise UnsupportedError(f"com.microsoft.CausalConvWithState with {', '.join(odd) or f'ndim {ndim}'}")
    if activation not in ("none", "silu", "swish"):
        raise UnsupportedError(f"com.microsoft.CausalConvWithState with the activation {activation[:40]!r}")
    shape, channels = x.shape, weight.shape[0]
    if channels_last:
        x = x.reshape(*shape[:2], channels).transpose(1, 2)
    before = (weight.shape[2] - 1) * dilation
    if past_state is None:
        steps = padded(x, ((before, 0),))
    elif channels_last:
        steps = cat([past_state.reshape(shape[0], before, channels).transpose(1, 2), x], 2)
    else:
        steps = cat([past_state, x], 2)
    result = F.conv1d(steps, weight, bias, 1, 0, dilation, channels)
    result = result if activation == "none" else F.silu(result)
    state = steps.narrow(2, steps.shape[2] - before, before)
    if not channels_last:
        return result, state
    return result.transpose(1, 2).reshape(*shape), state.transpose(1, 2).reshape(shape[0], before, *shape[2:])


@op("LinearAttentionGate", domain=MICROSOFT)
def linear_attention_gate(
    a: Tensor, dt_bias: Tensor, decay_scale: Tensor, b: Tensor | None = None, *, call: Any
) -> Any:
    """Return the decay ``decay_scale * softplus(a + dt_bias)``, and the update rate ``sigmoid(b)``."""
    decay = F.softplus(a + dt_bias) * decay_scale
    return decay if b is None or call.outputs < 2 else (decay, b.sigmoid())


@op("GatedRMSNorm", domain=MICROSOFT)
def gated_rms_norm(
    x: Tensor, scale: Tensor, gate: Tensor, *, activation: str = "silu", epsilon: float = 1e-5
) -> Tensor:
    """Divide groups of as many elements as ``scale`` has by their root mean square, and multiply by a gate."""
    if activation not in ("silu", "swish", "sigmoid"):
        raise UnsupportedError(f"com.microsoft.GatedRMSNorm with the activation {activation[:40]!r}")
    size = scale.shape[0]
    groups = x.reshape(*x.shape[:-1], x.shape[-1] // size, size)
    result = F.rms_norm(groups, (size,), scale, epsilon).reshape(*x.shape)
    return result * (gate.sigmoid() if activation == "sigmoid" else F.silu(gate))


@op("BranchwiseRMSNorm", domain=MICROSOFT)
def branchwise_rms_norm(
    x: Tensor, scale: Tensor | None = None, *, epsilon: float = 1e-5, num_branches: int = 0
) -> Tensor:
    """Divide each branch [..., branches, size] by its root mean square. Branches may be joined in one axis."""
    groups = x.reshape(*x.shape[:-1], num_branches, x.shape[-1] // num_branches) if num_branches else x
    result = F.rms_norm(groups, (groups.shape[-1],), None, epsilon)
    if scale is not None:
        shared = scale.ndim == 1 and scale.shape[0] == groups.shape[-1]
        result = result * (scale if shared else scale.reshape(*groups.shape[-2:]))
    return result.reshape(*x.shape)


@op("GatedAdd", domain=MICROSOFT)
def gated_add(x: Tensor, y: Tensor, gate: Tensor, gate_weight: Tensor | None = None) -> Tensor:
    """Add ``y`` times a gate for each row, which ``gate_weight`` projects from ``gate``."""
    return x + y * (gate if gate_weight is None else (gate @ gate_weight).sigmoid())
