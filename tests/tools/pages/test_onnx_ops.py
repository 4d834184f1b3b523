"""The generated table of operators of ONNX."""

from __future__ import annotations

import pytest

from graphc.interop.onnx.table import TABLE
from tools.pages import onnx_ops


def test_the_page_is_up_to_date():
    stored = (onnx_ops.ROOT / onnx_ops.PAGE).read_text(encoding="utf-8")
    assert stored == onnx_ops.build_page(), "run: python -m tools.pages.onnx_ops --write"


def test_every_entry_of_the_table_is_on_the_page():
    rows = [
        [c.strip() for c in line.split("|")[1:3]] for line in onnx_ops.build_page().splitlines() if "| `" in line[:3]
    ]
    expected = [
        (f"{domain}.{name}" if domain else name, str(e.since) if e.since > 1 else "")
        for (domain, name), entries in TABLE.items()
        for e in entries
    ]
    assert sorted((name.strip("`"), since) for name, since in rows) == sorted(expected)


def test_a_line_says_what_computes_it():
    text = onnx_ops.build_page()
    assert "| `Sigmoid` |  | `graphc.sigmoid` |" in text
    reshape = "`shapes.reshape`: Change the shape. A size of 0 keeps the operand's size of that dimension"
    assert f"| `Reshape` | 5 | {reshape}, unless ``allowzero``. |\n" in text
    assert "<locals>" not in text


def test_a_page_that_is_old_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
):
    monkeypatch.setattr(onnx_ops, "ROOT", tmp_path)
    assert onnx_ops.main(["--check"]) == 1
    assert "is old" in capsys.readouterr().err
    assert onnx_ops.main(["--write"]) == 0
    assert onnx_ops.main(["--check"]) == 0
