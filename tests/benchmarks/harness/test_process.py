"""Child processes over their real pipes: answers, faults, deaths, time limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.framework import NUMBERS
from benchmarks.harness.measure import Peer, find_peer, set_up
from benchmarks.harness.process import LIMITS, TARGET, Child, call_in_child, limits_note, make_environment, pin
from benchmarks.harness.results import Result
from graphc.codegen.machine.target import named_targets

STEADY = Peer("numpy", "tests.benchmarks.steady_peer:prepare", {})
TIME, HELLO = "benchmarks.harness.peer:time_calls", "benchmarks.harness.peer:hello"
REFERENCE = np.arange(6, dtype=np.float32).reshape(1, 6)

Start = Callable[..., Child]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    np.save(tmp_path / NUMBERS, REFERENCE)
    with ExitStack() as stack:

        def begin(fault: str = "", limit_s: float = 30) -> Child:
            return stack.enter_context(Child({**make_environment(1, tmp_path), "STEADY_PEER": fault}, limit_s))

        yield begin


def set_up_steady(child: Child, folder: Path) -> Result:
    result = Result("policy_b1")
    set_up(result, "steady", child, STEADY, folder, REFERENCE, 1)
    return result


def test_a_peer_is_set_up_and_timed(start: Start, tmp_path: Path):
    child = start()
    assert child.ask(TIME, seconds=0.1) == {"error": "ValueError: no workload is set up"}
    result = set_up_steady(child, tmp_path)
    assert result.errors == {"steady": 0.0} and result.facts["steady"] == {"first s": 0.25} and not result.problems
    times = child.ask(TIME, seconds=0.02)
    assert times["ms"] >= 1.0 and times["resident MB"] > 1


def test_a_name_has_a_variant_behind_a_colon():
    peer = find_peer("graphc:70%", {})
    assert (peer.library, peer.variant) == ("graphc", "70%") and find_peer("torch", {}).variant == ""


def test_a_missing_library_makes_a_peer_absent(start: Start):
    told = {"absent": "ModuleNotFoundError: No module named 'a_library_that_nobody_installs'"}
    assert start().ask(HELLO, library="a_library_that_nobody_installs") == told
    assert start().ask(HELLO, library="numpy") == {"version": np.__version__}


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
    child = start(fault, limit_s=3 if fault == "hang" else 30)
    result = set_up_steady(child, tmp_path)
    assert result.problems == {"steady": problem} and not result.rounds_ms
    assert child.alive == (fault in ("raise", "lack"))
    if not child.alive:
        assert "process" in child.ask(TIME, seconds=0.1)["error"]


def test_one_question_is_answered_by_a_process_of_its_own(tmp_path: Path):
    environment = make_environment(1, tmp_path)
    assert call_in_child(HELLO, environment, 30, library="numpy")["version"] == np.__version__
    assert "no_such_module" in call_in_child("no_such_module:f", environment, 30)["error"]
    assert "status 3: last words" in call_in_child("tests.benchmarks.steady_peer:leave", environment, 30)["error"]


def test_wrong_numbers_show_as_error(start: Start, tmp_path: Path):
    assert set_up_steady(start("wrong"), tmp_path).errors["steady"] == pytest.approx(1 / 5)


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
