"""Shows that each architecture rule accepts what it should and fails on what it should."""

from __future__ import annotations

import pytest

from tests.architecture import rules
from tests.architecture.scan import Source

GRAPH = Source(
    rules.GRAPH_FILE,
    "import networkx as nx\n"
    "class Graph:\n"
    "    def __init__(self):\n"
    "        self._edges = nx.MultiDiGraph()\n"
    "    def remove_node(self, node):\n"
    "        self._edges.remove_node(node)\n",
)


def source(path: str, *lines: str) -> Source:
    return Source(path, "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("path", "line", "floor"),
    [
        ("graphc/base/errors.py", "from graphc.ir.graph import graph", "base"),
        ("graphc/ir/graph/graph.py", "from graphc.ops.pointwise.math import exp", "ir.graph"),
        ("graphc/ir/graph/graph.py", "from graphc.ir.kernel.nest import Nest", "ir.graph"),
        ("graphc/ops/pointwise/math.py", "import graphc.passes", "ops"),
        ("graphc/codegen/llvm/emit.py", "from graphc.fusion.vertical import fuse", "codegen.llvm"),
        ("graphc/codegen/llvm/emit.py", "from graphc.ops import define", "codegen.llvm"),
        ("graphc/codegen/schedule/lanes/choose.py", "from graphc.codegen.llvm import emit", "codegen.schedule.lanes"),
        ("graphc/runtime/loader.py", "from graphc.ir.graph.graph import Graph", "runtime"),
        ("graphc/runtime/loader.py", "from ..codegen.machine import target", "runtime"),
        ("graphc/compiler/stages.py", "from graphc.tracing.trace import trace", "compiler"),
        ("graphc/nn/module.py", "from graphc.codegen.machine import target", "nn"),
        ("graphc/nn/functional/affine.py", "from graphc.calls import function", "nn"),
        ("graphc/tensors/tensor.py", "from graphc.cli import main", "tensors"),
        ("graphc/passes/cse.py", "from graphc import errors", "passes"),
    ],
)
def test_upward_imports_are_found(path: str, line: str, floor: str):
    found = rules.check_floors([source(path, line)])
    assert found
    assert f"{floor} imports" in found[0]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("graphc/__init__.py", "from graphc.cli import main"),
        ("graphc/ir/graph/text.py", "from graphc.ir.graph.graph import Graph"),
        ("graphc/ir/graph/text.py", "from . import graph"),
        ("graphc/codegen/llvm/emit.py", "from graphc.ir.kernel.statements import Kernel"),
        ("graphc/compiler/compile.py", "from graphc.runtime import loader"),
        ("graphc/nn/module.py", "from graphc.tensors import tensor"),
        ("graphc/nn/functional/affine.py", "from graphc.nn import module"),
        ("graphc/__main__.py", "from graphc.cli.main import main"),
        ("graphc/func.py", "from graphc.autograd.transforms import grad"),
        ("graphc/view.py", "from graphc.pages.model_page import page"),
    ],
)
def test_downward_imports_pass(path: str, line: str):
    assert rules.check_floors([source(path, line)]) == []


def test_a_low_floor_may_not_import_the_front_door():
    assert rules.check_floors([source("graphc/passes/cse.py", "import graphc")])


def test_packages_without_a_floor_are_found():
    assert rules.check_floors([source("graphc/attic/old.py", "x = 1")]) == [
        "graphc/attic/old.py: its package has no floor (tools/floors.py)"
    ]


def test_modules_at_the_top_are_found():
    sources = [source("graphc/calls.py"), source("graphc/errors.py"), source("graphc/nn/a.py")]
    assert rules.check_front_door(sources) == ["graphc/calls.py: belongs into a package"]


def test_import_cycles_are_found():
    one = source("graphc/ir/one.py", "from graphc.ir.two import f")
    two = source("graphc/ir/two.py", "import graphc.ir.one")
    assert rules.check_cycles([one, two]) == ["import cycle: graphc.ir.one graphc.ir.two"]
    typing_only = source(
        "graphc/ir/two.py", "from typing import TYPE_CHECKING", "if TYPE_CHECKING:", "    import graphc.ir.one"
    )
    assert rules.check_cycles([one, typing_only]) == []


