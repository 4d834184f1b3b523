"""Measuring a machine: every row is a documented cost, and the timed loops do their work."""

from __future__ import annotations

import ast
import ctypes
import inspect
import json
import re

import numpy as np
import pytest

from benchmarks import machine
from benchmarks.harness import probes
from benchmarks.machine import FIELDS, Measurements, format_rows, in_use, main, names_of_costs
from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine import costs
from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import Target, host_target, named_targets, target_named
from graphc.runtime.loader import host, load_object

MEASURED = "Measured by ``python -m benchmarks.machine``."


def documented() -> dict[str, str]:
    """Return the docstring of each cost, by record and field."""
    topics = {type(getattr(DEFAULT, topic)).__name__: topic for topic in vars(DEFAULT)}
    texts = {}
    for record in ast.parse(inspect.getsource(costs)).body:
        if isinstance(record, ast.ClassDef) and record.name in topics:
            for stmt, after in zip(record.body, record.body[1:], strict=False):
                if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
                    assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                    texts[f"{topics[record.name]}.{stmt.target.id}"] = " ".join(str(after.value.value).split())
    return texts


def test_costs_say_that_they_are_measured_and_only_those():
    assert {name for name, text in documented().items() if MEASURED in text} == set(FIELDS)


def test_every_row_is_a_cost_with_a_number():
    target = target_named("avx2")
    names = names_of_costs(target)
    assert sorted(names) == sorted(documented())
    for name in FIELDS:
        assert name in names and in_use(target, name) >= 0


def test_one_cost_is_measured_and_the_others_are_listed(capsys: pytest.CaptureFixture[str]):
    assert main(["--only", "chain_cycles"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^host, one core at \d+\.\d+ GHz$", text, re.M)
    (row,) = re.findall(r"^\| contraction\.chain_cycles \| 4 \| ([\d.]+) \| cycles \|", text, re.M)
    assert float(row) > 0
    assert "far_rows" in text.partition("Not measured")[2]


def test_json(capsys: pytest.CaptureFixture[str]):
    assert main(["--only", "speeds.l1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (row,) = report["rows"]
    assert row["name"] == "speeds.l1" and row["measured"] > 0.1 and report["ghz"] > 0.1
    assert "fusion.cheap" in report["not measured"]


@pytest.mark.parametrize("option", ["read", "copy"])
def test_speeds_by_size(option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    name = f"{option}_table"
    table = getattr(machine, name)
    monkeypatch.setattr(machine, name, lambda target: table(target, [16 << 10, 64 << 10]))
    assert main([f"--{option}"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row[0].removeprefix("| ") for row in rows] == ["KiB", "16", "64"]
    assert main([f"--{option}", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out):
        assert len(row) == len(rows[0]) and all(value > 0.01 for value in row.values())


def test_what_there_is_none_of_is_a_dash():
    row = {"name": "a.b", "in_use": 2.0, "measured": None, "unit": "cycles", "source": "c"}
    text = format_rows("x", 1.0, [row], ["m.n", "m.o"])
    assert "| a.b | 2 | - | cycles | c |" in text and text.endswith("  m: n, o")


def test_a_target_that_does_not_run_here_is_refused(capsys: pytest.CaptureFixture[str]):
    other = "neon" if host_target().triple.startswith("x86_64") else "avx2"
    with pytest.raises(SystemExit):
        main(["--target", other])
    assert "does not run here" in capsys.readouterr().err


def test_an_unknown_cost_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--only", "colour"])
    assert "no measured cost has 'colour' in its name" in capsys.readouterr().err


def texts(target: Target) -> dict[str, str]:
    return {
        "clock": probes.emit_clock(target),
        "chain": probes.emit_chain(target),
        "read": probes.emit_read(target, target.vector_bytes),
        "pages": probes.emit_read(target, 4096, 4096),
        "copy": probes.emit_copy(target, False),
        "past": probes.emit_copy(target, True),
        "folds": probes.emit_folds(target),
    }


@pytest.mark.parametrize("name", [name for name, target in named_targets().items() if target.gpu is None])
def test_probes_build_for_every_target(name: str):
    for text in texts(target_named(name)).values():
        assert build_object(text, target_named(name))


def test_loops_have_the_instructions_that_are_timed():
    target = target_named("avx512")
    lines = {name: emit_assembly(text, target) for name, text in texts(target).items()}
    assert len(re.findall(r"\bvfmadd", lines["chain"])) == probes.STEPS
    assert lines["past"].count("vmovntps") + lines["past"].count("vmovntdq") == probes.STEPS
    assert "vmovnt" not in lines["copy"]
    assert len(re.findall(r"\bxor[ql]\b", lines["clock"])) >= probes.STEPS


def run(text: str, source: np.ndarray, goal: np.ndarray, rounds: int, nbytes: int) -> None:
    library = load_object(build_object(text, host_target()), probes.PROBE, host())
    table = (ctypes.c_int64 * 4)(rounds, source.ctypes.data, goal.ctypes.data, nbytes)
    library.entry(ctypes.addressof(table))


def test_a_copy_copies_and_a_read_reads_everything():
    measurements = Measurements(host_target())
    nbytes = 1 << 16
    source, goal = measurements.source[:nbytes], measurements.goal[:nbytes]
    source[:] = np.arange(nbytes) % 251
    for past in (False, True):
        goal[:] = 0
        run(probes.emit_copy(host_target(), past), source, goal, 1, nbytes)
        np.testing.assert_array_equal(source, goal)
    width = host_target().vector_bytes
    expected = np.bitwise_xor.reduce(source.reshape(-1, width), axis=0)
    run(probes.emit_read(host_target(), width), source, goal, 1, nbytes)
    np.testing.assert_array_equal(goal[:width], expected)
    shifted = [
        source[line * 64 + page : line * 64 + page + width] for line in (0, 1) for page in range(0, nbytes, 4096)
    ]
    run(probes.emit_read(host_target(), 4096, 4096), source, goal, 2, nbytes)
    np.testing.assert_array_equal(goal[:width], np.bitwise_xor.reduce(np.stack(shifted), axis=0))
