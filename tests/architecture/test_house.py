"""The order of the house: what `python -m tools.house` counts stays at zero, and it counts what it should."""

from __future__ import annotations

import pytest

from tools import house
from tools.house import Module


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return house.read_modules()


@pytest.mark.parametrize("figure", house.FIGURES)
def test_nothing_stands_where_it_should_not(figure: str, modules: list[Module]):
    found = house.FIGURES[figure](modules)
    assert not found, "\n".join(["", *map(str, found)])


@pytest.mark.parametrize(
    ("path", "line", "count"),
    [
        ("graphc/fusion/price.py", "return size > 4096", 1),
        ("graphc/codegen/schedule/pipeline.py", "return 0.5 * cycles", 1),
        ("graphc/codegen/schedule/pipeline.py", "return 2 * cycles > 1", 0),
        ("graphc/codegen/schedule/expansion/pow.py", "return x > 89.0", 0),
        ("graphc/codegen/machine/costs.py", "return x > 89.0", 0),
        ("graphc/fusion/price.py", "return size > costs.large_bytes", 0),
    ],
)
def test_numbers_without_a_name_are_found_where_ways_are_chosen(path: str, line: str, count: int):
    assert len(house.loose_numbers([Module(path, f"def f(x, size, cycles, costs):\n    {line}\n")])) == count


def test_modules_at_the_top_and_packages_without_a_floor_are_found():
    assert house.modules_at_the_top([Module("graphc/extra.py", "")])
    assert not house.modules_at_the_top([Module("graphc/errors.py", "")])
    assert house.without_floor([Module("graphc/attic/old.py", "")])


def test_circles_are_found_when_only_types_are_imported():
    first = Module("graphc/ir/graph/a.py", "from graphc.ops import b\n")
    second = Module("graphc/ops/b.py", "if TYPE_CHECKING:\n    from graphc.ir.graph import a\n")
    assert house.circles([first, second])
    assert not house.circles([Module("graphc/ir/graph/a.py", ""), second])


def test_ops_asked_for_by_name_are_found():
    found = house.names_of_ops([Module("graphc/fusion/x.py", 'a = node.op.name == "conv"\nb = {"add", "mul"}\n')])
    assert len(found) == 2
