"""The net of damaged and hostile ``.onnx`` files: ``python -m tools.damage.onnx_files --count 1000 [--seed N]``.

Reading each file must succeed or raise a typed error, in bounded time and memory, without opening a file outside of its
folder. A case damages the bytes of one of a few models (flips, cuts, repetitions, spliced fields), its structure
(fields of the proto missing, doubled, exchanged, or with another value), or the location of its external data. A model
that can be read is run once with zeros. Needs the ``onnx`` package.
"""

from __future__ import annotations

import copy
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from onnx import helper, numpy_helper

import graphc as gc
from tools.damage import corruption
from tools.damage.corruption import cases_of, read_and_run
from tools.nets.run import FAILED, Net, Outcome, main

MOST_MEMORY = 1 << 31
"""Bytes of address space that reading and running a file may add."""
SECRET = b"nobody is to read this, and it is long enough for any tensor of the models here" * 4
Damage = Callable[[random.Random, Path], None]


# Models


def _port(name: str, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def _weights() -> list[Any]:
    values = np.arange(3, dtype=np.float32) / 8
    return [
        numpy_helper.from_array(values, "fc.weight"),
        helper.make_tensor("fc.bias", onnx.TensorProto.FLOAT, [3], [0.5, 1.0, -1.0]),
        numpy_helper.from_array(np.array([1, -1], np.int64), "shape"),
    ]


def _model() -> Any:
    """Return a model with operators of several kinds, a function, and an operator that is expanded into others."""
    nodes = [
        helper.make_node("Mul", ["x", "fc.weight"], ["m"]),
        helper.make_node("Add", ["m", "fc.bias"], ["a"]),
        helper.make_node("Twice", ["a"], ["t"], domain="own", factor=2.0),
        helper.make_node("Shrink", ["t"], ["h"]),
        helper.make_node("Transpose", ["h"], ["q"], perm=[1, 0]),
        helper.make_node("Transpose", ["q"], ["p"]),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.ones((1, 3), np.float32), "c")),
        helper.make_node("Concat", ["p", "c"], ["k"], axis=0),
        helper.make_node("Reshape", ["k", "shape"], ["r"]),
        helper.make_node("Cast", ["r"], ["y"], to=onnx.TensorProto.DOUBLE),
    ]
    twice = helper.make_function(
        *("own", "Twice", ["u"], ["v"]),
        [helper.make_node("Constant", [], ["f"]), helper.make_node("Mul", ["u", "f"], ["v"])],
        [helper.make_opsetid("", 17)],
        ["factor"],
    )
    reference = twice.node[0].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "value_float", "factor", onnx.AttributeProto.FLOAT
    graph = helper.make_graph(
        nodes, "net", [_port("x", "rows", 3)], [helper.make_tensor_value_info("y", 11, None)], _weights()
    )
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, np.float32), "sparse"), numpy_helper.from_array(np.array([0, 2]), "at"), [3]
    )
    graph.sparse_initializer.append(sparse)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=versions, functions=[twice], ir_version=9)


