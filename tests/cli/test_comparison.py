"""One difference: all commands and functions report the same figures for each pair of arrays, as the page does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.difference import difference
from graphc.base.dtypes import bfloat16, elements, layout_of, numbers
from graphc.checks import check, pass_check, self_test
from graphc.cli import comparison, peers
from graphc.cli.commands import diff, run
from graphc.files.manifest import TensorSpec
from graphc.files.model_content import Sample
from graphc.interop.aten import sample
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.tensors.tensor import Tensor
from tests.cli.conftest import Graphc
from tests.cli.field_check import mismatches

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
F32 = np.array([0.5, 2.0, -4.0], np.float32)
BIG = np.array([2**53, 7])

PAIRS: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "f32, one element off by 1e-4": (F32 * np.array([1, 1.0001, 1], np.float32), F32),
    "f32, reference 0": (np.array([1e-3, 1.0], np.float32), np.array([0.0, 1.0], np.float32)),
    "NaN on both sides": (np.array([nan, 1.0], np.float32), np.array([nan, 1.0], np.float32)),
    "NaN on one side": (np.array([nan, 1.0], np.float32), np.array([2.0, 1.0], np.float32)),
    "infinities of one sign": (np.array([inf, -inf], np.float32), np.array([inf, -inf], np.float32)),
    "opposite infinities": (np.array([1.0, inf], np.float32), np.array([1.0, -inf], np.float32)),
    "i64 beyond 2**53": (BIG + np.array([1, 0]), BIG),
    "bool": (np.array([True, False, True]), np.array([True, True, True])),
    "f16": (F32.astype(np.float16) + np.array([0, 0.25, 0], np.float16), F32.astype(np.float16)),
    "bf16": (elements([1.0, 3.0], bfloat16), elements([1.0, 2.0], bfloat16)),
    "c64": (np.array([3 + 4j, 1], np.complex64), np.array([4j, 1], np.complex64)),
    "other shape": (F32, F32[:2]),
    "other element type": (F32.astype(np.float64) + np.array([0, 0.5, 0]), F32),
    "empty": (F32[:0], F32[:0]),
}
Figures = tuple[float, float, int, Any]
"""Largest absolute and relative difference, number of unequal elements, position of the worst."""


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    return PAIRS[request.param]


def expected_of(pair: tuple[np.ndarray, np.ndarray]) -> Figures:
    return figures(difference("y", *pair))


def figures(result: Any) -> Figures:
    fields = result if isinstance(result, dict) else result.as_json()
    return fields["absolute"], fields["relative"], fields["count"], fields["position"]


def graph_of(array: np.ndarray) -> Graph:
    graph = Graph("identity")
    graph.add_input(TensorType(layout_of(array.dtype), array.shape), "x", "input", "")
    graph.set_outputs(graph.inputs)
    return graph


def is_text_of(text: str, figures: Figures) -> bool:
    """Return whether a message has these figures."""
    shown = re.search(r"(\d+) of \d+ elements .* by at most (\S+) \(relative (\S+), .* worst is (\S+) = ", text)
    if shown is None:
        return False
    position = [int(i) for i in re.findall(r"\d+", shown[4].partition("[")[2])]
    return (shown[2], shown[3], int(shown[1]), position) == (f"{figures[0]:.3g}", f"{figures[1]:.3g}", *figures[2:])


def test_check(pair: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check._Checker, "run_stage", lambda *args: ([pair[0]], {}))
    report = check.check_native(graph_of(pair[1]), [pair[1]])
    assert figures(report.difference) == expected_of(pair)
    assert (report.max_absolute, report.max_relative) == expected_of(pair)[:2]


def test_check_of_passes(pair: tuple[np.ndarray, np.ndarray]):
    reference = pass_check.Reference(graph_of(pair[1]), [pair[1]])
    assert figures(reference.difference(([pair[0]], {}))) == expected_of(pair)


def test_selftest(pair: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch, graphc: Graphc):
    spec = SimpleNamespace(name="forward")
    entry = SimpleNamespace(spec=spec, golden=(Sample((), (pair[1],)),), natives=())
    stub = SimpleNamespace(outputs=(SimpleNamespace(name="y"),), run=lambda inputs: [pair[0]])
    model = SimpleNamespace(reset_state=lambda: None, entry=lambda name: stub)
    monkeypatch.setattr(self_test.model_content, "load", lambda path: SimpleNamespace(entries=(entry,)))
    monkeypatch.setattr(self_test, "make_model", lambda *args: model)
    (case,) = json.loads(graphc("selftest", "net.gcm", "--json").out)["cases"]
    assert figures(case) == expected_of(pair)


def test_compare_and_replay(pair: tuple[np.ndarray, np.ndarray], tmp_path: Path):
    def giving(array: np.ndarray) -> Callable:
        return lambda x: Tensor._wrap(array.copy())

    x, path = gc.ones(2), tmp_path / "step.gcr"
    (value,) = gc.compare(giving(pair[1]), giving(pair[0]), x).to_dict()["values"]
    assert figures(value) == expected_of(pair)
    gc.debug(record=path)(giving(pair[1]))(x)
    (value,) = gc.replay(path, giving(pair[0])).to_dict()["values"]
    assert figures(value) == expected_of(pair)


def test_diff(pair: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch, graphc: Graphc):
    files = {name: SimpleNamespace(weights={"y": a}, entries=()) for name, a in zip("ab", pair, strict=True)}
    monkeypatch.setattr(diff, "_stored", files.get)
    result = json.loads(graphc("diff", "a", "b", "--weights", "--json").out)
    assert mismatches(result, diff.JSON) == []
    assert all(figures(weight) == expected_of(pair) for weight in result["weights"])
    assert bool(result["weights"]) == (expected_of(pair)[2] > 0 or pair[0].dtype != pair[1].dtype)


def test_run_expect(
    pair: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, graphc: Graphc
):
    spec = TensorSpec("y", layout_of(pair[0].dtype).name, pair[0].shape)
    model = SimpleNamespace(
        name="net",
        texts=None,
        inputs=(),
        outputs=(spec,),
        spec=SimpleNamespace(dims=()),
        run=lambda values: [pair[0]],
    )
    monkeypatch.setattr(run, "load_model", lambda *args: model)
    np.save(tmp_path / "y.npy", numbers(pair[1]))
    path = tmp_path / "out.npy"
    output = graphc("run", "net.gcm", "--expect", tmp_path / "y.npy", "--json", "--output", path)
    (result,) = json.loads(output.out)["expected"]
    assert figures(result) == expected_of(pair)


def test_peers_of_bench(pair: tuple[np.ndarray, np.ndarray]):
    assert figures(peers.output_difference([pair[0]], [pair[1]])) == expected_of(pair)


def test_assert_close(pair: tuple[np.ndarray, np.ndarray]):
    if pair[0].shape != pair[1].shape:
        return
    options: dict[str, Any] = {"rtol": 0.0, "atol": 0.0, "equal_nan": True, "check_dtype": False}
    tensors = [Tensor._wrap(a.copy()) for a in pair]
    if expected_of(pair)[2]:
        with pytest.raises(AssertionError) as error:
            gc.testing.assert_close(*tensors, **options)
        assert is_text_of(str(error.value), expected_of(pair))
    else:
        gc.testing.assert_close(*tensors, **options)


def test_operators_of_pytorch(pair: tuple[np.ndarray, np.ndarray]):
    text = sample.differing(*pair)
    if (pair[0].shape, pair[0].dtype) != (pair[1].shape, pair[1].dtype):
        assert " instead of " in text
    else:
        assert text == "" if difference("y", *pair).is_within else is_text_of(text, expected_of(pair))


def test_the_page_shows_the_figures():
    page = PAGE.read_text(encoding="utf-8")
    for name, pair in PAIRS.items():
        result = difference("y", *pair, same_dtype=True)
        position = "-" if result.position is None else str(list(result.position))
        cells = [name, f"{result.absolute:.3g}", f"{result.relative:.3g}", str(result.count), position]
        row = f"| {' | '.join([*cells, 'yes' if result.is_within else 'no'])} |"
        assert row in page, row


def test_the_fields_are_those_of_a_difference():
    fields = {field.path for field in comparison.JSON} - {"position[]"}
    assert fields == set(difference("y", F32, F32).as_json())
