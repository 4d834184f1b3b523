"""Messages of ONNX files, decoded from protobuf's wire format without the package protobuf.

Its import takes as long as reading a small model. Names are those of ``onnx.proto``, so that readers also take the
messages of the package ``onnx``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from graphc.base.records import dataclass

FORMAT = 14
"""The newest version of the file format that is known here."""
LEAST = 1 << 16
"""Bytes of the data of a weight that stays in the file."""
MOST_NESTED = 100
"""Levels of messages within each other, as many as protobuf reads."""
_RUN = 16
"""Numbers in a row, each with its tag, before numpy decodes the next ones together."""
_FEW = 64
"""Bytes of packed numbers from which on numpy decodes them."""
_VARINT, _EIGHT, _BYTES, _GROUP, _END_GROUP, _FOUR = 0, 1, 2, 3, 4, 5
"""Wire types of protobuf."""
_WHOLE = frozenset({"int64", "int32", "uint64", "attribute type", "location"})
_NUMPY = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}
_WIRE = {**dict.fromkeys(_WHOLE, _VARINT), "float": _FOUR, "double": _EIGHT}
"""Wire type of each kind of number. Other kinds have a length."""
_LARGEST = {"attribute type": 14, "location": 1}
"""The largest numbers of enumerations. Protobuf ignores others."""
_DEFAULTS = {"string": "", "bytes": b"", "data": b"", "float": 0.0, "double": 0.0}

Octets = bytes | memoryview


@dataclass(frozen=True)
class MessageField:
    """A field of a message."""

    name: str
    kind: str
    """A kind of number, ``string``, ``bytes``, ``data`` (bytes that stay where they are), or a message."""
    is_repeated: bool


class Message:
    """A message. Fields that the file does not set have the default of their kind."""

    FIELDS: ClassVar[dict[int, MessageField]] = {}
    ONE_OF: ClassVar[tuple[str, ...]] = ()
    """Fields of which the file sets one, the last one that it has."""

    def HasField(self, name: str) -> bool:
        """Return whether the file sets a field that is not repeated."""
        return name in vars(self)

    def WhichOneof(self, _: str) -> str | None:
        """Return the field that the file sets of those that exclude each other."""
        return next((name for name in self.ONE_OF if name in vars(self)), None)


_FIELDS = {
    "Model": "1 ir_version int64, 2 producer_name string, 7 graph MainGraph, 8 opset_import OperatorSet*, "
    "25 functions Function*",
    "OperatorSet": "1 domain string, 2 version int64",
    "Graph": "1 node Node*, 2 name string, 5 initializer Tensor*, 15 sparse_initializer SparseTensor*, "
    "11 input Port*, 12 output Port*",
    "Node": "1 input string*, 2 output string*, 3 name string, 4 op_type string, 7 domain string, 8 overload string, "
    "5 attribute Attribute*",
    "Attribute": "1 name string, 21 ref_attr_name string, 20 type attribute type, 2 f float, 3 i int64, 4 s bytes, "
    "5 t Tensor, 6 g Graph, 22 sparse_tensor SparseTensor, 14 tp Type, 7 floats float*, 8 ints int64*, "
    "9 strings bytes*, 10 tensors Tensor*, 11 graphs Graph*",
    "Tensor": "1 dims int64*, 2 data_type int32, 4 float_data float*, 5 int32_data int32*, 6 string_data bytes*, "
    "7 int64_data int64*, 8 name string, 9 raw_data bytes, 13 external_data Entry*, 14 data_location location, "
    "10 double_data double*, 11 uint64_data uint64*",
    "SparseTensor": "1 values Tensor, 2 indices Tensor, 3 dims int64*",
    "Entry": "1 key string, 2 value string",
    "Port": "1 name string, 2 type Type",
    "Type": "1 tensor_type TensorType, 4 sequence_type Elements, 5 map_type Message, 9 optional_type Elements, "
    "8 sparse_tensor_type Message, 7 opaque_type Message",
    "TensorType": "1 elem_type int32, 2 shape Shape",
    "Elements": "1 elem_type Type",
    "Shape": "1 dim Dimension*",
    "Dimension": "1 dim_value int64, 2 dim_param string",
    "Function": "1 name string, 4 input string*, 5 output string*, 11 attribute_proto Attribute*, 7 node Node*, "
    "9 opset_import OperatorSet*, 10 domain string, 13 overload string",
}
"""Fields that graphc reads, with their numbers and kinds; ``*`` marks repeated ones."""
_FIELDS["MainGraph"] = _FIELDS["Graph"].replace("initializer Tensor", "initializer Weight")
_FIELDS["Weight"] = _FIELDS["Tensor"].replace("raw_data bytes", "raw_data data")
_ONE_OF = {
    "Type": ("tensor_type", "sequence_type", "map_type", "optional_type", "sparse_tensor_type", "opaque_type"),
    "Dimension": ("dim_value", "dim_param"),
}


def _classes() -> dict[str, type[Message]]:
    """Return the class of each message, whose attributes are the defaults of its fields."""
    classes: dict[str, type[Message]] = {"Message": Message}
    for name, fields in _FIELDS.items():
        rows = [text.split(" ", 2) for text in fields.split(", ")]
        table = {int(number): MessageField(field, kind.rstrip("*"), kind.endswith("*")) for number, field, kind in rows}
        classes[name] = type(name, (Message,), {"FIELDS": table, "ONE_OF": _ONE_OF.get(name, ())})
    empty = {name: cls() for name, cls in classes.items()}
    for cls in classes.values():
        for field in cls.FIELDS.values():
            default = empty.get(field.kind, _DEFAULTS.get(field.kind, 0))
            setattr(cls, field.name, () if field.is_repeated else default)
    return classes


_CLASSES = _classes()


def read_message(data: Octets) -> Any:
    """Return the model of a file. Raises ValueError for data that protobuf does not read.

    The data of large weights is a view of ``data``.
    """
    model = _CLASSES["Model"]()
    try:
        _fill(model, data, 1)
    except IndexError:
        raise ValueError("a message ends within a field") from None
    return model


def _fill(message: Message, data: Octets, depth: int) -> None:
    """Set the fields of a message. Raises ValueError, and IndexError where data is missing."""
    if depth > MOST_NESTED:
        raise ValueError(f"messages are nested in more than {MOST_NESTED} levels")
    fields, values, position, end = message.FIELDS, vars(message), 0, len(data)
    last, run = 0, 0
    while position < end:
        tag, position = _varint(data, position)
        field, wire = fields.get(tag >> 3), tag & 7
        last, run = tag, run + 1 if tag == last else 1
        if wire == _BYTES:
            size, start = _varint(data, position)
            position = start + size
            if position > end:
                raise IndexError
            if field is not None and tag >> 3:
                _take(message, field, data[start:position], depth)
        else:
            start, position = position, _skip(data, position, tag, depth)
        if position > end or not 0 < tag >> 3 < 1 << 29:
            raise IndexError if position > end else ValueError("a field has an invalid number")
        if wire == _BYTES or field is None or _WIRE.get(field.kind) != wire:
            continue
        if not field.is_repeated:
            _set_number(message, field, _number(data[start:position], field.kind))
            continue
        numbers = values.setdefault(field.name, [])
        numbers += _numbers(data[start:position], field.kind)
        if run >= _RUN and tag < 128 and position < end and data[position] == tag:
            # As many bytes as before, at most: it takes no longer where the tags of the next ones differ.
            more, position = _read_run(data[position : position + _RUN * run], position, field.kind)
            numbers += more
            run += len(more)


def _take(message: Message, field: MessageField, data: Octets, depth: int) -> None:
    """Set a field to a value with a length: text, bytes, a message, or packed numbers."""
    values, kind = vars(message), field.kind
    if kind in _WIRE:
        if field.is_repeated:
            values.setdefault(field.name, []).extend(_numbers(data, kind))
        return
    if kind != "data" and len(data) < LEAST and not isinstance(data, bytes):
        data = bytes(data)
    if kind in _CLASSES:
        old = None if field.is_repeated else values.get(field.name)
        value = _CLASSES[kind]() if old is None else old
        _fill(value, data, depth + 1)
    else:
        value = _text(data) if kind == "string" else data if kind == "data" and len(data) >= LEAST else bytes(data)
    if field.is_repeated:
        values.setdefault(field.name, []).append(value)
    else:
        _set(message, field.name, value)


def _set(message: Message, name: str, value: Any) -> None:
    values = vars(message)
    if name in message.ONE_OF:
        for other in message.ONE_OF:
            values.pop(other, None)
    values[name] = value


def _set_number(message: Message, field: MessageField, value: Any) -> None:
    if field.kind not in _LARGEST or 0 <= value <= _LARGEST[field.kind]:
        _set(message, field.name, value)


def _text(data: Octets) -> str | bytes:
    """Return a text; as protobuf does, its bytes where it is not UTF-8."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return bytes(data)


