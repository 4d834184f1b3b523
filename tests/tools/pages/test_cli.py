"""The generated pages of commands."""

from __future__ import annotations

from graphc.cli.main import COMMANDS
from tools.pages import cli


def test_the_pages_are_up_to_date():
    for path, text in cli.build().items():
        assert path.read_text(encoding="utf-8") == text, "run: python -m tools.pages.cli --write"


def test_there_is_a_page_for_each_command_and_no_other():
    pages = {path.stem for path in (cli.ROOT / cli.FOLDER).glob("*.md")}
    assert pages == set(COMMANDS)


def test_old_pages_are_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(cli, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "graphc" / "cli").mkdir(parents=True)
    (tmp_path / "docs" / "cli.md").write_text("<!-- commands -->\n<!-- end -->\n")
    assert cli.main(["--check"]) == 1
    assert "is old" in capsys.readouterr().err
    assert cli.main(["--write"]) == 0
    assert cli.main(["--check"]) == 0
    assert "[`graphc run`](cli/run.md)" in (tmp_path / "docs" / "cli.md").read_text()
