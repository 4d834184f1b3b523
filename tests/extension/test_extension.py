"""Extensions of graphc: patches that work on a copy of it, and the number of files that each touches."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.scan import ROOT

HERE = Path(__file__).resolve().parent
COPIED = ("graphc", "tests", "tools", "pyproject.toml")
USE_OP = """
import graphc as gc
x = gc.tensor([-2.0, 3.0], requires_grad=True)
y = gc.compile(lambda t: t.cube() + 1.0)(x)
y.sum().backward()
assert y.tolist() == [-7.0, 28.0] and x.grad.tolist() == [12.0, 27.0], (y, x.grad)
"""
USE_TARGET = """
import graphc as gc
from graphc.codegen.machine.target import target_named
from graphc.compiler.stages import Stages
graph = gc.trace(lambda x, w: (x @ w).relu(), gc.zeros(64, 64), gc.zeros(64, 64))
stages = Stages(graph, target=target_named("lasx"))
assert "<8 x float>" in stages.llvm and "xvfmadd.s" in stages.asm, stages.asm
assert stages.object[18:20] == bytes([0x02, 1]), "an ELF file for LoongArch"
"""
USE_GRAPH_PASS = """
import graphc as gc
from graphc.compiler.stages import Stages
optimized = Stages(gc.trace(lambda x: x + x, gc.zeros(4))).optimized
assert [n.op.name for n in optimized.nodes() if n.op.name != "constant"] == ["mul"], str(optimized)
"""
USE_PROGRAM_PASS = """
import os
os.environ["GRAPHC_PRINT_AFTER"] = "unused-kernels"
import graphc as gc
assert gc.compile(lambda x: x.exp() + 1.0)(gc.zeros(4)).tolist() == [2.0] * 4
"""
NOTHING = "import graphc"


def touched(patch: str) -> list[str]:
    """The files that a patch makes or changes."""
    return re.findall(r"^diff --git a/(\S+) b/\1$", (HERE / patch).read_text(encoding="utf-8"), re.MULTILINE)


def patched(patch: str, folder: Path) -> Path:
    """A copy of what a checkout holds, with the patch."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy(source, folder / name)
    # NOTE: one line of context, so that neighbours of what is changed may move.
    apply(patch, folder, "-C1", "--recount")
    return folder


def apply(patch: str, folder: Path, *options: str) -> None:
    """Applies a patch, outside of any repository."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent), "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "apply", *options, str(HERE / patch)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{patch} does not apply any more; make it anew:\n{done.stderr}"


def run(folder: Path, *arguments: str) -> None:
    """Runs Python with the copy in the place of graphc."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "GRAPHC_CACHE": "off"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("patch", "files", "tests", "program"),
    [
        ("op.patch", 2, ("tests/ops/test_every_op.py", "-k", "cube"), USE_OP),
        ("graph_pass.patch", 3, ("tests/passes/test_doubles.py",), USE_GRAPH_PASS),
        ("program_pass.patch", 3, ("tests/codegen/schedule/test_unused_kernels.py",), USE_PROGRAM_PASS),
        ("command.patch", 3, ("tests/cli/commands/test_versions.py",), NOTHING),
    ],
)
def test_an_extension_touches_so_many_files_and_works(
    patch: str, files: int, tests: tuple[str, ...], program: str, tmp_path: Path
):
    assert len(touched(patch)) == files
    folder = patched(patch, tmp_path)
    run(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)
    run(folder, "-c", program)


@pytest.mark.slow
def test_a_target_of_another_vector_width_is_one_folder(tmp_path: Path):
    assert {str(Path(name).parent) for name in touched("target.patch")} == {"graphc/codegen/machine/loongarch64"}
    folder = patched("target.patch", tmp_path)
    run(folder, "-c", USE_TARGET)
    tests = ("tests/codegen/machine/test_instructions.py", "-k", "loongarch64")
    run(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)
