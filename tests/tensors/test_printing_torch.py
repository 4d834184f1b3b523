"""Tensors as text, compared with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def at_first():
    yield
    for library in (graphc, torch):
        library.set_printoptions(profile="default")


def values(rng: np.random.Generator, kind: int, shape: tuple[int, ...]) -> np.ndarray:
    plain = rng.normal(size=shape)
    return np.asarray(
        [
            plain,
            np.round(plain * 3),
            plain * 10.0 ** rng.integers(-8, 10),
            rng.integers(-1000, 1000, shape),
            plain > 0,
            np.where(rng.random(shape) < 0.3, np.nan, plain),
            np.where(rng.random(shape) < 0.3, -np.inf, np.round(plain)),
            plain * 10.0 ** rng.integers(-5, 5, shape),
        ][kind]
    )


def options(rng: np.random.Generator) -> dict:
    modes = [None, True, False]
    return {
        "precision": int(rng.integers(0, 7)),
        "threshold": int(rng.integers(1, 200)),
        "edgeitems": int(rng.integers(1, 5)),
        "linewidth": int(rng.integers(30, 120)),
        "sci_mode": modes[rng.integers(0, 3)],
    }


@pytest.mark.parametrize("seed", range(8))
def test_the_text_is_that_of_torch(seed):
    rng = np.random.default_rng(seed)
    for number in range(40):
        shape = tuple(rng.integers(1, [5, 40, 9][number % 3], rng.integers(0, 4)))
        array = values(rng, int(rng.integers(0, 8)), shape)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        for library in (graphc, torch):
            library.set_printoptions(profile="default")
        chosen = {} if number % 4 else options(rng)
        texts = []
        for library in (graphc, torch):
            library.set_printoptions(**chosen)
            texts.append(repr(library.tensor(array)))
        assert texts[0] == texts[1], (array, chosen)
