"""Operators by module: each rule of the table is listed under the module that enters it."""

from __future__ import annotations

from graphc.interop.onnx.operators import MODULES
from graphc.interop.onnx.registry import HOST, TABLE
from graphc.interop.onnx.table import families
from tools.pages import onnx_modules


def test_the_list_is_that_of_the_modules():
    ((path, text),) = onnx_modules.build().items()
    assert path.read_text(encoding="utf-8") == text, "run: python -m tools.pages onnx_modules --write"


def test_the_table_has_no_other_operators():
    assert families()
    listed = {name for names in MODULES.values() for name in names.split()}
    assert {f"{domain}:{name}" if domain else name for domain, name in (*TABLE, *HOST)} == listed
