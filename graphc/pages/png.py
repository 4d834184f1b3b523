"""PNG images of SVG drawings, through the ``resvg_py`` package (extra ``pictures``)."""

from __future__ import annotations

from importlib import import_module

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command

SCALE = 2
"""Pixels per unit of the drawing, so that texts are sharp on screens with small pixels."""


def png_of(svg: str) -> bytes:
    """Return the PNG image of an SVG drawing, in light colours. Raises ArgumentError without the package."""
    try:
        package = import_module("resvg_py")
    except ImportError:
        raise ArgumentError(
            "a .png picture needs the package resvg_py",
            remedy=f"install it with {install_command('pictures')}, or write an .svg file",
        ) from None
    return bytes(package.svg_to_bytes(svg_string=svg, zoom=SCALE))
