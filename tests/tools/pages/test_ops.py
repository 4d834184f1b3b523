"""The generated table of ops."""

from __future__ import annotations

from graphc.ir.graph.graph import CONSTANT
from graphc.ir.op import REGISTRY
from tools.pages import ops


def test_the_page_is_up_to_date():
    stored = (ops.ROOT / ops.PAGE).read_text(encoding="utf-8")
    assert stored == ops.build_page(), "run: python -m tools.pages.ops --write"


def test_every_op_has_a_row_of_its_own():
    rows = [line for line in ops.build_page().splitlines() if line.startswith("| `")]
    names = [row.removeprefix("| `").partition("(")[0] for row in rows]
    own = {name for name, op in REGISTRY.items() if not op.module}
    assert sorted(names) == sorted(own - {CONSTANT.name})


def test_a_page_that_is_old_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(ops, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    assert ops.main(["--check"]) == 1
    assert "is old" in capsys.readouterr().err
    assert ops.main(["--write"]) == 0
    assert ops.main(["--check"]) == 0