def _branches() -> Any:
    """Return graphs within a graph, by operators that need no rule to be read."""
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["b"])], "then", [], [_port("b", 2)])
    other = helper.make_graph(
        [helper.make_node("If", ["c"], ["b"], then_branch=inner, else_branch=inner)], "else", [], [_port("b", 2)]
    )
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other)]
    ports = [_port("x", 2), helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "branches", ports, [_port("y", 2)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


MODELS: tuple[Callable[[], Any], ...] = (_model, _model, _branches)


# Damage to bytes


def _of_bytes(damage: corruption.Damage) -> Damage:
    def write(chance: random.Random, path: Path) -> None:
        path.write_bytes(damage(chance, path.read_bytes(), ()))

    return write


# Damage to structure

_WHOLE = (0, 1, -1, 2, 7, 64, 255, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))
_TEXTS = (
    "",
    "x",
    "y",
    "m",
    "fc.weight",
    "shape",
    "own",
    "ai.onnx",
    "Twice",
    "If",
    "Loop",
    "Constant",
    "..",
    "a" * 5000,
    "é\0",
)
_REALS = (0.0, -0.0, 1e38, float("nan"), float("inf"))
_KINDS = {
    FieldDescriptor.CPPTYPE_INT32: _WHOLE,
    FieldDescriptor.CPPTYPE_INT64: _WHOLE,
    FieldDescriptor.CPPTYPE_UINT64: _WHOLE,
    FieldDescriptor.CPPTYPE_FLOAT: _REALS,
    FieldDescriptor.CPPTYPE_DOUBLE: _REALS,
    FieldDescriptor.CPPTYPE_ENUM: tuple(range(30)),
}
_MESSAGE = FieldDescriptor.CPPTYPE_MESSAGE


def _messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.cpp_type == _MESSAGE:
            for inner in value if _is_repeated(field, value) else [value]:
                yield from _messages(inner)


def _is_repeated(field: Any, value: Any) -> bool:
    if field.cpp_type == _MESSAGE:
        return hasattr(value, "add")
    return not isinstance(value, (str, bytes, int, float))


def _mutate(chance: random.Random, path: Path) -> None:
    """Change one to three fields: drop, double or exchange them, copy them from elsewhere, or set another value."""
    model = onnx.load(path, load_external_data=False)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        messages = list(_messages(model))
        holder = chance.choice(messages)
        fields = holder.ListFields()
        if not fields:
            continue
        field, value = chance.choice(fields)
        try:
            (_mutate_several if _is_repeated(field, value) else _mutate_one)(chance, holder, field, value, messages)
        except (TypeError, ValueError):  # A value that protobuf rejects makes no file.
            continue
    path.write_bytes(model.SerializePartialToString())


def _value(chance: random.Random, field: Any, old: Any) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if isinstance(old, bytes):
            return chance.choice((b"", old[:-1], old + b"\0", old * 3, b"\xff\xfe", bytes(64)))
        return chance.choice(_TEXTS)
    return chance.choice(_KINDS[field.cpp_type])


def _mutate_one(chance: random.Random, holder: Any, field: Any, value: Any, messages: list[Any]) -> None:
    if chance.randrange(4) == 0:
        holder.ClearField(field.name)
    elif field.cpp_type == _MESSAGE:
        others = [m for m in messages if m.DESCRIPTOR is value.DESCRIPTOR]
        value.CopyFrom(copy.deepcopy(chance.choice(others)))
    else:
        setattr(holder, field.name, _value(chance, field, value))


def _mutate_several(chance: random.Random, holder: Any, field: Any, value: Any, messages: list[Any]) -> None:
    kind, chosen = chance.randrange(5), chance.randrange(len(value))
    if kind == 0:
        del value[chosen]
    elif kind == 1:
        value.extend([copy.deepcopy(value[chosen])] * chance.choice((1, 1, 3, 70)))
    elif kind == 2:
        order = list(value)
        chance.shuffle(order)
        copies = [copy.deepcopy(v) for v in order]
        del value[:]
        value.extend(copies)
    elif field.cpp_type == _MESSAGE:
        others = [m for m in messages if m.DESCRIPTOR is value[chosen].DESCRIPTOR]
        value[chosen].CopyFrom(copy.deepcopy(chance.choice(others)))
    else:
        value[chosen] = _value(chance, field, value[chosen])


def _doubling(chance: random.Random, model: Any) -> None:
    fan, levels = chance.choice(((2, 40), (9, 6), (1, 300), (50, 3)))
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for i in range(levels):
        op, domain = (f"B{i - 1}", "own") if i else ("Relu", "")
        applied = [helper.make_node(op, ["u"], [f"v{j}"], domain=domain) for j in range(fan)]
        model.functions.append(helper.make_function("own", f"B{i}", ["u"], ["v0"], applied, versions))
    model.graph.node.insert(0, helper.make_node(f"B{levels - 1}", ["x"], ["bomb"], domain="own"))
    if not any(v.domain == "own" for v in model.opset_import):
        model.opset_import.append(versions[1])


def _huge_weights(chance: random.Random, model: Any) -> None:
    for tensor in model.graph.initializer:
        del tensor.dims[:]
        tensor.dims.extend([chance.choice((0, 1, 1 << 20, (1 << 31) - 1)) for _ in range(chance.choice((1, 3, 65)))])


def _sparse_weights(chance: random.Random, model: Any) -> None:
    for i in range(chance.choice((2, 200))):
        sparse = model.graph.sparse_initializer.add()
        sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), f"s{i}"))
        sparse.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64), f"i{i}"))
        sparse.dims.extend([chance.choice((1 << 24, 1 << 40)), chance.choice((1, 1 << 10))])


def _nested(chance: random.Random, model: Any) -> None:
    graph = copy.deepcopy(model.graph)
    for _ in range(chance.choice((10, 24))):
        empty = helper.make_graph([], "e", [], [])
        nodes = [helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=empty)]
        graph = helper.make_graph(nodes, "g", [], [])
    model.graph.CopyFrom(graph)


def _huge_inputs(chance: random.Random, model: Any) -> None:
    for port in model.graph.input:
        for size in port.type.tensor_type.shape.dim:
            size.dim_value = chance.choice(((1 << 31) - 1, 1 << 40, -1))


_BOMBS = (_doubling, _huge_weights, _sparse_weights, _nested, _huge_inputs)


def _bomb(chance: random.Random, path: Path) -> None:
    """Insert a small construct that expands to a huge one."""
    model = onnx.load(path, load_external_data=False)
    chance.choice(_BOMBS)(chance, model)
    path.write_bytes(model.SerializePartialToString())


