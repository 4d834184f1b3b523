"""ONNX's ImageDecoder, by the package Pillow where it is installed."""

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
"""What Pillow calls the formats of ONNX."""


@op("ImageDecoder", since=20)
def image_decoder(encoded_stream: Tensor, *, pixel_format: str = "RGB") -> Any:
    """The pixels of an image file, u8[height, width, channels]. Their number depends on values: eager mode alone."""
    if pixel_format not in _FORMATS:
        raise AttributeValueError(f"ImageDecoder: pixel_format {pixel_format!r}", remedy=", ".join(_FORMATS))
    data = front().values(encoded_stream, "ImageDecoder, whose result has a size that depends on values,")
    found = _decoded(data.tobytes(), _FORMATS[pixel_format])
    found = found[..., None] if found.ndim == 2 else found
    return np.ascontiguousarray(found[..., ::-1] if pixel_format == "BGR" else found)


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
        raise ArtifactError(f"ImageDecoder: the bytes are no image: {type(error).__name__}") from None
