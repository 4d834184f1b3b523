"""The programs of the page on quantization, which need digits of scikit-learn and the package onnx."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_docs import Page


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for package in ("onnx", "sklearn"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    assert Page("docs/quantization.md").run() >= 1
