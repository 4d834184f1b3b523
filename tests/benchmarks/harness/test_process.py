"""Worker processes over their real pipes: answers, faults, deaths, time limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.framework import NUMBERS
from benchmarks.harness.measure import Figures, alternate, set_up
from benchmarks.harness.process import LIMITS, TARGET, WorkerProcess, limits_note, make_environment, pin
from graphc.codegen.machine.target import named_targets

STEADY = "tests.benchmarks.steady_peer"
REFERENCE = np.arange(6, dtype=np.float32).reshape(1, 6)

Start = Callable[..., WorkerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    np.save(tmp_path / NUMBERS, REFERENCE)
    with ExitStack() as stack:

        def begin(fault: str = "", module: str = STEADY, limit_s: float = 30) -> WorkerProcess:
            environment = {**make_environment(1, tmp_path), "STEADY_PEER": fault}
            return stack.enter_context(WorkerProcess(module, 1, environment, tmp_path / "log", limit_s))

        yield begin


def test_a_peer_is_set_up_and_timed(start: Start, tmp_path: Path):
    process = start()
    assert process.hello == {"version": "1.0"}
    figures = set_up(process, "policy_b1", tmp_path, REFERENCE)
    assert figures == Figures(first_call_s=0.25, error=0.0)
    alternate({"steady": process}, {"steady": figures}, rounds=3, seconds=0.02)
    assert len(figures.rounds_ms) == 3
    assert figures.ms is not None
    assert figures.ms >= 1.0


def test_timing_before_setup_is_refused(start: Start):
    assert start().ask({"cmd": "time", "seconds": 0.1}) == {"error": "ValueError: no such command now: 'time'"}


def test_a_missing_library_makes_a_peer_absent(start: Start):
    process = start(module="tests.benchmarks.missing_peer")
    assert process.hello == {"absent": "ModuleNotFoundError: No module named 'a_library_that_nobody_installs'"}


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("raise", "RuntimeError: first line"),
        ("lack", "no policy_b1 here"),
        ("die", "the process died of SIGSEGV"),
        ("hang", "no answer within 3 s"),
    ],
)
def test_faults_become_one_line(start: Start, tmp_path: Path, fault: str, problem: str):
    process = start(fault, limit_s=3 if fault == "hang" else 30)
    figures = set_up(process, "policy_b1", tmp_path, REFERENCE)
    assert figures.problem == problem
    assert figures.ms is None
    assert process.alive == (fault in ("raise", "lack"))
    if not process.alive:
        assert "process" in process.ask({"cmd": "time", "seconds": 0.1})["error"]


def test_wrong_numbers_show_as_error(start: Start, tmp_path: Path):
    figures = set_up(start("wrong"), "policy_b1", tmp_path, REFERENCE)
    assert figures.error == pytest.approx(1 / 5)


def test_every_library_is_held_to_the_thread_count(tmp_path: Path):
    environment = make_environment(2, tmp_path)
    assert {environment[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "GRAPHC_THREADS")} == {"2"}
    assert environment["GRAPHC_CACHE_DIR"].startswith(str(tmp_path))


def test_pinning_refuses_cores_that_are_not_there():
    with pytest.raises(ValueError, match="threads asked for"):
        pin(len(os.sched_getaffinity(0)) + 1)


def test_a_target_holds_peers_to_its_instructions(tmp_path: Path):
    limited, plain = make_environment(1, tmp_path, "avx2"), make_environment(1, tmp_path)
    assert (limited["ONEDNN_MAX_CPU_ISA"], limited["ATEN_CPU_CAPABILITY"]) == ("AVX2", "avx2")
    assert limited["XLA_FLAGS"].split() == [*plain["XLA_FLAGS"].split(), "--xla_cpu_max_isa=AVX2"]
    assert (limited[TARGET], plain[TARGET]) == ("avx2", "host")
    assert set(LIMITS) <= set(named_targets())


def test_the_note_names_peers_that_nothing_limits():
    note = limits_note("avx2", ["graphc", "torch", "onnxruntime", "openvino"])
    assert "ONEDNN_MAX_CPU_ISA=AVX2" in note and "onnxruntime: no such switch" in note
    assert "no such switch" not in limits_note("avx2", ["graphc", "openvino"])
    assert limits_note("host", ["graphc", "onnxruntime"]) == ""
