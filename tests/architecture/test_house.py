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


@pytest.mark.parametrize(
    ("path", "line", "count"),
    [
        ("graphc/fusion/x.py", 'a = node.op.name == "conv"', 1),
        ("graphc/tensors/x.py", 'a = here.node.op.name == "constant"', 1),
        ("graphc/fusion/x.py", 'b = {"add", "mul"}', 1),
        ("graphc/fusion/x.py", 'c = REGISTRY["add"]', 1),
        ("graphc/tensors/x.py", 'b = {"add", "mul"}', 0),
        ("graphc/ops/x.py", 'a = node.op.name == "conv"', 0),
    ],
)
def test_ops_asked_for_by_name_are_found(path: str, line: str, count: int):
    assert len(house.names_of_ops([Module(path, line)])) == count


@pytest.mark.parametrize(
    ("path", "line", "count"),
    [
        ("graphc/fusion/x.py", "a = node.op is pad.op", 1),
        ("graphc/tensors/x.py", "a = node.op is not s.reshape.op", 1),
        ("graphc/autograd/x.py", "a = node.op in (pad.op, s.flip.op)", 2),
        ("graphc/passes/x.py", "a = made_by(value, pad.op)", 1),
        ("graphc/passes/x.py", "VIEWS = (pad, s.flip)", 1),
        ("graphc/tensors/x.py", "table = {pad: 1}", 1),
        ("graphc/passes/x.py", "a = emit(graph, pad.op, operands)", 0),
        ("graphc/passes/x.py", "a = pad(x, low=low, high=high)", 0),
        ("graphc/tensors/x.py", 'methods = {"flip": s.flip}', 0),
        ("graphc/passes/winograd.py", "a = node.op is pad.op", 0),
        ("graphc/ops/x.py", "a = node.op is pad.op", 0),
    ],
)
def test_ops_that_are_compared_are_found(path: str, line: str, count: int):
    source = f"from graphc.ops.movement import shape as s\nfrom graphc.ops.movement.shape import pad\n{line}\n"
    assert len(house.ops_by_identity([Module(path, source)])) == count


def test_only_modules_that_exist_are_rewrite_rules():
    paths = {m.path for m in house.read_modules()}
    assert paths.issuperset(f"graphc/{name}.py" for name in house.REWRITES)


@pytest.mark.parametrize(
    ("path", "line", "count"),
    [
        ("graphc/codegen/x.py", "team = 1", 1),
        ("graphc/lowering/x.py", "def f(repeats, _realized): self.streamed = 1", 3),
        ("graphc/fusion/x.py", "class Team: meets: int = 0", 2),
        ("graphc/fusion/x.py", "a = b.team(meets)", 0),
        ("graphc/tensors/x.py", "def repeat(x, repeats): ...", 0),
    ],
)
def test_retired_words_are_found_where_they_are_given_as_names(path: str, line: str, count: int):
    assert len(house.retired_words([Module(path, line)])) == count


@pytest.mark.parametrize(
    ("path", "line", "count"),
    [
        ("graphc/codegen/llvm/emit.py", "return 'llvm.x86.sse.sfence'", 1),
        ("graphc/codegen/llvm/emit.py", "return target.triple.startswith('aarch64')", 1),
        ("graphc/codegen/schedule/steps.py", "return target.has(f'{x},avx512vnni')", 1),
        ("graphc/codegen/schedule/steps.py", "return target.has('avx512vnni')", 1),
        ("graphc/codegen/link/shared.py", "return machine == 'riscv64'", 1),
        ("graphc/codegen/llvm/emit.py", "'''As with AVX-512 and NEON.'''", 0),
        ("graphc/codegen/llvm/emit.py", "return 'llvm.fma.v4f32'", 0),
        ("graphc/codegen/machine/x86_64/facts.py", "return 'llvm.x86.sse.sfence'", 0),
    ],
)
def test_families_of_processors_are_found_outside_of_their_room(path: str, line: str, count: int):
    assert len(house.families_outside([Module(path, f"def f(x, target):\n    {line}\n")])) == count


def test_imports_at_run_time_against_the_floors_are_found():
    upward = Module("graphc/ir/graph/x.py", 'f = deferred("graphc.nn.module:Module")\n')
    downward = Module("graphc/nn/x.py", 'f = deferred("graphc.ops.movement.shape:reshape")\n')
    documented = Module("graphc/ir/graph/x.py", '"""graphc.nn.module"""\n')
    built = Module("graphc/ir/graph/x.py", 'f = deferred(f"graphc.nn.functional:{name}")\n')
    assert [len(house.late_edges([m])) for m in (upward, downward, documented, built)] == [1, 0, 0, 1]


def test_listed_imports_at_run_time_are_left_out_and_missed_when_gone():
    listed = Module("graphc/nn/module.py", 'f = deferred("graphc.calls.function:compile")\n')
    assert not house.late_edges([listed])
    assert len(house.unused_late_edges([listed])) == len(house.LATE_EDGES) - 1


def test_long_folders_and_shared_class_names_are_counted():
    files = [Module(f"graphc/ir/m{i}.py", "class Step:\n    pass\n" if i < 3 else "") for i in range(31)]
    assert [str(place) for place in house.long_folders(files)] == ["graphc/ir:1: 31 files"]
    assert not house.long_folders(files[1:])
    assert len(house.shared_class_names(files)) == 1
    assert not house.shared_class_names(files[1:])
