"""Ops as machine code of other processors: some samples on each machine that can be run here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphc.base.dtypes import int8, uint8
from graphc.codegen.machine.target import Target, host_target, target_named
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.contraction.byte_product import byte_matmul
from graphc.ops.dispatch import GraphDispatcher, use
from tools.codegen import cross_ops

SAMPLES = 40
MACOS = ("macos-neon", "macos-avx2")
CPUS = ("sse2", "neon", "neon-dotprod", "neon-i8mm", "rv64gc", "cortex-m4", "rv32imc", "rv32imfc")
WASM = ("wasm", "wasm-relaxed", "wasm-scalar")


@pytest.mark.parametrize("name", [*CPUS, *WASM, *MACOS])
def test_samples_give_what_their_references_give(name: str, tmp_path):
    target = target_named(name)
    if reason := cross_ops.missing_tool(target):
        pytest.skip(reason)
    cases = cross_ops.chosen(target, SAMPLES, seed=11)
    assert len(cases) > SAMPLES // 2
    assert cross_ops.run(cases, target, tmp_path) == []


@pytest.mark.parametrize("name", ["sse2", "neon", "neon-dotprod", "neon-i8mm", "cortex-m4", "rv32imc", *MACOS])
def test_sums_of_extreme_bytes_are_exact(name: str, tmp_path):
    """Two products of 255 and -128 are beyond 16 bits, and a sum of 66,000 of them is beyond 32."""
    target = target_named(name)
    if reason := cross_ops.missing_tool(target):
        pytest.skip(reason)
    random, cases = np.random.default_rng(4), []
    for rows, depth, columns in ((9, 52, 20), (1, 64, 7), (1, 66_000, 2)):
        x = random.choice(np.array([0, 1, 127, 128, 255], np.uint8), (rows, depth))
        w = random.choice(np.array([-128, -127, -1, 0, 1, 127], np.int8), (depth, columns))
        x[0], w[:, 0] = 255, -128
        graph = Graph("g")
        operands = [graph.add_input(TensorType(dtype, a.shape), n) for dtype, a, n in ((uint8, x, "x"), (int8, w, "w"))]
        with use(GraphDispatcher(graph)):
            graph.set_outputs([byte_matmul(*operands)])
        case = cross_ops.build_program(f"{rows} rows", graph, [x, w], [x.astype(np.int32) @ w.astype(np.int32)], target)
        assert case is not None
        cases.append(case)
    assert cross_ops.run(cases, target, tmp_path) == []


@pytest.mark.parametrize(("name", "linux"), [("macos-neon", "neon-dotprod"), ("macos-avx2", "avx2")])
def test_in_strict_order_the_bits_of_macos_are_those_of_linux(name: str, linux: str, tmp_path: Path):
    results = []
    for target in (target_named(f"{name}:strict"), target_named(f"{linux}:strict")):
        if reason := cross_ops.missing_tool(target):
            pytest.skip(reason)
        assert cross_ops.run(cross_ops.chosen(target, SAMPLES, seed=12), target, tmp_path) == []
        results.append((tmp_path / "out").read_bytes())
    assert results[0] == results[1] != b""


def test_the_emulated_processor_has_no_more_products_of_bytes_than_the_target():
    assert cross_ops.processor(target_named("neon-i8mm")) == "max"
    assert cross_ops.processor(target_named("neon-dotprod")) == cross_ops.WITHOUT_I8MM
    assert cross_ops.processor(target_named("rv64gcv")).startswith("rv64,")


def test_a_result_that_differs_is_named():
    drawn = cross_ops.chosen(target_named("rv64gc"), 9, seed=1)
    cases = [case for case in drawn if all(a.size and a.dtype != bool for a in case.expected)]
    results = b"".join(np.ascontiguousarray(a).tobytes() for case in cases for a in case.expected)
    assert cross_ops.compare(cases, results) == []
    wrong = bytes(b ^ 0x55 for b in results)
    named = cross_ops.compare(cases, wrong)
    assert len(cases) > 4 and all(case.title in " ".join(named) for case in cases)


def test_instructions_that_this_machine_lacks_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cross_ops, "commands", lambda target: ["cc"])
    monkeypatch.setattr(cross_ops.shutil, "which", lambda tool: f"/bin/{tool}")
    features = host_target().features
    lacking = replace(target_named("macos-avx2"), features=f"{features},+nothing")
    assert "nothing" in cross_ops.missing_tool(lacking)
    assert cross_ops.missing_tool(replace(lacking, features=features)) == ""


def test_the_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(cross_ops.shutil, "which", lambda tool: None)
    assert cross_ops.main(["--target", "neon"]) == 2
    assert "cannot run here: no " in capsys.readouterr().err


def test_the_command_counts_programs_and_exits_1_where_one_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(cross_ops, "missing_tool", lambda target: "")
    monkeypatch.setattr(cross_ops, "run", lambda cases, target, folder: [])
    assert cross_ops.main(["--target", "rv64gc", "--count", "3", "--seed", "1"]) == 0
    assert capsys.readouterr().out == "rv64gc: 3 samples, 0 differ\n"
    monkeypatch.setattr(cross_ops, "run", lambda cases, target, folder: [f"{cases[0]}: differs"])
    asked: list[tuple[Target, int, int]] = []

    def programs(target: Target, count: int, seed: int) -> list[cross_ops.Program]:
        asked.append((target, count, seed))
        return cross_ops.chosen(target, 1, seed=1)

    assert cross_ops.command("", "graphs", 7, programs, ["--target", "neon"]) == 1
    assert asked == [(target_named("neon"), 7, 0)] and capsys.readouterr().out.endswith(
        "differs\nneon: 1 graphs, 1 differ\n"
    )
