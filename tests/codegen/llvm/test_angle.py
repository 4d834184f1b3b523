"""Native reduction of large angles against the reference in whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float64
from graphc.codegen.llvm.angle import declare_reduction
from graphc.codegen.llvm.module import Function, Item
from graphc.ir.kernel.large_angle import PARTS
from graphc.ir.kernel.scalar import SCALAR_OPS
from tests.codegen.lanes import evaluate, operation, powers_of_two
from tests.native import target_or_skip


@pytest.mark.parametrize("level", ["sse2", "avx2", "avx512"])
@pytest.mark.parametrize("name", PARTS)
def test_native_parts_are_those_of_whole_numbers(name: str, level: str):
    target = target_or_skip(level)
    ends = [0.0, -0.0, 2.0**47, np.nextafter(2.0**47, np.inf), 1.7976931348623157e308, 6381956970095103 * 2.0**797]
    x = np.concatenate([powers_of_two(40, 1023.99, 3000), ends])
    wanted = SCALAR_OPS[name].reference(x)
    got = evaluate(operation(name), [float64], [x], target)
    if name == PARTS[0]:
        np.testing.assert_allclose(got, wanted, rtol=2.3e-16)  # halfway cases may go either way
    else:
        angle = evaluate(operation(PARTS[0]), [float64], [x], target)
        same = angle == SCALAR_OPS[PARTS[0]].reference(x)
        assert same.mean() > 0.99
        np.testing.assert_allclose(got[same], wanted[same], rtol=1e-12, atol=1e-31)


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_any_number_of_lanes(lanes: int):
    x = powers_of_two(40, 1000, 64)
    got = evaluate(operation(PARTS[0]), [float64], [x], lanes=lanes)
    np.testing.assert_allclose(got, SCALAR_OPS[PARTS[0]].reference(x), rtol=2.3e-16)


def test_a_function_is_in_the_module_once():
    found: dict[str, Item] = {}
    for _ in range(2):
        assert declare_reduction(PARTS[0], 4, found.__setitem__) == f"{PARTS[0]}.v4f64"
    assert sum(isinstance(part, Function) for part in found.values()) == 2
