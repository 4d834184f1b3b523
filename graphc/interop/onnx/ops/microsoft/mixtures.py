"""Rules of com.microsoft's mixtures of experts: small networks of which a router selects several for each token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.base.records import dataclass
from graphc.interop.onnx.ops.microsoft.extensions import gated
from graphc.interop.onnx.ops.quantized.blocks import unpacked
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.nn import functional as F
from graphc.ops.selection import index
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class Experts:
    """Weights [experts, results, inputs] and biases [experts, results] of three layers, and the attributes of both
    operators."""

    layers: tuple[tuple[Tensor | None, Tensor | None], ...]
    k: int = 1
    activation_type: str = "relu"
    activation_alpha: float = 1.0
    activation_beta: float = 0.0
    normalize_routing_weights: int = 0
    swiglu_fusion: int = 0
    swiglu_limit: float | None = None
    swiglu_limit_after_activation: int = 0
    use_sparse_mixer: int = 0

    def __post_init__(self) -> None:
        if self.use_sparse_mixer or self.swiglu_limit_after_activation:
            raise UnsupportedError("mixtures of experts with use_sparse_mixer or swiglu_limit_after_activation")
        if self.activation_type not in (*_ACTIVATIONS, "swiglu"):
            raise UnsupportedError(f"mixtures of experts with the activation {self.activation_type[:40]!r}")

    def run(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return the sum of all experts' results for tokens [..., hidden], each times its weight [tokens, experts]."""
        tokens = x.reshape(1, -1, x.shape[-1])
        hidden = self._activated(self._layer(0, tokens), tokens)
        result = (self._layer(1, hidden) * weights.transpose(0, 1).unsqueeze(2)).sum(0)
        return result.reshape(*x.shape)

    def _layer(self, number: int, x: Tensor) -> Tensor:
        """Return the results [experts, tokens, size] of a layer."""
        weight, bias = self.layers[number]
        assert weight is not None
        result = free.matmul(x, weight.transpose(1, 2))
        return result if bias is None else result + bias.unsqueeze(1)

    def _activated(self, x: Tensor, tokens: Tensor) -> Tensor:
        has_gate = self.layers[2][0] is not None
        if self.activation_type != "swiglu":
            result = _ACTIVATIONS[self.activation_type](x)
            return result * self._layer(2, tokens) if has_gate else result
        if has_gate:
            gate, up = x, self._layer(2, tokens)
        elif self.swiglu_fusion == 1:
            gate, up = x[..., 0::2], x[..., 1::2]
        else:
            gate, up = functions.chunk(x, 2, -1)
        return gated(gate, up, self.activation_alpha, self.activation_beta, self.swiglu_limit)


def _spread(values: Tensor, chosen: Tensor, experts: Any) -> Tensor:
    """Return the weights [tokens, experts] of chosen experts [tokens, k], 0 for the others."""
    hit = chosen.unsqueeze(2).eq(index.iota(shape=(experts,), axis=0))
    return hit.to(values.dtype).mul(values.unsqueeze(2)).sum(1)


@op("MoE", domain=MICROSOFT)
def mixture(
    x: Tensor,
    router: Tensor,
    fc1: Tensor,
    fc1_bias: Tensor | None,
    fc2: Tensor,
    fc2_bias: Tensor | None = None,
    fc3: Tensor | None = None,
    fc3_bias: Tensor | None = None,
    **attributes: Any,
) -> Tensor:
    """Weight the ``k`` most probable experts by the softmax of all scores, normalized if wanted."""
    experts = Experts(((fc1, fc1_bias), (fc2, fc2_bias), (fc3, fc3_bias)), **attributes)
    values, chosen = F.softmax(router, -1).topk(experts.k, -1)
    if experts.normalize_routing_weights:
        values = values / values.sum(-1, keepdim=True)
    return experts.run(x, _spread(values, chosen, router.shape[1]))


@op("QMoE", domain=MICROSOFT)
def quantized_mixture(
    x: Tensor,
    router: Tensor,
    fc1: Tensor,
    fc1_scales: Tensor | None,
    fc1_bias: Tensor | None,
    fc2: Tensor,
    fc2_scales: Tensor | None = None,
    fc2_bias: Tensor | None = None,
    fc3: Tensor | None = None,
    fc3_scales: Tensor | None = None,
    fc3_bias: Tensor | None = None,
    fc1_zeros: Tensor | None = None,
    fc2_zeros: Tensor | None = None,
    fc3_zeros: Tensor | None = None,
    router_weights: Tensor | None = None,
    *others: Tensor | None,
    accuracy_level: int = 0,
    block_size: int = 0,
    expert_weight_bits: int = 4,
    fc1_expert_weight_bits: int | None = None,
    fc2_expert_weight_bits: int | None = None,
    fc3_expert_weight_bits: int | None = None,
    quant_type: str = "int",
    weights_prepacked: int = -1,
    **attributes: Any,
) -> Tensor:
    """Weight the ``k`` best experts by the softmax of their scores, or by ``router_weights``. Weights are codes."""
    widths = [n or expert_weight_bits for n in (fc1_expert_weight_bits, fc2_expert_weight_bits, fc3_expert_weight_bits)]
    if quant_type != "int" or 3 in widths or any(t is not None for t in others):
        raise UnsupportedError(f"com.microsoft.QMoE with weights of {quant_type[:20]!r} and {widths[0]} bits")
    codes = ((fc1, fc1_scales, fc1_zeros), (fc2, fc2_scales, fc2_zeros), (fc3, fc3_scales, fc3_zeros))
    weights = [_weight(*c, bits) for c, bits in zip(codes, widths, strict=True)]
    layers = tuple(zip(weights, (fc1_bias, fc2_bias, fc3_bias), strict=True))
    experts = Experts(layers, **attributes)
    scores, chosen = router.topk(experts.k, -1)
    values = F.softmax(scores, -1)
    if router_weights is not None:
        values = router_weights.gather(1, chosen)
        if experts.normalize_routing_weights:
            values = values / values.sum(-1, keepdim=True)
    return experts.run(x, _spread(values, chosen, router.shape[1]))


def _weight(codes: Tensor | None, scales: Tensor | None, zeros: Tensor | None, bits: int) -> Tensor | None:
    """Return the weights [experts, rows, columns] of packed codes, with a scale for each row or block of a row."""
    if codes is None or scales is None:
        return None
    numbers = unpacked(codes, bits).to(scales.dtype)
    scales = scales if scales.ndim == 3 else scales.unsqueeze(2)
    count = scales.shape[2]
    blocks = numbers.reshape(*numbers.shape[:2], count, -1)
    if zeros is None:
        return ((blocks - float(1 << (bits - 1))) * scales.unsqueeze(3)).reshape(*numbers.shape)
    points = unpacked(zeros, bits)
    points = points.narrow(1, 0, numbers.shape[1]).unsqueeze(2) if zeros.ndim == 2 else points.narrow(2, 0, count)
    return ((blocks - points.to(scales.dtype).unsqueeze(3)) * scales.unsqueeze(3)).reshape(*numbers.shape)
