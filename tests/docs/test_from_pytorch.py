"""The programs on the page for models of PyTorch run as they stand there, and the backend needs no C++ compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_docs import ROOT, Page

torch = pytest.importorskip("torch")
backend: Any = pytest.importorskip("graphc.interop.torch.backend")
PAGE = "docs/from_pytorch.md"
WITHOUT_COMPILER = """
import os, shutil
import torch
from torch import nn

assert not any(map(shutil.which, ("cc", "gcc", "g++", "c++", "clang", "clang++"))), os.environ["PATH"]
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
x = torch.randn(3, 8)
fast = torch.compile(model, backend="graphc", options={"fallback": "error"})
torch.testing.assert_close(fast(x), model(x))
fast(x).sum().backward()
assert model[0].weight.grad is not None
"""


def test_programs_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    assert Page(PAGE).run() >= 8


def test_every_option_is_on_the_page():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    for name, values in backend.OPTIONS.items():
        shown = [f'`"{value}"`' if isinstance(value, str) else f"`{value}`" for value in values]
        assert f"`{name}`" in text and all(s in text for s in shown)


def test_models_are_compiled_where_there_is_no_cpp_compiler(tmp_path: Path):
    kept = {k: v for k, v in os.environ.items() if k not in ("CC", "CXX", "LD_PRELOAD")}
    given = {**kept, "PATH": str(tmp_path), "GRAPHC_CACHE": "off", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", WITHOUT_COMPILER]
    done = subprocess.run(command, env=given, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
