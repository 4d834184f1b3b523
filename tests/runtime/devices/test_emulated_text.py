"""Kernels, parameters and extents are read from CUDA text."""

from __future__ import annotations

import pytest

from graphc.runtime.devices.emulated_text import kernels_of
from tests.runtime.devices.cuda_texts import SCALE, SOFTMAX, changed


def test_kernels_are_found_with_their_parameters():
    scale, softmax = kernels_of("int before;\n" + SCALE + SOFTMAX)
    assert (scale.symbol, scale.parameters) == ("scale", ("x", "y", "n"))
    assert (softmax.symbol, softmax.parameters) == ("softmax", ("x", "y", "n"))
    assert scale.prelude == softmax.prelude == "int before;\n\n"
    assert (scale.line, softmax.line) == (3, 10)
    assert (
        scale.text.startswith("static __global__ void gc_run(GC_IN(float) x, ") and scale.text.count("GC_EXTENT") == 2
    )
    assert kernels_of("int nothing;") == ()
    (none,) = kernels_of('extern "C" __global__ void f() {}')
    assert (none.parameters, none.extents) == ((), ())


def test_the_symbol_alone_makes_no_other_code():
    (kernel,), (renamed,) = kernels_of(SCALE), kernels_of(changed(SCALE, " scale(", " renamed("))
    assert kernel.digest == renamed.digest
    (other,), (behind,) = kernels_of(changed(SCALE, "2.0f", "3.0f")), kernels_of("int before;" + SCALE)
    assert len({kernel.digest, other.digest, behind.digest}) == 3


@pytest.mark.parametrize(
    "text, extent",
    [
        ("1024ll", 1024),
        ("n", 10),
        ("(3ll * n * n + (n / 4ll) + -1ll)", 301),
        ("gc_floor_div<long long>((n + -13ll), 4ll)", -1),
        ("gc_floor_div<long long>((n + 13ll), 4ll)", 5),
        ("gc_max<long long>((n + -3ll), 0) + 1ll", 8),
        ("n * gridDim.x", -1),
        ("n / 0", -1),
        ("n +", -1),
    ],
)
def test_extents_are_computed_before_a_launch(text, extent):
    (kernel,) = kernels_of(changed(SCALE, "GC_EXTENT(x, n)", f"GC_EXTENT(x, {text})"))
    assert kernel.extents_for([4096, 8192, 10]) == [extent, 10, -1]
