"""Builds in child processes: the same program, one child at a time, a session of its own, forks, an early end."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.target import host_target
from graphc.compiler import background, cache
from graphc.compiler.background import BackgroundBuild, can_build, is_building, request_of
from graphc.compiler.graph_programs import key_inputs_of, load_program
from graphc.ir.graph.graph import Graph
from graphc.runtime.code.code_memory import can_link
from tests.compiler.graphs import mlp


def strided() -> Graph:
    layers = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.Flatten(2)).eval()
    return gc.trace(layers, gc.rand(2, 3, 9, 9), dims=((gc.Dim("b"), None, gc.Dim("h"), None),))


def equal_sizes() -> Graph:
    return gc.trace(lambda x, y: x + y, gc.ones(4), gc.ones(4), dims=((gc.Dim("a"),), (gc.Dim("c"),)))


def with_constant() -> Graph:
    table = gc.tensor(np.arange(40.0, dtype=np.float32))
    return gc.trace(lambda x: x + table, gc.ones(40))


@pytest.mark.parametrize("make", [mlp, strided, equal_sizes, with_constant])
def test_a_request_has_the_whole_graph(make: Callable[[], Graph]):
    graph = make()
    again = pickle.loads(pickle.dumps(request_of(graph, "host"))).graph()
    mine, others = (key_inputs_of(g, host_target()) for g in (graph, again))
    assert len(mine) == len(others)
    assert all(map(np.array_equal, mine, others))


@pytest.fixture
def wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make children wait for the function that is returned, which ends one of them. They build nothing."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(background, "_CODE", f"#{{path!r}}\nopen({str(pipe)!r}).read()")

    def end() -> None:
        pipe.write_bytes(b"")

    return end


def finish(build: BackgroundBuild) -> None:
    """Wait for the end of a child."""
    while not build.is_finished():
        time.sleep(0.01)


def test_a_child_builds_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    graph = mlp()
    build = BackgroundBuild(graph, "host")
    assert build.program() is None
    finish(build)
    entry = build.program()
    assert entry is not None
    assert len(cache.current().entries()) == 2, "the program, and native calls"  # type: ignore[union-attr]
    assert load_program(entry, graph).manifest.name == graph.name


def test_one_child_at_a_time(wait: Callable[[], None]):
    first, second = BackgroundBuild(mlp(), "host"), BackgroundBuild(mlp(), "host")
    assert not first.is_finished() and not second.is_finished()
    assert len(background._children) == 1
    wait()
    finish(first)
    assert not second.is_finished()
    assert len(background._children) == 1
    second.discard()
    finish(second)
    assert first.program() is None


def test_a_child_has_its_own_session(wait: Callable[[], None]):
    build = BackgroundBuild(mlp(), "host")
    assert not build.is_finished()
    child = background._children[0].pid
    assert os.getsid(child) == child != os.getsid(0), "Ctrl-C reaches the foreground process group only"
    wait()
    finish(build)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


CLOSED = """
import os
os.closerange(0, 3)
import graphc as gc
from graphc.compiler import background
build = background.BackgroundBuild(gc.trace(lambda x: x * 2, gc.zeros(3)), "host")
build.is_finished()
streams = [os.readlink(f"/proc/{background._children[0].pid}/fd/{n}")[:5] for n in range(3)]
while not build.is_finished():
    pass
os._exit(build.program() is None or streams != ["/memf", "pipe:", "/memf"])
"""


def test_a_process_without_standard_streams_builds() -> None:
    assert subprocess.run([sys.executable, "-c", CLOSED], check=False).returncode == 0


def test_a_fork_sees_the_end_and_leaves_the_folder(wait: Callable[[], None]):
    build = BackgroundBuild(mlp(), "host")
    assert not build.is_finished()
    forked = os.fork()
    if not forked:
        try:
            build.discard()
            finish(build)
        finally:
            os._exit(0 if build.is_finished() else 1)
    wait()
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert Path(build._folder).exists()
    finish(build)
    build.discard()
    assert not Path(build._folder).exists()


def test_dropping_a_build_without_a_cache_ends_its_child(wait: Callable[[], None]):
    build = BackgroundBuild(mlp(), "host")
    assert not build.is_finished()
    child, folder = background._children[0], Path(build._folder)
    del build
    while child.is_running:
        child.look()
    assert not folder.exists()


def test_the_log_says_why_a_child_failed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setattr(background, "_CODE", "#{path!r}\nimport sys; sys.exit('refused' + 'x' * 9000 + ' in the end')")
    build = BackgroundBuild(mlp(), "host")
    with caplog.at_level(logging.INFO, "graphc.compile"):
        finish(build)
    (message,) = [m for m in caplog.messages if "child" in m]
    assert message.startswith("the child failed with exit status 1: x") and message.endswith("x in the end")
    assert build.program() is None


def test_no_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    build = BackgroundBuild(mlp(), "host")
    assert build.is_finished() and build.program() is None


@pytest.mark.parametrize(
    ("name", "value"), [("GRAPHC_DUMP", "x"), ("GRAPHC_PRINT_AFTER", "cse"), ("GRAPHC_VERIFY", "pass")]
)
def test_steps_of_a_compile_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    assert can_build()
    monkeypatch.setenv(name, value)
    assert not can_build()


SCRIPT = """
import graphc as gc
from graphc import nn
with gc.no_grad():
    y = gc.compile(nn.Linear(4, 2), tier="auto")(gc.ones(3, 4))
