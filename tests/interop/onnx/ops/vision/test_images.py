"""ImageDecoder, with and without the package that decodes."""

import io
import re
import sys

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.base.installation import install_command
from tests.interop.onnx.alike import module_of, refused

TEXT = '(uint8[N] x) => (uint8 y) { y = ImageDecoder<pixel_format="FORMAT">(x) }'


def _encoded() -> tuple[np.ndarray, np.ndarray]:
    """Pixels, and a file with them."""
    image = pytest.importorskip("PIL.Image", reason="Pillow decodes images")
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "PNG")
    return pixels, np.frombuffer(file.getvalue(), np.uint8)


def test_files_become_pixels() -> None:
    pixels, data = _encoded()
    np.testing.assert_array_equal(module_of(TEXT.replace("FORMAT", "RGB"))(data).numpy(), pixels)
    np.testing.assert_array_equal(module_of(TEXT.replace("FORMAT", "BGR"))(data).numpy(), pixels[..., ::-1])
    assert tuple(module_of(TEXT.replace("FORMAT", "Grayscale"))(data).shape) == (2, 4, 1)


def test_the_number_of_pixels_cannot_be_known_in_a_trace() -> None:
    assert "ImageDecoder" in refused(TEXT.replace("FORMAT", "RGB"), _encoded()[1])


def test_what_is_no_image_is_an_error() -> None:
    pytest.importorskip("PIL.Image", reason="Pillow decodes images")
    with pytest.raises(gc.errors.ArtifactError, match="not an image"):
        module_of(TEXT.replace("FORMAT", "RGB"))(np.zeros(9, np.uint8))


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(gc.errors.UnsupportedError, match=re.escape(f"install Pillow: {install_command('images')}")):
        module_of(TEXT.replace("FORMAT", "RGB"))(np.zeros(9, np.uint8))
