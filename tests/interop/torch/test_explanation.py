"""explain says who computes what, why, and for how long."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import Any

import pytest

import graphc.interop.torch
from graphc.errors import UnsupportedError

torch = pytest.importorskip("torch")
nn: Any = torch.nn if torch else None


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 3)
        self.calls = 0

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        y = torch.special.bessel_j0(torch.relu(self.first(x)) * scale + 9 * torch.eye(8))
        torch._dynamo.graph_break()
        return torch.tanh(self.last(y))


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def explain(*args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # explain itself tells what the warnings would
        return graphc.interop.torch.explain(*args, **kwargs)


def test_operators_graphs_breaks_and_times():
    with torch.no_grad():
        found = explain(Model(), torch.randn(8, 8), scale=0.5)
    first, second = found.graphs
    assert (first.kind, first.programs, first.calls) == ("inference", 1, 1)
    assert next(o.name for o in first.refused) == "aten.special_bessel_j0.default"
    assert not second.refused and "aten.tanh.default" in [o.name for o in second.native]
    assert second.torch_seconds == 0 < second.native_seconds
    assert first.torch_seconds > 0 and first.native_seconds + first.torch_seconds < found.seconds
    assert found.share == 1 - len(first.refused) / sum(len(g.operators) for g in found.graphs)
    (only,) = found.breaks
    lines, start = inspect.getsourcelines(Model)
    assert only.place.line == start + next(i for i, line in enumerate(lines) if "graph_break" in line)
    assert found.as_json()["graphs"][0]["operators"][0]["name"].startswith("aten.")


def test_the_table():
    with torch.no_grad():
        text = str(explain(Model(), torch.randn(8, 8)))
    lines = text.splitlines()
    assert lines[0].startswith("graph 1, inference: graphc ") and " operators in 1 program, " in lines[0]
    assert any("aten.special_bessel_j0.default  " in s and "not among" in s and "y = torch.special" in s for s in lines)
    assert "graph break: " in text and "torch._dynamo.graph_break()" in text
    assert lines[-1].startswith("a call: ") and "PyTorch" in lines[-1] and "between graphs" in lines[-1]


def test_a_model_in_training_has_graphs_of_both_passes():
    layer = nn.Sequential(nn.Linear(4, 4), nn.Softplus())
    found = explain(torch.compile(layer), torch.randn(2, 4))
    assert [g.kind for g in found.graphs] == ["forward", "backward"]
    assert [g.calls for g in found.graphs] == [1, 0]
    assert [g.refused for g in found.graphs] == [(), ()]
    assert "graph 2, backward: graphc 7 of 7 operators in 1 program, not run" in str(found).splitlines()


def test_what_dynamo_does_not_capture():
    found = explain(lambda x: x, torch.ones(2))
    assert not found.graphs and found.share == 0 and "captured no graph" in str(found)


def test_without_pytorch_the_package_says_what_it_needs(monkeypatch: pytest.MonkeyPatch):
    package: Any = graphc.interop.torch
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [n for n in sys.modules if n.startswith("graphc.interop.torch.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(vars(package), "explain", raising=False)
    with pytest.raises(UnsupportedError, match=r"explain needs PyTorch.*\n.*pip install .*torch\]"):
        _ = package.explain
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing
    assert "explain" in dir(package)