def _varint(data: Octets, position: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it."""
    byte = data[position]
    position += 1
    if byte < 128:
        return byte, position
    value, shift = byte & 127, 7
    while byte >= 128:
        if shift == 70:
            raise ValueError("a number has more than ten bytes")
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
    return value & (1 << 64) - 1, position


def _skip(data: Octets, position: int, tag: int, depth: int) -> int:
    """Return the position after a value without a length: a number, or a group of fields."""
    wire = tag & 7
    if wire == _VARINT:
        return _varint(data, position)[1]
    if wire in (_FOUR, _EIGHT):
        return position + (4 if wire == _FOUR else 8)
    if wire != _GROUP or depth > MOST_NESTED:
        raise ValueError(f"a field has the wire type {wire}")
    while True:
        inner, position = _varint(data, position)
        if inner & 7 == _END_GROUP:
            if inner >> 3 != tag >> 3:
                raise ValueError("a group ends with the number of another one")
            return position
        if not inner >> 3:
            raise ValueError("a field has an invalid number")
        if inner & 7 == _BYTES:
            size, position = _varint(data, position)
            position += size
        else:
            position = _skip(data, position, inner, depth + 1)


def _number(data: Octets, kind: str) -> Any:
    if kind in _NUMPY:
        return np.frombuffer(data, _NUMPY[kind])[0].item()
    return _in_range(_varint(data, 0)[0], kind)


def _in_range(value: int, kind: str) -> int:
    """Return a number of 64 bits as its kind has it: with a sign, or the lower half of the bits."""
    if kind == "uint64":
        return value
    bits = 64 if kind == "int64" else 32
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _numbers(data: Octets, kind: str) -> list[Any]:
    """Return the numbers in consecutive bytes."""
    if kind in _NUMPY:
        return np.frombuffer(data, _NUMPY[kind]).tolist()
    if len(data) < _FEW:
        numbers, position = [], 0
        while position < len(data):
            value, position = _varint(data, position)
            numbers.append(_in_range(value, kind))
        return numbers
    octets = np.frombuffer(data, np.uint8)
    return _of_octets(octets, np.flatnonzero(octets < 128), kind)


def _of_octets(octets: np.ndarray, ends: np.ndarray, kind: str) -> list[Any]:
    """Return whole numbers of variable length from their octets and the positions of the last one of each."""
    if octets.size and (not ends.size or ends[-1] + 1 != octets.size):
        raise ValueError("a number ends after its message")
    lengths = np.diff(ends, prepend=-1)
    starts, values = ends + 1 - lengths, np.zeros(ends.size, np.uint64)
    longest = int(lengths.max(initial=0))
    if longest > 10:
        raise ValueError("a number has more than ten bytes")
    for i in range(longest):
        chosen = lengths > i
        values[chosen] |= (octets[starts[chosen] + i] & np.uint8(127)).astype(np.uint64) << np.uint64(7 * i)
    wide = {"uint64": np.uint64, "int64": np.int64}.get(kind)
    return (values.astype(np.uint32).view(np.int32) if wide is None else values.view(wide)).tolist()


def _read_run(data: Octets, position: int, kind: str) -> tuple[list[Any], int]:
    """Return the numbers at the beginning that have the same tag of one byte, and the position after them."""
    octets = np.frombuffer(data, np.uint8)
    if kind in _NUMPY:
        row = np.dtype([("tag", "u1"), ("value", _NUMPY[kind])])
        rows = octets[: octets.size // row.itemsize * row.itemsize].view(row)
        count = _leading(rows["tag"] == octets[0])
        return rows["value"][:count].tolist(), position + count * row.itemsize
    ends = np.flatnonzero(octets < 128)
    ends = ends[: ends.size // 2 * 2]
    tags, lasts = ends[0::2], ends[1::2]
    count = _leading((tags - np.concatenate([[-1], lasts[:-1]]) == 1) & (octets[tags] == octets[0]))
    used = int(lasts[count - 1]) + 1 if count else 0
    is_value = np.ones(used, bool)
    is_value[tags[:count]] = False
    values = octets[:used][is_value]
    return _of_octets(values, np.flatnonzero(values < 128), kind), position + used


def _leading(matches: np.ndarray) -> int:
    """Return how many are true before the first one that is not."""
    return int(matches.argmin()) if matches.size and not matches.all() else matches.size