def test_a_sibling_taken_from_its_package_is_no_cycle():
    package = source("graphc/ir/__init__.py", "from graphc.ir import one, two")
    one = source("graphc/ir/one.py", "from graphc.ir import two")
    two = source("graphc/ir/two.py", "x = 1")
    assert rules.check_cycles([package, one, two]) == []
    reexport = source("graphc/ir/one.py", "from graphc.ir import something")
    assert rules.check_cycles([package, reexport, two]) == ["import cycle: graphc.ir graphc.ir.one"]


def test_nested_imports_are_found():
    nested = source("graphc/ir/graph/text.py", "def f():", "    if True:", "        import json")
    assert rules.check_nested_imports([nested]) == ["graphc/ir/graph/text.py:3: nested import of json"]
    in_class = source("graphc/ir/graph/text.py", "class A:", "    import json")
    assert rules.check_nested_imports([in_class])
    guarded = source("graphc/ir/graph/text.py", "try:", "    import json", "except ImportError:", "    json = None")
    assert rules.check_nested_imports([guarded]) == []


def test_an_optional_package_may_be_nested_where_it_is_owned():
    line = ("def f():", "    import rich")
    assert rules.check_nested_imports([source("graphc/monitor/terminal.py", *line)]) == []
    assert rules.check_nested_imports([source("graphc/serialize.py", *line)])


def test_foreign_packages_are_found():
    standard = frozenset({"json"})
    assert (
        rules.check_third_party([source("graphc/a.py", "import json, numpy", "import networkx.algorithms")], standard)
        == []
    )
    assert rules.check_third_party([source("graphc/a.py", "from scipy import special")], standard)
    assert rules.check_third_party([source("graphc/a.py", "import rich")], standard)
    assert rules.check_third_party([source("graphc/monitor/terminal.py", "import rich")], standard) == []


@pytest.mark.parametrize("line", ["from dataclasses import dataclass, field", "a = dataclasses.dataclass(frozen=True)"])
def test_data_classes_of_python_are_found(line: str):
    assert rules.check_data_classes([source("graphc/ir/types.py", "import dataclasses", line)]) == [
        "graphc/ir/types.py: takes dataclass of Python, import it from graphc.base.records"
    ]
    assert not rules.check_data_classes([source(rules.DATA_CLASSES_FILE, line), source("tests/test_a.py", line)])
    assert not rules.check_data_classes([source("graphc/a.py", "from graphc.base.records import dataclass")])


def test_broad_excepts_without_a_reason_are_found():
    def caught(*lines: str) -> list[str]:
        return rules.check_broad_excepts([source("graphc/a.py", "try:", "    f()", *lines, "    pass")])

    why = "# NOTE: whatever the user's code raises."
    for bad in ("except Exception:", "except BaseException as e:", "except:", "except (OSError, Exception):"):
        assert caught(bad) == ["graphc/a.py:3: catches everything, and no note says why"]
        assert caught("# of any class", bad)
        assert caught(why, "# It is raised again.", bad) == caught(f"{bad}  {why}") == []
    assert caught("except (OSError, ValueError):") == []


def test_long_files_are_found():
    assert rules.check_file_length([source("graphc/a.py", *["x = 1"] * 600)]) == []
    assert rules.check_file_length([source("graphc/a.py", *["x = 1"] * 601)]) == ["graphc/a.py: 601 lines, at most 600"]
    assert rules.check_file_length([source("examples/a.py", *["x = 1"] * 79)]) == []
    assert rules.check_file_length([source("examples/a.py", *["x = 1"] * 80)])


def test_long_functions_are_found():
    def body(lines: int) -> Source:
        return source("graphc/a.py", "class A:", "    @property", "    def f(self):", *["        x = 1"] * (lines - 1))

    assert rules.check_function_length([body(60)]) == []
    assert rules.check_function_length([body(61)]) == ["graphc/a.py:3: f has 61 lines"]


