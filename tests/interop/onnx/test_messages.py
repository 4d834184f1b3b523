"""Messages of ONNX files: equal to those that protobuf reads, large weights left in the mapped file."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import AttributeProto, helper, numpy_helper

import graphc as gc
from graphc.errors import ArtifactError
from graphc.interop.onnx import messages
from graphc.interop.onnx.messages import FORMAT, LEAST, Message, read_message

WEIGHT = np.arange(LEAST // 2, dtype=np.float32).reshape(2, -1)
SMALL = np.arange(3, dtype=np.float32)


def proto(weight: np.ndarray = WEIGHT) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"]), helper.make_node("ReduceSum", ["v"], ["z"], keepdims=0)]
    ports = [helper.make_tensor_value_info("x", 1, weight.shape)]
    ends = [helper.make_tensor_value_info("y", 1, weight.shape), helper.make_tensor_value_info("z", 1, ())]
    tensors = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(SMALL, "v")]
    graph = helper.make_graph(nodes, "g", ports, ends, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def every_field() -> onnx.ModelProto:
    """Return a model with all fields that are read."""
    model = proto(np.array([[1, 2], [3, 4]], np.float32))
    inner = helper.make_graph([helper.make_node("Neg", ["x"], ["i"], name="inner")], "body", [], [])
    values: dict[str, Any] = dict(
        f=1.5, i=-7, s="text", t=numpy_helper.from_array(SMALL), g=inner, graphs=[inner, inner]
    )
    values |= dict(
        floats=[0.5, -2.0], ints=[1, -1, 300, 2**62], strings=["a", "é"], tensors=[numpy_helper.from_array(SMALL)]
    )
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(SMALL), helper.make_tensor("i", 7, [3], [0, 2, 4]), [9])
    inner_type = helper.make_tensor_type_proto(1, ["batch", 3, None])
    types = {
        "sequence": helper.make_sequence_type_proto(inner_type),
        "optional": helper.make_optional_type_proto(inner_type),
    }
    values |= {"sparse": sparse, "kind": types["sequence"]}
    node = helper.make_node("Own", ["x", ""], ["o"], "node", domain="own", overload="2", **values)
    node.attribute.append(AttributeProto(name="r", ref_attr_name="outer", type=AttributeProto.INT))
    model.graph.node.append(node)
    model.graph.sparse_initializer.append(sparse)
    model.graph.input.extend(helper.make_value_info(name, type) for name, type in types.items())
    model.graph.input.append(helper.make_value_info("m", helper.make_map_type_proto(7, inner_type)))
    numbers = {1: [1.5, -2.0], 6: [-5, 300], 7: [-(2**40), 3], 11: [1e300], 13: [2**63 + 1], 8: [b"\xff", b"b"]}
    model.graph.initializer.extend(helper.make_tensor(f"t{t}", t, [len(v)], v) for t, v in numbers.items())
    outside = onnx.TensorProto(name="outside", dims=[2], data_type=1, data_location=onnx.TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="a.data")
    model.graph.initializer.append(outside)
    imports = [helper.make_opsetid("", 18)]
    function = helper.make_function("own", "F", ["a"], ["b"], [node], imports, overload="x")
    function.attribute_proto.append(helper.make_attribute("alpha", 0.5))
    model.functions.append(function)
    model.producer_name = "somebody"
    return model


def same(ours: Any, theirs: Any) -> bool:
    """Return whether the fields that graphc reads are equal in its own message and in protobuf's."""
    for field in ours.FIELDS.values():
        if not field.is_repeated and not (has := ours.HasField(field.name)) and has == theirs.HasField(field.name):
            continue  # An unset message may contain a message of its own type.
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        several = (a, b) if field.is_repeated else ([a], [b])
        if len(several[0]) != len(several[1]) or not all(map(equal, *several)):
            return False
        if not field.is_repeated and ours.HasField(field.name) != theirs.HasField(field.name):
            return False
    return not ours.ONE_OF or (ours.WhichOneof("value") or None) == theirs.WhichOneof("value")


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, Message):
        return same(a, b)
    return bytes(a) == bytes(b) if isinstance(a, memoryview) else a == b or (a != a and b != b)


