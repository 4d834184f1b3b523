"""Images in files, read by Pillow (extra ``images``): turned, in as many channels and of the size that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.installation import install_command

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's names of pixels with so many channels."""
MOST_PIXELS = 1 << 28
"""Of the largest image that is decoded."""


def is_image(path: Path) -> bool:
    """Whether a file is taken for an image, by its suffix."""
    return path.suffix.lower() in SUFFIXES


def read_pixels(path: Path, height: int, width: int, channels: int) -> np.ndarray:
    """An image as u8[height, width, channels], with 1, 3 or 4 channels: turned as its file says, resized so that it
    covers the size, and cropped around its middle. Raises ArtifactError for what is no image or has more than
    MOST_PIXELS, ArgumentError without Pillow; OSError."""
    package, operations = _pillow()
    try:
        with package.open(path) as file:
            if file.width * file.height > MOST_PIXELS:
                raise ArtifactError(f"{path}: {file.width} x {file.height} pixels, at most {MOST_PIXELS} are read")
            image = operations.exif_transpose(file).convert(MODES[channels])
    except (package.UnidentifiedImageError, package.DecompressionBombError) as error:
        raise ArtifactError(f"{path} is no image that can be read: {error}") from None
    except (SyntaxError, ValueError, EOFError) as error:
        raise ArtifactError(f"{path} is a damaged image: {error}") from None
    found = operations.fit(image, (width, height), package.Resampling.BILINEAR)
    return np.asarray(found, np.uint8).reshape(height, width, channels)


def _pillow() -> tuple[Any, Any]:
    """Pillow's modules of images and of operations on them."""
    try:
        from PIL import Image, ImageOps  # pyright: ignore[reportMissingImports]
    except ImportError:
        remedy = f"install Pillow: {install_command('images')}, or pass an .npy file"
        raise ArgumentError("images need Pillow, which is not installed", remedy=remedy) from None
    return Image, ImageOps
