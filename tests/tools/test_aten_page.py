"""The generated table of operators of PyTorch."""

from __future__ import annotations

import subprocess
import sys

from graphc.interop.aten.table import TABLE
from tools import aten_page


def test_the_page_is_up_to_date():
    stored = (aten_page.ROOT / aten_page.PAGE).read_text(encoding="utf-8")
    assert stored == aten_page.build_page(), "run: python tools/aten_page.py --write"


def test_every_line_of_the_table_is_on_the_page():
    text = aten_page.build_page().partition("## Without a rule")[0]
    rows = [[c.strip() for c in line.split("|")[1:4]] for line in text.splitlines() if line.startswith("| `")]
    found: set[str] = set()
    for name, overloads, _ in rows:
        plain = name.strip("`")
        names = [o.strip("` ") for o in overloads.split(",")]
        found |= {f"{plain}.{o or 'default'}" if plain.startswith("aten.") else plain for o in names}
    assert found == set(TABLE)


def test_a_line_says_what_computes_it():
    text = aten_page.build_page()
    assert "| `aten.conv2d` | `default`, `padding` | `graphc.conv2d` |" in text
    assert "| `operator.add` |  | Python |" in text and "<" not in text


def test_a_page_that_is_old_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(aten_page, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    assert aten_page.main(["--check"]) == 1
    assert "is old" in capsys.readouterr().err
    assert aten_page.main(["--write"]) == 0
    assert aten_page.main(["--check"]) == 0


def test_the_page_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; from tools import aten_page; aten_page.build_page()"
    subprocess.run([sys.executable, "-c", code], cwd=aten_page.ROOT, check=True)