def test_every_field_is_that_of_protobuf() -> None:
    model = every_field()
    message = read_message(model.SerializeToString())
    assert same(message, model)
    values = {a.name: a for a in message.graph.node[-1].attribute}
    assert values["ints"].ints == [1, -1, 300, 2**62] and values["s"].s == b"text" and values["f"].f == 1.5
    assert [a.HasField("g") for a in (values["g"], values["i"])] == [True, False]
    assert [p.type.WhichOneof("value") for p in message.graph.input[1:]] == [
        "sequence_type",
        "optional_type",
        "map_type",
    ]


def test_the_format_is_that_of_the_package() -> None:
    assert FORMAT >= onnx.IR_VERSION
    fields = {name: set(cls.FIELDS) for name, cls in vars(messages)["_CLASSES"].items()}
    for ours, theirs in (("Model", "ModelProto"), ("Graph", "GraphProto"), ("Tensor", "TensorProto")):
        assert fields[ours] <= {f.number for f in getattr(onnx, theirs).DESCRIPTOR.fields}
    assert fields["MainGraph"] == fields["Graph"] and fields["Weight"] == fields["Tensor"]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the message cut, or with a few bits flipped, bytes doubled or bytes left out."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        position, kind = int(rng.integers(len(changed))), rng.integers(4)
        if kind < 2:
            changed[position] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            changed[position:position] = changed[position : position + int(rng.integers(1, 60))]
        else:
            del changed[position : position + int(rng.integers(1, 20))]
    return bytes(changed[: int(rng.integers(len(changed)))] if rng.random() < 0.1 else changed)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_read_or_refused_as_by_protobuf(seed: int) -> None:
    """Protobuf also refuses damage in fields that are not read here, such as documentation."""
    rng = np.random.default_rng(seed)
    data = every_field().SerializeToString()
    counts = {"read": 0, "refused": 0, "refused by protobuf alone": 0}
    for _ in range(1500):
        mutant = damaged(data, rng)
        try:
            expected = onnx.ModelProto.FromString(mutant)
        except DecodeError:
            expected = None
        try:
            message = read_message(mutant)
        except ValueError:
            assert expected is None
            counts["refused"] += 1
            continue
        assert expected is None or same(message, expected), mutant.hex()
        counts["refused by protobuf alone" if expected is None else "read"] += 1
    assert counts["read"] > 100 and counts["refused"] > 100
    assert counts["refused by protobuf alone"] < 0.1 * counts["refused"]


def attribute(**fields: Any) -> bytes:
    """Return a model with one attribute."""
    node = onnx.NodeProto(attribute=[AttributeProto(name="a", **fields)])
    return onnx.ModelProto(graph=onnx.GraphProto(node=[node])).SerializeToString()


@pytest.mark.parametrize("count", [15, 16, 17, 5000])
def test_many_numbers_with_a_tag_each(count: int) -> None:
    rng = np.random.default_rng(0)
    ints = (rng.integers(-(2**63), 2**63 - 1, count) >> rng.integers(0, 63, count)).tolist()
    floats = rng.normal(size=count).astype(np.float32).tolist()
    data = attribute(ints=ints, floats=floats, strings=[b"x"] * count)
    (read,) = read_message(data).graph.node[0].attribute
    assert read.ints == ints and read.floats == floats and read.strings == [b"x"] * count


@pytest.mark.parametrize("count", [1, 40, 5000])
def test_packed_numbers(count: int) -> None:
    rng = np.random.default_rng(0)
    ints = rng.integers(-(2**31), 2**31, count) >> rng.integers(0, 31, count)
    tensors = [helper.make_tensor("i", 6, [count], ints), helper.make_tensor("l", 7, [count], ints * 2**31)]
    data = onnx.ModelProto(graph=onnx.GraphProto(initializer=tensors)).SerializeToString()
    short, long = read_message(data).graph.initializer
    assert short.int32_data == ints.tolist() and long.int64_data == (ints * 2**31).tolist()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x3a\xff\xff\xff\xff\x07", "ends within a field"),
        (b"\x3a", "ends within a field"),
        (b"\x08", "ends within a field"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "more than ten bytes"),
        (b"\x02\x00", "invalid number"),
        (b"\x0c", "wire type 4"),
        (b"\x0e", "wire type 6"),
        (b"\x0b\x14", "number of another one"),
        (b"\x3a\x07\x2a\x05\x22\x03\0\0\0", "buffer size"),
    ],
)
def test_damage_is_named(data: bytes, error: str) -> None:
    with pytest.raises(DecodeError):
        onnx.ModelProto.FromString(data)
    with pytest.raises(ArtifactError, match=f"not an ONNX model: .*{error}"):
        gc.from_onnx(data)


