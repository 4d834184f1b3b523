"""PNG images of drawings: their size, and the error without the package."""

from __future__ import annotations

import struct
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.pages.png import SCALE, png_of

DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20"/></svg>'


@pytest.mark.skipif(find_spec("resvg_py") is None, reason="needs resvg_py (extra pictures)")
def test_images(tmp_path: Path):
    image = png_of(DRAWING)
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", image[16:24]) == (30 * SCALE, 20 * SCALE)
    gc.picture(gc.trace(nn.Linear(2, 3), gc.zeros(1, 2)), tmp_path / "net.png")
    width, height = struct.unpack(">II", (tmp_path / "net.png").read_bytes()[16:24])
    assert width > 100 and height > 100


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ArgumentError, match="needs the package resvg_py") as caught:
        png_of(DRAWING)
    assert "pictures" in str(caught.value.remedy)
