"""Rule of ONNX's ImageDecoder, with the package Pillow where it is installed."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError, AttributeValueError, UnsupportedError
from graphc.base.installation import install_command
from graphc.interop.onnx.registry import op
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

_FORMATS = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
"""Pillow's modes by ONNX's pixel formats."""


@op("ImageDecoder", since=20)
def image_decoder(encoded_stream: Tensor, *, pixel_format: str = "RGB") -> Any:
    """Decode an image file to pixels u8[height, width, channels].

    Works in eager mode only: the number of pixels depends on values.
    """
    if pixel_format not in _FORMATS:
        raise AttributeValueError(
            f"ImageDecoder: pixel_format {pixel_format!r}", remedy=f"use one of {', '.join(_FORMATS)}"
        )
    data = front().values(encoded_stream, "ImageDecoder, whose result has a size that depends on values,")
    pixels = _decoded(data.tobytes(), _FORMATS[pixel_format])
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    return np.ascontiguousarray(pixels[..., ::-1] if pixel_format == "BGR" else pixels)


def _decoded(data: bytes, mode: str) -> np.ndarray:
    try:
        Image: Any = import_module("PIL.Image")
    except ImportError:
        remedy = f"install Pillow: {install_command('images')}"
        raise UnsupportedError("ImageDecoder needs the package Pillow", remedy=remedy) from None
    try:
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image.convert(mode))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ArtifactError(f"ImageDecoder: the bytes are not an image: {type(error).__name__}") from None
