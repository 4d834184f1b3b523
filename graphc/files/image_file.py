"""Image files, read with Pillow (extra ``images``): rotated upright, cropped and resized, with 1, 3 or 4 channels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.installation import install_command

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's pixel modes by number of channels."""
MOST_PIXELS = 1 << 28
"""Largest number of pixels of an image that is decoded."""


def is_image(path: Path) -> bool:
    """Return whether a file has the suffix of an image."""
    return path.suffix.lower() in SUFFIXES


def read_pixels(path: Path, height: int, width: int, channels: int) -> np.ndarray:
    """Read an image as u8[height, width, channels], with 1, 3 or 4 channels.

    It is rotated as its EXIF data says, resized to cover the size, and cropped around the middle. Raises ArtifactError
    for a file that is not an image or has more than MOST_PIXELS, ArgumentError without Pillow; OSError.
    """
    package, operations = _pillow()
    try:
        with package.open(path) as file:
            if file.width * file.height > MOST_PIXELS:
                raise ArtifactError(f"{path}: {file.width} x {file.height} pixels, at most {MOST_PIXELS} are read")
            image = operations.exif_transpose(file).convert(MODES[channels])
    except (package.UnidentifiedImageError, package.DecompressionBombError) as error:
        raise ArtifactError(f"{path} is not a readable image: {error}") from None
    except (SyntaxError, ValueError, EOFError) as error:
        raise ArtifactError(f"{path} is a damaged image: {error}") from None
    cropped = operations.fit(image, (width, height), package.Resampling.BILINEAR)
    return np.asarray(cropped, np.uint8).reshape(height, width, channels)


def _pillow() -> tuple[Any, Any]:
    """Return Pillow's modules ``Image`` and ``ImageOps``."""
    try:
        from PIL import Image, ImageOps  # pyright: ignore[reportMissingImports]
    except ImportError:
        remedy = f"install Pillow: {install_command('images')}, or pass an .npy file"
        raise ArgumentError("images need Pillow, which is not installed", remedy=remedy) from None
    return Image, ImageOps
