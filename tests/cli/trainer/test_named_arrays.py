"""Data by names of inputs: batches, what is missing, and a digest that knows the content."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.cli.trainer.conversion import Scaling
from graphc.cli.trainer.named_arrays import NamedArrays
from graphc.errors import ArgumentError, ShapeError
from graphc.files.manifest import TensorSpec
from tests.training.linear import INPUTS, data


def test_batches_have_the_parts_by_name():
    found = data()
    batch = found.take([3, 1])
    assert list(batch) == ["x", "y"] and batch["x"].shape == (2, 3) and batch["y"].shape == (2,)
    assert np.array_equal(found[3]["x"], batch["x"][0]) and len(found) == 20


def test_what_inputs_do_not_take_is_left_out():
    found = NamedArrays({"x": np.zeros((4, 2), np.float32), "more": np.zeros(4)}, "d.npz")
    found.fit([TensorSpec("x", "f32", (2, 2))], Scaling())
    assert list(found.take([0])) == ["x"]


def test_what_is_missing_is_named():
    with pytest.raises(ArgumentError, match=r"d.npz has no x, y, which the entry takes; it has a"):
        NamedArrays({"a": np.zeros(3)}, "d.npz").fit(INPUTS, Scaling())


def test_different_numbers_of_samples_are_refused():
    with pytest.raises(ShapeError, match="x 3, y 4"):
        NamedArrays({"x": np.zeros(3), "y": np.zeros(4)}, "d.npz")


def test_the_digest_knows_names_types_and_values():
    x = np.arange(6.0)
    kinds = [{"x": x}, {"y": x}, {"x": x.reshape(3, 2)}, {"x": x + 1}, {"x": x.astype(np.float32)}]
    assert len({NamedArrays(kind, "d").digest() for kind in kinds}) == len(kinds)
    assert NamedArrays({"x": x, "y": x}, "a").digest() == NamedArrays({"y": x, "x": x}, "b").digest()