print(y.shape)
"""


def test_exit_while_a_child_builds(tmp_path: Path):
    environment = {**os.environ, "GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("(3, 2)\n", "")
    while not any(tmp_path.glob(f"*{cache.SUFFIX}")):
        time.sleep(0.05)  # the child goes on, so that the next process finds the program


def test_exit_without_a_cache_leaves_nothing(tmp_path: Path):
    environment = {**os.environ, "GRAPHC_CACHE": "off", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("(3, 2)\n", "")
    assert not any(tmp_path.iterdir())


IMPORTS = """
import sys
import graphc as gc
from graphc import nn
compiled = gc.compile(nn.Linear(4, 2), tier={tier!r})
with gc.no_grad():
    y = compiled(gc.ones(3, 4))
print(y.shape, type(compiled.variants[0].calls).__name__ == "QuickCalls", "llvmlite" in sys.modules)
"""


@pytest.mark.skipif(not can_link(), reason="LLVM links here")
def test_llvm_is_imported_by_the_process_that_compiles_and_by_no_other(tmp_path: Path):
    def first_call(tier: str, switch: str = "on") -> str:
        options = {"GRAPHC_CACHE": switch, "GRAPHC_CACHE_DIR": str(tmp_path), "GRAPHC_THREADS": "1"}
        command = [sys.executable, "-c", IMPORTS.format(tier=tier)]
        done = subprocess.run(command, env={**os.environ, **options}, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert first_call("auto", "off") == "(3, 2) True False"
    assert first_call("auto") == "(3, 2) True False"
    while len([*tmp_path.glob(f"*{cache.SUFFIX}")]) < 2:
        time.sleep(0.05)  # the child also builds the object around the program
    assert first_call("full") == first_call("auto") == "(3, 2) False False"
    assert first_call("full", "off") == "(3, 2) False True"


TAKEOVER = """
import sys, time
import graphc as gc
from graphc import nn
compiled = gc.compile(nn.Linear(4, 2), tier="auto")
with gc.no_grad():
    while not compiled.variants or type(compiled.variants[0].calls).__name__ == "QuickCalls":
        compiled(gc.ones(3, 4))
        time.sleep(0.01)
    compiled(gc.ones(3, 4))
print("llvmlite" in sys.modules)
"""


@pytest.mark.skipif(not can_link(), reason="LLVM links here")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_process_takes_the_program_without_llvm(threads: str, tmp_path: Path):
    options = {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(tmp_path), "GRAPHC_THREADS": threads}
    command = [sys.executable, "-c", TAKEOVER]
    done = subprocess.run(command, env={**os.environ, **options}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_child_that_runs_is_told(tmp_path: Path, wait: Callable[[], None]):
    assert not is_building()
    build = BackgroundBuild(mlp(), "host")
    assert not build.is_finished() and is_building()
    wait()
    finish(build)
    assert not is_building()


@pytest.mark.skipif(not can_link(), reason="LLVM links here")
def test_a_program_in_a_cache_without_a_record_of_the_machine_is_found_by_the_child(tmp_path: Path):
    options = {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(tmp_path), "GRAPHC_THREADS": "1"}
    command = [sys.executable, "-c", IMPORTS.format(tier="full")]
    subprocess.run(command, env={**os.environ, **options}, capture_output=True, check=True)
    programs = {*tmp_path.glob(f"*{cache.SUFFIX}")}
    for record in tmp_path.glob("*.host"):
        record.unlink()
    command = [sys.executable, "-c", IMPORTS.format(tier="auto")]
    done = subprocess.run(command, env={**os.environ, **options}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(3, 2) True False"
    while not any(tmp_path.glob("*.host")):
        time.sleep(0.05)
    assert {*tmp_path.glob(f"*{cache.SUFFIX}")} == programs


STARTED = """
import sys
import graphc as gc
from graphc.compiler.background import BackgroundBuild
BackgroundBuild(gc.trace(lambda x: x * 2, gc.zeros(3)), "host").is_finished()
print([name for name in ("subprocess", "tempfile", "fractions", "graphc.ir.graph.parse") if name in sys.modules])
"""


def test_a_process_imports_little_to_start_a_child(tmp_path: Path) -> None:
    environment = {**os.environ, "GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", STARTED]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "[]\n"
