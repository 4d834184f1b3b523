"""Large angles in CUDA C."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import float64
from graphc.codegen.cuda.angle import angle_text
from graphc.ir.kernel.large_angle import FROM, PARTS, WORDS
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.runtime.devices.emulated import EmulatedDevice
from tests.codegen.cuda.running import launch_kernels
from tests.codegen.cuda.test_scalar import kernel_of


def test_what_is_left_of_angles_of_all_sizes_is_what_the_table_says():
    rng = np.random.default_rng(0)
    large = np.ldexp(rng.uniform(1, 2, 300), rng.integers(45, 1024, 300)) * rng.choice([-1.0, 1.0], 300)
    x = np.array([*large, 0.0, 1.0, FROM, -FROM, np.finfo(float).max, np.inf, -np.inf, np.nan])
    kernels = [kernel_of(SCALAR_OPS[part], (float64,), float64, len(x)) for part in PARTS]
    found = launch_kernels(EmulatedDevice(), kernels, [{"x0": x, "y": np.zeros_like(x)} for _ in PARTS])
    exact = [SCALAR_OPS[part].reference(x) for part in PARTS]
    np.testing.assert_array_equal(found[0]["y"], exact[0])
    # The rest has as many digits as matter beside what it is the rest of.
    np.testing.assert_allclose(found[1]["y"], exact[1], atol=1e-30)


def test_the_table_is_that_of_all_digits():
    assert angle_text().count("ull") >= WORDS and "@" not in angle_text()
