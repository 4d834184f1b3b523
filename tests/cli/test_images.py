"""Images as inputs: layout, channels, size, scale."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from graphc.base.errors import ShapeError
from graphc.base.installation import install_command
from graphc.cli.console import UsageError
from graphc.cli.images import ImageLayout, layout_of, read_image
from graphc.cli.trainer.conversion import Scaling

RED = (255, 0, 51)


def drawn(path: Path, size: tuple[int, int], colour: tuple[int, int, int] = RED) -> Path:
    """A picture of one colour."""
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", size, colour).save(path)
    return path


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ((28, 30), ImageLayout(28, 30, 1, first=True, plain=True)),
        ((3, 8, 9), ImageLayout(8, 9, 3, first=True, plain=False)),
        ((8, 9, 3), ImageLayout(8, 9, 3, first=False, plain=False)),
        ((1, 8, 9), ImageLayout(8, 9, 1, first=True, plain=False)),
        ((8, 9, 4), ImageLayout(8, 9, 4, first=False, plain=False)),
    ],
)
def test_the_shape_says_where_channels_are(shape: tuple[int, ...], layout: ImageLayout):
    assert layout_of(shape) == layout


@pytest.mark.parametrize("shape", [(5, 8, 9), (8,), (), (1, 3, 8, 9)])
def test_shapes_that_hold_no_image(shape: tuple[int, ...]):
    with pytest.raises(UsageError, match="has no channels"):
        layout_of(shape, "x")


def test_channels_lie_as_the_layout_says(tmp_path: Path):
    path = drawn(tmp_path / "red.png", (9, 8))
    first = read_image(path, layout_of((3, 8, 9)), "f32", Scaling())
    last = read_image(path, layout_of((8, 9, 3)), "f32", Scaling())
    assert first.shape == (3, 8, 9) and first.dtype == np.float32 and first.flags.c_contiguous
    np.testing.assert_allclose(first[:, 0, 0], [1.0, 0.0, 0.2], rtol=1e-6)
    np.testing.assert_array_equal(first.transpose(1, 2, 0), last)
    assert read_image(path, layout_of((8, 9)), "f32", Scaling()).shape == (8, 9)


def test_numbers_are_scaled_and_then_centred(tmp_path: Path):
    path = drawn(tmp_path / "red.png", (9, 8))
    scaling = Scaling(mean=(0.5, 0.0, 0.1), std=(0.5, 1.0, 0.1))
    found = read_image(path, layout_of((3, 8, 9)), "f32", scaling)
    np.testing.assert_allclose(found[:, 3, 3], [1.0, 0.0, 1.0], rtol=1e-5)
    plain = read_image(path, layout_of((3, 8, 9)), "u8", Scaling())
    assert plain.dtype == np.uint8 and plain[:, 0, 0].tolist() == list(RED)
    assert read_image(path, layout_of((3, 8, 9)), "u8", Scaling(scale=2.0))[:, 0, 0].tolist() == [255, 0, 102]
    with pytest.raises(ShapeError, match="2 numbers for 3 channels"):
        read_image(path, layout_of((3, 8, 9)), "f32", Scaling(mean=(0.5, 0.5)))


def test_images_cover_the_input_and_are_cropped_around_the_middle(tmp_path: Path):
    package = pytest.importorskip("PIL.Image")
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, 10:30] = 255
    package.fromarray(pixels).save(tmp_path / "wide.png")
    found = read_image(tmp_path / "wide.png", layout_of((10, 10)), "f32", Scaling())
    assert found.shape == (10, 10) and found[:, 1:-1].min() > 0.99 and found.min() > 0.5


def test_without_pillow_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    remedy = re.escape(f"install Pillow: {install_command('images')}")
    with pytest.raises(UsageError, match=rf"images need Pillow, which is not installed\n  try    {remedy}"):
        read_image(tmp_path / "a.png", layout_of((8, 9)), "f32", Scaling())
