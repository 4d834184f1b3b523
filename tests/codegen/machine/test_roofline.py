"""The roofline: operations or bytes, whichever take longer, at the speed of the smallest cache that holds them."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.costs import SpeedCosts
from graphc.codegen.machine.roofline import Roofline
from graphc.codegen.machine.target import named_targets, target_named
from tests.native import priced

ROOFLINE = Roofline(SpeedCosts(operations=8.0, l1=100.0, l2=50.0, llc=20.0, memory=10.0), 1_000, 10_000, 100_000)


@pytest.mark.parametrize(
    ("nbytes", "speed"), [(0, 100.0), (1_000, 100.0), (1_001, 50.0), (10_001, 20.0), (100_001, 10.0)]
)
def test_bytes_come_from_the_smallest_cache_that_holds_them(nbytes: int, speed: float):
    assert ROOFLINE.bandwidth(nbytes) == speed
    assert ROOFLINE.time(0, nbytes) == nbytes / speed


def test_time_is_that_of_the_operations_or_of_the_bytes():
    assert ROOFLINE.time(8_000, 100) == 1_000.0
    assert ROOFLINE.time(8, 100) == 1.0
    assert ROOFLINE.time(8, 100, working_set=100_001) == 10.0


@pytest.mark.parametrize("name", named_targets())
def test_larger_caches_are_larger_and_not_faster(name: str):
    roofline = target_named(name).roofline
    k = roofline.speeds
    assert roofline.l1_bytes < roofline.l2_bytes < roofline.llc_bytes
    assert k.l1 >= k.l2 >= k.llc >= k.memory > 0


def test_a_target_has_the_roofline_of_its_costs():
    target = priced(target_named("avx2"), speeds={"memory": 3.0})
    assert target.roofline.bandwidth(1 << 40) == 3.0
