"""Peers that a model is measured against."""

from __future__ import annotations

import argparse
import json
import warnings
from math import inf
from pathlib import Path

import numpy as np
import pytest

from graphc.base.errors import ArtifactError
from graphc.cli import peers
from graphc.cli.console import UsageError
from graphc.cli.peers import Case, open_peer, output_difference, stored_figures
from graphc.models.model_file import load

X = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)


def case_of(path: Path, streams: int = 1) -> Case:
    return Case(str(path), argparse.Namespace(machine="host", device=None, entry=None), (X,), streams)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_libraries_compute_what_the_file_does(net: Path, name: str):
    pytest.importorskip(name)
    pytest.importorskip("onnx")
    peer = open_peer(name, case_of(net, streams=2))
    np.testing.assert_allclose(peer.outputs()[0], load(net)(X), rtol=1e-4, atol=1e-5)
    assert len(peer.callers) == 2 and peer.version
    for call in peer.callers:
        call()


def test_torch_runs_the_file_it_has_exported(torch, tmp_path: Path):
    net = torch.nn.Linear(6, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(net, (torch.from_numpy(X),)), tmp_path / "net.pt2")
    peer = open_peer("torch", case_of(tmp_path / "net.pt2"))
    np.testing.assert_allclose(peer.outputs()[0], net(torch.from_numpy(X)).detach(), rtol=1e-6)


def test_torch_has_nothing_to_run_of_other_files(net: Path):
    with pytest.raises(UsageError, match=r"torch runs \.pt2 files, and .* is not one"):
        open_peer("torch", case_of(net))


def test_another_file(net: Path):
    peer = open_peer(str(net), case_of(net))
    np.testing.assert_array_equal(peer.outputs()[0], load(net)(X))


def test_peers_that_are_not_there(net: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UsageError, match="is neither a known runner nor a file"):
        open_peer("tensorrt", case_of(net))
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(UsageError, match=r"the package is not installed\n  try    install it: pip install onnxruntime"):
        open_peer("onnxruntime", case_of(net))
    assert set(peers.LIBRARIES) == {"onnxruntime", "openvino", "torch"}


def test_figures_of_an_earlier_run(tmp_path: Path):
    figures = {"p50": 1.0, "p90": 2.0, "p99": 3.0, "throughput": 4.0}
    path = tmp_path / "before.json"
    path.write_text(json.dumps({"call": {**figures, "calls": 3}}))
    assert stored_figures(str(path), {}) == figures
    path.write_text(json.dumps({"calls": [{"sizes": {"n": 2}, "call": figures}]}))
    assert stored_figures(str(path), {"n": 2}) == figures
    for text, sizes in (
        ("{", {}),
        ("[]", {}),
        ("{}", {}),
        (path.read_text(), {"n": 3}),
        ('{"call": {"p50": "x"}}', {}),
    ):
        path.write_text(text)
        with pytest.raises(ArtifactError, match="holds no figures"):
            stored_figures(str(path), sizes)


def test_outputs_are_compared_with_those_of_a_peer():
    result = output_difference([np.array([1.0, 4.0]), np.zeros(1)], [np.array([1.5, 5.0]), np.zeros(1)])
    assert (result.absolute, result.name, result.position) == (1.0, "0", (1,))
    assert output_difference([np.zeros(2)], [np.zeros(3)]).absolute == inf == output_difference([], [np.zeros(1)]).ratio
    assert output_difference([np.zeros(0)], [np.zeros(0)]).absolute == 0
