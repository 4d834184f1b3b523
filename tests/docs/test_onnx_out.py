"""The programs on the page for files of ONNX run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphc.interop.onnx_export import protobuf
from tests.docs.test_docs import ROOT, Page

PAGE = "docs/onnx_out.md"


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("onnx", reason="exporting to ONNX needs the package onnx")
    monkeypatch.chdir(tmp_path)
    assert Page(PAGE).run() == 3


def test_the_page_says_which_opsets_there_are():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    found = re.search(r"`opset=` is (\d+) to (\d+), and no newer than the installed onnx; (\d+) without it", text)
    assert found and tuple(map(int, found.groups())) == (protobuf.OLDEST, protobuf.NEWEST, protobuf.USUAL)
