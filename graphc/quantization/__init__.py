"""Quantization of trained models: 8-bit inputs and weights of linear layers and convolutions."""

from graphc.quantization.layers import QuantizedConv1d, QuantizedConv2d, QuantizedConv3d, QuantizedLinear
from graphc.quantization.quantize import quantize
from graphc.quantization.report import LayerReport, QuantizationReport, quantization_report

__all__ = [
    "LayerReport",
    "QuantizationReport",
    "QuantizedConv1d",
    "QuantizedConv2d",
    "QuantizedConv3d",
    "QuantizedLinear",
    "quantization_report",
    "quantize",
]
