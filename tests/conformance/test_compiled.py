"""Every expression of the tables, compiled: native results and gradients are those of eager mode."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import TraceError
from tests.conformance import test_calls, test_edges, test_elementwise, test_functional, test_reductions, test_shaping
from tests.conformance.compare import leaves, normal, operands

NEEDS_VALUES = {"assign values by mask", "equal", "in", "tolist", "one_hot"}
"""What cannot be traced, because a Python number or a class depends on values."""


def _cases() -> list[Any]:
    found = {}
    for module in (test_calls, test_edges, test_elementwise, test_reductions, test_shaping, test_functional):
        for test in vars(module).values():
            for mark in getattr(test, "pytestmark", []):
                if mark.name == "parametrize" and mark.args[0] == "case":
                    table = module.__name__.rpartition("_")[2]
                    found |= {f"{table} {p.values[0].name}": p.values[0] for p in mark.args[1]}
    return [pytest.param(case, id=name) for name, case in found.items()]


def _pull(outputs: list[Any]) -> None:
    total = None
    for i, t in enumerate(outputs):
        if t.requires_grad:
            weights = graphc.from_numpy(np.asarray(normal(*t.shape, seed=i), t.dtype.numpy))
            part = (t * weights).sum().double()
            total = part if total is None else total + part
    if total is not None:
        total.backward()


@pytest.mark.sampled(40)
@pytest.mark.parametrize("case", _cases())
def test_compiled(case):
    def function(*tensors: Any) -> Any:
        return [leaf for leaf in leaves(case.expression(graphc, *tensors)) if isinstance(leaf, graphc.Tensor)]

    eager, native = (operands(graphc, case.arrays, case.order > 0) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(*eager)
        try:
            found = leaves(graphc.compile(function)(*native))
        except TraceError as error:
            assert case.name in NEEDS_VALUES
            lines = str(error).splitlines()
            assert [line.split()[0] for line in lines[1:]] == ["where", "from", "try"]
            return
    assert case.name not in NEEDS_VALUES
    assert [(t.shape, t.dtype) for t in found] == [(t.shape, t.dtype) for t in expected]
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        values = a.numpy(force=True), b.numpy(force=True)
        np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-8, err_msg=f"result {i}")
    if case.order:
        _pull(found)
        _pull(expected)
        for i, (a, b) in enumerate(zip(native, eager, strict=True)):
            if b.requires_grad and b.grad is not None:
                gradient = np.zeros(b.shape) if a.grad is None else a.grad.numpy()
                np.testing.assert_allclose(gradient, b.grad.numpy(), rtol=1e-6, atol=1e-7, err_msg=f"gradient {i}")
