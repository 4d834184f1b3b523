"""Thresholds of the schedule for GPUs."""

from __future__ import annotations

from dataclasses import fields

from graphc.codegen.machine.cuda.costs import GPU, TILES
from graphc.ir.kernel.statements import WARP


def test_blocks_consist_of_whole_warps():
    assert GPU.threads % WARP == 0 and GPU.threads <= 1024
    assert GPU.warp_row >= WARP and GPU.private_rounds > 0


def test_every_number_says_what_it_is():
    for record in (GPU, TILES):
        assert all(getattr(record, field.name) > 0 for field in fields(record))
