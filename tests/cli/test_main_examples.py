"""Every command line that the help of a command shows does what it says, and prints the fields that are stated."""

from __future__ import annotations

import argparse
import io
import json
import shlex
import shutil
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli.main import COMMANDS, load_command, main
from graphc.cli.streaming import write
from tests.cli.conftest import Graphc
from tests.cli.field_check import mismatches

NET = """
from graphc import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2)
        self.fc = nn.Linear(4 * 13 * 13, 10)

    def forward(self, x):
        return self.fc(self.conv(x).relu().flatten(1))
"""
TYPES = "x:f32[batch=1..64,1,28,28]"
EXAMPLES = [(name, line) for name in COMMANDS for line in load_command(name).EXAMPLES]
PACKAGES = {
    ".png": "PIL",
    "@digits": "PIL",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    ".onnx": "onnx",
    ".pt2": "torch",
    "safetensors": "safetensors",
    '"Once': "tokenizers",
    "chat": "tokenizers",
    "graphc chat": "jinja2",
}
"""What an example needs, by a word in it."""


@pytest.fixture(scope="module")
def universe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "net.py").write_text(NET)
    make = ["compile", f"{folder}/net.py:Net", "--input", TYPES, "--golden", "1", "-o"]
    for name in ("net.gcm", "other.gcm"):
        assert main([*make, f"{folder}/{name}"]) == 0
    model, digits = gc.load(str(folder / "net.gcm")), np.random.default_rng(0)
    digit = digits.standard_normal((1, 1, 28, 28)).astype(np.float32)
    np.save(folder / "digit.npy", digit)
    np.save(folder / "expected.npy", np.asarray(model(digit)))
    for name in ("before.gcm", "after.gcm", "models/net.gcm"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(folder / "net.gcm", folder / name)
    _write_images(folder)
    _write_foreign(folder)
    _write_stream(folder)
    figures = {name: 1e-5 for name in ("p50", "p90", "p99")} | {"throughput": 1e5}
    (folder / "before.json").write_text(json.dumps({"call": figures}))
    return folder


def _write_images(folder: Path) -> None:
    if find_spec("PIL"):
        image = import_module("PIL.Image")
        pixels = np.random.default_rng(0).integers(0, 255, (40, 30), dtype=np.uint8)
        (folder / "digits").mkdir()
        for path in (folder / "digit.png", folder / "digits" / "a.png", folder / "digits" / "b.png"):
            image.fromarray(pixels).save(path)


def _write_stream(folder: Path) -> None:
    stream = gc.stream(nn.Conv1d(1, 1, 3), gc.zeros(1, 1, 64), dim=2, step=64)
    gc.export(stream.module, *stream.examples(), path=folder / "denoiser.gcm")
    write(folder / "noisy.wav", np.random.default_rng(0).standard_normal((1, 640)).astype(np.float32) / 8, 48000)


def _write_foreign(folder: Path) -> None:
    if find_spec("onnx"):
        weights = ["--weights", f"{folder}/net.gcm", "-o", f"{folder}/net.onnx"]
        assert main(["compile", f"{folder}/net.py:Net", "--input", TYPES, *weights]) == 0
    if find_spec("torch"):
        torch = import_module("torch")
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.export.save(torch.export.export(net, (torch.zeros(1, 1, 28, 28),)), folder / "net.pt2")
    if find_spec("safetensors"):
        net = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.Linear(4 * 13 * 13, 10))
        names = {"0": "conv", "1": "fc"}
        state = {f"{names[k[0]]}{k[1:]}": v for k, v in net.state_dict().items()}
        gc.serialize.save_safetensors(state, folder / "net.safetensors")


@pytest.fixture
def place(universe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which the test runs, with a line on stdin."""
    folder = shutil.copytree(universe, tmp_path / "files")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.StringIO("Hi!\n"))
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def prepare(name: str, line: str, folder: Path) -> None:
    """Write the files of an example by ``example_files(folder, line)`` of ``tests/cli/examples_of_NAME.py``, if any."""
    spec = find_spec(f"tests.cli.examples_of_{name}")
    write = getattr(import_module(spec.name), "example_files", None) if spec else None
    if write is not None:
        write(folder, line)


def documents(text: str) -> list[Any]:
    """Return the JSON documents that a command printed: one, or one per line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def needed(line: str) -> set[str]:
    return {package for word, package in PACKAGES.items() if word in line}


@pytest.mark.parametrize(("name", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_examples_run(place: Path, graphc: Graphc, name: str, line: str):
    for package in needed(line):
        pytest.importorskip(package)
    program, command, *arguments = shlex.split(line)
    assert (program, command) == ("graphc", name)
    prepare(name, line, place)
    done = graphc(command, *arguments)
    assert done.code == 0, done.err
    if "--json" in arguments:
        documents_printed = documents(done.out)
        assert (
            documents_printed
            and [wrong for part in documents_printed for wrong in mismatches(part, load_command(name).JSON)] == []
        )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_with_json_states_its_fields_and_prints_those(place: Path, graphc: Graphc, name: str):
    module = load_command(name)
    parser = argparse.ArgumentParser()
    module.add_to(parser)
    has_json = any("--json" in action.option_strings for action in parser._actions)
    assert has_json == hasattr(module, "JSON")
    if has_json:
        line = min(module.EXAMPLES, key=lambda line: len(needed(line)))
        for package in needed(line):
            pytest.importorskip(package)
        prepare(name, line, place)
        done = graphc(*shlex.split(line)[1:], "--json")
        assert done.code == 0, done.err
        documents_printed = documents(done.out)
        assert (
            documents_printed and [wrong for part in documents_printed for wrong in mismatches(part, module.JSON)] == []
        )


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_examples(name: str, capsys: pytest.CaptureFixture[str]):
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert all(line in out for line in load_command(name).EXAMPLES)
