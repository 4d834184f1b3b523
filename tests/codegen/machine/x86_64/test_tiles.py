"""AMX: configurations, and which processors have tiles."""

from __future__ import annotations

import re

import pytest

from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.machine.target import named_targets
from graphc.codegen.machine.tiles import Shape
from graphc.codegen.machine.x86_64.tiles import TILES
from tests.codegen.tiled import NO_TILES
from tests.codegen.tiled import TILES as AMX


def configured(shape: Shape) -> list[int]:
    """The bytes of a configuration."""
    declared: dict = {}
    text = TILES.configure(FunctionWriter(declared), shape)
    (constant,) = [item for name, item in declared.items() if name.startswith("@")]
    assert constant.split(" =")[0] in text
    return [int(n) for n in re.findall(r"i8 (\d+)", constant)]


@pytest.mark.parametrize("rows", [5, 16, 25, 32])
@pytest.mark.parametrize("steps", [8, 14, 16])
def test_a_configuration_has_lengths_and_rows_of_each_tile(rows: int, steps: int):
    found = configured(Shape(rows, steps))
    lengths = [found[16 + 2 * tile] + 256 * found[17 + 2 * tile] for tile in range(8)]
    assert len(found) == 64 and found[0] == 1 and not any(found[1:16]) and not any(found[32:48])
    below = max(0, rows - 16)
    assert found[48:56] == [min(rows, 16)] * 2 + [below] * 2 + [min(rows, 16), below] + [steps] * 2
    assert lengths == [64] * 2 + [64 * bool(below)] * 2 + [4 * steps, 4 * steps * bool(below)] + [64] * 2


def test_what_is_called_is_declared():
    declared: dict = {}
    writer = FunctionWriter(declared)
    texts = [TILES.zero(writer, 1), TILES.load(writer, 4, "%p", 64), TILES.store(writer, 0, "%p", 128)]
    texts += [TILES.multiply(writer, 0, 4, 6), TILES.release(writer)]
    for text in texts:
        name = re.search(r"@([\w.]+)", text)
        assert name and name[1] in declared
    assert "i8 0, i8 4, i8 6" in texts[3]


def test_only_processors_with_the_features_have_tiles():
    assert AMX.tile_rows == 16 and AMX.tiles is TILES
    for target in (NO_TILES, *named_targets().values()):
        assert not target.tile_rows and target.tiles is None
