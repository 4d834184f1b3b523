"""Which architectures are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.realtime.machines import machine_of
from graphc.errors import RealtimeError


def test_a_target_is_read_by_the_first_part_of_its_triple():
    assert machine_of(target_named("sse2")).architecture == "x86_64"
    assert machine_of(target_named("neon")).architecture == "aarch64"


def test_of_others_nothing_is_proven():
    with pytest.raises(RealtimeError, match="nothing is proven of code for mips64"):
        machine_of(replace(target_named("sse2"), triple="mips64-unknown-linux-gnu"))
