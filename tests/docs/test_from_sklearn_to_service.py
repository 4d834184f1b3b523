"""The programs of the page from scikit-learn to a service, which sends requests to its server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_docs import Page


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Page("docs/from_sklearn_to_service.md").run() >= 6
