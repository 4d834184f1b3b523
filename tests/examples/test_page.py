"""examples/page.py: learns digits, and writes a small page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.run_example import run_example

pytest.importorskip("sklearn")
pytest.importorskip("tqdm")


def test_a_short_run_writes_a_page_below_60_kb(tmp_path: Path):
    output = run_example("page.py", "--epochs", "1", "--out", str(tmp_path), folder=tmp_path)
    assert "held-out accuracy: " in output and "digits.html" in output
    assert sum((tmp_path / f"digits.{kind}").stat().st_size for kind in ("wasm", "js", "html")) < 60_000