def test_unknown_fields_are_skipped() -> None:
    group = b"\xcb\x01\x08\x05\x12\x02ab\x1d\0\0\0\0\x21\0\0\0\0\0\0\0\0\x2b\x2c\xcc\x01"
    data = group + proto().SerializeToString() + b"\xf8\x7f\x05"
    assert same(read_message(data), onnx.ModelProto.FromString(data))


@pytest.mark.parametrize("levels", [20, 200])
def test_deep_nesting(levels: int) -> None:
    data = b""
    for _ in range(levels):  # an attribute with a graph with a node with an attribute
        for tag in (b"\x2a", b"\x0a", b"\x32"):
            data = tag + len_prefixed(data)
    data = b"\x3a" + len_prefixed(b"\x0a" + len_prefixed(b"\x2a" + len_prefixed(data)))
    if levels == 20:
        assert same(read_message(data), onnx.ModelProto.FromString(data))
        return
    with pytest.raises(DecodeError):
        onnx.ModelProto.FromString(data)
    with pytest.raises(ValueError, match="more than 100 levels"):
        read_message(data)


def len_prefixed(data: bytes) -> bytes:
    size, text = len(data), bytearray()
    while size >= 128:
        text.append(size & 127 | 128)
        size >>= 7
    return bytes(text) + bytes([size]) + data


def test_large_weights_alone_stay_in_the_file() -> None:
    model = proto()
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(WEIGHT)))
    data = model.SerializeToString()
    graph = read_message(memoryview(data)).graph
    w, v = graph.initializer
    assert np.shares_memory(np.frombuffer(w.raw_data, np.uint8), np.frombuffer(data, np.uint8))
    assert isinstance(v.raw_data, bytes) and isinstance(graph.node[-1].attribute[0].t.raw_data, bytes)


def test_of_several_data_the_last_counts_as_for_protobuf() -> None:
    for later in (b"", b"\1" * 8, b"\1" * WEIGHT.nbytes):
        tensor = proto().graph.initializer[0].SerializeToString() + b"\x4a" + len_prefixed(later)
        data = b"\x08\x09\x3a" + len_prefixed(b"\x2a" + len_prefixed(tensor))
        assert same(read_message(memoryview(data)), onnx.ModelProto.FromString(data))


@pytest.mark.parametrize("as_bytes", [False, True])
def test_modules_own_their_weights(as_bytes: bool, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(proto().SerializeToString())
    module = gc.from_onnx(path.read_bytes() if as_bytes else path)
    path.write_bytes(b"\0" * path.stat().st_size)
    y, z = module(gc.zeros(WEIGHT.shape))
    np.testing.assert_array_equal(y.detach().numpy(), WEIGHT)
    assert float(z) == 3.0
    with gc.no_grad():
        module.state_dict()["w"].add_(1.0)
    np.testing.assert_array_equal(module(gc.zeros(WEIGHT.shape))[0].detach().numpy(), WEIGHT + 1)


def test_weights_of_the_wrong_size_are_refused() -> None:
    model = proto()
    model.graph.initializer[0].dims[1] += 1
    with pytest.raises(ArtifactError, match=r"tensor 'w' has 131072 bytes, its shape \[2, 16385\] needs 131080"):
        gc.from_onnx(model.SerializeToString())


def test_floats_are_those_of_f32() -> None:
    data = attribute(f=struct.unpack("<f", b"\xcd\xcc\xcc\x3d")[0], type=AttributeProto.FLOAT)
    assert read_message(data).graph.node[0].attribute[0].f == float(np.float32(0.1))
