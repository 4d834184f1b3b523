"""Tensors, attributes and types of ONNX files: every way to store them, and sizes that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.base.errors import ArtifactError, UnsupportedError
from graphc.base.sizes.size import is_size

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from graphc.interop.onnx.elements import ELEMENTS  # noqa: E402
from graphc.interop.onnx.external import External  # noqa: E402
from graphc.interop.onnx.protos import (  # noqa: E402
    MOST_NESTED,
    ModelDims,
    Names,
    read_attribute,
    read_port_type,
    read_sparse,
    read_tensor,
)

NONE = External(None)
KINDS = [e.name for e in ELEMENTS if e.carrier is not None and e.name in TensorProto.DataType.keys()]  # noqa: SIM118


def values(name: str) -> np.ndarray:
    return np.array([0, 1] if name in ("BOOL", "UINT2") or "E8M0" in name else [0, 1, 1, 0], np.float32)


@pytest.mark.parametrize("raw", [False, True], ids=["numbers", "raw"])
@pytest.mark.parametrize("kind", KINDS)
def test_tensors_are_read_as_onnx_reads_them(kind: str, raw: bool):
    code = TensorProto.DataType.Value(kind)
    array = values(kind).astype(helper.tensor_dtype_to_np_dtype(code))
    proto = numpy_helper.from_array(array, "t") if raw else helper.make_tensor("t", code, array.shape, array)
    tensor = read_tensor(proto, NONE)
    assert tensor.element.name == kind
    np.testing.assert_array_equal(tensor.array.astype(np.float64), numpy_helper.to_array(proto).astype(np.float64))


def test_complex_numbers_and_texts_are_read():
    for array in (np.array([1 + 2j], np.complex64), np.array([1 - 2j], np.complex128)):
        for proto in (
            numpy_helper.from_array(array),
            helper.make_tensor("t", helper.np_dtype_to_tensor_dtype(array.dtype), [1], array),
        ):
            np.testing.assert_array_equal(read_tensor(proto, NONE).array, array)
    texts = helper.make_tensor("t", TensorProto.STRING, [2, 1], [b"a", "é".encode()])
    assert read_tensor(texts, NONE).array.tolist() == [["a"], ["é"]]


def test_halves_of_bytes_have_signs():
    proto = helper.make_tensor("t", TensorProto.INT4, [3], [-8, 7, -1])
    assert read_tensor(proto, NONE).array.astype(np.int32).tolist() == [-8, 7, -1]


def tensor(code: int = 1, dims: Any = (2,), **fields: Any) -> Any:
    return TensorProto(name="t", data_type=code, dims=dims, **fields)


@pytest.mark.parametrize(
    ("proto", "text"),
    [
        (tensor(raw_data=bytes(7)), "7 bytes, its shape .* needs 8"),
        (tensor(float_data=[1.0]), "1 numbers, its shape needs 2"),
        (tensor(dims=[1 << 30, 1 << 10], raw_data=bytes(8)), "needs"),
        (tensor(dims=[-1]), "has the shape"),
        (tensor(dims=[1 << 40]), "has the shape"),
        (tensor(dims=[2**31 - 1, 2**31 - 1, 2**31 - 1, 0]), "has the shape"),
        (tensor(dims=[1] * 65, float_data=[1.0]), "has the shape"),
        (tensor(8, string_data=[b"a"]), "1 texts, its shape needs 2"),
        (tensor(8, dims=[1], string_data=[b"\xff"]), "not UTF-8 text"),
        (tensor(21, dims=[3], raw_data=bytes(3)), "3 bytes, .* needs 2"),
        (tensor(21, dims=[3], int32_data=[1]), "1 numbers"),
    ],
    ids=str,
)
def test_data_that_does_not_fit_the_shape_is_refused(proto: Any, text: str):
    with pytest.raises(ArtifactError, match=text):
        read_tensor(proto, NONE)


def test_unknown_element_types_are_refused():
    with pytest.raises(UnsupportedError, match="element type 99"):
        read_tensor(tensor(99), NONE)


def sparse(places: Any, dims: Any) -> Any:
    data = numpy_helper.from_array(np.float32([1, 2]), "w")
    return helper.make_sparse_tensor(data, numpy_helper.from_array(np.array(places), "i"), dims)


def test_sparse_tensors_are_written_out():
    assert read_sparse(sparse([0, 3], [2, 2]), NONE).array.tolist() == [[1, 0], [0, 2]]
    assert read_sparse(sparse([[0, 1], [1, 0]], [2, 2]), NONE).array.tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize(
    ("places", "dims"),
    [
        ([0, 4], [2, 2]),
        ([-1, 0], [2, 2]),
        ([[0, 2], [0, 0]], [2, 2]),
        ([[0], [1]], [2, 2]),
        ([0], [2, 2]),
        ([0, 1], [2**31 - 1] * 2),
    ],
)
def test_sparse_tensors_stay_in_their_shape(places: Any, dims: Any):
    with pytest.raises(ArtifactError, match="sparse"):
        read_sparse(sparse(places, dims), NONE)


@pytest.mark.parametrize("value", [3, 2.5, "text", (1, 2), (1.5, 2.0), ("a", "b")], ids=str)
def test_attributes_are_values_of_python(value: Any):
    given = list(value) if isinstance(value, tuple) else value
    assert read_attribute(helper.make_attribute("a", given), NONE, lambda g: g) == value


def test_attributes_of_no_kind_are_refused():
    with pytest.raises(UnsupportedError, match="attribute 'a' of kind 0"):
        read_attribute(onnx.AttributeProto(name="a"), NONE, lambda g: g)


def test_open_sizes_are_named_dimensions_by_their_text():
    dims = ModelDims()
    ports = [
        helper.make_tensor_value_info(n, 1, shape) for n, shape in (("a", ["n", 3, "1/2", None]), ("b", ["n", None]))
    ]
    first, second = [read_port_type(p.name, p.type, dims) for p in ports]
    assert [str(s) for s in first.shape] == ["n", "3", "`1/2`", "size_a_3"] and is_size(first.shape[0])
    assert first.shape[0] is second.shape[0] and str(second.shape[1]) == "size_b_1"


def test_texts_that_name_nothing_are_sizes_of_their_own():
    proto = helper.make_tensor_value_info("in", 1, ["?", "-1", "", "class", "?"])
    shape = read_port_type("in", proto.type, ModelDims()).shape
    assert [str(s) for s in shape] == ["in_0", "in_1", "in_2", "class", "in_4"]


def test_names_that_become_alike_are_numbered():
    names = Names()
    assert [names.take(n) for n in ("a", "a", "a_2", "a")] == ["a", "a_2", "a_2_2", "a_3"]


def test_negative_sizes_and_names_for_any_size_are_open_sizes_of_their_own():
    port = read_port_type("x", helper.make_tensor_type_proto(1, [-1, "?", "?", "None", "-1", 0]), ModelDims())
    assert [str(s) for s in port.shape] == ["size_x_0", "size_x_1", "size_x_2", "size_x_3", "size_x_4", "0"]


def test_types_are_checked():
    with pytest.raises(ArtifactError, match="has the invalid size 4611686018427387904"):
        read_port_type("x", helper.make_tensor_type_proto(1, [2**62]), ModelDims())
    kind = helper.make_tensor_type_proto(1, [2])
    for _ in range(MOST_NESTED + 2):
        kind = helper.make_sequence_type_proto(kind)
    with pytest.raises(ArtifactError, match="levels"):
        read_port_type("x", kind, ModelDims())
    assert (
        read_port_type("x", helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])), None).kind
        == "sequence"
    )
