"""Images sampled at grids: maps that are known, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import floats, tensor

IDENTITY = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])


@pytest.mark.parametrize("align_corners", [False, True])
def test_the_identity_map_gives_the_image(align_corners: bool):
    image = floats(1, 2, 4, 5)
    grid = F.affine_grid(tensor(IDENTITY), (1, 2, 4, 5), align_corners)
    for mode in ("bilinear", "nearest"):
        found = F.grid_sample(tensor(image), grid, mode, align_corners=align_corners)
        np.testing.assert_allclose(found.numpy(), image, atol=1e-12)


def test_mirrored_and_outside():
    image = floats(1, 1, 3, 4)
    grid = F.affine_grid(tensor(IDENTITY * [[[-1.0], [1.0]]]), (1, 1, 3, 4))
    np.testing.assert_allclose(F.grid_sample(tensor(image), grid).numpy(), image[..., ::-1], atol=1e-12)
    far = tensor(np.full((1, 1, 1, 2), 9.0))
    assert F.grid_sample(tensor(image), far).item() == 0
    assert F.grid_sample(tensor(image), far, padding_mode="border").item() == image[0, 0, -1, -1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, g: F.grid_sample(x, g, "cubic"), AttributeValueError, "'cubic'"),
        (lambda x, g: F.grid_sample(x, g, padding_mode="wrap"), AttributeValueError, "'wrap'"),
        (lambda x, g: F.grid_sample(x, g[0]), ShapeError, "do not fit"),
        (lambda x, g: F.grid_sample(x[:1], g), ShapeError, "do not fit"),
        (lambda x, g: F.affine_grid(g, (2, 1, 3, 3)), ShapeError, "theta is"),
    ],
)
def test_what_is_refused(call, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        call(graphc.zeros(2, 1, 3, 3), graphc.zeros(2, 3, 3, 2))
