"""Every line of the table is judged: by PyTorch's own samples, or by one of the samples beside this file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from graphc.interop.aten.registry import FAMILY
from graphc.interop.aten.table import TABLE

torch = pytest.importorskip("torch")
HERE = Path(__file__).parent
LISTS = (
    *("SAMPLES", "MORE", "EAGER", "FIRST", "KINDS", "RANDOM", "BY_GRADIENTS", "NUMBERS", "CONJUGATES"),
    "CODES_SAMPLES",
)
"""What the tests of a family call their samples."""


def recorded() -> set[str]:
    """Return the calls that ``tools.nets.aten`` judges, as recorded by ``tools.interop.aten_calls``."""
    lines = (HERE / "judged.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if not line.startswith("#")}


def samples(lists: Sequence[str]) -> Iterator[Any]:
    """Yield the entries of these lists of all families."""
    for path in sorted(HERE.glob("test_*.py")):
        module = import_module(f"tests.interop.aten.{path.stem}")
        for name in lists:
            yield from getattr(module, name, ())


def sampled() -> Iterator[str]:
    """Yield the operators that have a sample."""
    for first, *_ in samples(LISTS):
        yield first if first in TABLE else compare().target_of(first)


def compare() -> Any:
    """The module that needs torch."""
    return import_module("tests.interop.aten.compare")


def second_names() -> set[str]:
    """Composite operators that a function of graphc of that name computes, which tests/conformance compares."""
    family = "graphc.interop.aten.composites"
    return {t for t, f in TABLE.items() if FAMILY.get(t) == family and not f.__module__.startswith("graphc.interop")}


def test_every_line_of_the_table_is_judged():
    graphs = {t for t in TABLE if t.startswith("higher_order.")}
    text = (HERE / "test_control.py").read_text(encoding="utf-8")
    assert sorted(g for g in graphs if g not in text) == []
    assert sorted(set(TABLE) - graphs - recorded() - set(sampled()) - second_names()) == []


def test_results_are_views_of_arguments_where_those_of_pytorch_are():
    wrong = []
    for sample in samples(("SAMPLES", "MORE", "EAGER")):
        try:
            compare().check_memory(sample)
        except AssertionError:
            wrong.append(sample[0])
    assert wrong == []


def test_what_is_recorded_is_the_list_of_the_tool():
    assert len(recorded()) > 500 and "aten.mm.default" in recorded()


def test_every_line_is_an_operator_of_pytorch():
    names = [t.split(".")[1:] for t in TABLE if t.startswith("aten.")]
    wrong = [f"{n}.{o}" for n, o in names if o not in getattr(getattr(torch.ops.aten, n, None), "overloads", list)()]
    assert wrong == []
