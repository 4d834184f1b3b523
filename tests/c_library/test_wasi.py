"""WASI commands: .npy files from stdin to stdout, and messages about files that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library.build import build_library
from graphc.nn import functional as F
from tests.c_library.binding_cases import Repeats
from tests.c_library.conftest import Built, expected
from tests.c_library.nets import NETS
from tests.c_library.test_wasm import close
from tests.c_library.wasi import Command, by_wasmtime, in_node, npy

HOSTS = pytest.mark.parametrize("command", [in_node, by_wasmtime])


@HOSTS
@pytest.mark.parametrize("name", NETS)
def test_a_command_gives_what_python_gives(name: str, command: Command, built: Built, tmp_path: Path):
    net = NETS[name]
    path = built(name, ("wasi",), target="wasm").files["wasi"]
    assert path.name == f"{name}.wasi.wasm"
    done = command(path, npy(*net.calls[0]))
    arrays = expected(net, tmp_path)[0]  # each process begins with the first states
    assert (done.code, done.message) == (0, "") and [a.shape for a in done.arrays] == [a.shape for a in arrays]
    assert all(close(a.tobytes(), b) for a, b in zip(done.arrays, arrays, strict=True))


def test_it_imports_functions_of_wasi_alone(built: Built):
    code = built("policy", ("wasi",), target="wasm").files["wasi"].read_bytes()
    names = (b"fd_read", b"fd_write", b"proc_exit")
    assert code.count(b"wasi_snapshot_preview1") == len(names) and all(name in code for name in names)


@HOSTS
def test_files_that_do_not_fit_are_refused(command: Command, tmp_path: Path):
    x = np.arange(12, dtype="f4").reshape(4, 3)
    rows: Any = graphc.Dim("rows", min=2, max=64), 3
    options: Any = {"path": tmp_path / "add.wasm", "emit": "wasi", "target": "wasm", "dims": [rows, rows]}
    library = build_library(lambda x, y: x + y, graphc.tensor(x), graphc.tensor(x), **options)
    path, good = library.files["wasi"], npy(x, x)
    cases = {
        good[:100]: "stdin ends within x",
        good[: len(good) // 2 + 140]: "stdin ends within y",
        good + b"\0": "stdin holds more than the inputs",
        b"PK\3\4" + good: "x is not a .npy file",
        good[:6] + b"\4" + good[7:]: "x is not a .npy file",
        npy(x.astype("f8"), x): "x is f32[rows,3], not {'descr':'<f8','fortran_order':False,'shape':(4,3),}",
        npy(x.astype(">f4"), x): "x is f32[rows,3], not {'descr':'>f4'",
        npy(x, np.asfortranarray(x)): "y is f32[rows,3], not {'descr':'<f4','fortran_order':True,",
        npy(x, x[:, :2]): "y is f32[rows,3], not {'descr':'<f4','fortran_order':False,'shape':(4,2),}",
        npy(x, x[0]): "y is f32[rows,3], not {'descr':'<f4','fortran_order':False,'shape':(3,),}",
        npy(x, x[None]): "y is f32[rows,3], not {'descr':'<f4','fortran_order':False,'shape':(1,4,3),}",
        npy(x, x[:3]): "the size of a named dimension is out of its range",
        npy(x[:1], x[:1]): "the size of a named dimension is out of its range",
        good.replace(b"(4, 3)", b"(4" + b"0" * 30 + b", 3)", 1): "x is f32[rows,3], not ",
        good.replace(b"(4, 3), }", b"(4000000000, 3), }", 1).replace(b" " * 9, b"", 1): "there is not enough memory",
    }
    for data, message in cases.items():
        done = command(path, data)
        assert done.code == 1 and done.message.startswith(message) and done.message.endswith("\n"), (message, done)
        assert not done.arrays
    assert command(path, good).arrays[0].tolist() == (x + x).tolist()


@HOSTS
def test_other_headers_of_the_same_array_are_read(command: Command, tmp_path: Path):
    library = build_library(nn.ReLU(), graphc.zeros(3), path=tmp_path / "relu.wasm", emit="wasi", target="wasm")
    x = np.array([-1, 2, 3], "f4")
    texts = (
        "{'shape':(3,),'fortran_order':False,'descr':'<f4'}",
        "{ 'fortran_order' : False, 'descr': '<f4', 'shape': ( 3 ) }\n",
    )
    for text in texts:
        for version, size in ((b"\1\0", 2), (b"\2\0", 4), (b"\3\0", 4)):
            header = b"\x93NUMPY" + version + len(text).to_bytes(size, "little") + text.encode()
            assert command(library.files["wasi"], header + x.tobytes()).arrays[0].tolist() == [0, 2, 3]


def doubled(*arrays: Any) -> Any:
    return tuple(a | a if str(a.dtype) == "bool" else a + a for a in arrays)


@HOSTS
def test_arrays_of_each_type_and_large_ones_go_in_and_out(command: Command, tmp_path: Path):
    arrays = [np.array([1, 0, 3], d) for d in ("i1", "u1", "?", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")]
    arrays += [np.array(2.5, "f4"), np.zeros((0, 3), "f4"), np.arange(3_000_000, dtype="f4").reshape(1, 3000, 1000, 1)]
    options: Any = {"path": tmp_path / "each.wasm", "emit": "wasi", "target": "wasm"}
    done = command(build_library(doubled, *map(graphc.tensor, arrays), **options).files["wasi"], npy(*arrays))
    results = doubled(*arrays)
    assert [(a.dtype, a.shape) for a in done.arrays] == [(a.dtype, a.shape) for a in results], done.message
    assert [a.tobytes() for a in done.arrays] == [a.tobytes() for a in results]


@HOSTS
def test_an_argument_names_the_entry(command: Command, tmp_path: Path):
    graphc.manual_seed(0)
    net = nn.Linear(4, 2)
    step = graphc.compile_step(net, F.cross_entropy, graphc.optim.SGD(net.parameters(), lr=0.1))
    x, y = np.random.default_rng(0).standard_normal((16, 4)).astype("f4"), np.arange(16) % 2
    entries = {"infer": graphc.Entry(net, x, train=False), "infer_step": graphc.Entry(step, x, y)}
    path = build_library(entries, path=tmp_path / "learner.wasm", emit="wasi", target="wasm").files["wasi"]
    (result,) = command(path, npy(x), ["infer"]).arrays
    np.testing.assert_allclose(result, net(graphc.tensor(x)).detach().numpy(), 1e-5, 1e-6)
    assert command(path, npy(x, y), ["infer_step"]).arrays[0].shape == ()
    for arguments in ([], ["inf"], ["inference"]):
        done = command(path, npy(x), arguments)
        assert (done.code, done.message) == (1, "pass the name of an entry: infer, infer_step\n")


@HOSTS
@pytest.mark.parametrize(("name", "entry"), [("net", "error"), ("bytes", "of"), ("fd", "read")])
def test_functions_of_a_library_may_be_called_as_those_of_a_command(
    name: str, entry: str, command: Command, tmp_path: Path
):
    x = np.array([-1, 2, 3], "f4")
    options: Any = {"path": tmp_path / "net.wasm", "name": name, "emit": "wasi", "target": "wasm"}
    path = build_library({entry: graphc.Entry(nn.ReLU(), x)}, **options).files["wasi"]
    assert command(path, npy(x)).arrays[0].tolist() == [0, 2, 3]


@HOSTS
def test_errors_of_the_library_go_to_stderr(command: Command, built: Built):
    path = built("bag", ("wasi",), target="wasm").files["wasi"]
    done = command(path, npy(np.full((2, 4), 99)))
    assert done.code == 1 and done.message.startswith("an index or label is out of range") and not done.arrays


def test_a_dimension_that_no_shape_determines_cannot_be_read(tmp_path: Path):
    options: Any = {"path": tmp_path / "n.wasm", "emit": "wasi", "target": "wasm"}
    with pytest.raises(CompileError, match="the shapes of the inputs of 'run' do not determine count"):
        build_library(Repeats(), graphc.zeros(4), 3, dims=[(), graphc.Dim("count", max=100)], **options)


def test_a_command_contains_its_weights(tmp_path: Path):
    options: Any = {"path": tmp_path / "n.wasm", "emit": "wasi", "target": "wasm", "weights": "beside"}
    with pytest.raises(ArgumentError, match="'wasi' for WebAssembly has its weights inside"):
        build_library(nn.ReLU(), graphc.zeros(3), **options)
