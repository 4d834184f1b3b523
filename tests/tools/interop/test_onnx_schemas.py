"""The table of operator schemas: written, read again, and compared."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from graphc.interop.onnx import schemas
from tools.interop import onnx_schemas


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write the table to a folder of the test; return its path."""
    path = tmp_path / "schemas.txt"
    for module in (schemas, onnx_schemas):
        monkeypatch.setattr(module, "TABLE", path)
    assert onnx_schemas.main([]) == 0
    return path


def test_the_table_is_read_as_it_was_written(table):
    rows, newest = schemas._table.__wrapped__()
    assert set(newest) == {"", "ai.onnx.ml"} and newest[""] >= 22
    versions = [version for version, _ in rows["", "Softmax"]]
    assert versions == sorted(versions) and 13 in versions
    assert len(table.read_text().splitlines()) == sum(map(len, rows.values())) + len(newest)


def test_a_line_that_differs_is_printed(table, capsys):
    assert onnx_schemas.main(["--check"]) == 0 and capsys.readouterr().out == "\n"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:-1], "ai.onnx Ununtrium 1 []"]))
    assert onnx_schemas.main(["--check"]) == 1
    assert set(capsys.readouterr().out.splitlines()) == {lines[-1], "ai.onnx Ununtrium 1 []"}
