"""Images in files: channels, size, and what is no image."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.files import image_file
from graphc.files.image_file import is_image, read_pixels


def test_the_suffix_says_what_is_taken_for_an_image():
    assert is_image(Path("A.PNG")) and not is_image(Path("a.npy"))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pixels_have_the_channels_and_the_size_asked_for(tmp_path: Path, channels: int):
    package = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    package.new("RGB", (6, 4), (255, 0, 51)).save(tmp_path / "red.png")
    found = read_pixels(tmp_path / "red.png", 2, 3, channels)
    assert found.shape == (2, 3, channels) and found.dtype == np.uint8
    assert found[0, 0].tolist() == {1: [82], 3: [255, 0, 51], 4: [255, 0, 51, 255]}[channels]


def test_what_is_no_image_or_a_damaged_one_is_named(tmp_path: Path):
    package = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    path = tmp_path / "bad.png"
    path.write_text("text")
    with pytest.raises(ArtifactError, match=r"bad\.png is not a readable image"):
        read_pixels(path, 2, 3, 3)
    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    package.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:800])
    with pytest.raises((ArtifactError, OSError)):
        read_pixels(path, 2, 3, 3)


def test_images_that_are_too_large_are_refused_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    package.new("L", (9, 9)).save(tmp_path / "large.png")
    monkeypatch.setattr(image_file, "MOST_PIXELS", 80)
    with pytest.raises(ArtifactError, match="9 x 9 pixels, at most 80"):
        read_pixels(tmp_path / "large.png", 2, 2, 1)


def test_without_pillow_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ArgumentError, match="images need Pillow"):
        read_pixels(tmp_path / "a.png", 2, 3, 3)
