"""Images as inputs of models: layout, size and scale as the input asks."""

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


class Layout(NamedTuple):
    """How the pixels of one image lie in an array."""

    height: int
    width: int
    channels: int
    first: bool
    """Whether channels come before rows."""
    plain: bool
    """Whether there is no dimension of channels."""


def layout_of(shape: Sequence[int], name: str = "input") -> Layout:
    """The layout of one image in an input without its batch: rows and columns, or with 1, 3 or 4 channels before them
    or behind them. Raises UsageError for other shapes."""
    if len(shape) == 2:
        return Layout(shape[0], shape[1], 1, first=True, plain=True)
    if len(shape) == 3 and shape[0] in MODES:
        return Layout(shape[1], shape[2], shape[0], first=True, plain=False)
    if len(shape) == 3 and shape[2] in MODES:
        return Layout(shape[0], shape[1], shape[2], first=False, plain=False)
    raise UsageError(
        f"input {name!r} takes {list(shape)} for each image, which has no channels",
        remedy="an input such as [1,3,224,224], [1,224,224,3] or [1,28,28], or an .npy file",
    )


def read_image(path: Path, layout: Layout, dtype: str, scaling: Scaling) -> np.ndarray:
    """One image as an array of the layout: turned as its file says, in as many channels, resized so that it covers
    the input and cropped around its middle, scaled. Raises ArtifactError for what is no image, UsageError without
    Pillow, ShapeError for as many means as there are no channels."""
    try:
        pixels = read_pixels(path, layout.height, layout.width, layout.channels)
    except ArgumentError as error:
        raise UsageError(error.what, remedy=error.remedy) from None
    pixels = _scaled(pixels, dtype, scaling)
    if layout.plain:
        return pixels[:, :, 0]
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) if layout.first else pixels


def _scaled(pixels: np.ndarray, dtype: str, scaling: Scaling) -> np.ndarray:
    """``pixels``, whose last dimension are channels, as elements of the type."""
    wanted = BY_NAME[dtype]
    for given in (scaling.mean, scaling.std):
        if len(given) not in (0, 1, pixels.shape[-1]):
            raise ShapeError(f"{len(given)} numbers for {pixels.shape[-1]} channels", remedy="one, or one each")
    is_plain = not wanted.is_floating_point and scaling.scale is None
    found = pixels * (1.0 if is_plain else scaling.factor(pixels.dtype))
    if scaling.mean:
        found = found - np.asarray(scaling.mean)
    if scaling.std:
        found = found / np.asarray(scaling.std)
    if wanted.is_integer:
        limits = np.iinfo(wanted.numpy)
        found = np.clip(np.rint(found), limits.min, limits.max)
    return elements(found, wanted)
