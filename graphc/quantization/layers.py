"""Quantized layers: linear layers and convolutions that compute with 8-bit inputs and weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from graphc.base.dtypes import float32, uint8
from graphc.base.errors import ArgumentError
from graphc.nn import functional as F
from graphc.nn.functional.convolution import same_padding
from graphc.nn.functional.quantized import (
    INPUT_LIMIT,
    fake_quantized,
    fake_quantized_weight,
    quantized_conv,
    quantized_linear,
    weight_codes,
    weight_scale_of,
)
from graphc.nn.functional.spatial import Pairs, per_dimension, symmetric
from graphc.nn.module import Module
from graphc.nn.modules.convolution import Conv1d, Conv2d
from graphc.nn.modules.linear import Linear
from graphc.nn.modules.volume import Conv3d
from graphc.nn.parameter import Parameter
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import tensor, zeros
from graphc.tensors.tensor import Tensor

__all__ = ["QuantizedConv1d", "QuantizedConv2d", "QuantizedConv3d", "QuantizedLinear"]

_SMALLEST = 2.0**-120
"""Smallest scale, far from subnormal numbers."""
_BUFFERS = ("weight_codes", "weight_scale", "input_scale", "input_zero", "corrected_bias")


class Quantized(Module):
    """Base of quantized layers, which come from an f32 layer by ``convert``.

    In evaluation mode a layer rounds its input to u8 codes, sums products of codes exactly in i32, and multiplies by
    both scales. In training mode it computes with the f32 ``weight``, and rounds input and weight to the numbers that
    codes represent; gradients pass the rounding unchanged, and are 0 for inputs outside of the range. ``eval()``
    computes the codes from the weight again, and reads ``input_scale`` and ``input_zero``.
    """

    weight: Parameter
    bias: Parameter | None
    weight_codes: Tensor
    weight_scale: Tensor
    input_scale: Tensor
    input_zero: Tensor
    corrected_bias: Tensor | None
    """Bias to use with the codes, where it is not ``bias``."""
    per_channel: bool
    unrelated_weight: str | None = None
    """Digest of the f32 weight, where the codes were loaded without one. They stay until the weight changes."""
    input_grid: tuple[float, int]
    """Scale and zero point of the input, read from ``input_scale`` and ``input_zero`` by loading and by ``eval()``."""

    @classmethod
    def convert(cls, layer: Any, low: float, high: float, *, per_channel: bool = True) -> Self:
        """Turn an f32 layer, in place, into a quantized one for inputs from ``low`` to ``high``."""
        scale, zero = grid_of(low, high)
        layer.__class__ = cls
        layer.per_channel = per_channel
        weight_scale = weight_scale_of(layer.weight, per_channel)
        layer.register_buffer("weight_codes", weight_codes(layer.weight.detach(), weight_scale))
        layer.register_buffer("weight_scale", weight_scale)
        layer.register_buffer("input_scale", tensor(scale, dtype=float32))
        layer.register_buffer("input_zero", tensor(zero, dtype=uint8))
        layer.register_buffer("corrected_bias", None)
        layer._read_grid()
        return layer

    def revert(self) -> Module:
        """Turn this layer, in place, into the f32 layer that it was, and return it."""
        for name in _BUFFERS:
            delattr(self, name)
        del self.per_channel, self.input_grid
        self.__dict__.pop("unrelated_weight", None)
        self.__class__ = FLOAT_LAYERS[type(self)]  # type: ignore[assignment]
        return self

    def _read_grid(self) -> None:
        """Read scale and zero point of the input as numbers: programs with known ones need no division."""
        self.input_grid = float(self.input_scale), int(self.input_zero)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        has_codes, errors = prefix + "weight_codes" in state_dict, len(error_msgs)
        if has_codes:
            corrected = prefix + "corrected_bias" in state_dict
            self.corrected_bias = zeros(self.weight_codes.shape[0]) if corrected else None
        lists = missing_keys, unexpected_keys, error_msgs
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *lists)
        self._read_grid()
        if prefix + "weight" in state_dict:
            self.unrelated_weight = None
        elif has_codes and self.has_weight and len(error_msgs) == errors:
            self.unrelated_weight = self._weight_digest()

    @property
    def input_range(self) -> tuple[float, float]:
        """Return the smallest and the largest input that a code represents."""
        scale, zero = self.input_grid
        return -zero * scale, (INPUT_LIMIT - zero) * scale

    def drop_weight(self) -> None:
        """Remove the f32 weight. The layer can no longer be trained or compared with its f32 form."""
        self.register_parameter("weight", None)

    @property
    def has_weight(self) -> bool:
        """Return whether the layer has its f32 weight."""
        return self._parameters["weight"] is not None

    def requantize(self) -> None:
        """Compute scales and codes of the weight again, if the f32 weight has changed."""
        if not self.has_weight:
            return
        if self.unrelated_weight is not None and self.unrelated_weight == self._weight_digest():
            return
        self.unrelated_weight = None
        with no_grad():
            scale = weight_scale_of(self.weight, self.per_channel)
            codes = weight_codes(self.weight.detach(), scale)
            if self.weight_scale.equal(scale) and self.weight_codes.equal(codes):
                return
            self.weight_scale.copy_(scale)
            self.weight_codes.copy_(codes)
            self.corrected_bias = None

    def _weight_digest(self) -> str:
        return hashlib.sha256(self.weight._values(force=True).tobytes()).hexdigest()

    def _bias_of_codes(self) -> Tensor | None:
        return self.bias if self.corrected_bias is None else self.corrected_bias

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if not mode:
            self.requantize()
            self._read_grid()
        return self

    def float_forward(self, input: Tensor) -> Tensor:
        """Compute the f32 layer."""
        return FLOAT_LAYERS[type(self)].forward(self, input)  # type: ignore[arg-type]

    def forward(self, input: Tensor) -> Tensor:
        """Compute the layer from codes, or from rounded floats in training mode."""
        return self._rounded(input) if self.training else self._from_codes(input)

    def _from_codes(self, input: Tensor) -> Tensor:
        raise NotImplementedError

    def _rounded(self, input: Tensor) -> Tensor:
        raise NotImplementedError

    def _rounded_operands(self, input: Tensor) -> tuple[Tensor, Tensor]:
        """Return input and weight, rounded to the numbers that codes represent."""
        if not self.has_weight:
            raise ArgumentError(
                f"{self._get_name()} has no f32 weight to train",
                remedy="quantize the model with trainable=True, or call eval()",
            )
        image = fake_quantized(input, self.input_scale, self.input_zero, 0, INPUT_LIMIT)
        return image, fake_quantized_weight(self.weight, weight_scale_of(self.weight, self.per_channel))

    def extra_repr(self) -> str:
        low, high = self.input_range
        return f"{super().extra_repr()}, int8, input from {low:.4g} to {high:.4g}"


def grid_of(low: float, high: float) -> tuple[float, int]:
    """Return scale and zero point of u8 codes for numbers from ``low`` to ``high``. 0 always has a code."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max((high - low) / INPUT_LIMIT, _SMALLEST) if high > low else 1.0
    return scale, min(round(-low / scale), INPUT_LIMIT)


