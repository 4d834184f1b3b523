"""WebAssembly libraries: in Node they give what Python gives, and under strict order its bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library.build import build_library
from graphc.codegen.machine.target import host_target, target_named
from graphc.nn import functional as F
from tests.c_library.conftest import Built, call_alone, expected
from tests.c_library.nets import NETS
from tests.c_library.node import call_in_node


def close(actual: bytes, array: np.ndarray) -> bool:
    result = np.frombuffer(actual, array.dtype).reshape(array.shape)
    if array.dtype.kind != "f":
        return np.array_equal(result, array)
    tolerance = 1e-5 if array.dtype == np.float32 else 1e-12
    return np.allclose(result, array, tolerance, tolerance * min(np.abs(array).max(initial=0), 1.0), equal_nan=True)


def named(calls: Sequence[Sequence[np.ndarray]], names: Sequence[str]) -> list[tuple[str, dict[str, np.ndarray]]]:
    return [("run", dict(zip(names, call, strict=True))) for call in calls]


INPUTS = {"policy": "input", "digits": "image", "decoder": "token", "bag": "index", "wide": "input"}


@pytest.mark.parametrize("name", NETS)
def test_calls_in_node_give_what_python_gives(name: str, built: Built, tmp_path: Path):
    net = NETS[name]
    library = built(name, ("wasm", "js", "d.ts"), target="wasm")
    calls = named(net.calls, [INPUTS.get(name, "x")])
    if name == "sizes":  # nothing but the caller says how a length is divided into batch and time
        calls = [(entry, {**inputs, "batch": np.int64(inputs["x"].shape[0])}) for entry, inputs in calls]
    outputs = call_in_node(library, calls)
    for result, arrays in zip(outputs, expected(net, tmp_path), strict=True):
        assert all(close(a, b) for a, b in zip(result, arrays, strict=True))


@pytest.mark.parametrize("name", ["digits", "lstm"])
def test_in_strict_order_the_bits_are_those_of_this_machine(name: str, built: Built, tmp_path: Path):
    net = NETS[name]
    library = built(name, ("wasm", "js"), target="wasm", strict_order=True)
    native = build_library(net.model(), *net.calls[0], path=tmp_path / "n.so", emit=("so", "py"), strict_order=True)
    outputs = call_in_node(library, named(net.calls, [INPUTS.get(name, "x")]))
    assert outputs == [[a.tobytes() for a in call] for call in call_alone(native, net.calls, tmp_path)]


MODULES = ("wasm", "relaxed", "scalar")


@pytest.mark.parametrize("name", NETS)
def test_modules_for_other_engines_share_weights_and_results(name: str, built: Built, tmp_path: Path):
    net = NETS[name]
    library = built(name, (*MODULES, "js"), target="wasm", weights="beside")
    calls = named(net.calls, [INPUTS.get(name, "x")])
    if name == "sizes":
        calls = [(entry, {**inputs, "batch": np.int64(inputs["x"].shape[0])}) for entry, inputs in calls]
    sizes = {kind: library.files[kind].stat().st_size for kind in MODULES}
    assert library.files["relaxed"].name == f"{name}.relaxed.wasm" and max(sizes.values()) < 3 * library.code_bytes
    for kind in MODULES:
        outputs = call_in_node(library, calls, f'new URL("{library.files[kind].name}", import.meta.url)')
        for result, arrays in zip(outputs, expected(net, tmp_path), strict=True):
            assert all(close(a, b) for a, b in zip(result, arrays, strict=True))


@pytest.mark.parametrize("target", ["wasm-relaxed", "wasm-scalar"])
def test_in_strict_order_all_modules_give_the_same_bits(target: str, tmp_path: Path):
    if target_named(target).fma and not host_target().fma:
        pytest.skip("this processor has no multiply-add")
    x = np.random.default_rng(0).standard_normal((7, 37)).astype("f4") * 5
    outputs = []
    for name in ("wasm", target):
        options: dict[str, Any] = {"path": tmp_path / f"{name}.wasm", "target": name, "strict_order": True}
        outputs += call_in_node(build_library(functions, graphc.tensor(x), **options), [("run", {"x": x})])
    assert outputs[0] == outputs[1]


def functions(x: Any) -> Any:
    return (
        *(graphc.exp(x), graphc.erf(x), graphc.tanh(x), graphc.sin(x), graphc.log1p(x * x), graphc.expm1(x)),
        *(F.gelu(x), F.softmax(x, -1), graphc.sigmoid(x), graphc.pow(x * x, 0.3), graphc.floor(x), graphc.round(x)),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_mathematics_agree(dtype: type, tmp_path: Path):
    x = np.random.default_rng(0).standard_normal((7, 37)).astype(dtype) * 5
    library = build_library(functions, graphc.tensor(x), path=tmp_path / "f.wasm", target="wasm")
    (outputs,) = call_in_node(library, [("run", {"x": x})])
    for result, array in zip(outputs, functions(graphc.tensor(x)), strict=True):
        assert close(result, array.numpy())


def integers(a: Any, b: Any) -> Any:
    return (
        a + b,
        a * b,
        a // b,
        a % b,
        a & b,
        a ^ b,
        a << 2,
        a >> 3,
        graphc.maximum(a, b),
        a < b,
        (a * b).sum(),
        a.cumsum(0),
    )


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_integers_are_equal(dtype: str, tmp_path: Path):
    generator = np.random.default_rng(1)
    a, b = generator.integers(0, 100, 37).astype(dtype), generator.integers(1, 50, 37).astype(dtype)
    library = build_library(integers, graphc.tensor(a), graphc.tensor(b), path=tmp_path / "i.wasm", target="wasm")
    (outputs,) = call_in_node(library, [("run", {"a": a, "b": b})])
    expected = [array.numpy() for array in integers(graphc.tensor(a), graphc.tensor(b))]
    assert outputs == [array.tobytes() for array in expected]


def test_elements_of_each_size_go_in_and_out(tmp_path: Path):
    def doubled(*arrays: Any) -> Any:
        return tuple(a + a for a in arrays)

    arrays = [np.array([3, np.iinfo(d).max // 2], d) for d in ("int16", "uint16", "uint32", "uint64")]
    arrays.append(np.array([1.5, -2.0], np.float16))
    library = build_library(doubled, *map(graphc.tensor, arrays), path=tmp_path / "d.wasm", target="wasm")
    names = [f"arrays.{i}" for i in range(len(arrays))]
    (outputs,) = call_in_node(library, [("run", dict(zip(names, arrays, strict=True)))])
    assert outputs == [(a + a).tobytes() for a in arrays]


def test_entries_share_states_and_a_model_trains(tmp_path: Path):
    graphc.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    step = graphc.compile_step(net, F.cross_entropy, graphc.optim.SGD(net.parameters(), lr=0.1))
    x, y = np.random.default_rng(0).standard_normal((16, 4)).astype("f4"), np.arange(16) % 2
    entries = {"infer": graphc.Entry(net, x, train=False), "train_step": graphc.Entry(step, x, y)}
    library = build_library(entries, path=tmp_path / "learner.wasm", target="wasm")
    infer, train = {"input": x}, {"x.0": x, "y.0": y}
    outputs = call_in_node(library, [("infer", infer), *[("train_step", train)] * 3, ("infer", infer)])
    predictions = [net(graphc.tensor(x)).detach().numpy()]
    losses = [step(graphc.tensor(x), graphc.tensor(y)).numpy() for _ in range(3)]
    predictions.append(net(graphc.tensor(x)).detach().numpy())
    expected = [predictions[0], *losses, predictions[1]]
    assert all(close(output[0], array) for output, array in zip(outputs, expected, strict=True))


def test_equal_models_give_equal_bytes(tmp_path: Path):
    net, contents = NETS["policy"], []
    for number in range(2):
        path = tmp_path / str(number) / "policy.wasm"
        path.parent.mkdir()
        library = build_library(net.model(), *net.calls[0], path=path, target="wasm")
        contents.append([file.read_bytes() for file in library.files.values()])
    assert contents[0] == contents[1] and [*library.files] == ["wasm", "js", "d.ts", "html"]
    assert library.weight_bytes < len(contents[0][0]) < library.weight_bytes + library.code_bytes + 8192


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "avx2"}, ArgumentError, "no file of kind 'wasm' for Linux"),
        ({"target": "wasm", "emit": ("so",)}, ArgumentError, "no file of kind 'so' for WebAssembly"),
        ({"target": "wasm", "emit": ("wasm", "scalar")}, ArgumentError, "'scalar' shares the weights of other files"),
        ({"target": "wasm", "realtime": True}, ArgumentError, "properties of machine code"),
        ({"target": "wasm", "threads": True}, ArgumentError, "no thread pool for wasm32"),
    ],
)
def test_options_that_webassembly_does_not_have(options: Any, error: type, message: str, tmp_path: Path):
    options = {"emit": ("wasm",), **options}
    with pytest.raises(error, match=message):
        build_library(nn.ReLU(), graphc.zeros(3), path=tmp_path / "net.wasm", **options)
    assert not [*tmp_path.iterdir()]


def test_functions_for_webassembly_do_not_run_in_python():
    with pytest.raises(CompileError, match="code for wasm does not run here"):
        graphc.compile(lambda x: x + 1, target="wasm")(graphc.zeros(3))


def test_a_model_file_holds_no_object_code_for_webassembly(tmp_path: Path):
    with pytest.raises(CompileError, match="as a module of a library only") as caught:
        graphc.export(nn.ReLU(), graphc.zeros(3), path=tmp_path / "net.gcm", native=True, target="wasm")
    assert "build_library" in str(caught.value.remedy)
