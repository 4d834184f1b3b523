"""The loader in Python gives what Python gives, with numpy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.c_library.build import build_library
from tests.c_library.conftest import (
    ALL,
    Built,
    call_alone,
    expected,
    same,
)
from tests.c_library.nets import NETS


@pytest.mark.parametrize("name", NETS)
def test_the_loader_gives_what_python_gives_and_needs_numpy_alone(name: str, built: Built, tmp_path: Path):
    outputs = call_alone(built(name), NETS[name].calls, tmp_path)
    assert same(outputs, expected(NETS[name], tmp_path))


def test_the_loader_computes_sizes_in_an_order_that_works(tmp_path: Path):
    """The dimension that C takes first depends on the other one."""
    many, more = graphc.Dim("a", max=64), graphc.Dim("b", max=64)
    library = build_library(
        lambda x, y: x.sum() + y,
        *(graphc.zeros(5), graphc.zeros(2)),
        dims=[(many + more,), (more,)],
        path=tmp_path / "sums.so",
        emit=ALL,
    )
    x, y = np.ones(7, np.float32), np.ones(3, np.float32)
    assert same(call_alone(library, [[x, y]], tmp_path), [[np.full(3, 8, np.float32)]])


def test_the_loader_takes_dimensions_with_names_that_python_cannot_have(tmp_path: Path):
    names = ("batch-size", "lambda", "max", "shapes", "2 x")
    dims = [tuple(map(graphc.Dim, names)), (graphc.Dim("k") + graphc.Dim("lambda"),)]
    examples = graphc.zeros(2, 3, 4, 5, 6), graphc.zeros(7)
    library = build_library(lambda x, y: (x * 2, y), *examples, dims=dims, path=tmp_path / "odd.so", emit=ALL)
    x, y = np.ones((3, 2, 2, 4, 2), np.float32), np.ones(5, np.float32)
    assert same(call_alone(library, [[x, y]], tmp_path), [[x * 2, y]])


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


# ---- musl, an old glibc, and no system
