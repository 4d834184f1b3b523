"""The kept StableHLO texts with arguments and results, which ``python -m tools.stablehlo`` writes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from graphc.tensors.structure import flatten

FILES = Path(__file__).parent / "files"
NAMES = sorted(path.stem for path in FILES.glob("*.mlir"))


def text_of(name: str) -> str:
    """Return a kept text."""
    return (FILES / f"{name}.mlir").read_text()


@cache
def _values() -> dict[str, np.ndarray]:
    with np.load(FILES / "values.npz") as file:
        return dict(file)


def arrays_of(name: str, kind: str) -> list[np.ndarray]:
    """Return the arguments (``in``) or the results (``out``) that JAX computed."""
    values = _values()
    count = sum(key.startswith(f"{name}.{kind}") for key in values)
    return [values[f"{name}.{kind}{i}"] for i in range(count)]


def check_results(results: Any, expected: list[np.ndarray]) -> None:
    """Compare with the results of JAX: 1e-10 for f64, 1e-5 for f32, and equal types, shapes and integers."""
    tensors, _ = flatten(results)
    assert [(t.dtype.numpy, tuple(t.shape)) for t in tensors] == [(e.dtype, e.shape) for e in expected]
    for tensor, e in zip(tensors, expected, strict=True):
        tolerance = 1e-5 if e.dtype in (np.float32, np.complex64) else 1e-10
        np.testing.assert_allclose(tensor.numpy(), e, rtol=tolerance, atol=tolerance)


def check_kept(*names: str) -> None:
    """Run kept texts eagerly and compiled."""
    for name in names:
        module = gc.from_stablehlo(text_of(name))
        arguments, expected = arrays_of(name, "in"), arrays_of(name, "out")
        with gc.no_grad():
            check_results(module(*arguments), expected)
            check_results(gc.compile(module)(*arguments), expected)


def run(body: str, *arguments: Any) -> Any:
    """Run the lines of a function, eagerly and compiled, and return the results of both, which must be equal.

    The first line holds the arguments and the results: ``(%x: tensor<3xf64>) -> tensor<3xf64>``.
    """
    first, *lines = body.strip().splitlines()
    module = gc.from_stablehlo("\n".join([f"func.func @main{first.strip()} {{", *lines, "}"]))
    arrays = [np.asarray(a) for a in arguments]
    with gc.no_grad():
        eager, compiled = module(*arrays), gc.compile(module)(*arrays)
    for a, b in zip(flatten(eager)[0], flatten(compiled)[0], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    return eager.numpy() if isinstance(eager, gc.Tensor) else [r.numpy() for r in eager]
