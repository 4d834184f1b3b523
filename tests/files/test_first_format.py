"""Model files of the first format: they are read for ever, and what is wrong with them is told as before."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.errors import ArtifactError
from graphc.files import container, first_format, model_content
from graphc.files.manifest import TensorSpec, from_json, to_json
from tests.files.test_manifest import NATIVE

MANIFEST = first_format.FirstManifest(
    "main",
    inputs=(TensorSpec("x", "f32", (2, 3)),),
    outputs=(TensorSpec("y", "f32", (2, 3)),),
    structure=0,
    ops=("add",),
    tensors=(
        first_format.FirstStored("w", "f32", (3,), "weights", 0),
        first_format.FirstStored("k", "i64", (1,), "data", 0),
    ),
    versions={"graphc": "0.1.0"},
)
SECTIONS = {
    "graph": b"graph @main() -> () {}",
    "data": np.array([7]).tobytes(),
    "weights": np.arange(3, dtype=np.float32).tobytes(),
}
CODE = {"constants": bytes(80), "object": b"code"}


def write(path: Path, manifest: first_format.FirstManifest | bytes, **sections: bytes) -> Path:
    text = manifest if isinstance(manifest, bytes) else to_json(manifest)
    container.write_sections(path, {k: [v] for k, v in {"manifest": text, **SECTIONS, **sections}.items()})
    return path


def test_the_only_entry_is_called_forward(tmp_path: Path):
    found = model_content.load(write(tmp_path / "a.gcm", MANIFEST))
    spec = found.first.spec
    assert found.is_old and (spec.name, spec.title, spec.uses) == ("forward", "main", ("w",))
    assert found.weights["w"].tolist() == [0, 1, 2] and found.first.data["k"].tolist() == [7]
    assert not found.first.natives and found.first.text == SECTIONS["graph"].decode()


def test_native_code_comes_back(tmp_path: Path):
    found = model_content.load(write(tmp_path / "a.gcm", dataclasses.replace(MANIFEST, native=NATIVE), **CODE))
    (code,) = found.first.natives
    assert (code.manifest, code.object, code.constants.tobytes()) == (NATIVE, b"code", bytes(80))


def test_it_is_written_anew_in_the_format_of_today(tmp_path: Path):
    old = model_content.load(write(tmp_path / "a.gcm", MANIFEST))
    model_content.save(tmp_path / "b.gcm", old)
    new = model_content.load(tmp_path / "b.gcm")
    assert new.manifest == old.manifest and not new.is_old


@pytest.mark.parametrize(
    ("change", "sections", "message"),
    [
        ({"extra": 1}, {}, "does not have exactly the fields"),
        ({"ir_version": 2}, {}, "IR version 2"),
        ({"structure": 1}, {}, "names output 1 of 1"),
        ({"tensors": []}, {}, "bytes of no tensor"),
        ({"native": {"name": "main"}}, {}, "manifest.native does not have exactly the fields"),
        ({}, {"more": b""}, "the file has the sections"),
        ({}, CODE, "disagree about native code"),
        ({}, {"graph": b"\xff"}, "not valid UTF-8"),
    ],
)
def test_what_lies_is_refused(tmp_path: Path, change: dict[str, Any], sections: dict[str, bytes], message: str):
    text = json.dumps({**json.loads(to_json(MANIFEST)), **change}).encode()
    with pytest.raises(ArtifactError, match=message):
        model_content.load(write(tmp_path / "a.gcm", text, **sections))


def test_tensors_lie_in_known_sections():
    record = json.loads(to_json(MANIFEST))
    record["tensors"][0]["section"] = "golden"
    with pytest.raises(ArtifactError, match="unknown section"):
        from_json(first_format.FirstManifest, json.dumps(record).encode())


def test_a_graph_without_a_manifest_is_no_model_of_any_format(tmp_path: Path):
    container.write_sections(tmp_path / "a.gcm", {"graph": [b"graph"], "weights": []})
    with pytest.raises(ArtifactError, match="the file has the sections graph, weights"):
        model_content.load(tmp_path / "a.gcm")
