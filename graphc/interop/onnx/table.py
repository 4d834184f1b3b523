"""All rules of the table of ONNX operators, which importing this module fills."""

from __future__ import annotations

from graphc.interop.onnx.ops import (
    activations,
    attention,
    control_flow,
    conversions,
    convolutions,
    elementwise,
    experimental,
    generators,
    indexing,
    losses,
    normalization,
    orders,
    pooling,
    products,
    recurrent,
    reductions,
    sequences,
    shapes,
    signal,
    sizes,
    slicing,
    training,
)
from graphc.interop.onnx.ops.classical import features, maps, support_vectors, texts, trees
from graphc.interop.onnx.ops.microsoft import attention as microsoft_attention
from graphc.interop.onnx.ops.microsoft import extensions as microsoft
from graphc.interop.onnx.ops.microsoft import linear_attention, mixtures, rotary, variants
from graphc.interop.onnx.ops.quantized import blocks, integer_products, quantization, transformers
from graphc.interop.onnx.ops.quantized import linear as quantized
from graphc.interop.onnx.ops.quantized import recurrent as quantized_recurrent
from graphc.interop.onnx.ops.vision import detection, grids, images, regions, resizing
from graphc.interop.onnx.registry import TABLE, find

__all__ = ["FAMILIES", "TABLE", "find"]

FAMILIES = (
    *(activations, attention, control_flow, conversions, convolutions, detection, elementwise, experimental),
    *(features, generators, grids, images, indexing, integer_products, losses, microsoft, microsoft_attention),
    *(normalization, orders, pooling, products, quantization, quantized, quantized_recurrent, recurrent),
    *(blocks, linear_attention, mixtures, reductions, regions, transformers, variants),
    *(maps, resizing, rotary, sequences, shapes, signal, sizes, slicing, support_vectors, texts),
    *(training, trees),
)
"""Modules that define the rules."""
