"""The loader of a library: short, and as strict as calls through graphc."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.c_library.conftest import Built
from tests.c_library.nets import NETS


def loaded(built: Built, name: str, **options: Any) -> Any:
    path = built(name, **options).files["py"]
    namespace: dict[str, Any] = {"__file__": str(path)}
    exec(path.read_text(), namespace)
    return namespace["Model"]()


@pytest.mark.parametrize("name", NETS)
def test_it_has_sixty_lines(name: str, built: Built):
    assert len(built(name).files["py"].read_text().splitlines()) <= 60
    assert len(built("decoder", weights="beside").files["py"].read_text().splitlines()) <= 61


def test_inputs_are_given_by_position_or_name(built: Built):
    model, x = loaded(built, "policy"), np.ones((1, 17), np.float32)
    assert np.array_equal(model.run(x), model.run(input=x))
    for arrays, named in [((), {}), ((x, x), {}), ((x,), {"batch": 3})]:
        with pytest.raises(TypeError, match="run takes input"):
            model.run(*arrays, **named)


def test_types_and_shapes_are_checked(built: Built):
    model = loaded(built, "sizes")
    assert model.run(np.zeros((2, 3, 8), np.float32))[0].shape == (2, 3)
    for array in (np.zeros((2, 3, 8)), np.zeros((2, 3, 7), np.float32), np.zeros((2, 3), np.float32)):
        with pytest.raises(ValueError, match="run: x is float32"):
            model.run(array)
    with pytest.raises(ValueError, match="out of its range"):
        model.run(np.zeros((65, 3, 8), np.float32))


def test_arrays_that_are_not_dense_are_copied(built: Built):
    model = loaded(built, "policy")
    wide = np.random.default_rng(0).standard_normal((1, 34)).astype(np.float32)
    assert np.array_equal(model.run(wide[:, ::2]), model.run(wide[:, ::2].copy()))


def test_indices_out_of_range_are_index_errors(built: Built):
    with pytest.raises(IndexError, match="an index or label is out of range"):
        loaded(built, "bag").run(np.full((2, 4), 50))


def test_states_are_kept_and_put_back(built: Built):
    model = loaded(built, "decoder")
    first, second = np.array([[7]]), np.array([[8]])
    model.run(first)
    saved, wanted = model.save_state(), model.run(second)
    assert not np.array_equal(model.run(second), wanted)
    model.load_state(saved)
    assert np.array_equal(model.run(second), wanted)
    with pytest.raises(RuntimeError, match="not one of this model"):
        model.load_state(bytes(len(saved)))


def test_a_library_of_another_build_is_refused(built: Built):
    path = built("policy").files["py"]
    text = path.read_text().replace(built("policy").digest, "0" * 64)
    namespace: dict[str, Any] = {"__file__": str(path)}
    exec(text, namespace)
    with pytest.raises(RuntimeError, match="different builds"):
        namespace["Model"]()
