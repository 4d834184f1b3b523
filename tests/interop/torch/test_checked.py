"""The first call of each program is compared with PyTorch's own where that is asked for."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from graphc.base.pass_runner import PassRun
from graphc.checks.check_case import load_case
from graphc.compiler import stages
from graphc.errors import FallbackWarning
from graphc.interop.aten import registry
from graphc.ir.op import REGISTRY

torch = pytest.importorskip("torch")
nn: Any = torch.nn if torch else None


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    torch._dynamo.reset()
    torch.manual_seed(0)


def model(x: Any) -> Any:
    return torch.maximum(x.sin() @ x.T, x).exp() + 1


def calls(count: int = 2, call: Any = model, **options: Any) -> list[str]:
    """Compares some calls; the texts of the warnings."""
    compiled = torch.compile(call, backend="graphc", options={"check": True, **options})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(count):
            x = torch.randn(4, 4)
            torch.testing.assert_close(compiled(x), call(x))
    return [str(w.message) for w in caught if issubclass(w.category, FallbackWarning)]


def shown(text: str) -> bool:
    """Return whether the case that a warning names shows a fault."""
    path = re.search(r"graphc check (\S+\.gc) reproduces it", text)
    assert path is not None, text
    return bool(load_case(path[1]).fault())


def test_what_is_right_is_compared_once_without_a_word():
    assert calls() == []
    assert calls(call=lambda x: torch.nn.functional.dropout(x, 0.0) + 1) == []


def test_a_fault_of_a_pass_is_shown_and_pytorch_takes_over(monkeypatch: pytest.MonkeyPatch):
    def wrong(graph: Any, *rest: Any) -> tuple[Any, list[PassRun]]:
        graph, runs = run_passes(graph, *rest)
        for node in graph.nodes():
            if node.op.name == "maximum":
                node.op = REGISTRY["minimum"]
        return graph, runs

    run_passes = stages.run_passes
    monkeypatch.setattr(stages, "run_passes", wrong)
    (text,) = calls()
    assert "graphc's results differ from PyTorch's: " in text and "PyTorch computes this graph from now on" in text
    path = Path(text.partition("graphc check ")[2].split(" reproduces it")[0])
    assert "maximum" in path.read_text() and "exp(" not in path.read_text()
    assert shown(text)
    monkeypatch.undo()
    assert not shown(text)


def test_a_fault_of_a_rule_is_shown_with_the_line(monkeypatch: pytest.MonkeyPatch):
    right = registry.TABLE["aten.sin.default"]
    monkeypatch.setitem(registry.TABLE, "aten.sin.default", lambda x: right(x) * 2)
    (text,) = calls()
    assert "operator_aten_sin_default.gc reproduces it" in text and "return torch.maximum(x.sin()" in text
    assert shown(text)


def narrow(x: Any) -> Any:
    return (x * 3).to(torch.bfloat16)


def test_bf16_is_compared_too(monkeypatch: pytest.MonkeyPatch):
    assert calls(call=narrow) == []
    torch._dynamo.reset()
    right = registry.TABLE["aten._to_copy.default"]
    monkeypatch.setitem(registry.TABLE, "aten._to_copy.default", lambda x, **options: right(x * 2, **options))
    (text,) = calls(call=narrow)
    assert "results differ from PyTorch's" in text and "return (x * 3).to(torch.bfloat16)" in text
    assert shown(text)


def test_with_fallback_error_a_difference_is_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(registry.TABLE, "aten.sin.default", lambda x: x)
    with pytest.raises(Exception, match="results differ from PyTorch's"):
        calls(fallback="error")


def test_a_compile_that_fails_goes_to_pytorch_and_says_where_the_program_is(monkeypatch: pytest.MonkeyPatch):
    def lower(graph: Any, *args: Any, **named: Any) -> Any:
        raise RuntimeError("no registers")

    monkeypatch.setattr(stages, "lower_graph", lower)
    (text,) = calls(check=False)
    assert "RuntimeError: no registers" in text and "graphc none" in text
    assert shown(text)


def test_training_is_compared_too():
    x = torch.randn(2, 2, 6, 6, requires_grad=True)
    found = torch.compile(lambda x: torch.max_pool2d(x, 2).sum(), backend="graphc", options={"check": True})
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        found(x).backward()
    assert int(x.grad.sum()) == 36
