"""A file whose program is there already starts without tensors, graphs, ops and the compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.runtime.code.code_memory import can_link
from tests.architecture.scan import ROOT

HEAVY = (
    *("networkx", "graphc.ir", "graphc.ops", "graphc.passes", "graphc.tensors", "graphc.nn", "graphc.codegen.schedule"),
    *("graphc.codegen.llvm", "graphc.codegen.door", "graphc.codegen.machine.target"),
    *(("llvmlite",) if can_link() else ()),
)
"""Modules of front end and compiler, of whose back end a start needs the linker only."""
PROGRAM = """
import sys
import numpy as np
import graphc as gc

model = gc.load(sys.argv[1], trust=sys.argv[2] == "trust")
print(model(np.ones((2, 8), np.float32)).tolist())
print(*[name for name in sys.argv[3:] if name in sys.modules])
"""


def start(path: Path, how: str, cache: Path) -> tuple[list[list[float]], str]:
    """Outputs of a new process, and which of the heavy modules it has imported."""
    environment = {**os.environ, "GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM, str(path), how, *HEAVY]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    numbers, found = done.stdout.splitlines()
    return json.loads(numbers), found


@pytest.fixture
def model() -> nn.Module:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 4), nn.Softmax(1)).eval()


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("sized", [False, True])
def test_the_second_start_imports_no_graph_and_no_compiler(model: nn.Module, native: bool, sized: bool, tmp_path: Path):
    path, cache = tmp_path / "net.gcm", tmp_path / "cache"
    dims = [(gc.Dim("batch", max=64),)] if sized else None
    gc.export(model, gc.ones(2, 8), path=path, native=native, dims=dims)
    how = "trust" if native else "no"
    first, _ = start(path, how, cache)
    second, imported = start(path, how, cache)
    assert imported == "" and second == first
    np.testing.assert_allclose(second, model(gc.ones(2, 8)).detach().numpy(), rtol=1e-6)
