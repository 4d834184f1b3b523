"""JSON fields of manifests."""

from __future__ import annotations

from pathlib import Path

import graphc as gc
from graphc import nn
from graphc.cli.model_fields import MODEL, describe
from graphc.files import model_content


def test_described_fields_are_declared(tmp_path: Path):
    batch = gc.Dim("batch", max=8)
    gc.export(nn.Linear(3, 2).eval(), gc.zeros(2, 3), path=tmp_path / "net.gcm", dims=[(batch,)])
    found = describe(model_content.load(tmp_path / "net.gcm").manifest)
    declared = {field.path.split(".")[0].removesuffix("[]") for field in MODEL} | {"native"}
    assert found.keys() <= declared
    assert found["dims"] == [{"name": "batch", "min": 1, "max": 8, "hint": 2}]
    assert (found["entry"], found["inputs"][0]["dtype"], found["native"]) == ("forward", "f32", False)
