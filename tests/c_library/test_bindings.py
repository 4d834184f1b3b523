"""Entries as bindings see them: names, equations of named dimensions, and limits of sizes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import graphc
from graphc.c_library import bindings
from graphc.c_library.bindings import (
    BindingEntry,
    SizeDialect,
    binding_entry,
    camel_case,
    helper_functions,
    magnitude,
    method_names,
    size_lines,
)
from graphc.c_library.entries import Choices, build
from graphc.c_library.plan import INSIDE, LibraryPlan
from graphc.c_library.sources import changing, sources_of
from graphc.codegen.machine.target import target_named
from graphc.files.model_content import load as load_content
from tests.c_library.binding_cases import CASES

DIALECT = SizeDialect(
    axis="{}[{}]".format,
    define="{} := {}".format,
    fails=lambda condition, error: [f"{condition} -> {error}"],
    real="real({})".format,
)


def plan_of(name: str, folder: Path) -> LibraryPlan:
    case = CASES[name]
    return plan_for(case.model(), *case.examples, folder=folder, dims=case.dims)


def plan_for(model: Any, *examples: Any, folder: Path, dims: Any = None) -> LibraryPlan:
    graphc.export(model, *examples, path=folder / "net.gcm", dims=dims)
    stored = load_content(folder / "net.gcm")
    sources = sources_of(stored)
    return build(
        sources, changing(stored, sources), Choices("net", (target_named("host"),), "host", INSIDE, False)
    ).plan


def entry_of(name: str, folder: Path, reserved: tuple[str, ...] = ()) -> BindingEntry:
    return binding_entry(plan_of(name, folder).entries[0], reserved)


def test_dimensions_are_solved_from_shapes_and_checked(tmp_path: Path):
    assert size_lines(entry_of("sizes", tmp_path), DIALECT) == [
        "batch := x[0]",
        "batch < 1 || batch > 64 -> size",
        "time := x[1]",
        "time < 1 || time > 500 -> size",
        "x[2] != 8 -> x",
    ]


def test_dimensions_that_no_shape_determines_are_parameters(tmp_path: Path):
    entry = entry_of("repeats", tmp_path)
    assert [d.name for d in entry.parameters] == ["count"] and entry.sized_inputs == ()
    assert size_lines(entry, DIALECT) == ["count < 1 || count > 100 -> size"]
    assert "- size count: 1 to 100, passed by the caller" in entry.documentation()


def test_sizes_are_multiples_and_sums_of_dimensions(tmp_path: Path):
    def halves(x: Any, y: Any) -> Any:
        return x[:, 1:] + y

    n: Any = graphc.Dim("n", min=2, max=50)
    plan = plan_for(
        halves, graphc.rand(2, 9), graphc.rand(2, 8), folder=tmp_path, dims=[(None, 2 * n + 1), (None, 2 * n)]
    )
    lines = size_lines(binding_entry(plan.entries[0], ()), DIALECT)
    assert "y[1] != 2 * n -> y" in lines or "x[1] != 2 * n + 1 -> x" in lines
    assert any(line.startswith("n := ") and line.endswith(" / 2") for line in lines)


def test_products_that_may_exceed_64_bits_are_bounded_first(tmp_path: Path):
    def doubled(x: Any) -> Any:
        return x * 2

    dims = [tuple(graphc.Dim(name) for name in "abc")]
    entry = binding_entry(plan_for(doubled, graphc.rand(2, 3, 4), folder=tmp_path, dims=dims).entries[0], ())
    bound = "1.0 * real(a) * real(b) * real(c) > 4.611686018427388e+18 -> size"
    assert bound in size_lines(entry, DIALECT)
    assert "> 4.6" not in "".join(size_lines(entry_of("sizes", tmp_path), DIALECT))


def test_names_differ_from_reserved_ones_and_are_documented(tmp_path: Path):
    entry = entry_of("sizes", tmp_path, ("x", "batch"))
    assert [a.name for a in entry.arguments] == ["x_2", "output_0", "output_1"]
    assert [*entry.dims.values()] == ["batch_2", "time"]
    assert entry.documentation()[0] == "- input x_2: f32[batch,time,8] (x)"
    assert entry.documentation()[-1] == "- writes no states"
    assert entry_of("decoder", tmp_path).documentation()[-1] == "- writes states of the model"


def test_names_of_entries_do_not_meet_names_of_their_sizes():
    plan: Any = SimpleNamespace(entries=[SimpleNamespace(name=n) for n in ("run", "run_sizes", "close")])
    names = method_names(plan, ("close",))
    assert [n.run for n in names] == ["run", "run_sizes_2", "close_2"]
    assert [n.sizes for n in names] == ["run_sizes", "run_sizes_2_sizes", "close_2_sizes"]
    assert [n.record for n in names] == ["RunSizes", "RunSizes2Sizes", "Close2Sizes"]


def test_names_of_a_model_stay_inside_of_comments(tmp_path: Path):
    def odd(x: Any) -> Any:
        return {"a\n*/ b\u2028c": x + 1}

    plan = plan_for(odd, graphc.rand(3), folder=tmp_path)
    assert bindings.signatures(plan) == ["run(x: f32[3]) -> (a * / b c: f32[3])"]
    assert binding_entry(plan.entries[0], ()).documentation()[1] == "- output a____b_c: f32[3] (a * / b c)"


@pytest.mark.parametrize(("name", "camel"), [("run", "Run"), ("train_step", "TrainStep"), ("output_0", "Output0")])
def test_camel_case(name: str, camel: str):
    assert camel_case(name) == camel


def test_magnitudes_bound_negative_and_divided_sizes():
    a: Any = graphc.Dim("a", max=9)
    names = {d: "a" for monomial, _ in a.terms for d, _ in monomial}
    assert magnitude(-3, names, "f({})".format) == "3.0"
    assert magnitude(5 - 2 * a, names, "f({})".format) == "2.0 * f(a) + 5.0"
    assert magnitude(a // 4, names, "f({})".format) == "1.0 * (1.0 * f(a))"


def test_only_called_helpers_are_defined():
    assert helper_functions("x = floor_of(a, b)", {"floor_of": "F", "positive_part": "P"}) == "F"
    assert helper_functions("x = net_floor_of(a)", {"floor_of": "F"}) == ""


def test_arenas_of_a_fixed_size_are_allocated_once(tmp_path: Path):
    assert bindings.largest_fixed_arena(plan_of("sizes", tmp_path)) == 0
    assert bindings.largest_fixed_arena(plan_of("policy", tmp_path)) > 0
