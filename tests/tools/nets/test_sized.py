"""Programs of many sizes: a seeded sample agrees, and differences at some sizes are noticed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the net builds its programs on PyTorch")

import graphc  # noqa: E402
from tools.nets import run, sized  # noqa: E402
from tools.nets.builder import Named, SizedBuilder, Unfit  # noqa: E402
from tools.nets.families.table import FAMILIES_OF_SIZES  # noqa: E402
from tools.nets.families.table import draw_sized as draw  # noqa: E402
from tools.nets.program import Extent, Input, Program, Range, SizedProgram  # noqa: E402

pytestmark = pytest.mark.torch

SAMPLE = len(FAMILIES_OF_SIZES)
"""Programs of the sample: one of each family."""


def test_a_name_stands_for_the_same_program():
    first, again = draw(3, 4), draw(3, 4)
    assert first.text() == again.text()
    assert all(
        np.array_equal(a, b) for x, y in zip(first.arrays, again.arrays, strict=True) for a, b in zip(x, y, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_no_program_of_a_sample_differs_at_some_size(seed: int):
    outcomes = {name: sized.judge(name) for name in itertools.islice(sized.NET.cases(seed), SAMPLE)}
    bad = {name: o.detail for name, o in outcomes.items() if o.kind in run.BAD or o.kind == run.REFUSED}
    assert not bad, "\n".join(f"{name}: {detail}" for name, detail in bad.items())
    assert sum(o.kind == run.EQUAL for o in outcomes.values()) > SAMPLE * 0.7


def test_numbers_are_written_as_what_they_are_computed_from():
    size = Named(8, "x.shape[0]")
    assert [size, f"{size + 1}", str(2 * size - 1), (size // 2) + 1, -size] == [
        8,
        "(x.shape[0]+1)",
        "((2*x.shape[0])-1)",
        5,
        -8,
    ]


def test_statements_that_fail_at_some_size_are_left_out():
    builder = SizedBuilder("0", "views")
    builder.most, builder.chance = 1, lambda p: p > 0.5  # type: ignore[method-assign]
    x = builder.input((5, 3), "f32", "", "dense")
    assert builder.shape_of(x)[0].text == f"{x}.shape[0]" and len({s["batch"] for s in builder.sizes}) > 2
    with pytest.raises(Unfit):
        builder.let(f"{x}.reshape(15)")
    assert builder.let(f"{x}.reshape({x}.shape[0] * 3)") and len(builder.body) == 1


def planted() -> SizedProgram:
    sizes = ({"batch": 4}, {"batch": 1}, {"batch": 7})
    arrays = tuple((np.arange(3 * s["batch"], dtype=np.float32).reshape(s["batch"], 3) / 7,) for s in sizes)
    body = ("v0 = a0 * 2", "v1 = t.erfc(a0)", "v2 = v0.sum(0)")
    program = Program("sizes", (Input("a0", arrays[0][0], "dense", True),), (), body, ("v2", "v1"))
    return SizedProgram(program, (("batch", Range(1, 9, 4)),), ((Extent(0, "batch", 1), Extent(3)),), sizes, arrays)


def test_a_program_that_is_wrong_at_one_size_is_found_and_reduced(monkeypatch: pytest.MonkeyPatch):
    assert sized.judged(planted(), 1).kind == run.EQUAL
    right = graphc.erfc
    monkeypatch.setattr(graphc, "erfc", lambda x: right(x) + 0.01 * (x.shape[0] == 7 and not graphc.is_tracing()))
    outcome = sized.judged(planted(), 1)
    assert outcome.kind == run.DIFFERENT and "at {'batch': 7}" in outcome.detail
    assert "v1 = t.erfc(a0)" in outcome.detail and "a0 * 2" not in outcome.detail


def test_programs_per_size_are_told_with_the_reason():
    program = planted()
    body = ("v1 = a0 * 2 if a0.shape[0] > 3 else a0",)
    branching = SizedProgram(
        Program("sizes", program.program.inputs, (), body, ("v1",)),
        program.dims,
        program.shapes,
        program.sizes,
        program.arrays,
    )
    outcome = sized.judged(branching, 1)
    assert outcome.kind == sized.SPECIALISED and "batch > 3 (asked" in outcome.detail