@contextmanager
def float_layers(layers: Iterable[Quantized]) -> Iterator[None]:
    """Compute the f32 form of quantized layers in the block."""
    replaced = list(layers)
    for layer in replaced:
        object.__setattr__(layer, "forward", layer.float_forward)
    try:
        yield
    finally:
        for layer in replaced:
            object.__delattr__(layer, "forward")


class QuantizedLinear(Quantized, Linear):
    """``nn.Linear`` with an int8 weight and 8-bit inputs."""

    def _from_codes(self, input: Tensor) -> Tensor:
        return quantized_linear(input, self.weight_codes, self.weight_scale, *self.input_grid, self._bias_of_codes())

    def _rounded(self, input: Tensor) -> Tensor:
        return F.linear(*self._rounded_operands(input), self.bias)


class _QuantizedConv(Quantized):
    """Base of quantized convolutions."""

    rank: int

    def _pairs(self, padding: Any) -> Pairs:
        """Return padding as two numbers per dimension."""
        layer: Any = self
        if padding == "same":
            return same_padding(layer.kernel_size, layer.dilation)
        return ((0, 0),) * self.rank if padding == "valid" else symmetric(per_dimension(padding, self.rank, "padding"))

    def _from_codes(self, input: Tensor) -> Tensor:
        layer: Any = self
        input, padding = layer._padded(input)
        geometry = layer.stride, self._pairs(padding), layer.dilation, layer.groups
        scales = self.weight_scale, *self.input_grid
        return quantized_conv(input, self.weight_codes, *scales, self._bias_of_codes(), *geometry)

    def _rounded(self, input: Tensor) -> Tensor:
        layer: Any = self
        image, weight = self._rounded_operands(input)
        image, padding = layer._padded(image)
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self.rank - 1]
        return convolve(image, weight, self.bias, layer.stride, padding, layer.dilation, layer.groups)


class QuantizedConv1d(_QuantizedConv, Conv1d):
    """``nn.Conv1d`` with int8 filters and 8-bit inputs."""


class QuantizedConv2d(_QuantizedConv, Conv2d):
    """``nn.Conv2d`` with int8 filters and 8-bit inputs."""


class QuantizedConv3d(_QuantizedConv, Conv3d):
    """``nn.Conv3d`` with int8 filters and 8-bit inputs."""


QUANTIZED_LAYERS: dict[type[Module], type[Quantized]] = {
    Linear: QuantizedLinear,
    Conv1d: QuantizedConv1d,
    Conv2d: QuantizedConv2d,
    Conv3d: QuantizedConv3d,
}
"""Quantized layer for each f32 layer. Subclasses are not replaced, because they may compute something else."""
FLOAT_LAYERS: dict[type[Module], type[Module]] = {new: old for old, new in QUANTIZED_LAYERS.items()}
