"""Files of faults: each in the folder ``cases`` must be right, and what is no such file is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphc.base.dtypes import bfloat16, elements
from graphc.checks.check_case import is_case, load_case, write_case
from graphc.checks.op_derivatives import array_type
from graphc.checks.pass_check import Fault
from graphc.checks.pass_points import GRAPH, Point, evaluated
from graphc.errors import ArgumentError, ArtifactError
from graphc.ir.graph.graph import Graph
from tests.compiler.graphs import arguments, counter, lookup, mlp

CASES = sorted((Path(__file__).parent / "cases").glob("*.gc"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_is_right(path: Path):
    assert load_case(path).fault() == ""


def test_there_are_cases_of_all_kinds():
    assert {load_case(path).point.kind for path in CASES} == {"graph", "program", "native", "gradient"}


def fault(graph=None) -> Fault:
    graph = graph or mlp()
    return Fault("forward", Point(GRAPH, 1, "canonicalize"), "is wrong", "where  %y", graph, tuple(arguments(graph)), 4)


@pytest.mark.parametrize("make", [mlp, counter, lookup])
def test_a_file_holds_graph_arguments_and_results(make, tmp_path: Path):
    given = fault(make())
    path = write_case(given, tmp_path / "new")
    assert is_case(path) and write_case(given, tmp_path / "new") != path
    case = load_case(path)
    assert str(case.graph) == str(given.graph) and (case.point, case.what) == (given.point, "is wrong")
    for result, expected in zip(case.arguments, given.arguments, strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
    assert given.graph is not None
    for result, expected in zip(case.expected, evaluated(given.graph, given.arguments)[0], strict=True):
        np.testing.assert_array_equal(result, expected)
    assert case.fault() == ""


def test_a_graph_that_means_something_else_than_it_did_is_a_fault(tmp_path: Path):
    case = load_case(write_case(fault(), tmp_path))
    other = replace(case, expected=tuple(a + 1 for a in case.expected))
    assert "the graph itself" in other.fault()


@pytest.mark.parametrize(
    "value",
    [
        *(np.array([np.nan, np.inf, -0.0, 1 / 3]), np.array([True, False]), np.arange(100), np.array(3, np.int8)),
        *(np.array([1j]), elements([1.5, -2.0], bfloat16)),
    ],
)
def test_arrays_of_all_types_are_kept(value: np.ndarray, tmp_path: Path):
    graph = Graph("same")
    graph.set_outputs([graph.add_input(array_type(value), "x")])
    case = load_case(write_case(replace(fault(), graph=graph, arguments=(value,)), tmp_path))
    assert case.arguments[0].dtype == value.dtype and case.arguments[0].tobytes() == value.tobytes()
    assert case.expected[0].tobytes() == value.tobytes() and case.fault() == ""


def test_what_is_no_case_is_refused(tmp_path: Path):
    path = tmp_path / "other.gc"
    path.write_text("graph @g() -> () {}")
    assert not is_case(path) and not is_case(tmp_path / "missing.gc")
    with pytest.raises(ArtifactError, match="is not a case"):
        load_case(path)
    with pytest.raises(FileNotFoundError):
        load_case(tmp_path / "missing.gc")
    good = write_case(fault(), tmp_path)
    text = good.read_text()
    assert f"// run: graphc check {good.name}" in text
    for damaged in (text.replace("// case {", "// case {{"), text.replace('"kind"', '"form"'), text.split("\n")[0]):
        good.write_text(damaged)
        with pytest.raises(ArtifactError, match="is damaged"):
            load_case(good)
    good.write_text(text)
    good.with_suffix(".npz").write_bytes(b"PK")
    with pytest.raises(ArtifactError):
        load_case(good)
    good.with_suffix(".npz").unlink()
    with pytest.raises(FileNotFoundError):
        load_case(good)


def test_a_pass_that_is_not_there_is_an_error(tmp_path: Path):
    given = replace(fault(), point=Point(GRAPH, 0, "mine"))
    with pytest.raises(ArgumentError, match="no graph pass 'mine'"):
        load_case(write_case(given, tmp_path)).fault()
