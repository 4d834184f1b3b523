"""Manifests of native programs: round trip and limits of every field."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.errors import ArtifactError
from graphc.files import manifest as artifact
from graphc.files.manifest import BufferSpec, Manifest, TargetSpec

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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entry": ""}, "the entry '' is not an identifier"),
        ({"arena": 1 << 60}, "the arena has"),
        ({"arena": -1}, "the arena has"),
        ({"constants": 1 << 60}, "the constants take"),
        ({"constants": 79}, "ends outside of the constant block"),
        ({"buffers": NATIVE.buffers * 2}, "two buffers have the same name"),
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
@given(field=st.sampled_from([f.name for f in dataclasses.fields(Manifest)]), value=json_values)
def test_any_json_in_any_field_is_a_manifest_or_an_artifact_error(field: str, value: object):
    record = {**json.loads(artifact.to_json(NATIVE)), field: value}
    try:
        found = artifact.from_json(Manifest, json.dumps(record).encode())
    except ArtifactError:
        return
    assert json.loads(artifact.to_json(found)) == record


def test_manifests_round_trip():
    for record in (NATIVE, TARGET):
        assert artifact.to_json(artifact.from_json(type(record), artifact.to_json(record))) == artifact.to_json(record)


def test_sizes_of_classes_of_buffers():
    assert [b.nbytes for b in NATIVE.buffers] == [24, 12, 24, 16, 128]
    assert [b.name for b in NATIVE.of_class("input", "output")] == ["x", "y"]
    assert str(NATIVE.buffers[0]) == "x: f32[2,3]"


TIME = Dim("time", 1, 512, hint=128, common=(32,))
BATCH = Dim("batch", 0, 64, hint=32)
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


def test_manifests_without_named_dimensions_do_not_say_so():
    assert b"dims" not in artifact.to_json(NATIVE)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("arena", "64*time*tim", "is not a size of the dimensions batch, time"),
        ("arena", "time // 0", "is not a size"),
        ("arena", "(time + batch)*(time + batch)*(time + batch)", "is not a size"),
        ("arena", "__import__('os')", "is not a size"),
        ("arena", "time" * 5000, "at most 16384"),
        ("arena", "1 +", "is not a size"),
        ("constants", "time", "wrong type"),
        ("dims", [], "dims has the value that it has if it is left out"),
        (
            "dims",
            [*PLAIN_DIMS, {"name": "zu`b", "low": 1, "high": 2, "hint": 1, "common": []}],
            "'zu`b' has the sizes 1..2",
        ),
        ("dims", [*PLAIN_DIMS, {"name": "zu", "low": 9, "high": 2, "hint": 1, "common": []}], "has the sizes 9..2"),
        ("dims", PLAIN_DIMS[::-1], "not in order"),
        ("chosen", 0, "chosen has the value that it has if it is left out"),
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


def test_long_sizes_are_saved_only_where_they_can_be_loaded():
    size = sum((TIME + i) // (i + 2) * (BATCH + i) // (i + 3) for i in range(150))
    assert 4096 < len(str(size)) < artifact.MAX_SIZE
    record = dataclasses.replace(SIZED, arena=size)
    assert artifact.from_json(Manifest, artifact.to_json(record)) == record
    longer = size + sum((TIME + i) // (i + 500) * (BATCH * TIME + i) // (i + 3) for i in range(900))
    with pytest.raises(ArtifactError, match=r"a size has \d+ characters"):
        artifact.to_json(dataclasses.replace(SIZED, arena=longer))
