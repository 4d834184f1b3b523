"""The programs of the page on JAX; those before the section on StableHLO need JAX."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_docs import Page

NAME = "docs/from_jax.md"


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("jax", reason="the page uses JAX")
    monkeypatch.chdir(tmp_path)
    assert Page(NAME).run() >= 3


def test_programs_without_jax_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    page = Page(NAME)
    page.text = page.text[page.text.index("## StableHLO without JAX") :]
    assert page.run() == 1
