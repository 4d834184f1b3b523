"""The generated table of operators of PyTorch."""

from __future__ import annotations

import subprocess
import sys

from graphc.interop.aten.table import TABLE
from tools.pages import aten_ops


def test_the_page_is_up_to_date():
    stored = (aten_ops.ROOT / aten_ops.PAGE).read_text(encoding="utf-8")
    assert stored == aten_ops.build_page(), "run: python -m tools.pages.aten_ops --write"


def test_every_line_of_the_table_is_on_the_page():
    text = aten_ops.build_page().partition("## Without a rule")[0]
    rows = [[c.strip() for c in line.split("|")[1:4]] for line in text.splitlines() if line.startswith("| `")]
    listed: set[str] = set()
    for name, overloads, _ in rows:
        plain = name.strip("`")
        names = [o.strip("` ") for o in overloads.split(",")]
        listed |= {f"{plain}.{o or 'default'}" if plain.startswith("aten.") else plain for o in names}
    assert listed == set(TABLE)


def test_a_line_says_what_computes_it():
    text = aten_ops.build_page()
    assert "| `aten.conv2d` | `default`, `padding` | `graphc.conv2d` |" in text
    assert "| `operator.add` |  | Python |" in text and "<" not in text


def test_a_page_that_is_old_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(aten_ops, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    assert aten_ops.main(["--check"]) == 1
    assert "is old" in capsys.readouterr().err
    assert aten_ops.main(["--write"]) == 0
    assert aten_ops.main(["--check"]) == 0


def test_the_page_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; from tools.pages import aten_ops; aten_ops.build_page()"
    subprocess.run([sys.executable, "-c", code], cwd=aten_ops.ROOT, check=True)
