"""The decoder that makes a token: contenders agree, and what is printed is what was measured."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphc
from benchmarks import decode
from benchmarks.decode import Setting, Shape
from benchmarks.sweep import Result, find_library

SMALL = Shape(width=64, heads=4, layers=2, vocabulary=96, places=16)


def test_narrow_weights_are_measured_against_whole_ones():
    found = decode.run_setting(Setting(SMALL, 9), ["bf16", "int8"], (), 2, 0.001)
    assert not found.problems and list(found.rounds_ms) == ["f32", "bf16", "int8"]
    assert 0 < found.errors["bf16"] < found.errors["int8"] < 0.05
    assert all(len(times) == 2 for times in found.rounds_ms.values())


@pytest.mark.parametrize("place", [0, 9, 15])
def test_what_is_compiled_computes_what_the_model_computes_and_fills_its_caches(place: int):
    setting = Setting(SMALL, place)
    inputs = [graphc.tensor(a) for a in setting.inputs]
    caches = [cache for layer in setting.model.layers for cache in (layer.keys, layer.values)]
    with graphc.no_grad():
        expected = setting.model(*inputs).numpy().copy()
        rows = [cache.numpy()[:, :, place].copy() for cache in caches]
        for cache in caches:
            cache[:, :, place] = 0.0
        found = setting.own("f32")().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for row, cache in zip(rows, caches, strict=True):
        np.testing.assert_allclose(cache.numpy()[:, :, place], row, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("place", [0, 15])
def test_peers_agree_at_the_first_place_and_at_the_last(place: int):
    pytest.importorskip("torch")
    peers = [peer for peer in decode.PEERS if find_library(peer)]
    found = decode.run_setting(Setting(SMALL, place), (), peers, 1, 0.001)
    assert not found.problems and set(found.errors) == set(peers)
    assert max(found.errors.values()) < 1e-5


def test_peers_that_keep_nothing_get_back_what_they_return():
    setting = Setting(SMALL, 9)
    given: list[np.ndarray] = []

    def run(arrays):
        given[:] = arrays[2:]
        return [np.zeros(3), *(np.full((1, 4, 1, 16), k) for k in range(4))]

    setting.keep(run)()
    assert [set(cache[:, :, 9].ravel()) for cache in given] == [{0}, {1}, {2}, {3}]
    assert all(np.array_equal(c[:, :, :9], s[:, :, :9]) for c, s in zip(given, setting.caches(), strict=True))


def test_the_table_has_what_is_missing_below_it():
    result = Result("decode", {}, {"f32": [4.0, 8.0], "int8": [2.0, 2.0]}, {"torch": "ImportError: no"}, {"int8": 0.01})
    table = decode.format_table(result)
    assert "| f32 | 6.00 | 1.00 | 0.0e+00 |" in table and "| int8 | 2.00 | 3.00 | 1.0e-02 |" in table
    assert table.endswith("torch: ImportError: no")


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(decode, "Shape", lambda: SMALL)
    monkeypatch.setattr("benchmarks.sweep.pin", lambda cores: None)
    options = ["--precision", "int4", "--position", "3", "--peers", "", "--rounds", "1", "--seconds", "0.001", "--json"]
    assert decode.main(options) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["position"] == 3 and set(found["ms"]) == {"f32", "int4"} and found["width"] == SMALL.width


@pytest.mark.parametrize("options", [["--position", "16"], ["--precision", "int3"], ["--peers", "nobody"]])
def test_what_it_cannot_measure_is_refused(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(decode, "Shape", lambda: SMALL)
    with pytest.raises(SystemExit) as stopped:
        decode.main(options)
    assert stopped.value.code == 2 and "usage" in capsys.readouterr().err
