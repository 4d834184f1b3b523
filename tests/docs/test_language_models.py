"""The programs of the page on language models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_docs import Page


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("safetensors", reason="the page writes a safetensors file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Page("docs/language_models.md").run() >= 4
