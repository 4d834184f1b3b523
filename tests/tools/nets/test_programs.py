"""Random programs: a seeded sample agrees, and differences are noticed, reduced and written down."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the net compares with PyTorch")

import graphc  # noqa: E402
from tools.nets import compare, programs, run  # noqa: E402
from tools.nets.families.table import FAMILIES, draw  # noqa: E402
from tools.nets.program import Input, Program, script  # noqa: E402
from tools.nets.reduce import reduced  # noqa: E402

pytestmark = pytest.mark.torch

SAMPLE = len(FAMILIES)
"""Programs of the sample: one of each family."""


def test_there_are_at_least_twenty_families():
    assert len(FAMILIES) >= 20


def test_a_name_stands_for_the_same_program():
    first, again = draw(3, 5), draw(3, 5)
    assert first.text() == again.text()
    assert all(
        np.array_equal(a.array, b.array, equal_nan=True) for a, b in zip(first.inputs, again.inputs, strict=True)
    )


@pytest.mark.parametrize("seed", [1])
def test_no_program_of_a_sample_differs(seed: int):
    outcomes = {name: programs.judge(name) for name in itertools.islice(programs.NET.cases(seed), SAMPLE)}
    bad = {name: outcome.detail for name, outcome in outcomes.items() if outcome.kind in run.BAD}
    assert not bad, "\n".join(f"{name}: {detail}" for name, detail in bad.items())
    assert sum(outcome.kind == run.EQUAL for outcome in outcomes.values()) > SAMPLE * 0.8


PLANTED = Program(
    "math",
    (
        Input("a0", np.arange(12, dtype=np.float32).reshape(3, 4) / 7, "dense", True),
        Input("a1", np.ones(4, np.float32), "transposed", True),
    ),
    (("m0", "nn.Linear(4, 4)"),),
    ("v0 = self.m0(a0)", "v1 = t.erfc(a0)", "v2 = v0 + v1", "v3 = t.relu(v2) * a1", "v4 = v3.sum(0)"),
    ("v4", "v2"),
)


def test_a_wrong_function_is_found_and_its_program_reduced(monkeypatch: pytest.MonkeyPatch):
    assert compare.check(PLANTED).outcome == "equal"
    monkeypatch.setattr(graphc, "erfc", lambda x: 1.001 - graphc.erf(x))
    verdict = compare.check(PLANTED)
    assert verdict[:3] == ("different", "eager", "eager value value")
    small = reduced(PLANTED, lambda p: compare.compare(p, verdict.stage)[:3] == verdict[:3])
    assert len(small.body) == 1 and "erfc" in small.body[0]
    assert [i.array.size for i in small.inputs] == [1] and not small.layers


def test_an_error_that_is_not_typed_is_found(monkeypatch: pytest.MonkeyPatch):
    def broken(x: object) -> object:
        raise KeyError(x)

    monkeypatch.setattr(graphc, "erfc", broken)
    assert compare.check(PLANTED)[:3] == ("failed", "eager", "eager KeyError")


def test_a_written_script_runs(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(script(PLANTED, "planted"))
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, env={"PYTHONPATH": "."}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "v1 = t.erfc(a0)" in done.stdout and "outcome='equal'" in done.stdout


def test_differences_that_rounding_explains_are_no_findings():
    near = np.array([1.0, 1.0 + 1e-7], np.float32) / 3
    program = Program(
        "math", (Input("a0", near, "dense", False),), (), ("v0 = (a0[0] * a0[0] - a0[1] * a0[1]) / 1e-9",), ("v0",)
    )
    assert compare.check(program).outcome in ("equal", "ill-conditioned")


def test_nan_of_products_with_zeros_are_no_finding_where_eager_mode_makes_them_too():
    image = np.ones((1, 1, 7, 7), np.float32)
    program = Program(
        "layers",
        (Input("a0", image, "dense", True), Input("a1", np.ones((1, 1, 3, 3), np.float32), "dense", True)),
        (),
        ("v0 = F.conv2d(a0, a1, None, 2)", "v1 = v0 / t.arange(3.0)"),
        ("v1",),
    )
    record = compare.recorded(program, graphc, "compiled")
    with pytest.raises(compare.Mismatch):
        compare.differ(record, compare.recorded(program, torch, "compiled"), "float32")
    assert compare.compare(program, "compiled").outcome == "equal"
    assert compare.compare(program, "eager").outcome == "equal"
    lost = {label: None if a is None else np.nan_to_num(a) for label, a in record.items()}
    assert not compare.is_spread(program, "compiled", lost, compare.recorded(program, torch, "compiled"))


FAR = np.array([np.inf, -2.5, -0.0, np.nan, 1.0, 2.0, 7.0, 0.5], np.float32)
KNOWN = [
    ("gelu(inf)", FAR, "F.gelu(a0)"),
    ("relu6 at NaN", np.full(11, np.nan, np.float32), "F.relu6(a0) + F.hardtanh(a0)"),
    ("a product with infinity", FAR[[0, 1]], "t.prod(a0, -1) + a0.prod()"),
    ("the largest is NaN", FAR, "t.max(a0) + a0.min()"),
    (
        "hidden infinities",
        np.ones((2, 3), np.float32),
        "F.scaled_dot_product_attention(a0, a0, a0.detach(), t.tensor([[True, False], [False, False]])) / t.zeros(1)",
    ),
]


@pytest.mark.parametrize(("name", "array", "expression"), KNOWN, ids=[k[0] for k in KNOWN])
def test_known_conventions_are_no_findings(name: str, array: np.ndarray, expression: str):
    program = Program("specials", (Input("a0", array, "dense", True),), (), (f"v0 = {expression}",), ("v0",))
    record, expected = (compare.recorded(program, library, "eager") for library in (graphc, torch))
    with pytest.raises(compare.Mismatch):
        compare.differ(record, expected, "float32", True)
    assert compare.compare(program, "eager").outcome == compare.compare(program, "compiled").outcome == "equal"
    wrong = {label: a if label.startswith("flag") or a is None else np.full_like(a, 123) for label, a in record.items()}
    assert not compare.is_convention(program, "eager", wrong)
