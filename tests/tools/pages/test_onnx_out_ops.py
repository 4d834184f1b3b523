"""The generated table of operators of ONNX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphc.interop.onnx_export.table import ENTRIES, RULES
from tools.pages import onnx_out_ops


def test_the_page_is_up_to_date():
    stored = (onnx_out_ops.ROOT / onnx_out_ops.PAGE).read_text(encoding="utf-8")
    assert stored == onnx_out_ops.build_page(), "run: python -m tools.pages.onnx_out_ops --write"


def test_every_function_and_every_op_has_a_row():
    text = onnx_out_ops.build_page()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.startswith(("| op ", "| function "))]
    assert len(rows) - len(heads) == len(ENTRIES) + len(RULES)
    assert "| `F.layer_norm` | LayerNormalization | 18 |" in text
    assert "| `matmul` | MatMul |" in text


def test_a_page_that_is_old_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setattr(onnx_out_ops, "ROOT", tmp_path)
    assert onnx_out_ops.main(["--check"]) == 1
    assert "is old" in capsys.readouterr().err
    assert onnx_out_ops.main(["--write"]) == 0
    assert onnx_out_ops.main(["--check"]) == 0


def test_the_page_needs_no_onnx():
    code = "import sys; sys.modules['onnx'] = None; from tools.pages import onnx_out_ops; onnx_out_ops.build_page()"
    subprocess.run([sys.executable, "-c", code], cwd=onnx_out_ops.ROOT, check=True)
