"""The programs of the page on streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_docs import Page


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert Page("docs/streams.md").run() >= 1
