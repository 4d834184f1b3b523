"""Convert images to model inputs: layout, size and scale follow from the input's type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from graphc.base.dtypes import BY_NAME, elements
from graphc.base.errors import ArgumentError, ShapeError
from graphc.cli.console import UsageError
from graphc.cli.trainer.conversion import Scaling
from graphc.files.image_file import MODES, read_pixels


class ImageLayout(NamedTuple):
    """Layout of one image in an array."""

    height: int
    width: int
    channels: int
    first: bool
    """Whether channels come before rows (CHW)."""
    plain: bool
    """Whether the array has no channel dimension."""


def layout_of(shape: Sequence[int], name: str = "input") -> ImageLayout:
    """Return the layout of one image in an input without its batch dimension: ``[H,W]``, ``[C,H,W]`` or ``[H,W,C]``.

    ``C`` is 1, 3 or 4. Raises UsageError for other shapes.
    """
    if len(shape) == 2:
        return ImageLayout(shape[0], shape[1], 1, first=True, plain=True)
    if len(shape) == 3 and shape[0] in MODES:
        return ImageLayout(shape[1], shape[2], shape[0], first=True, plain=False)
    if len(shape) == 3 and shape[2] in MODES:
        return ImageLayout(shape[0], shape[1], shape[2], first=False, plain=False)
    raise UsageError(
        f"input {name!r} takes {list(shape)} for each image, which has no channels",
        remedy="give an .npy file, or use a model with an input such as [1,3,224,224], [1,224,224,3] or [1,28,28]",
    )


def read_image(path: Path, layout: ImageLayout, dtype: str, scaling: Scaling) -> np.ndarray:
    """Read one image as an array of this layout.

    The image is rotated as its metadata says, converted to the number of channels, resized to cover the input, cropped
    around its centre, and scaled. Raises ArtifactError if the file is not an image, UsageError without Pillow,
    ShapeError if the number of means or deviations does not fit the channels.
    """
    try:
        pixels = read_pixels(path, layout.height, layout.width, layout.channels)
    except ArgumentError as error:
        raise UsageError(error.what, remedy=error.remedy) from None
    pixels = _scaled(pixels, dtype, scaling)
    if layout.plain:
        return pixels[:, :, 0]
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) if layout.first else pixels


def _scaled(pixels: np.ndarray, dtype: str, scaling: Scaling) -> np.ndarray:
    """Scale and normalize ``pixels`` (channels last) and convert them to the element type."""
    element_type = BY_NAME[dtype]
    for constants in (scaling.mean, scaling.std):
        if len(constants) not in (0, 1, pixels.shape[-1]):
            raise ShapeError(
                f"{len(constants)} numbers for {pixels.shape[-1]} channels",
                remedy="give one number, or one for each channel",
            )
    is_plain = not element_type.is_floating_point and scaling.scale is None
    scaled = pixels * (1.0 if is_plain else scaling.factor(pixels.dtype))
    if scaling.mean:
        scaled = scaled - np.asarray(scaling.mean)
    if scaling.std:
        scaled = scaled / np.asarray(scaling.std)
    if element_type.is_integer:
        limits = np.iinfo(element_type.numpy)
        scaled = np.clip(np.rint(scaled), limits.min, limits.max)
    return elements(scaled, element_type)
