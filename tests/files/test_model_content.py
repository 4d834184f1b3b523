"""Model files: every part comes back, equal models give equal bytes, and damage of any kind is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import ALL
from graphc.errors import ArtifactError
from graphc.files import container, model_content
from graphc.files.manifest import BufferSpec, Manifest, TargetSpec, TensorSpec
from graphc.files.model_content import Artifact, Code, Sample, StoredEntry, assemble, without_weights
from graphc.files.model_manifest import EntrySpec
from tests.files.test_manifest import NATIVE

RANDOM = np.random.default_rng(0)
WEIGHTS = {
    "fc.weight": np.array([1.5, -0.0, np.nan], np.float32),
    "empty": np.zeros((0, 4), np.float64),
    "scalar": np.array(7),
}
DATA = {f"k.{d.name}": RANDOM.integers(0, 2, (3, 5)).astype(d.numpy) for d in ALL}
TEXT = "graph @main(%x: f32[2,3]) -> (f32[2,3]) {\n  return %x  // β\n}\n"
SPEC = EntrySpec(
    "forward",
    "main",
    inputs=(TensorSpec("x", "f32", (2, 3)),),
    outputs=(TensorSpec("y", "f32", (2, 3)),),
    structure={"dict": [["logits", 0], ["pair", {"tuple": [0, None]}]]},
    ops=("add", "mul"),
    uses=("fc.weight",),
)
CODE = Code(NATIVE, b"code", np.arange(80, dtype=np.uint8))
OTHER = Code(NATIVE, b"other code", np.arange(80, dtype=np.uint8))
ARRAYS = tuple(RANDOM.normal(size=(2, 3)).astype(np.float32) for _ in range(2))
FIRST = StoredEntry(SPEC, TEXT, DATA)
SECOND = StoredEntry(
    dataclasses.replace(SPEC, name="count", uses=("fc.weight", "scalar"), writes=("scalar",)),
    TEXT.replace("@main", "@count"),
    {"mine": DATA["k.f32"]},
    (CODE, OTHER),
    (Sample(ARRAYS[:1], ARRAYS[1:]), Sample(ARRAYS[1:], ARRAYS[1:])),
)


def model(*entries: StoredEntry, weights: dict[str, np.ndarray] = WEIGHTS) -> Artifact:
    return assemble(entries or (FIRST, SECOND), weights, {"graphc": "0.1.0"}, params=["fc.weight"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    model_content.save(tmp_path / "a.gcm", model())
    return tmp_path / "a.gcm"


def assert_equal_arrays(result: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(result) == list(expected)
    for name, array in expected.items():
        assert (result[name].dtype, result[name].shape) == (array.dtype, array.shape)
        assert result[name].tobytes() == array.tobytes()


def test_a_model_comes_back(file: Path):
    loaded = model_content.load(file)
    assert loaded.manifest == model().manifest
    assert_equal_arrays(loaded.weights, WEIGHTS)
    assert loaded.first.text == TEXT and loaded.entry("count").text == SECOND.text
    assert_equal_arrays(loaded.first.data, dict(sorted(DATA.items())))
    assert_equal_arrays(loaded.entry("count").data, SECOND.data)
    assert [(c.manifest, c.object, c.constants.tobytes()) for c in loaded.entry("count").natives] == [
        (c.manifest, c.object, c.constants.tobytes()) for c in (CODE, OTHER)
    ]
    sample = loaded.entry("count").golden[1]
    assert [a.tobytes() for a in (*sample.inputs, *sample.outputs)] == [ARRAYS[1].tobytes()] * 2
    for array in (*loaded.weights.values(), *loaded.first.data.values()):
        assert not array.flags.writeable
        assert array.ctypes.data % 64 == 0 or not array.size


def test_files_of_the_first_format_name_the_version_that_converts_them(tmp_path: Path):
    container.write_sections(tmp_path / "a.gcm", {"manifest": [b"{}"], "graph": [b"graph"], "weights": []})
    with pytest.raises(ArtifactError, match=r"a\.gcm: the file has the format of graphc 0.1.0") as caught:
        model_content.load(tmp_path / "a.gcm")
    assert "graphc 0.2.0" in (caught.value.remedy or "")


def test_the_manifest_says_which_tensors_are_parameters_and_which_change():
    facts = {t.name: (t.is_param, t.free) for t in model().manifest.weights}
    assert facts == {"fc.weight": (True, False), "empty": (False, False), "scalar": (False, True)}
    more = assemble([FIRST], WEIGHTS, {}, free=["empty"]).manifest
    assert [t.name for t in more.weights if t.free] == ["empty"]


def test_what_is_equal_is_kept_once(file: Path):
    sections = container.read_sections(file)
    assert [name for name in sections if name.startswith(("constants", "object"))] == [
        *("constants.0", "object.0", "object.1")
    ]
    loaded = model_content.load(file)
    assert loaded.manifest.entry("count").data == {"mine": loaded.manifest.first.data["k.f32"]}
    assert sum(t.section == "golden" for t in loaded.manifest.tensors) == 2


def test_views_and_other_byte_orders_are_stored_dense(tmp_path: Path):
    base = RANDOM.normal(size=(4, 6)).astype(np.float32)
    weights = {**WEIGHTS, "t": base.T, "s": base[::2, ::3], "b": base.astype(">f4")}
    model_content.save(tmp_path / "v.gcm", model(weights=weights))
    loaded = model_content.load(tmp_path / "v.gcm").weights
    assert_equal_arrays(loaded, {**WEIGHTS, "t": np.ascontiguousarray(base.T), "s": base[::2, ::3].copy(), "b": base})


def test_equal_models_give_equal_bytes(file: Path, tmp_path: Path):
    model_content.save(tmp_path / "b.gcm", model())
    assert (tmp_path / "b.gcm").read_bytes() == file.read_bytes()
    model_content.save(tmp_path / "c.gcm", model_content.load(file))
    assert (tmp_path / "c.gcm").read_bytes() == file.read_bytes()


# ---- damage


def test_flipped_bytes_are_refused(file: Path):
    content = bytearray(file.read_bytes())
    rng = random.Random(1)
    for position in rng.sample(range(len(content)), 3000):
        mask = rng.randrange(1, 256)
        content[position] ^= mask
        file.write_bytes(content)
        with pytest.raises(ArtifactError):
            model_content.load(file)
        content[position] ^= mask


def test_truncations_are_refused(file: Path):
    size = file.stat().st_size
    for length in sorted(random.Random(2).sample(range(size), 100), reverse=True):
        os.truncate(file, length)
        with pytest.raises(ArtifactError, match=r"truncated|empty"):
            model_content.load(file)


def forge(path: Path, change: Any, sections: dict[str, bytes | None] | None = None) -> None:
    """Rewrites a model file with another manifest and other sections (None: without), with right digests."""
    old: dict[str, Any] = {name: s.tobytes() for name, s in container.read_sections(path).items()}
    if isinstance(change, dict):
        change = json.dumps({**json.loads(old["manifest"]), **change}).encode()
    results = {**old, "manifest": change, **(sections or {})}
    container.write_sections(path, {k: [v] for k, v in results.items() if v is not None})


def tensor(**changes: object) -> dict[str, object]:
    facts = {"name": "t", "dtype": "f32", "shape": [1], "section": "weights", "offset": 0}
    return {**facts, "is_param": False, "free": False, **changes}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "does not have exactly the fields"),
        ({"extra": 1}, "does not have exactly the fields"),
        ({"entries": []}, "the file has 0 entries"),
        ({"entries": [{}]}, "does not have exactly the fields"),
        ({"versions": {"a": 1}}, "manifest.versions.a has the wrong type"),
        ({"ir_version": 99}, "IR version 99, this graphc reads version 1"),
        ({"ir_version": True}, "manifest.ir_version has the wrong type"),
        ({"tensors": [tensor(section="code")]}, "unknown section"),
        ({"tensors": [tensor(offset=-64)]}, "has the offset -64"),
        ({"tensors": [tensor(offset=4)]}, "has the offset 4"),
        ({"tensors": [tensor(), tensor()]}, "two tensors have the same name"),
        ({"tensors": [tensor(shape=[1 << 40, 1 << 40, 0])]}, "bytes, at most"),
        ({"tensors": [tensor(free=1)]}, "has the wrong type"),
    ],
)
def test_manifests_that_lie_are_refused(file: Path, change: dict | bytes, message: str):
    forge(file, change)
    with pytest.raises(ArtifactError, match=message):
        model_content.load(file)


def with_entry(file: Path, number: int, **changes: Any) -> dict[str, Any]:
    """The entries of a file, one of them with other fields."""
    entries = json.loads(container.read_sections(file)["manifest"].tobytes())["entries"]
    entries[number] |= changes
    return {"entries": entries}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "forward"}, "two entries have the same name"),
        ({"name": 1}, "has the wrong type"),
        ({"ops": "add"}, "has the wrong type"),
        ({"inputs": [{"name": "x", "dtype": "f12", "shape": []}]}, "unknown element type 'f12'"),
        ({"inputs": [{"name": "x", "dtype": "f32", "shape": [-1]}]}, r"has the shape \[-1\]"),
        ({"inputs": [{"name": "x", "dtype": "f32", "shape": [1] * 65}]}, "rank 65, at most 64"),
        ({"inputs": [{"name": "x" * 5000, "dtype": "f32", "shape": []}]}, "5000 characters"),
        ({"uses": ["of.another.model", "scalar"]}, "takes 'of.another.model'"),
        ({"data": {"mine": "99"}}, "takes '99'"),
        ({"golden": [{"inputs": ["7"], "outputs": ["0"]}]}, "takes '7'"),
        ({"natives": []}, "the file has the sections"),
        ({"derivative": {"residuals": 0, "kept": [], "outputs": [], "inputs": [], "params": []}}, "is not in the file"),
    ],
)
def test_entries_that_lie_are_refused(file: Path, changes: dict[str, Any], message: str):
    forge(file, with_entry(file, 1, **changes))
    with pytest.raises(ArtifactError, match=message):
        model_content.load(file)


@pytest.mark.parametrize(("kind", "number"), [("constants", 1), ("constants", -1), ("object", 2), ("object", 1 << 40)])
def test_native_codes_name_sections_that_are_there(file: Path, kind: str, number: int):
    natives = with_entry(file, 1)["entries"][1]["natives"]
    natives[1][kind] = number
    forge(file, with_entry(file, 1, natives=natives))
    with pytest.raises(ArtifactError, match=r"native codes name the sections|the file has the sections"):
        model_content.load(file)


def test_sections_must_be_those_of_the_model(file: Path):
    for sections, message in [
        ({"more": b""}, "the file has the sections"),
        ({"graph.1": None}, "the file has the sections"),
        ({"object.0": None}, "the file has the sections"),
        ({"graph.1": b"\xff"}, "not valid UTF-8"),
        ({"constants.0": b"\0" * 79}, "the constant block has the wrong size"),
        ({"weights": b"\0" * 8}, "ends at byte"),
        ({"data": b"\0" * 10_000}, "bytes of no tensor"),
    ]:
        model_content.save(file, model())
        forge(file, {}, sections)
        with pytest.raises(ArtifactError, match=message):
            model_content.load(file)
    model_content.save(file, model())
    old = {name: [s.tobytes()] for name, s in container.read_sections(file).items()}
    container.write_sections(file, dict(reversed(old.items())))
    with pytest.raises(ArtifactError, match="the file has the sections"):
        model_content.load(file)


def test_tensors_follow_each_other(file: Path):
    for offset, message in [(0, "does not follow"), (128, "ends at byte"), (1 << 30, "ends at byte")]:
        model_content.save(file, model())
        records = json.loads(container.read_sections(file)["manifest"].tobytes())["tensors"]
        records[2]["offset"] = offset
        forge(file, {"tensors": records})
        with pytest.raises(ArtifactError, match=message):
            model_content.load(file)


def test_sections_that_change_places_are_refused(file: Path):
    """The texts of two graphs, and two object files, each with the digest of the other."""
    content = file.read_bytes()
    sections = container.read_sections(file)
    for a, b in (("graph.0", "graph.1"), ("object.0", "object.1")):
        table = bytearray(content)
        names = list(sections)
        places = [64 + 64 * names.index(name) + 32 for name in (a, b)]
        digests = [bytes(content[p : p + 32]) for p in places]
        for place, digest in zip(places, reversed(digests), strict=True):
            table[place : place + 32] = digest
        file.write_bytes(table)
        with pytest.raises(ArtifactError, match="digest of its section table differs"):
            model_content.load(file)


def test_constants_with_the_bytes_of_a_weight_leave_the_block():
    weight = np.arange(2048, dtype=np.float32)
    other = weight + 1
    buffers = [
        BufferSpec("a", "f32", (2048,), "constant", offset=0),
        BufferSpec("b", "f32", (2, 1024), "constant", offset=8192),
        BufferSpec("c", "f32", (3,), "constant", offset=16384),
    ]
    manifest = Manifest("net", "entry", tuple(buffers), 0, 16396, TargetSpec("t", "c", ()))
    block = np.concatenate([a.view(np.uint8) for a in (weight, other, weight[:3])])
    left, constants = without_weights(manifest, block, {"w": weight.reshape(64, 32), "short": weight[:3]})
    assert [(b.path, b.offset) for b in left.buffers] == [("w", -1), ("", 0), ("", 8192)]
    np.testing.assert_array_equal(constants, block[8192:])
    assert left.constants == constants.nbytes


class Total(gc.nn.Module):
    """Adds its inputs to a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.total, self.fixed = gc.nn.Buffer(gc.zeros(4096)), gc.nn.Buffer(gc.zeros(4096))

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        return self.total.add_(x) + self.fixed


def test_states_that_begin_as_zeros_take_no_bytes(tmp_path: Path):
    path, ones = tmp_path / "total.gcm", np.ones(4096, np.float32)
    with gc.no_grad():
        gc.export(Total(), gc.ones(4096), path=path)
    records = {t.name: t for t in model_content.load(path).manifest.weights}
    assert (records["total"].stored_bytes, records["fixed"].stored_bytes) == (0, 16384)
    loaded = gc.load(path)
    for expected in (1.0, 2.0):
        assert loaded(ones).tolist() == [expected] * 4096
    loaded.reset_state()
    assert loaded(ones).tolist() == [1.0] * 4096


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"free": False}, "though no call changes it"),
        ({"shape": [1 << 30, 1 << 30]}, "at most"),
        ({"zeros": False}, "left out"),
    ],
)
def test_zeros_that_lie_are_refused(file: Path, changes: dict[str, Any], message: str):
    records = json.loads(container.read_sections(file)["manifest"].tobytes())["tensors"]
    records[-1] |= {"section": "weights", "free": True, "zeros": True} | changes
    forge(file, {"tensors": records})
    with pytest.raises(ArtifactError, match=message):
        model_content.load(file)
