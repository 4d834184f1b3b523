"""Size-checked conversion of ONNX's protobuf records to Python values: tensors, attributes, and types of inputs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError, UnsupportedError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import LARGEST
from graphc.base.sizes.size_text import LOOP
from graphc.interop.onnx.elements import STRING, Element, element_of_code
from graphc.interop.onnx.external import External
from graphc.interop.onnx.graph import Port, TensorAttribute

_SMALL = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}
"""Bits of the types that pack several elements into a byte."""
_FIELDS = {
    **dict.fromkeys(("FLOAT", "COMPLEX64"), "float_data"),
    **dict.fromkeys(("DOUBLE", "COMPLEX128"), "double_data"),
    "INT64": "int64_data",
    **dict.fromkeys(("UINT32", "UINT64"), "uint64_data"),
}
"""Field of the elements outside of ``raw_data``. Other types use ``int32_data``."""
MOST_NESTED = 16
"""Levels of sequences and optional values within each other."""
MOST_DIMS = 64
"""Dimensions of a tensor, as many as numpy can have."""
_WIDEST = 16
"""Bytes of the widest element."""
_ADDRESSES = 2**63 - 1
_BITS = frozenset(
    ("FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0")
)
"""Types whose bits ``int32_data`` holds."""


def text_of(field: Any) -> str:
    """Return a string of a proto. Protobuf delivers bytes where it is not UTF-8: raises ArtifactError."""
    if not isinstance(field, str):
        raise ArtifactError(f"the name {field[:40]!r} is not UTF-8 text")
    return field


def read_tensor(proto: Any, external: External) -> TensorAttribute:
    """Convert a TensorProto. Raises ArtifactError where its data does not fit its shape, UnsupportedError for its
    type."""
    title = f"tensor {proto.name[:80]!r}"
    element = element_of_code(proto.data_type)
    shape = _shape(proto.dims, title)
    count = math.prod(shape)
    if element is STRING:
        return TensorAttribute(_texts(proto, count, title).reshape(shape), element)
    if proto.data_location == 1:
        entries = {text_of(e.key): text_of(e.value) for e in proto.external_data}
        raw = external.read(entries, _bytes(element, count), title)
        return TensorAttribute(_of_bytes(raw, element, shape), element)
    if proto.raw_data:
        raw = np.frombuffer(proto.raw_data, np.uint8)
        if raw.size != _bytes(element, count):
            raise ArtifactError(f"{title} has {raw.size} bytes, its shape {list(shape)} needs {_bytes(element, count)}")
        return TensorAttribute(_of_bytes(raw, element, shape), element)
    return TensorAttribute(_of_numbers(proto, element, count, title).reshape(shape), element)


def _shape(dims: Sequence[int], title: str) -> tuple[int, ...]:
    """Return the sizes of a tensor that numpy can have. Raises ArtifactError."""
    shape = tuple(dims[: MOST_DIMS + 1])
    # NOTE: numpy also multiplies the other sizes where one is 0.
    addressed = math.prod([max(n, 1) for n in shape]) * _WIDEST
    if len(shape) > MOST_DIMS or any(not 0 <= n <= LARGEST for n in shape) or addressed > _ADDRESSES:
        raise ArtifactError(f"{title} has the shape {list(shape)}, which is invalid or too large")
    return shape


def _bytes(element: Element, count: int) -> int:
    bits = _SMALL.get(element.name, element.numpy.itemsize * 8)
    return (count * bits + 7) // 8


def _of_bytes(raw: np.ndarray, element: Element, shape: tuple[int, ...]) -> np.ndarray:
    bits = _SMALL.get(element.name)
    if bits is not None:
        return _unpacked(raw, bits, math.prod(shape), element).reshape(shape)
    array = raw.view(element.numpy.newbyteorder("<") if element.numpy.kind != "V" else element.numpy)
    if element.name == "BOOL":
        array = raw != 0
    return array.reshape(shape)


def _unpacked(raw: np.ndarray, bits: int, count: int, element: Element) -> np.ndarray:
    codes = [(raw >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    elements = np.stack(codes, -1).reshape(-1)[:count].astype(np.uint8)
    if element.name.startswith("INT"):
        sign = 1 << (bits - 1)
        return ((elements.astype(np.int8) ^ sign) - sign).astype(element.numpy)
    return elements.astype(element.numpy) if element.name.startswith("UINT") else elements.view(element.numpy)


def _of_numbers(proto: Any, element: Element, count: int, title: str) -> np.ndarray:
    numbers = getattr(proto, _FIELDS.get(element.name, "int32_data"))
    small = _SMALL.get(element.name)
    expected = _bytes(element, count) if small is not None else count * (2 if element.name.startswith("COMPLEX") else 1)
    if len(numbers) != expected:
        raise ArtifactError(f"{title} has {len(numbers)} numbers, its shape needs {expected}")
    array = np.array(numbers)
    if small is not None:
        return _unpacked(array.astype(np.uint8), small, count, element)
    if element.name in _BITS:
        unsigned = np.uint16 if element.numpy.itemsize == 2 else np.uint8
        return array.astype(unsigned).view(element.numpy)
    if element.name.startswith("COMPLEX"):
        return (array[0::2] + 1j * array[1::2]).astype(element.numpy)
    return array.astype(element.numpy)


def _texts(proto: Any, count: int, title: str) -> np.ndarray:
    if len(proto.string_data) != count:
        raise ArtifactError(f"{title} has {len(proto.string_data)} texts, its shape needs {count}")
    strings = np.empty(count, object)
    for i, text in enumerate(proto.string_data):
        strings[i] = _text(text)
    return strings


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ArtifactError(f"{data[:40]!r} is not UTF-8 text") from None


def _distinct_texts(strings: Sequence[bytes]) -> tuple[str, ...]:
    """Decode texts, each distinct one once: the nodes of a forest repeat a few."""
    texts = {data: _text(data) for data in set(strings)}
    return tuple([texts[data] for data in strings])


def read_attribute(proto: Any, external: External, graph_of: Callable[[Any], Any]) -> Any:
    """Return the value of an AttributeProto. ``graph_of`` reads its graphs. Raises UnsupportedError for unknown
    kinds."""
    readers: dict[int, Callable[[], Any]] = {
        1: lambda: proto.f,
        2: lambda: proto.i,
        3: lambda: _text(proto.s),
        4: lambda: read_tensor(proto.t, external),
        5: lambda: graph_of(proto.g),
        6: lambda: tuple(proto.floats),
        7: lambda: tuple(proto.ints),
        8: lambda: _distinct_texts(proto.strings),
        9: lambda: tuple([read_tensor(t, external) for t in proto.tensors]),
        10: lambda: tuple([graph_of(g) for g in proto.graphs]),
        11: lambda: read_sparse(proto.sparse_tensor, external),
        13: lambda: read_port_type(proto.name, proto.tp, None),
    }
    if proto.type not in readers:
        raise UnsupportedError(f"graphc cannot read the attribute {proto.name[:60]!r} of kind {proto.type}")
    return readers[proto.type]()


def read_sparse(proto: Any, external: External) -> TensorAttribute:
    """Expand a SparseTensorProto to a dense tensor. Raises what ``read_tensor`` raises."""
    shape = _shape(proto.dims, "a sparse tensor")
    values, indices = read_tensor(proto.values, external), read_tensor(proto.indices, external).array
    external.fill(math.prod(shape) * max(values.array.itemsize, 8), "a sparse tensor")
    dense = np.zeros(math.prod(shape), values.array.dtype)
    try:
        if indices.ndim == 2:
            indices = np.ravel_multi_index(tuple(indices.T), shape)
        if indices.size and indices.min() < 0:
            raise IndexError
        dense[indices] = values.array
    except (ValueError, IndexError, TypeError):
        raise ArtifactError("a sparse tensor with elements outside of its shape") from None
    return TensorAttribute(dense.reshape(shape), values.element)


MOST_NAME = 200
"""Characters of a name derived from a string in a file."""


class Names:
    """Generator of unique names."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        """Number of names derived from each name."""

    def take(self, name: str) -> str:
        """Return ``name``, or ``name_1``, ``name_2``, ... where it is in use."""
        candidate = name
        while candidate in self._counts:
            self._counts[name] += 1
            candidate = f"{name}_{self._counts[name]}"
        self._counts[candidate] = 1
        return candidate


_UNNAMED = re.compile(r"None|[-+]?[0-9]*|\W*")
"""Names of sizes by which converters mean any size: two of them need not be equal. So does a negative size."""


class ModelDims:
    """Named dimensions of one model, by their strings in the file."""

    def __init__(self) -> None:
        self._dims: dict[str, Any] = {}
        self._names = Names()

    def of(self, text: str, fallback: str) -> Any:
        """Return the dimension with this string. A string that names none (``?``, ``-1``) gets a dimension of its own,
        named ``fallback``."""
        key = text
        if _UNNAMED.fullmatch(text):
            key = f"size_{fallback}" if LOOP.fullmatch(fallback) else fallback
        if key not in self._dims:
            name = "".join(c if c.isprintable() and c != "`" else "_" for c in key[:MOST_NAME]) or "size"
            self._dims[key] = Dim(self._names.take(name), min=0)
        return self._dims[key]


def read_port_type(name: str, proto: Any, dims: ModelDims | None, depth: int = 0) -> Port:
    """Return the type of a graph's input or output. Without ``dims`` open sizes are None. Raises ArtifactError."""
    kind = proto.WhichOneof("value") or ""
    name = text_of(name)
    if kind in ("sequence_type", "optional_type"):
        if depth > MOST_NESTED:
            raise ArtifactError(f"the type of {name[:80]!r} is nested in more than {MOST_NESTED} levels")
        inner = read_port_type(name, getattr(proto, kind).elem_type, None, depth + 1)
        return Port(name, kind.removesuffix("_type"), inner.element, None)
    if kind != "tensor_type":
        return Port(name, "map" if kind == "map_type" else "other", None, None)
    tensor_type = proto.tensor_type
    element = element_of_code(tensor_type.elem_type) if tensor_type.elem_type else None
    if not tensor_type.HasField("shape"):
        return Port(name, "tensor", element, None)
    if len(tensor_type.shape.dim) > MOST_DIMS:
        raise ArtifactError(f"the type of {name[:80]!r} has more than {MOST_DIMS} dimensions")
    return Port(
        name, "tensor", element, tuple([_size(d, f"{name}_{i}", dims) for i, d in enumerate(tensor_type.shape.dim)])
    )


def _size(proto: Any, title: str, dims: ModelDims | None) -> Any:
    if proto.WhichOneof("value") == "dim_value" and proto.dim_value >= 0:
        if proto.dim_value > LARGEST:
            raise ArtifactError(f"{title[:80]} has the invalid size {proto.dim_value}")
        return proto.dim_value
    return dims.of(text_of(proto.dim_param), title) if dims is not None else None
