"""Independent loops outside of those that run in order: where that is right, and where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.schedule.gpu.independent import independent_outside
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Kernel, Loop, walk
from graphc.ir.kernel.verify import verify_kernel


def scatter(index: str, load: str = "", size: int = 40) -> Kernel:
    return parse_kernel(f"""kernel @k(%z: i64[5] in, %x: f32[20] in, %y: f32[{size}] inout) {{
      for i in 5 serial {{
        v1: i64 = load %z[i]
        for j in 4 parallel {{
          v2: f32 = load %x[4*i + j]
          {load}
          store %y[{index}] add= v2
        }}
      }}
    }}""")


def kinds(kernel: Kernel) -> list[str]:
    return [s.kind for s, _ in walk(kernel.body) if isinstance(s, Loop)]


@pytest.mark.parametrize(
    "index", ["j + 4*[v1:0..9]", "9*j + [v1:0..8]", "2*j + 8*[v1:0..3] + 1", "j + 36", "3*j + i // 2"]
)
def test_places_of_their_own(index: str):
    kernel = scatter(index)
    found = independent_outside(kernel)
    assert kinds(found) == ["parallel", "serial"]
    verify_kernel(found)
    x = np.random.default_rng(0).standard_normal(20).astype(np.float32)
    results = []
    for k in (kernel, found):
        results.append(np.ones(40, np.float32))
        run_kernel(k, {"z": np.array([1, 0, 3, 1, 1]), "x": x, "y": results[-1]})
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    "index,load",
    [
        ("j + 3*[v1:0..9]", ""),
        ("j + [v1:0..9]", ""),
        ("i + 4*[v1:0..3]", ""),
        ("2*j + 8*[v1:0..3] + 3*(i // 3)", ""),
        ("j + i", ""),
        ("j + 4*[v1:0..9]", "v3: f32 = load %y[i]"),
        ("j + 4*[v1:0..9]", "v3: f32 = load %y[2*j]"),
    ],
)
def test_places_that_others_touch(index: str, load: str):
    kernel = scatter(index, load)
    assert independent_outside(kernel) is kernel


def test_sums_and_scalars_that_depend_on_what_is_written_stay():
    kernel = parse_kernel("""kernel @k(%y: f32[20] inout) {
      for i in 5 serial {
        v1: f32 = load %y[i]
        for j in 4 parallel { store %y[4*i + j] = v1 }
      }
    }""")
    assert independent_outside(kernel) is kernel