_PLACES = (
    "../secret",
    "../../secret",
    "link",
    "out/secret",
    "hard",
    "pipe",
    ".",
    "",
    "/etc/hostname",
    "data\0",
    "sub/data",
)
_NUMBERS = ("0", "4", "-1", "36", "35", "1" * 30, "0x10", "1e2", "", "9223372036854775807", "٣")


def _hostile(chance: random.Random, path: Path) -> None:
    """Point the external data of tensors to forbidden locations."""
    folder = path.parent
    (folder / "data").write_bytes(bytes(48))
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "sub" / "data").write_bytes(bytes(48))
    for name, make in {
        "link": lambda at: os.symlink(folder.parent / "secret", at),
        "out": lambda at: os.symlink(folder.parent, at),
        "hard": lambda at: os.link(folder.parent / "secret", at),
        "pipe": os.mkfifo,
    }.items():
        if not (folder / name).is_symlink() and not (folder / name).exists():
            make(folder / name)
    model = onnx.load(path, load_external_data=False)
    tensors = [m for m in _messages(model) if m.DESCRIPTOR.name == "TensorProto"]
    for tensor in chance.sample(tensors, min(len(tensors), chance.choice((1, 2)))):
        location = chance.choice((*_PLACES, "data", "data", str(folder / "data")))
        entries = {"location": location}
        for name in ("offset", "length"):
            if chance.randrange(2):
                entries[name] = chance.choice(_NUMBERS)
        tensor.data_location = 1
        tensor.ClearField("raw_data")
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializePartialToString())


DAMAGES: dict[str, tuple[Damage, int]] = {
    **{name: (_of_bytes(damage), weight) for name, (damage, weight) in corruption.BYTES.items()},
    "mutate": (_mutate, 18),
    "bomb": (_bomb, 5),
    "hostile": (_hostile, 7),
}
"""Damage functions by name, with the weight with which each is drawn."""


# Watching a read


class Watch:
    """Recorder of the files that the interpreter opens, by an audit hook."""

    def __init__(self) -> None:
        self.opened: list[str] | None = None
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.opened is not None and event == "open":
            self.opened.append(os.fsdecode(args[0]) if isinstance(args[0], (str, bytes)) else f"descriptor {args[0]}")

    @contextmanager
    def looking(self) -> Iterator[list[str]]:
        """Yield a list that collects the paths of opened files."""
        self.opened = paths = []
        try:
            yield paths
        finally:
            self.opened = None


@cache
def watch() -> Watch:
    """Return the recorder of this process; hooks stay for as long as it lives."""
    for make in MODELS:  # modules that load on first use
        _run(gc.from_onnx(make()))
    return Watch()


def write_case(case: str, folder: Path) -> Path:
    """Write the damaged file of a case into its own folder within ``folder``; return its path."""
    chance = random.Random(case)
    path = folder / "model" / "net.onnx"
    path.parent.mkdir()
    (folder / "secret").write_bytes(SECRET)
    path.write_bytes(chance.choice(MODELS)().SerializeToString())
    DAMAGES[case.partition("/")[0]][0](chance, path)
    return path


def judge(case: str) -> Outcome:
    """Read the file of a case and run its model with zeros."""
    with tempfile.TemporaryDirectory() as folder:
        return judge_file(write_case(case, Path(folder)))


def judge_file(path: Path) -> Outcome:
    """Read a file and run its model with zeros, and watch what it opens."""
    with watch().looking() as paths:
        outcome = read_and_run(partial(gc.from_onnx, path), _run, MOST_MEMORY)
    outside = [name for name in paths if not _is_inside(name, path.parent)]
    return Outcome(FAILED, f"opened {outside[0]}") if outside else outcome


def _is_inside(name: str, folder: Path) -> bool:
    """Return whether an opened path is allowed: the model, its folder, a path relative to a descriptor, or one of
    Python's own modules, which load on first use."""
    if name.startswith("descriptor") or (not os.path.isabs(name) and ".." not in name.split("/")):
        return True
    return Path(os.path.normpath(name)).is_relative_to(folder) or name.startswith(
        (sys.prefix, sys.base_prefix, "/proc/")
    )


def _run(model: Any) -> str | None:
    if _holds_secret(model):
        return "a tensor holds data from outside of the folder"
    model(*model.examples())
    return None


def _holds_secret(model: Any) -> bool:
    tensors = [t.numpy() for t in model.state_dict().values()]
    arrays = [c.array for c in model.graph.constants.values() if c.array.dtype != object]
    return any(SECRET[:8] in a.tobytes() for a in (*tensors, *arrays) if a.nbytes >= 8)


def cases(seed: int) -> Iterator[str]:
    """Yield ``damage/number`` without end."""
    watch()  # before processes are forked
    return cases_of(DAMAGES, seed)


NET = Net("damage.onnx_files", (__doc__ or "").partition(":")[0], cases, judge, isolated=True, groups=True)

if __name__ == "__main__":
    sys.exit(main(NET, count=1000))
