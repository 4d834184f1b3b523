"""The programs of the page that tunes a PyTorch model and ships it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_docs import Page


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    assert Page("docs/fine_tune_pytorch.md").run() >= 8
