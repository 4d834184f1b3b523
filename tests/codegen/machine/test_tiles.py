"""Shapes of tiles."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.tiles import Shape


@pytest.mark.parametrize(("rows", "groups"), [(1, (1,)), (16, (16,)), (17, (16, 1)), (32, (16, 16))])
def test_rows_lie_in_tiles_below_each_other(rows: int, groups: tuple[int, ...]):
    assert Shape(rows, 16).groups == groups
