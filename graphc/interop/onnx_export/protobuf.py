"""Protobuf writer: converts records with the package ``onnx`` (extra ``onnx``), checks the model and writes it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bfloat16, layout_of
from graphc.base.errors import ArgumentError, UnsupportedError, VerifyError
from graphc.base.installation import install_command
from graphc.base.version import VERSION
from graphc.files.container import align, replacing
from graphc.interop.onnx_export.records import GraphRecord, NodeRecord, ValueRecord

OLDEST, NEWEST, USUAL = 18, 28, 20
"""Opsets: the oldest and newest that users can ask for, and the default."""
LARGEST = 2**31 - 2**24
"""Bytes of weights that fit into the model's file. Protobuf ends at 2 GiB, and the graph needs room, too."""
SMALL = 1024
"""Bytes up to which an array stays in the model's file although others move to a second one."""
MODULE = "pkg.graphc.module"
"""Metadata key of a node's module path."""


def check_opset(opset: int | None) -> int:
    """Return the opset to write. Raises ArgumentError for an unknown opset or without the package ``onnx``."""
    newest = min(NEWEST, _package().defs.onnx_opset_version())
    chosen = min(USUAL, newest) if opset is None else opset
    if not OLDEST <= chosen <= newest:
        raise ArgumentError(f"opset {chosen} cannot be written", remedy=f"use an opset from {OLDEST} to {newest}")
    return chosen


def write(path: str | os.PathLike[str], graph: GraphRecord, opset: int, metadata: Mapping[str, str]) -> None:
    """Write a model atomically after ``onnx.checker`` has checked it.

    Weights too large for one file go into a second one next to it, ``net.onnx.data`` for ``net.onnx``, which is written
    first.

    Raises UnsupportedError when an operator does not take an element type, VerifyError when the checker refuses the
    model for another reason, ArgumentError without the package ``onnx``, and OSError.
    """
    onnx = _package()
    large = sum(a.nbytes for a in graph.initializers.values()) > LARGEST
    stored = f"{Path(path).name}.data" if large else None
    model = _model(onnx, graph, opset, metadata, stored)
    if stored is not None:
        with replacing(Path(path).with_name(stored)) as file:
            for array in _outside(graph).values():
                file.write(_little(array).tobytes())
                file.write(bytes(align(array.nbytes) - array.nbytes))
    with replacing(path, named=True) as file:
        file.write(model.SerializeToString())
        file.flush()
        try:
            # Checking the file takes a quarter of the time of checking its content in memory.
            onnx.checker.check_model(file.name, full_check=True)
        # NOTE: the checker has errors of several classes, one of them in C.
        except Exception as error:
            if "has unsupported type" in str(error):
                what = f"an operator of ONNX does not take an element type of this model: {error}"
                raise UnsupportedError(what, remedy="compute with float32, float64, int32 or int64 there") from error
            what = f"onnx refuses the exported model: {error}"
            raise VerifyError(what, remedy="try another opset, and report this bug") from error


def _model(onnx: Any, graph: GraphRecord, opset: int, metadata: Mapping[str, str], stored: str | None) -> Any:
    helper = onnx.helper
    main = _graph(onnx, graph, _outside(graph) if stored else {}, stored)
    versions = [helper.make_opsetid("", opset)]
    proto = helper.make_model(
        main,
        producer_name="graphc",
        producer_version=VERSION,
        opset_imports=versions,
        ir_version=helper.find_min_ir_version_for(versions),
    )
    helper.set_model_props(proto, dict(metadata))
    return proto


def _outside(graph: GraphRecord) -> dict[str, np.ndarray]:
    """Return the arrays of the second file, in their order there."""
    return {name: array for name, array in graph.initializers.items() if array.nbytes > SMALL}


def _graph(onnx: Any, graph: GraphRecord, outside: Mapping[str, np.ndarray], stored: str | None) -> Any:
    arrays, offset = [], 0
    for name, array in graph.initializers.items():
        if name not in outside:
            arrays.append(_inside(onnx, array, name))
            continue
        tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=_element(onnx, layout_of(array.dtype)))
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", stored), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        arrays.append(tensor)
        offset += align(array.nbytes)
    values = ([_value(onnx, v) for v in ports] for ports in (graph.inputs, graph.outputs))
    return onnx.helper.make_graph([_node(onnx, n) for n in graph.nodes], graph.name, *values, initializer=arrays)


def _inside(onnx: Any, array: np.ndarray, name: str) -> Any:
    if array.dtype != bfloat16.numpy:
        return onnx.numpy_helper.from_array(_little(array), name)
    tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=onnx.TensorProto.BFLOAT16)
    tensor.raw_data = _little(array).tobytes()
    return tensor


def _node(onnx: Any, node: NodeRecord) -> Any:
    attrs = {key: _attribute(onnx, value) for key, value in node.attrs.items()}
    proto = onnx.helper.make_node(node.op, node.inputs, node.outputs, name=node.name, **attrs)
    if node.module:
        proto.metadata_props.add(key=MODULE, value=node.module)
    return proto


def _attribute(onnx: Any, value: Any) -> Any:
    if isinstance(value, GraphRecord):
        return _graph(onnx, value, {}, None)
    return _element(onnx, value) if isinstance(value, DType) else value


def _value(onnx: Any, value: ValueRecord) -> Any:
    return onnx.helper.make_tensor_value_info(value.name, _element(onnx, value.dtype), value.shape)


def _element(onnx: Any, dtype: DType) -> int:
    if dtype is bfloat16:
        return onnx.TensorProto.BFLOAT16
    return onnx.helper.np_dtype_to_tensor_dtype(dtype.numpy)


def _little(array: np.ndarray) -> np.ndarray:
    """Return an array as stored in files: contiguous and little-endian."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)


def _package() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        remedy = f"install onnx: {install_command('onnx')}"
        raise ArgumentError("ONNX files need the package onnx", remedy=remedy) from None
    return onnx
