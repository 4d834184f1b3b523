"""Programs through torch.compile: wrong results and errors are noticed, and a sample has none."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.errors import UnsupportedError

torch = pytest.importorskip("torch")
backend: Any = pytest.importorskip("tools.nets.backend")
run: Any = pytest.importorskip("tools.nets.run")


@pytest.mark.parametrize("case", [f"0/{number}/sample" for number in range(4)])
def test_programs_give_what_pytorch_gives(case: str):
    outcome = backend.judge(case)
    assert outcome.kind in (run.EQUAL, run.REFUSED, "dropped"), outcome.detail


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch):
    compiled = backend._compiled

    def wrong(*arguments: Any) -> Any:
        return {name: array + 1 if name == "value 0" else array for name, array in compiled(*arguments).items()}

    monkeypatch.setattr(backend, "_compiled", wrong)
    assert backend.judge("0/11/sample").kind == run.DIFFERENT


def test_what_raises_is_found(monkeypatch: pytest.MonkeyPatch):
    def raising(*_: Any) -> Any:
        raise UnsupportedError("nothing")

    monkeypatch.setattr(backend, "_compiled", raising)
    outcome = backend.judge("0/11/sample")
    assert outcome.kind == run.FAILED and "nothing" in outcome.detail
