"""The generator of docs/map.md on a small package of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import map as code_map


def make_package(root: Path) -> None:
    (root / "pkg" / "inner").mkdir(parents=True)
    (root / "pkg" / "__init__.py").write_text('"""The package."""\n')
    (root / "pkg" / "b.py").write_text('"""Does b | c."""\n')
    (root / "pkg" / "a.py").write_text('"""Does a.\n\nMore.\n"""\n')
    (root / "pkg" / "inner" / "__init__.py").write_text("")
    (root / "pkg" / "inner" / "c.py").write_text("x = 1\n")


def test_map_lists_packages_and_modules_in_order(tmp_path: Path):
    make_package(tmp_path)
    text = code_map.build_map(tmp_path, "pkg")
    rows = [line for line in text.splitlines() if line.startswith(("## pkg", "| [", "The"))]
    assert rows == [
        "## pkg/",
        "The package.",
        "| [a.py](../pkg/a.py) | Does a. |",
        "| [b.py](../pkg/b.py) | Does b \\| c. |",
        "## pkg/inner/",
        "| [c.py](../pkg/inner/c.py) |  |",
    ]


def test_packages_stand_in_the_order_of_their_floors_and_behind_their_parent(tmp_path: Path):
    floors = ["low", "top.part.deep", "top.part", "top.alone", "top"]
    for folder in ["", "low", "top", "top/alone", "top/part", "top/part/deep", "top/part/extra", "another"]:
        (tmp_path / "pkg" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "pkg" / folder / "__init__.py").write_text("")
    headings = [line for line in code_map.build_map(tmp_path, "pkg", floors).splitlines() if line.startswith("## pkg/")]
    names = ["", "low/", "top/", "top/part/", "top/part/deep/", "top/part/extra/", "top/alone/", "another/"]
    assert headings == [f"## pkg/{name}" for name in names]


def test_what_to_read_first_stands_at_the_head_and_exists():
    text = code_map.build_map()
    offsets = [text.index(f"]({'../' + path}): {what}") for path, what in code_map.READING]
    assert offsets == sorted(offsets) and offsets[-1] < text.index("## graphc/")
    assert [path for path, _ in code_map.READING if not (code_map.ROOT / path).is_file()] == []


def test_check_tells_old_from_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "graphc").mkdir()
    module = tmp_path / "graphc" / "a.py"
    module.write_text('"""First."""\n')
    monkeypatch.setattr(code_map, "ROOT", tmp_path)
    assert code_map.main(["--check"]) == 1
    assert "tools/map.py --write" in capsys.readouterr().err
    assert code_map.main(["--write"]) == 0
    assert code_map.main(["--check"]) == 0
    module.write_text('"""Second."""\n')
    assert code_map.main(["--check"]) == 1
