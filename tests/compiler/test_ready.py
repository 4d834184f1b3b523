"""Programs that are built already: targets that run here, small pieces that are found without being written again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import UndecidedSize
from graphc.base.sizes.size_limits import question_behind
from graphc.codegen.machine.target import host_target, target_named
from graphc.compiler import cache
from graphc.compiler.cache import Cache
from graphc.compiler.ready import find_or_build, running_target, small_object
from graphc.errors import CompileError
from tests.architecture.scan import ROOT


@pytest.fixture(autouse=True)
def fresh_warning():
    cache._warned.clear()
    yield
    cache._warned.clear()


_TEXT = 'target triple = "{}"\ndefine i32 @answer() {{\n  ret i32 42\n}}\n'


def test_a_target_that_runs_here_is_one_of_this_system():
    here = host_target()
    assert running_target("host") is here
    name = "sse2" if here.triple.startswith("x86_64") else "neon"
    target = running_target(name)
    assert target.triple == here.triple and target.cpu == target_named(name).cpu


def test_code_of_another_architecture_cannot_run():
    foreign = "neon" if host_target().triple.startswith("x86_64") else "avx2"
    with pytest.raises(CompileError, match=f"code for {foreign} does not run here") as caught:
        running_target(foreign)
    assert "host" in str(caught.value.remedy)


def test_a_small_piece_is_written_once_and_found_from_then_on(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    written = []

    def emit(target):
        written.append(target)
        return _TEXT.format(target.triple)

    first = small_object("answer", emit, "layout 1")
    assert small_object("answer", emit, "layout 1") == first and written == [host_target()]
    small_object("answer", emit, "layout 2")
    assert len(written) == 2


def test_a_question_that_stops_a_build_is_asked_again_without_building(tmp_path):
    disk, rows = Cache(tmp_path / "cache", 1 << 20), Dim("rows", 1, 64, hint=8, common=(1, 4))
    builds = []

    def build():
        builds.append(1)
        raise CompileError("it depends") from UndecidedSize.of("<=", rows, 2 * (rows // 3))

    for _ in range(2):
        with pytest.raises(CompileError, match="it depends") as stopped:
            find_or_build(disk, None, ["key"], build)
        assert question_behind(stopped.value) == ("<=", rows, 2 * (rows // 3))
    assert builds == [1] and disk.usage().entries == 0
    (file,) = disk.folder.glob("*.question")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.warns(RuntimeWarning, match="cache of compiled programs"), pytest.raises(CompileError):
        find_or_build(disk, None, ["key"], build)
    assert builds == [1, 1] and disk.clear() == 0 and not list(disk.folder.glob("*.question"))


def test_an_error_without_a_question_is_not_kept(tmp_path):
    def build():
        raise CompileError("no")

    disk = Cache(tmp_path / "cache", 1 << 20)
    with pytest.raises(CompileError):
        find_or_build(disk, None, ["key"], build)
    assert not list(disk.folder.glob("*.question"))


def test_no_compiler_is_imported_for_what_is_there_already():
    program = """
import sys, types
sys.modules["graphc"] = types.ModuleType("graphc")
sys.modules["graphc"].__path__ = ["graphc"]
import graphc.compiler.native_call
print(*[n for n in ("networkx", "graphc.ops", "graphc.passes", "graphc.lowering", "graphc.codegen.llvm",
                    "graphc.codegen.schedule") if n in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
