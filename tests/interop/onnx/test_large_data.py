"""Large weights of ONNX files: left in the mapped file, equal to those that protobuf reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper

import graphc as gc
from graphc.errors import ArtifactError
from graphc.interop.onnx.large_data import LEAST, LargeData

WEIGHT = np.arange(LEAST // 2, dtype=np.float32).reshape(2, -1)
SMALL = np.arange(3, dtype=np.float32)


def proto(weight: np.ndarray = WEIGHT) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"]), helper.make_node("ReduceSum", ["v"], ["z"], keepdims=0)]
    ports = [helper.make_tensor_value_info("x", 1, weight.shape)]
    ends = [helper.make_tensor_value_info("y", 1, weight.shape), helper.make_tensor_value_info("z", 1, ())]
    tensors = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(SMALL, "v")]
    graph = helper.make_graph(nodes, "g", ports, ends, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_only_large_weights_leave_the_message():
    data = proto().SerializeToString()
    large = LargeData(memoryview(data))
    message = large.small_message()
    assert len(message) < 1000 < WEIGHT.nbytes < len(data)
    w, v = onnx.ModelProto.FromString(message).graph.initializer
    assert (w.name, list(w.dims), w.data_type, w.raw_data) == ("w", [*WEIGHT.shape], 1, b"")
    assert v == proto().graph.initializer[1]
    found = large.find({e.key: e.value for e in w.external_data})
    assert found is not None and np.shares_memory(found, np.frombuffer(data, np.uint8))
    np.testing.assert_array_equal(found.view(np.float32).reshape(WEIGHT.shape), WEIGHT)


def test_everything_else_of_the_message_stays():
    model = proto()
    model.producer_name = "somebody"
    message = onnx.ModelProto.FromString(LargeData(memoryview(model.SerializeToString())).small_message())
    for each in (model, message):
        del each.graph.initializer[0]
    assert message == model


def test_no_file_can_name_the_location():
    large = LargeData(memoryview(proto().SerializeToString()))
    assert large.find({"location": "", "offset": "0", "length": "8"}) is None
    assert large.find({}) is None


@pytest.mark.parametrize("damage", [b"\xff" * 40, b"\x3a\xff\xff\xff\xff\x07", b"\x3a", b"\x3b"])
def test_damaged_messages_are_left_to_protobuf(damage: bytes):
    assert LargeData(memoryview(damage)).small_message() == damage


def test_tensors_that_store_their_data_twice_are_left_to_protobuf():
    model = proto()
    model.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    data = model.SerializeToString()
    assert LargeData(memoryview(data)).small_message() == data


def test_of_several_data_the_last_counts_as_for_protobuf():
    model = proto()
    for later in (b"", b"\1" * 8, b"\1" * WEIGHT.nbytes):
        tensor = model.graph.initializer[0].SerializeToString() + onnx.TensorProto(raw_data=later).SerializeToString()
        if not later:
            tensor += b"\x4a\x00"
        data = onnx.GraphProto(name="g").SerializeToString() + b"\x2a" + _varint(len(tensor)) + tensor
        data = b"\x08\x09\x3a" + _varint(len(data)) + data
        message = LargeData(memoryview(data)).small_message()
        assert message == data and onnx.ModelProto.FromString(data).graph.initializer[0].raw_data == later


def test_tensors_of_single_numbers_are_left_to_protobuf():
    numbers = b"\x25\0\0\x80\x3f" * LEAST
    tensor = numbers + onnx.TensorProto(raw_data=bytes(LEAST)).SerializeToString()
    data = b"\x2a" + _varint(len(tensor)) + tensor
    data = b"\x3a" + _varint(len(data)) + data
    assert LargeData(memoryview(data)).small_message() == data


def _varint(value: int) -> bytes:
    return bytes([value & 127 | 128, value >> 7 & 127 | 128, value >> 14])


@pytest.mark.parametrize("as_bytes", [False, True])
def test_modules_own_their_weights(as_bytes: bool, tmp_path: Path):
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


def test_weights_of_the_wrong_size_are_refused():
    model = proto()
    model.graph.initializer[0].dims[1] += 1
    with pytest.raises(ArtifactError, match=r"tensor 'w' has 131072 bytes, its shape \[2, 16385\] needs 131080"):
        gc.from_onnx(model.SerializeToString())


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the message cut, or with a few bits flipped or bytes doubled, mostly outside of its large weight."""
    begin = data.index(WEIGHT.tobytes())
    positions = [*range(max(0, begin - 80), begin), *range(begin + WEIGHT.nbytes, len(data)), *range(40)]
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        position = int(rng.choice(positions)) if rng.random() < 0.95 else int(rng.integers(len(data)))
        kind = rng.integers(4)
        if kind < 2:
            changed[min(position, len(changed) - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            changed[position:position] = changed[position : position + int(rng.integers(1, 60))]
        else:
            del changed[position : position + int(rng.integers(1, 20))]
    return bytes(changed[: int(rng.choice(positions))] if rng.random() < 0.1 else changed)


def weights_read(message: onnx.ModelProto, large: LargeData | None) -> list[tuple[str, int, list[int], bytes]]:
    weights = []
    for tensor in message.graph.initializer:
        found = None if large is None else large.find({e.key: e.value for e in tensor.external_data})
        raw = tensor.raw_data if found is None else found.tobytes()
        weights.append((tensor.name, tensor.data_type, [*tensor.dims], raw))
    return weights


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_read_or_refused_as_by_protobuf(seed: int):
    rng, counts = np.random.default_rng(seed), {True: 0, False: 0}
    data = proto().SerializeToString()
    for _ in range(150):
        mutant = damaged(data, rng)
        large = LargeData(memoryview(mutant))
        small = large.small_message()
        try:
            expected = weights_read(onnx.ModelProto.FromString(mutant), None)
        except DecodeError:
            counts[False] += 1
            with pytest.raises(DecodeError):
                onnx.ModelProto.FromString(small)
        else:
            counts[True] += 1
            assert weights_read(onnx.ModelProto.FromString(small), large) == expected
    assert min(counts.values()) > 10
