"""The command that judges the front end by PyTorch's tables: its comparisons, failures, counts and page."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("expecttest")

import graphc as gc  # noqa: E402
import graphc.nn.functional as F  # noqa: E402
from graphc.tensors.free_functions import where  # noqa: E402
from tools.conformance import functions, layers, operators, optimizers, singular, singular_known  # noqa: E402
from tools.conformance.page import page, summary  # noqa: E402
from tools.conformance.samples import NotMappedError  # noqa: E402
from tools.conformance.tally import UnequalError, judge  # noqa: E402


@pytest.mark.parametrize("suite", [operators, layers, optimizers, functions, singular])
def test_every_subject_is_mapped_or_left_out_for_a_reason(suite):
    assert [name for name, state in suite.standing().items() if state == "missing"] == []


def test_a_package_of_the_name_of_a_method_is_not_the_operator():
    assert isinstance(importlib.import_module("graphc.view"), ModuleType)
    found = operators.find("view")
    assert found is not None
    assert found(gc.ones(2, 3), (3, 2)).shape == (3, 2)


@pytest.mark.parametrize("column", operators.COLUMNS)
@pytest.mark.parametrize("subject", ["hypot", "pca_lowrank"])
def test_samples_of_an_operator_are_compared(subject: str, column: str):
    tally = judge(operators, subject, column, 1)
    assert tally.failed == []
    assert tally.passed == (1 if operators.rows(subject, column) else 0)


def test_a_wrong_result_gradient_and_error_are_noticed(monkeypatch):
    hypot = operators.find("hypot")
    assert hypot is not None
    monkeypatch.setattr(operators, "find", lambda *name: lambda x, y, **options: hypot(x, y, **options) * 1.001)
    for column in (operators.FORWARD, operators.GRADIENT, operators.COMPILED, operators.COMPILED_GRADIENT):
        assert judge(operators, "hypot", column, 4).failed, column
    monkeypatch.setattr(operators, "find", lambda *name: lambda *arguments, **options: None)
    assert judge(operators, "signal_windows_kaiser", operators.ERRORS).failed


def test_every_known_difference_names_functions_that_are_judged():
    subjects = singular.standing()
    names = {n.rpartition(".")[2] for n in subjects} | {n.partition(".")[2].replace(" ", "_") for n in subjects}
    assert {name for known in singular_known.KNOWN for name in known.names.split()} - {"*", "distributions"} <= names
    assert set(singular_known.EXCLUDED) <= names


@pytest.mark.parametrize("column", [singular.F64, singular.F32])
def test_a_gradient_that_a_guard_cuts_is_a_difference(column: str, monkeypatch):
    assert judge(singular, "nn.functional.relu6", column).failed == []
    monkeypatch.setattr(F, "relu6", lambda x: where(x < 0, 0.0, where(x > 6, 6.0, x.detach())) + 0 * x)
    failed = judge(singular, "nn.functional.relu6", column).failed
    assert any("relu6#0(1.)" in text and "gradient 0 0.0, PyTorch 1.0" in text for text in failed)


@pytest.mark.parametrize("subject", ["distributions.bernoulli.entropy", "nn.functional.huber_loss"])
def test_distributions_and_losses_are_judged_at_singular_points(subject: str):
    tally = judge(singular, subject, singular.F64)
    assert tally.failed == [] and tally.passed >= 24


def test_samples_that_are_no_calls_do_not_count_as_compared():
    def no_call() -> None:
        raise NotMappedError("no such thing")

    def wrong() -> None:
        raise UnequalError("1, PyTorch 2")

    rows = [("a", no_call)] * 5 + [("b", lambda: None)] * 3 + [("c", wrong)] * 3
    suite = SimpleNamespace(rows=lambda subject, column: rows)
    some, whole = judge(suite, "s", "c", 4), judge(suite, "s", "c")
    assert some.passed + len(some.failed) == 4
    assert (whole.passed, len(whole.failed), whole.excluded) == (3, 3, {"no such thing": 5})
    assert judge(suite, "s", "c", 4) == some


def test_a_page_says_what_each_column_stands_for():
    def row(subject: str, passed: int, failed: list[str], excluded: dict[str, int]) -> dict:
        found = {"suite": "operators", "subject": subject, "column": "forward", "most": 2}
        return found | {"passed": passed, "failed": failed, "excluded": excluded}

    rows = [row("add", 2, [], {}), row("mul", 1, ["0 f32: 1, PyTorch 2"], {}), row("sub", 0, [], {"no such thing": 3})]
    standing = {"operators": {"add": "mapped", "mul": "mapped", "sub": "mapped", "div": "missing", "pow": "a reason"}}
    found = {"standing": standing, "rows": rows, "seed": 0, "commits": ["abc"]}
    text = page(found)
    assert "Commit abc; samples of seed 0" in text
    assert "Commit abc (fixes since: def);" in page(found | {"commits": ["abc", "def"]})
    assert "| operators | results, f32 | 2 | 2 | 3 | 4 | 75.00% | 3 |" in text
    assert "| 5 | 3 | 1 | 1 |" in text and "Missing: `div`." in text
    assert "| operators | `mul` | forward | 1 | 0 f32: 1, PyTorch 2 |" in text
    assert summary(found)[0] == "operators forward, 2 subjects: 3 of 4 samples (75.00%), 3 left out"
