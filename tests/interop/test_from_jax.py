"""``gc.from_jax`` without JAX; ``tests/interop/stablehlo/test_jax_export.py`` has the comparisons with it."""

import pytest

import graphc as gc
from graphc.interop import from_jax


def test_a_missing_package_is_an_error_with_the_command(monkeypatch):
    monkeypatch.setattr(from_jax, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"from_jax needs JAX: .*pip install .*\[jax\]"):
        gc.from_jax(lambda x: x, 1.0)
