"""Threads: the same bits for every number of them, from many callers at once; how many are used."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import graphc
from graphc.codegen.llvm.entry import THREADS
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.stages import Stages
from graphc.errors import ArgumentError
from graphc.runtime import pool, threads
from tests.architecture.scan import ROOT
from tests.runtime.threaded import MODEL, SHARED, model, thread_count

COUNTS = (1, 2, 3, 4, 7)


def same(got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))


def test_every_number_of_threads_gives_the_same_bits():
    program, arrays = model()
    with thread_count(1):
        expected = program.run(arrays)
    assert np.isfinite(expected[0]).all()
    for _ in range(20):
        for count in COUNTS:
            with thread_count(count):
                assert same(program.run(arrays), expected), count
    assert pool.workers() >= max(COUNTS) - 1


def _settling(x, w):
    """Branches and a loop until a value says so, with products and sums in them."""

    def step(state):
        count, x = state
        x = graphc.cond((x.sum() > 0) & (count < 40), lambda x: (x @ w).tanh(), lambda x: x * 0.5 - x.mean(), (x,))
        return count + 1, graphc.cond(x[0, 0] > 0, lambda x: x - x.mean(0), lambda x: graphc.softmax(x, 1), (x,))

    return graphc.while_loop(lambda s: (s[0] < 60) & (s[1].abs().sum() > 1e-3), step, (graphc.tensor(0), x))


def test_branches_and_loops_give_the_same_bits():
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((30, 40), (40, 40)))
    with graphc.no_grad():
        graph = graphc.trace(_settling, graphc.tensor(x), graphc.tensor(w))
    compiled = compile_stages(Stages(graph, target=SHARED))
    assert THREADS.encode() in compiled.object
    program = load_compiled(compiled)
    with thread_count(1):
        expected = program.run([x, w])
    for count in (2, 3, 4):
        with thread_count(count):
            assert all(same(program.run([x, w]), expected) for _ in range(20))


def test_a_program_may_be_compiled_under_any_number_of_threads():
    results = []
    for count in (1, 5):
        with thread_count(count):
            program, arrays = model()
            results.append(program.run(arrays))
    assert same(*results)


def hammer(callers: int, calls: int) -> None:
    """Calls from several Python threads at once; every result is compared."""
    program, arrays = model()
    inputs = [[a * np.float32(1 + i) for a in arrays] for i in range(callers)]
    with thread_count(1):
        expected = [program.run(x) for x in inputs]
    wrong: list[tuple[int, int]] = []

    def call(number: int) -> None:
        for i in range(calls):
            if not same(program.run(inputs[number]), expected[number]):
                wrong.append((number, i))
                return

    with thread_count(3):
        runners = [threading.Thread(target=call, args=(i,)) for i in range(callers)]
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join()
    assert not wrong


def test_many_callers():
    hammer(8, 100)


@pytest.mark.slow
def test_many_callers_for_long():
    hammer(8, 10_000)


def test_memory_stays_flat():
    program, arrays = model()
    out = program.run(arrays)
    with thread_count(3):
        for _ in range(50):
            program.run(arrays, out=out)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(1000):
            program.run(arrays, out=out)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048


# ---- how many


def test_the_number_is_set_and_read_at_the_front_door():
    with thread_count(3):
        assert graphc.get_num_threads() == threads.get_num_threads() == 3
        graphc.set_num_threads(2)
        assert threads.get_num_threads() == 2


@pytest.mark.parametrize("count", [0, -1, 257, 2.0, "2", True, None])
def test_a_wrong_number_is_refused(count):
    before = threads.get_num_threads()
    with pytest.raises(ArgumentError, match="is not a number of threads"):
        threads.set_num_threads(count)
    assert threads.get_num_threads() == before


@pytest.mark.parametrize(("variable", "expected"), [("5", 5), ("1", 1), ("", None)])
def test_the_default_comes_from_the_environment(variable: str, expected: int | None):
    environment = {**os.environ, "GRAPHC_THREADS": variable}
    program = "from graphc.runtime import threads as t; print(t.get_num_threads(), t.available_cores())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    count, cores = map(int, done.stdout.split())
    assert count == (cores if expected is None else expected)


def test_cores_are_those_of_the_affinity():
    assert 1 <= threads.available_cores() <= len(os.sched_getaffinity(0))
    program = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    program += "from graphc.runtime import threads; print(threads.available_cores())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_quota_of_the_control_groups(tmp_path: Path):
    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert threads.cpu_quota(tmp_path, own) == 0
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert threads.cpu_quota(tmp_path, own) == 0
    (tmp_path / "a" / "b" / "cpu.max").write_text("400000 100000\n")
    assert threads.cpu_quota(tmp_path, own) == 4
    (tmp_path / "a" / "cpu.max").write_text("150000 100000\n")
    assert threads.cpu_quota(tmp_path, own) == 1.5
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert threads.cpu_quota(tmp_path, own) == 1.5
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("100000\n")
    assert threads.cpu_quota(tmp_path, tmp_path / "nothing") == 1


def test_a_small_program_stays_on_one_thread():
    """Nothing in the code of a small program knows of threads."""
    program = f"""
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.codegen.llvm.entry import THREADS
from graphc.ir.graph.parse import parse_graph
from graphc.ops import registry
from graphc.runtime import pool, threads
text = '''{MODEL}'''
small = compile_graph(parse_graph(text.replace("96", "4").replace("160", "5").replace("144", "6")))
load_compiled(small)
print(THREADS.encode() in small.object, threads.connected())
large = compile_graph(parse_graph(text.replace("160", "1600").replace("144", "1440")))
load_compiled(large)
print(THREADS.encode() in large.object, threads.connected(), pool.workers())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False False\nTrue True 0\n"


def test_another_library_is_followed_unless_a_number_was_chosen(monkeypatch: pytest.MonkeyPatch):
    with thread_count(2):
        threads.follow(1)
        assert threads.get_num_threads() == 2
        monkeypatch.setattr(threads, "_is_chosen", False)
        monkeypatch.delenv("GRAPHC_THREADS", raising=False)
        for wanted, used in ((1, 1), (1000, threads.MAX_THREADS), (3, 3)):
            threads.follow(wanted)
            assert threads.get_num_threads() == used
        monkeypatch.setenv("GRAPHC_THREADS", "2")
        threads.follow(4)
        assert threads.get_num_threads() == 3


def test_operations_run_one_after_the_other():
    threads.set_num_interop_threads(4)
    assert threads.get_num_interop_threads() == 1
    with pytest.raises(ArgumentError, match="0 is not a number of threads"):
        threads.set_num_interop_threads(0)