@pytest.mark.parametrize(
    "line", ['"""Two. Sentences."""', '"""no full stop"""', "x = 1", '"""\nSecond line. First."""']
)
def test_wrong_first_lines_are_found(line: str):
    assert rules.check_first_sentence([source("graphc/a.py", line)])


def test_right_first_lines_pass():
    assert (
        rules.check_first_sentence([source("graphc/a.py", '"""Prints e.g. `a.b` in one line.', "", 'More."""')]) == []
    )
    assert rules.check_first_sentence([Source("tests/ir/__init__.py", "")]) == []
    assert rules.check_first_sentence([Source("graphc/ir/__init__.py", "")])


@pytest.mark.parametrize(
    "path", ["graphc/utils.py", "graphc/helpers/a.py", "tests/text_utils.py", "graphc/pass_manager.py"]
)
def test_empty_names_are_found(path: str):
    assert rules.check_names([source(path, "x = 1")])


def test_words_inside_names_pass():
    assert rules.check_names([source("graphc/passes/common_subexpressions.py", "x = 1")]) == []


@pytest.mark.parametrize(
    ("line", "violations"),
    [
        ("""remedy = "pip install 'graphc[torch]'" """, 1),
        ("""remedy = f"install {name}: pip install -e '.[images]'" """, 1),
        ("""remedy = "pip install 'graphc-compiler[onnx]'" """, 1),
        ("""print("pip install --group bench")""", 1),
        ("""remedy = "pip install nvidia-nccl-cu13" """, 0),
        ("""remedy = f"install onnx: {install_command('onnx')}" """, 0),
    ],
)
def test_pip_commands_for_graphc_are_found(line: str, violations: int):
    assert len(rules.check_install_hints([source("graphc/files/image_file.py", line)])) == violations
    assert rules.check_install_hints([source(rules.INSTALL_OWNER, line)]) == []


@pytest.mark.parametrize(
    "lines",
    [
        ("g.add_edge(a, b)",),
        ("graph.nodes.remove_edges_from([])",),
        ("graph._edges.remove_node(n)",),
        ("import networkx as nx", "g = nx.DiGraph()", "g.remove_node(n)"),
        ("import networkx", "self.flow = networkx.DiGraph()", "self.flow.add_node(n)"),
    ],
)
def test_writers_of_the_networkx_graph_are_found(lines: tuple[str, ...]):
    assert rules.check_graph_writers([GRAPH, source("graphc/passes/a.py", *lines)])


@pytest.mark.parametrize(
    "lines",
    [
        ("graph.remove_node(n)",),
        ("import networkx as nx", "g = nx.DiGraph(edges)", "nx.minimum_cut(g, a, b)"),
    ],
)
def test_methods_of_graph_and_reading_pass(lines: tuple[str, ...]):
    assert rules.check_graph_writers([GRAPH, source("graphc/passes/a.py", *lines)]) == []


def test_the_mirror_is_checked_both_ways():
    folders, extra = frozenset({"end_to_end"}), frozenset({"ops/test_every_op.py"})
    module = source("graphc/ir/graph/graph.py", "x = 1")
    good = [
        source(f"tests/{path}", "x = 1")
        for path in (
            "ir/graph/test_graph.py",
            "ir/graph/test_graph_walk.py",
            "end_to_end/test_a.py",
            "ops/test_every_op.py",
            "ir/programs.py",
        )
    ]
    assert rules.check_mirror([module, *good], folders, extra) == []
    assert rules.check_mirror([module], folders, extra) == [
        "graphc/ir/graph/graph.py has no tests/ir/graph/test_graph.py"
    ]
    stray = source("tests/ir/graph/test_text.py", "x = 1")
    assert rules.check_mirror([module, *good, stray], folders, extra) == [
        "tests/ir/graph/test_text.py mirrors no module of graphc"
    ]
