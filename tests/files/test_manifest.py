"""Model files: round trip of every field, refusal of damage, and limits of what a manifest may say."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.base.dtypes import ALL
from graphc.base.named_dims import Dim, dimensions
from graphc.errors import ArtifactError
from graphc.files import container
from graphc.files import manifest as artifact
from graphc.files.manifest import Artifact, BufferSpec, Manifest, ModelManifest, TargetSpec, TensorSpec

TARGET = TargetSpec("x86_64-unknown-linux-gnu", "x86-64-v3", ("avx", "avx2"))
NATIVE = Manifest(
    "main",
    "graphc_entry",
    (
        BufferSpec("x", "f32", (2, 3), "input"),
        BufferSpec("w", "f32", (3,), "param", "fc.weight", written=True),
        BufferSpec("y", "f32", (2, 3), "output"),
        BufferSpec("c", "i64", (2,), "constant", offset=64),
        BufferSpec("arena", "u8", (128,), "arena"),
    ),
    arena=128,
    constants=80,
    target=TARGET,
    versions={"graphc": "0.1.0"},
)
MODEL = ModelManifest(
    "main",
    inputs=(TensorSpec("x", "f32", (2, 3)),),
    outputs=(TensorSpec("y", "f32", (2, 3)),),
    structure={"dict": [["logits", 0], ["pair", {"tuple": [0, None]}]]},
    ops=("add", "mul"),
    versions={"graphc": "0.1.0"},
)
RANDOM = np.random.default_rng(0)
WEIGHTS = {
    "fc.weight": np.array([1.5, -0.0, np.nan], np.float32),
    "empty": np.zeros((0, 4), np.float64),
    "scalar": np.array(7),
}
DATA = {f"k.{d.name}": RANDOM.integers(0, 2, (3, 5)).astype(d.numpy) for d in ALL}
TEXT = "graph @main(%x: f32[2,3]) -> (f32[2,3]) {\n  return %x  // β\n}\n"


def save(path: Path, **changes: object) -> ModelManifest:
    whole = Artifact(MODEL, TEXT, WEIGHTS, DATA)
    return artifact.save(path, dataclasses.replace(whole, **changes))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(tmp_path / "a.gcm")
    return tmp_path / "a.gcm"


def assert_equal_arrays(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_a_model_comes_back(file: Path):
    found = artifact.load(file)
    assert found.manifest == dataclasses.replace(MODEL, tensors=found.manifest.tensors)
    assert found.text == TEXT
    assert_equal_arrays(found.weights, WEIGHTS)
    assert_equal_arrays(found.data, DATA)
    assert found.object is None
    for array in (*found.weights.values(), *found.data.values()):
        assert not array.flags.writeable
        assert array.ctypes.data % 64 == 0 or not array.size


def test_native_code_comes_back(tmp_path: Path):
    manifest = dataclasses.replace(MODEL, native=NATIVE)
    constants = np.arange(80, dtype=np.uint8)
    save(tmp_path / "n.gcm", manifest=manifest, constants=constants, object=b"code")
    found = artifact.load(tmp_path / "n.gcm")
    assert found.manifest.native == NATIVE
    assert found.object == b"code"
    assert found.constants is not None and found.constants.tobytes() == constants.tobytes()


def test_views_and_other_byte_orders_are_stored_dense(tmp_path: Path):
    base = RANDOM.normal(size=(4, 6)).astype(np.float32)
    save(tmp_path / "v.gcm", weights={"t": base.T, "s": base[::2, ::3], "b": base.astype(">f4")})
    found = artifact.load(tmp_path / "v.gcm").weights
    assert_equal_arrays(found, {"t": np.ascontiguousarray(base.T), "s": base[::2, ::3].copy(), "b": base})


def test_equal_models_give_equal_bytes(file: Path, tmp_path: Path):
    save(tmp_path / "b.gcm")
    assert (tmp_path / "b.gcm").read_bytes() == file.read_bytes()


def test_flipped_bytes_are_refused(file: Path):
    content = bytearray(file.read_bytes())
    rng = random.Random(1)
    for position in range(len(content)):
        mask = rng.randrange(1, 256)
        content[position] ^= mask
        file.write_bytes(content)
        with pytest.raises(ArtifactError):
            artifact.load(file)
        content[position] ^= mask


def test_truncations_are_refused(file: Path):
    size = file.stat().st_size
    for length in sorted(random.Random(2).sample(range(size), 100), reverse=True):
        os.truncate(file, length)
        with pytest.raises(ArtifactError, match=r"truncated|empty"):
            artifact.load(file)


def forge(path: Path, change: dict[str, object] | bytes, sections: dict[str, bytes] | None = None) -> None:
    """Rewrites a model file with another manifest, with right digests."""
    old = {name: s.tobytes() for name, s in container.read_sections(path).items()}
    if isinstance(change, dict):
        change = json.dumps({**json.loads(old["manifest"]), **change}).encode()
    container.write_sections(path, {k: [v] for k, v in {**old, "manifest": change, **(sections or {})}.items()})


def tensor(**changes: object) -> dict[str, object]:
    return {"name": "t", "dtype": "f32", "shape": [1], "section": "weights", "offset": 0, **changes}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "does not have exactly the fields"),
        ({"extra": 1}, "does not have exactly the fields"),
        ({"name": 1}, "manifest.name has the wrong type"),
        ({"ops": "add"}, "manifest.ops has the wrong type"),
        ({"versions": {"a": 1}}, "manifest.versions.a has the wrong type"),
        ({"ir_version": 99}, "IR version 99, this graphc reads version 1"),
        ({"ir_version": True}, "manifest.ir_version has the wrong type"),
        ({"inputs": [{"name": "x", "dtype": "f12", "shape": []}]}, "unknown element type 'f12'"),
        ({"inputs": [{"name": "x", "dtype": "f32", "shape": [-1]}]}, r"has the shape \[-1\]"),
        ({"inputs": [{"name": "x", "dtype": "f32", "shape": [1] * 65}]}, "rank 65, at most 64"),
        ({"inputs": [{"name": "x", "dtype": "f32", "shape": [1 << 40, 1 << 40, 0]}]}, "bytes, at most"),
        ({"inputs": [{"name": "x" * 5000, "dtype": "f32", "shape": []}]}, "5000 characters"),
        ({"structure": 1}, "names output 1 of 1"),
        ({"structure": {"tuple": 3}}, "unknown structure"),
        ({"structure": {"set": []}}, "unknown structure"),
        ({"structure": {"dict": [[1, 0]]}}, "pairs"),
        ({"structure": "x"}, "unknown part"),
        ({"structure": json.loads('{"list":[' * 70 + "0" + "]}" * 70)}, "nested deeper than 64"),
        ({"tensors": [tensor(section="code")]}, "unknown section"),
        ({"tensors": [tensor(offset=-64)]}, "has the offset -64"),
        ({"tensors": [tensor(offset=4)]}, "has the offset 4"),
        ({"tensors": [tensor(offset=64)]}, "ends at byte 68|does not follow"),
        ({"tensors": [tensor(shape=[1 << 30])]}, "ends at byte"),
        ({"tensors": [tensor(), tensor()]}, "two tensors have one name"),
        ({"tensors": []}, "bytes of no tensor"),
        ({"native": {"name": "main"}}, "manifest.native does not have exactly the fields"),
    ],
)
def test_manifests_that_lie_are_refused(file: Path, change: dict | bytes, message: str):
    forge(file, change)
    with pytest.raises(ArtifactError, match=message):
        artifact.load(file)


def test_sections_must_be_those_of_a_model(file: Path, tmp_path: Path):
    forge(file, {}, {"more": b""})
    with pytest.raises(ArtifactError, match="the file has the sections"):
        artifact.load(file)
    save(file)
    forge(file, {}, {"graph": b"\xff"})
    with pytest.raises(ArtifactError, match="not valid UTF-8"):
        artifact.load(file)
    save(file, manifest=dataclasses.replace(MODEL, native=NATIVE))
    with pytest.raises(ArtifactError, match="disagree about native code"):
        artifact.load(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entry": ""}, "the entry '' is no name"),
        ({"arena": 1 << 60}, "the arena has"),
        ({"arena": -1}, "the arena has"),
        ({"constants": 1 << 60}, "the constants take"),
        ({"constants": 79}, "ends outside of the constant block"),
        ({"buffers": NATIVE.buffers * 2}, "two buffers have one name"),
        ({"buffers": (BufferSpec("c", "f32", (), "constant", offset=4),)}, "not aligned"),
    ],
)
def test_native_manifests_that_lie_are_refused(change: dict, message: str):
    with pytest.raises(ArtifactError, match=message):
        dataclasses.replace(NATIVE, **change)


def test_buffers_have_known_classes_and_offsets():
    with pytest.raises(ArtifactError, match="unknown class 'code'"):
        BufferSpec("x", "f32", (), "code")
    with pytest.raises(ArtifactError, match="has the offset 64"):
        BufferSpec("x", "f32", (), "input", offset=64)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(field=st.sampled_from([f.name for f in dataclasses.fields(ModelManifest)]), value=json_values)
def test_any_json_in_any_field_is_a_manifest_or_an_artifact_error(field: str, value: object):
    record = {**json.loads(artifact.to_json(MODEL)), field: value}
    try:
        found = artifact.from_json(ModelManifest, json.dumps(record).encode())
    except ArtifactError:
        return
    assert json.loads(artifact.to_json(found)) == record


def test_manifests_round_trip():
    for record in (dataclasses.replace(MODEL, native=NATIVE), NATIVE, TARGET):
        assert artifact.to_json(artifact.from_json(type(record), artifact.to_json(record))) == artifact.to_json(record)


def test_outputs_nest_as_the_structure_says():
    structure = {"dict": [["a", {"tuple": [1, {"list": [0, None]}]}], ["b", 0]]}
    artifact.check_structure(structure, 2)
    assert artifact.nest(structure, ["p", "q"]) == {"a": ("q", ["p", None]), "b": "p"}


def test_sizes_of_classes_of_buffers():
    assert [b.nbytes for b in NATIVE.buffers] == [24, 12, 24, 16, 128]
    assert [b.name for b in NATIVE.of_class("input", "output")] == ["x", "y"]
    assert str(NATIVE.buffers[0]) == "x: f32[2,3]"


TIME = Dim("time", 1, 512, hint=128, common=(32,))
BATCH = Dim("batch", 0, 64)
DIMS = tuple(dimensions([TIME * BATCH])[name] for name in ("batch", "time"))
SIZED = dataclasses.replace(
    NATIVE,
    buffers=(
        BufferSpec("x", "f32", (BATCH, 2 * TIME + 1, 4), "input"),
        BufferSpec("y", "f32", (BATCH, (TIME + 5) // 16 * TIME + 3), "output", written=True),
        BufferSpec("arena", "u8", (64 * TIME * TIME,), "arena", written=True),
    ),
    arena=64 * TIME * TIME,
    constants=0,
    dims=DIMS,
)


PLAIN_DIMS = json.loads(artifact.to_json(SIZED))["dims"]


def test_manifests_with_named_dimensions_round_trip():
    text = artifact.to_json(SIZED)
    assert artifact.from_json(Manifest, text) == SIZED
    assert json.loads(text)["arena"] == "64*time*time"
    model = dataclasses.replace(MODEL, inputs=(TensorSpec("x", "f32", (BATCH, TIME)),), dims=DIMS, native=SIZED)
    assert artifact.from_json(ModelManifest, artifact.to_json(model)) == model


def test_manifests_without_named_dimensions_do_not_say_so():
    assert b"dims" not in artifact.to_json(dataclasses.replace(MODEL, native=NATIVE))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("arena", "64*time*tim", "is no size of the dimensions batch, time"),
        ("arena", "time // 0", "is no size"),
        ("arena", "(time + batch)*(time + batch)*(time + batch)", "is no size"),
        ("arena", "__import__('os')", "is no size"),
        ("arena", "time" * 5000, "at most 16384"),
        ("arena", "1 +", "is no size"),
        ("constants", "time", "wrong type"),
        ("dims", [], "dims declares none"),
        (
            "dims",
            [*PLAIN_DIMS, {"name": "zu b", "low": 1, "high": 2, "hint": 1, "common": []}],
            "'zu b' has the sizes 1..2",
        ),
        ("dims", [*PLAIN_DIMS, {"name": "zu", "low": 9, "high": 2, "hint": 1, "common": []}], "has the sizes 9..2"),
        ("dims", PLAIN_DIMS[::-1], "not in order"),
        ("chosen", 0, "chosen declares none"),
        ("chosen", -1, "-1 kernels have several versions"),
    ],
)
def test_sizes_that_are_none_are_refused(field: str, value: object, message: str):
    record = {**json.loads(artifact.to_json(SIZED)), field: value}
    with pytest.raises(ArtifactError, match=re.escape(message)):
        artifact.from_json(Manifest, json.dumps(record).encode())


def test_dimensions_that_are_not_declared_are_refused():
    with pytest.raises(ArtifactError, match="not all declared"):
        dataclasses.replace(SIZED, dims=DIMS[:1])


def test_numbers_that_are_sizes_round_trip():
    pos = Dim("pos", 0, 9)
    inputs = (*MODEL.inputs, TensorSpec("n", "i64", (), equals=pos + 1))
    model = dataclasses.replace(MODEL, inputs=inputs, dims=tuple(dimensions([pos]).values()))
    text = artifact.to_json(model)
    assert artifact.from_json(ModelManifest, text) == model
    assert str(inputs[-1]) == "n: int = pos + 1" and text.count(b"equals") == 1
    assert b"equals" not in artifact.to_json(MODEL)
    with pytest.raises(ArtifactError, match="a size is given by an i64"):
        TensorSpec("n", "f32", (), equals=pos)
    with pytest.raises(ArtifactError, match="the dimensions pos are not all declared"):
        dataclasses.replace(MODEL, inputs=inputs)


def test_long_sizes_are_saved_only_where_they_can_be_loaded():
    size = sum((TIME + i) // (i + 2) * (BATCH + i) // (i + 3) for i in range(150))
    assert 4096 < len(str(size)) < artifact.MAX_SIZE
    record = dataclasses.replace(SIZED, arena=size)
    assert artifact.from_json(Manifest, artifact.to_json(record)) == record
    longer = size + sum((TIME + i) // (i + 500) * (BATCH * TIME + i) // (i + 3) for i in range(900))
    with pytest.raises(ArtifactError, match=r"a size has \d+ characters"):
        artifact.to_json(dataclasses.replace(SIZED, arena=longer))
