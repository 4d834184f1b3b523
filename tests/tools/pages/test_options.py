"""The generator of docs/options.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.base import config
from tools.pages import options


def test_check_tells_old_from_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(options, "ROOT", tmp_path)
    assert options.main(["--check"]) == 1
    assert options.main(["--write"]) == 0
    assert options.main(["--check"]) == 0
    (tmp_path / options.PAGE).write_text("old")
    assert options.main(["--check"]) == 1
    assert "run: python -m tools.pages.options --write" in capsys.readouterr().err


def test_without_a_mode_the_page_is_printed(capsys: pytest.CaptureFixture[str]):
    assert options.main([]) == 0
    assert capsys.readouterr().out == config.document()
