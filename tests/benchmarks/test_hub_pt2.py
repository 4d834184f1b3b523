"""Public models as ``.pt2`` files: a row compares the results of another process, and names missing files."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import hub_pt2
from benchmarks.harness.results import Result

torch = pytest.importorskip("torch")
if torch:
    from benchmarks.models import hub
    from benchmarks.models.hub import Model


def measured(monkeypatch: pytest.MonkeyPatch, forward: Any) -> Result:
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 3)

        def forward(self, x: Any, flag: bool = False) -> Any:
            return forward(self.inner(x), flag)

    inputs = {"x": lambda: torch.ones(2, 4), "flag": lambda: True}
    monkeypatch.setitem(hub.MODELS, "timm/small", Model("small", "timm", lambda library: Net(), inputs))
    monkeypatch.setattr(hub, "load_collection", lambda name: None)
    return Result(**hub_pt2.measure_model("timm/small", [], 0, 0.0, "live"))


def test_a_file_gives_in_another_process_what_the_model_gives(monkeypatch: pytest.MonkeyPatch):
    result = measured(monkeypatch, lambda y, flag: {"a": y.relu(), "b": y + flag})
    assert hub_pt2.agrees(result) and result.facts["mb"] > 0 and result.facts["compile_s"] > 0
    assert 0 <= result.errors["compiled"] < 1e-5


def test_another_result_is_found(monkeypatch: pytest.MonkeyPatch):
    write = hub_pt2.write

    def spoiled(folder: Any, module: Any, args: Any, kwargs: Any) -> None:
        write(folder, module, args, kwargs)
        with torch.no_grad():
            module.inner.bias += 0.01
        torch.export.save(torch.export.export(module, args, kwargs), folder / hub_pt2.FILE)

    monkeypatch.setattr(hub_pt2, "write", spoiled)
    result = measured(monkeypatch, lambda y, flag: y)
    assert min(result.errors.values()) > 1e-3 and not hub_pt2.agrees(result)


def test_what_graphc_does_not_read_is_a_problem_of_its_own(monkeypatch: pytest.MonkeyPatch):
    result = measured(monkeypatch, lambda y, flag: torch.special.bessel_y0(y))
    assert "UnsupportedError" in result.problems["graphc"] and hub_pt2.is_exportable(result)
    assert not hub_pt2.agrees(result)


def test_what_pytorch_does_not_export_is_none_of_graphc(monkeypatch: pytest.MonkeyPatch):
    result = measured(monkeypatch, lambda y, flag: y if y.sum() > 0 else -y)
    assert list(result.problems) == [hub_pt2.EXPORT] and not hub_pt2.is_exportable(result)


def test_the_table_counts_what_can_be_exported():
    fine = Result("x", {"mb": 3.2, "read_s": 0.5, "compile_s": 1.5}, errors={"eager": 1e-7, "compiled": 1e-6})
    far = Result("y", {}, errors={"eager": 1e-7, "compiled": 1e-4})
    text = hub_pt2.format_rows([fine, far, Result("z", {}, problems={hub_pt2.EXPORT: "no"})])
    assert "| x | 3 | 1.0e-07 | 1.0e-06 | 0.50 | 1.50 |" in text
    assert "2 of 3 can be exported, 1 of them agree" in text and "torch.export: no: z" in text
