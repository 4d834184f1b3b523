"""The programs of the page on scikit-learn, which need it and its converter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_docs import Page


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for package in ("onnx", "sklearn", "skl2onnx"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    assert Page("docs/scikit_learn.md").run() >= 1
