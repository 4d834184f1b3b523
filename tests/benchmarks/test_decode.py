"""The decoder benchmark: contenders agree, and the table prints the measurements."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphc
from benchmarks import decode
from benchmarks.decode import Setting
from benchmarks.harness.results import Result
from benchmarks.harness.timing import find_library
from benchmarks.models.decoders import Shape

SMALL = Shape(width=64, heads=4, layers=2, vocabulary=96, places=16)
TABLE = Shape(width=64, heads=4, layers=2, vocabulary=96, places=16, gated=False)
SHAPES = pytest.mark.parametrize("shape", [SMALL, TABLE], ids=["gated", "gpt2"])


def test_narrow_weights_are_measured_against_whole_ones():
    result = decode.run_setting(Setting(SMALL, 9), ["bf16", "int8"], (), 2, 0.001)
    own = ["f32", "bf16", "int8"]
    assert not result.problems and list(result.rounds_ms) == [*own, *(decode.READ + p for p in own)]
    assert 0 < result.errors["bf16"] < result.errors["int8"] < 0.05
    assert all(len(times) == 2 for times in result.rounds_ms.values())


@pytest.mark.sampled(50)
@SHAPES
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("position", [0, 9, 15])
def test_what_is_compiled_computes_what_the_model_computes_and_fills_its_caches(
    position: int, shape: Shape, named: bool, frozen: bool
):
    setting = Setting(shape, position, named, frozen)
    inputs = [graphc.tensor(a) for a in setting.inputs]
    caches = [cache for layer in setting.model.layers for cache in (layer.keys, layer.values)]
    with graphc.no_grad():
        expected = setting.model(*inputs).numpy().copy()
        rows = [cache.numpy()[:, :, position].copy() for cache in caches]
        for cache in caches:
            cache[:, :, position] = 0.0
        logits = setting.own("f32")().numpy()
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
    for row, cache in zip(rows, caches, strict=True):
        np.testing.assert_allclose(cache.numpy()[:, :, position], row, rtol=1e-4, atol=1e-5)


@SHAPES
@pytest.mark.parametrize("position", [0, 15])
def test_peers_agree_at_the_first_place_and_at_the_last(position: int, shape: Shape):
    pytest.importorskip("torch")
    peers = [peer for peer in decode.PEERS if find_library(peer)]
    result = decode.run_setting(Setting(shape, position), (), peers, 1, 0.001)
    assert not result.problems and set(result.errors) == set(peers)
    assert max(result.errors.values()) < 1e-5


@pytest.mark.parametrize("name", decode.NARROW_PEERS)
def test_peers_have_narrow_weights(name: str):
    """Check that narrow weights differ from full ones, but not by much."""
    for library in ("torch", "onnx", "onnxruntime", "openvino"):
        pytest.importorskip(library)
    result = decode.run_setting(Setting(SMALL, 9), (), [name], 1, 0.001)
    assert not result.problems and 1e-4 < result.errors[name] < (0.2 if name.endswith("int4") else 0.02)


def test_the_bytes_of_a_token():
    """Check the bytes: matrices by their bits, a table that also serves as a matrix in 8 bits at least, the used part
    of the caches."""
    matrices, cache = 2 * 16 * 64 * 64 + 96 * 64, 4 * 2 * 2 * 64 * 10
    gated, table = Setting(SMALL, 9), Setting(TABLE, 9)
    assert gated.read_bytes("f32") == 4 * matrices + cache and gated.read_bytes("int8_dot") == matrices + cache
    assert table.read_bytes("int4") == 2 * 12 * 64 * 64 * 9 // 16 + 96 * 64 + cache


def test_peers_that_keep_nothing_get_back_what_they_return():
    setting = Setting(SMALL, 9)
    inputs: list[np.ndarray] = []

    def run(arrays):
        inputs[:] = arrays[2:]
        return [np.zeros(3), *(np.full((1, 4, 1, 16), k) for k in range(4))]

    setting.keep(run)()
    assert [set(cache[:, :, 9].ravel()) for cache in inputs] == [{0}, {1}, {2}, {3}]
    assert all(np.array_equal(c[:, :, :9], s[:, :, :9]) for c, s in zip(inputs, setting.caches(), strict=True))


def test_the_table_has_what_is_missing_below_it():
    result = Result(
        "decode",
        {},
        {"f32": [4.0, 8.0], "int8": [2.0, 2.0], "read f32": [2.0, 4.0]},
        {"torch": "ImportError: no"},
        {"int8": 0.01},
    )
    table = decode.format_contenders(result)
    assert "| f32 | 6.00 | 1.00 | 0.50 | 0.0e+00 |" in table and "| int8 | 2.00 | 3.00 | - | 1.0e-02 |" in table
    assert decode.READ not in table
    assert table.endswith("torch: ImportError: no: decode")


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(decode.SHAPES, "gated", SMALL)
    monkeypatch.setattr("benchmarks.decode.pin", lambda cores: None)
    options = ["--precision", "int4", "--position", "3", "--peers", "", "--rounds", "1", "--seconds", "0.001", "--json"]
    assert decode.main([*options, "--places", "20", "--freeze"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["places"], report["position"], report["width"]) == (20, 3, SMALL.width)
    assert set(report["rows"][0]["ms"]) == {"f32", "int4", "read f32", "read int4"}


@pytest.mark.parametrize(
    "options",
    [["--position", "16"], ["--position", "3", "--places", "3"], ["--precision", "int3"], ["--peers", "nobody"]],
)
def test_what_it_cannot_measure_is_refused(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(decode.SHAPES, "gated", SMALL)
    with pytest.raises(SystemExit) as stopped:
        decode.main(options)
    assert stopped.value.code == 2 and "usage" in capsys.readouterr().err
