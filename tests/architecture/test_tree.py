"""Applies the architecture rules to the repository as it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture import rules
from tests.architecture.scan import ROOT, Source, read_sources
from tools import map as code_map
from tools.floors import FLOORS

# Test folders that mirror no package of graphc, and test files that span several modules.
FREE_FOLDERS = frozenset(
    {
        "architecture",
        "compatibility",
        "conformance",
        "docs",
        "end_to_end",
        "examples",
        "extension",
        "families",
        "scripts",
        "seeds",
        "benchmarks",
        "tools",
    }
)
FREE_FILES = frozenset(
    {
        "ops/test_every_op.py",
        "ops/test_named_dims.py",
        "passes/test_named_dims.py",
        "passes/test_termination.py",
        "interop/aten/test_judged.py",
    }
)


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return read_sources()


def expect_none(violations: list[str]) -> None:
    assert not violations, "\n".join(["", *violations])


def test_imports_go_down_the_floors(sources: list[Source]):
    expect_none(rules.check_floors(sources))


def test_imports_have_no_cycles(sources: list[Source]):
    expect_none(rules.check_cycles(sources))


def test_imports_are_not_nested(sources: list[Source]):
    expect_none(rules.check_nested_imports(sources))


def test_imports_are_dependencies(sources: list[Source]):
    expect_none(rules.check_third_party(sources, sys.stdlib_module_names))


def test_pip_commands_come_from_one_file(sources: list[Source]):
    expect_none(rules.check_install_hints(sources))


def test_data_classes_generate_their_methods_at_first_use(sources: list[Source]):
    expect_none(rules.check_data_classes(sources))


def test_what_catches_everything_says_why(sources: list[Source]):
    expect_none(rules.check_broad_excepts(sources))


def test_files_are_short(sources: list[Source]):
    expect_none(rules.check_file_length(sources))


def test_functions_are_short(sources: list[Source]):
    expect_none(rules.check_function_length(sources))


def test_modules_say_what_they_are(sources: list[Source]):
    expect_none(rules.check_first_sentence(sources))


def test_names_say_something(sources: list[Source]):
    expect_none(rules.check_names(sources))


def test_one_file_writes_to_the_networkx_graph(sources: list[Source]):
    expect_none(rules.check_graph_writers(sources))


def test_tests_mirror_graphc(sources: list[Source]):
    expect_none(rules.check_mirror(sources, FREE_FOLDERS, FREE_FILES))


def test_the_top_of_the_package_holds_packages_and_known_paths(sources: list[Source]):
    expect_none(rules.check_front_door(sources))


def test_floors_are_packages_and_stand_on_lower_ones():
    seen: list[str] = []
    for floor, below in FLOORS.items():
        assert (ROOT / "graphc" / floor.replace(".", "/") / "__init__.py").exists(), floor
        assert set(below) <= set(seen), f"{floor} imports what stands above it"
        seen.append(floor)


def test_the_map_is_up_to_date():
    stored = (ROOT / code_map.MAP).read_text(encoding="utf-8")
    assert stored == code_map.build_map(), "run: python tools/map.py --write"


def test_import_graphc_is_light():
    """`import graphc` loads numpy and nothing heavier: networkx and llvmlite come with the first trace or compile."""
    program = "import sys, graphc; print(*sorted({'networkx', 'llvmlite', 'torch', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
