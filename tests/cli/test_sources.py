"""Sources of a compile: targets, model files, and texts of graphs and programs."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli.console import UsageError
from graphc.cli.sources import Source, open_source
from graphc.errors import ArtifactError
from graphc.ir.graph.graph import input_class
from tests.cli.conftest import Graphc


def opened(source: object, *inputs: str, entry: str | None = None) -> Source:
    """The source that the command line would open."""
    options = argparse.Namespace(source=str(source), input=list(inputs), weights=None, train=False, entry=entry)
    return open_source(options)


def test_a_target_has_its_weights(models: Path):
    source = opened(f"{models}:Net", "x:f32[2,6]")
    assert {k: v.shape for k, v in source.weights.items()} == {"fc.weight": (4, 6), "fc.bias": (4,)}
    assert [input_class(v) for v in source.stages().traced.inputs].count("param") == 2
    assert [input_class(v) for v in source.stages(frozen=True).traced.inputs] == ["input"]


def test_a_model_file_has_its_weights(net: Path):
    source = opened(net)
    assert source.weights["fc.bias"].shape == (4,)
    assert len(source.stages(frozen=True).traced.inputs) == 1


def test_texts(net: Path, graphc: Graphc, tmp_path: Path):
    graph = tmp_path / "net.gc"
    graph.write_text(graphc("ir", net).out)
    assert len(opened(graph).stages().traced.inputs) == 3
    program = tmp_path / "net.gck"
    program.write_text(graphc("ir", net, "--stage", "lowered").out)
    source = opened(program)
    assert source.graph is None and source.stages().lowered.calls


def test_constants_beside_a_text(models: Path, graphc: Graphc, tmp_path: Path):
    path = tmp_path / "net.gc"
    path.write_text(graphc("ir", f"{models}:Net", "--input", "x:f32[2,6]").out)
    np.savez(path.with_suffix(".npz"))
    assert opened(path).stages().traced.inputs


def test_what_is_no_source(tmp_path: Path):
    with pytest.raises(UsageError):
        opened(tmp_path / "x.txt")
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "x.gcm")
    (tmp_path / "bad.gcm").write_bytes(b"bad")
    with pytest.raises(ArtifactError):
        opened(tmp_path / "bad.gcm")


def test_an_entry_of_a_model_file(tmp_path: Path, net: Path):
    model = nn.BatchNorm1d(3)
    entries = {"infer": gc.Entry(model, gc.zeros(2, 3), train=False), "learn": gc.Entry(model, gc.zeros(2, 3))}
    gc.export(entries, path=tmp_path / "s.gcm")
    first, second = opened(tmp_path / "s.gcm"), opened(tmp_path / "s.gcm", entry="learn")
    assert "running_mean.next" not in str(first.graph) and "running_mean.next" in str(second.graph)
    frozen = [input_class(v) for v in first.stages(frozen=True).traced.inputs]
    assert frozen == ["input", "state", "state"]  # which the other entry writes
    with pytest.raises(UsageError, match="the file has no entry 'forward'"):
        opened(tmp_path / "s.gcm", entry="forward")
    with pytest.raises(UsageError, match=r"--entry names an entry of a .gcm file"):
        opened(tmp_path / "net.gc", entry="forward")
