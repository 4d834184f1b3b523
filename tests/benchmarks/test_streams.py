"""The benchmark of streams: contenders agree, memory stays, and NaN goes with a reset."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import streams
from benchmarks.models.streams import NETS, LstmAmplifier, Net, WaveNet
from benchmarks.streams import Case

SMALL = {
    "wavenet": Net(lambda: WaveNet((4, 2), ((1, 2), (4, 64))), (1, 1, 256), 2, 48_000, (1, 64)),
    "lstm": Net(lambda: LstmAmplifier(8), (1, 256, 1), 1, 48_000, (1, 64)),
}
CASES = pytest.mark.parametrize(("name", "step"), [(name, step) for name in SMALL for step in (1, 64)])


def case(name: str, step: int, folder: Path) -> Case:
    if streams.shutil.which("cc") is None:
        pytest.skip("no cc")
    return Case(name, SMALL[name], step, folder)


@CASES
def test_library_and_loop_compute_the_model(name: str, step: int, tmp_path: Path):
    measured = case(name, step, tmp_path)
    program, library = measured.own()
    (proof,) = library.realtime.values()
    assert proof.instructions and measured.run(program, 64)["error"] < streams.TOLERANCE
    loops = measured.loops(streams.OPTIONS[:1])
    assert loops and all(measured.run(loop, 64)["p50"] > 0 for loop in loops)


@CASES
def test_onnxruntime_computes_the_model(name: str, step: int, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    calls = case(name, step, tmp_path).onnx_calls()
    assert set(calls) == {"bound", "plain"}
    assert streams.time_call(calls["plain"], 10)["p50"] > 0


@CASES
def test_many_ticks_take_no_memory_and_nan_goes_with_a_reset(name: str, step: int, tmp_path: Path):
    (told,) = case(name, step, tmp_path).endure(20_000)
    assert told["after_nan"] == told["not_finite"] == 0 and told["ticks"] == 20_000
    assert 0 < told["before"] == told["after"]


def test_outputs_that_differ_are_reported(tmp_path: Path):
    measured = case("lstm", 64, tmp_path)
    with pytest.raises(AssertionError, match="lstm: outputs differ by"):
        measured.compared([block + np.float32(0.1) for block in measured.expected])


def test_each_contender_has_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    row = {"net": "tcn", "step": 1, "by": "graphc", "p50 us": 1.5, "instructions": 9356}
    monkeypatch.setattr(Case, "measure", lambda self, rounds, calls: [row, {**row, "by": "peer", "instructions": None}])
    monkeypatch.setattr(streams.shutil, "which", lambda name: name)
    assert streams.main(["tcn"]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| tcn | 1 | graphc | 1.5 | 9,356 |",
        "| tcn | 1 | peer | 1.5 | - |",
    ]
    assert streams.main(["tcn", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0] == row


def test_an_unknown_net_is_named(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        streams.main(["nett"])
    assert stopped.value.code == 2 and f"choose from {', '.join(NETS)}" in capsys.readouterr().err
