"""Manifests of models: every field comes back, and contradictions are refused."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.errors import ArtifactError
from graphc.files.manifest import TensorSpec, from_json, to_json
from graphc.files.model_manifest import (
    AssumptionSpec,
    CodeSpec,
    DerivativeSpec,
    EntrySpec,
    ModelManifest,
    SampleSpec,
    SegmentSpec,
    Stored,
)
from tests.files.test_manifest import NATIVE, SIZED

X, Y = TensorSpec("x", "f32", (2, 3)), TensorSpec("y", "f32", (2, 3))
BATCH, TIME = Dim("batch", 0, 64, hint=32), Dim("time", 1, 512, hint=128, common=(32,))
ENCODE = EntrySpec("encode", "Net.encode", (X,), (Y,), 0, ("add",), ("w", "h"), ("h",), {"k": "0"})
DERIVATIVE = DerivativeSpec(1, (0,), (0,), (0,), ("w",))
SAMPLE = SampleSpec(("0",), ("1",))
DECODE = dataclasses.replace(
    ENCODE,
    name="decode",
    structure={"dict": [["logits", 0], ["pair", {"tuple": [0, None]}]]},
    derivative=DERIVATIVE,
    natives=(CodeSpec(NATIVE, 0, 0),),
    golden=(SAMPLE,),
)
REST = TensorSpec("r", "f32", (5,))
PARTS = (
    dataclasses.replace(ENCODE, name="decode.forward", outputs=(Y, REST)),
    dataclasses.replace(ENCODE, name="decode.backward", inputs=(REST, X, Y), outputs=(X, TensorSpec("w", "f32", (3,)))),
)
TENSORS = (
    Stored("w", "f32", (3,), "weights", 0, is_param=True),
    Stored("h", "f32", (3,), "weights", 64, free=True),
    Stored("0", "f32", (3,), "data", 0),
    Stored("0", "f32", (2, 3), "golden", 0),
    Stored("1", "f32", (2, 3), "golden", 64),
)
MODEL = ModelManifest((ENCODE, DECODE, *PARTS), TENSORS, {"graphc": "0.1.0"})


def test_manifests_round_trip():
    assert from_json(ModelManifest, to_json(MODEL)) == MODEL
    assert MODEL.first == ENCODE and MODEL.entry("decode") == DECODE and MODEL.public == (ENCODE, DECODE)
    assert [t.name for t in MODEL.weights] == ["w", "h"]
    assert PARTS[0].of == "decode" and not DECODE.of
    with pytest.raises(KeyError):
        MODEL.entry("generate")


def test_manifests_with_named_dimensions_round_trip():
    dims = tuple(dimensions([TIME * BATCH])[name] for name in ("batch", "time"))
    entry = EntrySpec("f", "f", (TensorSpec("x", "f32", (BATCH, TIME)),), (), None, (), dims=dims)
    entry = dataclasses.replace(entry, natives=(CodeSpec(SIZED, 0, 0),))
    entry = dataclasses.replace(entry, assumptions=(AssumptionSpec("==", BATCH, 3, False, "net.py:3"),))
    model = ModelManifest((entry,))
    assert from_json(ModelManifest, to_json(model)) == model
    with pytest.raises(ArtifactError, match="not all declared"):
        dataclasses.replace(entry, dims=dims[:1])


def test_numbers_that_are_sizes_round_trip():
    pos = Dim("pos", 0, 9, hint=9)
    inputs = (X, TensorSpec("n", "i64", (), equals=pos + 1))
    entry = EntrySpec("f", "f", inputs, (), None, (), dims=tuple(dimensions([pos]).values()))
    text = to_json(ModelManifest((entry,)))
    assert from_json(ModelManifest, text).first == entry
    assert str(inputs[-1]) == "n: int = pos + 1" and text.count(b"equals") == 1
    with pytest.raises(ArtifactError, match="an integer argument is i64"):
        TensorSpec("n", "f32", (), equals=pos)
    with pytest.raises(ArtifactError, match="the dimensions pos are not all declared"):
        EntrySpec("f", "f", inputs, (), None, ())


COUNT = Dim("count_0", 0, 6, hint=6)
PICKED = EntrySpec(
    "pick", "pick", (X,), (TensorSpec("z", "f32", (COUNT,)),), 0, (), dims=tuple(dimensions([COUNT]).values())
)
CHAIN = dataclasses.replace(PICKED, segments=(SegmentSpec((0,), ("count_0",)), SegmentSpec((2, 1))))
PROGRAMS = (
    dataclasses.replace(PICKED, name="pick.0", outputs=(TensorSpec("n", "i64", ()), Y), dims=()),
    dataclasses.replace(PICKED, name="pick.1", inputs=(Y, TensorSpec("n", "i64", (), equals=COUNT))),
)


def test_a_chain_of_programs_round_trips():
    model = ModelManifest((CHAIN, *PROGRAMS))
    text = to_json(model)
    assert from_json(ModelManifest, text) == model and text.count(b"segments") == 1
    assert model.public == (CHAIN,) and CHAIN.programs == ("pick.0", "pick.1") and ENCODE.programs == ("encode",)


def test_an_entry_for_other_sizes_round_trips():
    paths = (dataclasses.replace(PICKED, paths=("pick.0",)), dataclasses.replace(PICKED, name="pick.0"))
    model = ModelManifest(paths)
    text = to_json(model)
    assert from_json(ModelManifest, text) == model and text.count(b"paths") == 1 and model.public == paths[:1]
    for wrong in (
        PROGRAMS[1],
        dataclasses.replace(PROGRAMS[1], name="pick.0"),
        dataclasses.replace(CHAIN, name="pick.0"),
    ):
        with pytest.raises(ArtifactError, match=r"paths|no entry"):
            ModelManifest((paths[0], wrong))


def test_fields_with_the_value_that_they_have_if_left_out_are_refused():
    for name, value in (("segments", []), ("texts", "")):
        record = json.loads(to_json(MODEL))
        record["entries"][0][name] = value
        with pytest.raises(ArtifactError, match=name):
            from_json(ModelManifest, json.dumps(record).encode())


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ((CHAIN, PROGRAMS[0]), "the programs of 'pick' are not in the file"),
        ((CHAIN, *PROGRAMS, dataclasses.replace(PROGRAMS[0], name="pick.2")), "'pick.2' is the derivative or the"),
        ((PICKED, PROGRAMS[0]), "'pick.0' is the derivative or the program of no entry"),
        (
            (dataclasses.replace(CHAIN, segments=(SegmentSpec((3,), ("count_0",)), SegmentSpec((2, 1)))), *PROGRAMS),
            "the program pick.0 of a chain takes values that do not exist yet",
        ),
        (
            (dataclasses.replace(CHAIN, segments=(SegmentSpec((0,), ("count_0",)), SegmentSpec((1, 2)))), *PROGRAMS),
            "the program pick.1 of a chain takes values of other types than its inputs",
        ),
        (
            (dataclasses.replace(CHAIN, segments=(SegmentSpec((0,), ("n",)), SegmentSpec((2, 1)))), *PROGRAMS),
            "the program pick.0 of a chain gives n as sizes",
        ),
        (
            (dataclasses.replace(CHAIN, segments=(SegmentSpec((0,)), SegmentSpec((2, 1)))), *PROGRAMS),
            "the program pick.0 of a chain gives nothing as sizes",
        ),
        (
            (dataclasses.replace(CHAIN, outputs=(Y,)), *PROGRAMS),
            "the chain pick has other outputs",
        ),
        (
            (CHAIN, dataclasses.replace(PROGRAMS[0], outputs=(TensorSpec("n", "i32", ()), Y)), PROGRAMS[1]),
            "the program pick.0 of a chain gives count_0 as sizes",
        ),
        (
            (dataclasses.replace(CHAIN, natives=(CodeSpec(NATIVE, 0, 0),)), *PROGRAMS),
            "the chain 'pick' has a derivative or code of its own",
        ),
    ],
)
def test_chains_that_contradict_themselves_are_refused(entries: tuple[EntrySpec, ...], message: str):
    with pytest.raises(ArtifactError, match=re.escape(message)):
        ModelManifest(entries)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "has an invalid name"),
        ({"name": "a b"}, "has an invalid name"),
        ({"name": "a.b"}, "has an invalid name"),
        ({"name": "a.forward.backward"}, "has an invalid name"),
        ({"name": "a" * 5000}, "has an invalid name"),
        ({"structure": 1}, "names output 1 of 1"),
        ({"uses": ("w", "w"), "writes": ()}, "takes a param or state twice"),
        ({"writes": ("k",)}, "writes params or states that it does not take"),
        ({"derivative": dataclasses.replace(DERIVATIVE, kept=(1,))}, "that it does not have"),
        ({"derivative": dataclasses.replace(DERIVATIVE, inputs=(-1,))}, "that it does not have"),
        ({"derivative": dataclasses.replace(DERIVATIVE, outputs=(7,))}, "that it does not have"),
        ({"derivative": dataclasses.replace(DERIVATIVE, params=("v",))}, "that it does not have"),
        ({"derivative": dataclasses.replace(DERIVATIVE, residuals=-1)}, "that it does not have"),
        ({"natives": (CodeSpec(NATIVE, 0, 0),) * 1025}, "too many codes"),
    ],
)
def test_entries_that_contradict_themselves_are_refused(changes: dict[str, Any], message: str):
    with pytest.raises(ArtifactError, match=re.escape(message)):
        dataclasses.replace(DECODE, **changes)


OTHERS = [
    dataclasses.replace(DECODE, derivative=dataclasses.replace(DERIVATIVE, **changes))
    for changes in ({"residuals": 0}, {"residuals": 2}, {"kept": ()}, {"outputs": ()}, {"inputs": ()}, {"params": ()})
]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entries": ()}, "the file has 0 entries"),
        ({"entries": (ENCODE, ENCODE)}, "two entries have the same name"),
        ({"entries": (PARTS[0], DECODE, PARTS[1])}, "the first entry is 'decode.forward'"),
        ({"entries": (ENCODE, *PARTS)}, "'decode.forward' is the derivative or the program of no"),
        ({"entries": (ENCODE, DECODE, PARTS[0])}, "the derivative of 'decode' is not in the file"),
        ({"entries": (dataclasses.replace(ENCODE, uses=("h", "other")),)}, "takes 'other', which is not in section"),
        ({"entries": (dataclasses.replace(ENCODE, uses=("0", "h")),)}, "takes '0', which is not in section 'weights'"),
        ({"entries": (dataclasses.replace(ENCODE, data={"k": "w"}),)}, "takes 'w', which is not in section 'data'"),
        ({"entries": (dataclasses.replace(ENCODE, golden=(SampleSpec(("w",), ("1",)),)),)}, "not in section 'golden'"),
        (
            {"entries": (dataclasses.replace(ENCODE, golden=(SampleSpec((), ("1",)),)),)},
            "has not its number of inputs and outputs",
        ),
        ({"entries": (dataclasses.replace(ENCODE, writes=("w",)),)}, "writes tensors that are not marked as free"),
        ({"tensors": (*TENSORS, TENSORS[0])}, "two tensors have the same name"),
        *(({"entries": (ENCODE, other, *PARTS)}, "'decode' is inconsistent: the") for other in OTHERS),
        (
            {"entries": (ENCODE, DECODE, PARTS[0], dataclasses.replace(PARTS[1], inputs=(X, REST, Y)))},
            "the backward entry has other inputs than residuals, inputs and gradients",
        ),
        (
            {"entries": (ENCODE, DECODE, PARTS[0], dataclasses.replace(PARTS[1], outputs=(Y,)))},
            "has not a gradient for each",
        ),
    ],
)
def test_models_that_contradict_themselves_are_refused(changes: dict[str, Any], message: str):
    with pytest.raises(ArtifactError, match=re.escape(message)):
        dataclasses.replace(MODEL, **changes)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    field=st.sampled_from([f.name for f in dataclasses.fields(EntrySpec)]), number=st.integers(0, 3), value=json_values
)
def test_any_json_in_any_field_of_an_entry_is_a_manifest_or_an_artifact_error(field: str, number: int, value: object):
    record = json.loads(to_json(MODEL))
    record["entries"][number][field] = value
    try:
        found = from_json(ModelManifest, json.dumps(record).encode())
    except ArtifactError:
        return
    assert json.loads(to_json(found)) == record
