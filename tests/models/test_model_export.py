"""export: what is traced is what is loaded, in either mode, with nested outputs and shared weights."""

from __future__ import annotations

import pickle
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, ArtifactError, CompileError, PassError, TraceError
from graphc.files import container
from graphc.files import model_content as artifact
from graphc.models.model_export import export
from graphc.models.model_file import load
from graphc.nn import functional as F
from tests.calls.narrow import MOST, NARROW
from tests.native import target_or_skip

Pair = namedtuple("Pair", "low high")


class Net(nn.Module):
    """Two linear layers with batch normalization and dropout."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        x = F.relu(self.norm(self.fc1(x)))
        return self.fc2(F.dropout(x, 0.5, training=self.training))


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def test_a_loaded_model_computes_what_the_model_computes(tmp_path: Path):
    net, x = Net().eval(), array(5, 6)
    export(net, gc.tensor(x), path=tmp_path / "net.gcm")
    loaded = gc.load(tmp_path / "net.gcm")
    np.testing.assert_allclose(loaded(x), net(gc.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(loaded(x=x), loaded(x))
    assert loaded.states == {}
    assert [t.name for t in loaded.manifest.tensors] == [
        n for n, _ in artifact.load(tmp_path / "net.gcm").weights.items()
    ]


def test_exporting_leaves_the_model_alone_and_later_changes_stay_out(tmp_path: Path):
    net, x = Net().eval(), array(5, 6)
    path = tmp_path / "net.gcm"
    export(net, x, path=path)
    expected = gc.load(path)(x)
    assert not net.training and all(p.requires_grad and p.grad is None for p in net.parameters())
    with gc.no_grad():
        net.fc2.bias += 1
    np.testing.assert_array_equal(gc.load(path)(x), expected)


def test_training_mode_draws_and_counts_as_the_model_does(tmp_path: Path):
    gc.manual_seed(7)
    net, x = Net().train(), array(5, 6)
    export(net, x, path=tmp_path / "net.gcm")
    loaded = gc.load(tmp_path / "net.gcm")
    assert {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"} < set(loaded.states)
    for _ in range(3):
        np.testing.assert_allclose(loaded(x), net(gc.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(loaded.states["norm.running_var"], net.norm.running_var.numpy(), rtol=1e-5)


def test_outputs_nest(tmp_path: Path):
    def f(x, y):
        return {"a": x + y, 2: [x - y, None, (x * y,)], "pair": Pair(x, y)}

    export(f, gc.ones(3), gc.ones(3), path=tmp_path / "f.gcm")
    loaded = gc.load(tmp_path / "f.gcm")
    assert [s.name for s in loaded.outputs] == ["a", "2.0", "2.2.0", "pair.0", "pair.1"]
    x, y = np.array([1, 2, 3], np.float32), np.array([3, 2, 1], np.float32)
    found = loaded(x, y)
    np.testing.assert_array_equal(found["a"], [4, 4, 4])
    np.testing.assert_array_equal(found["2"][2][0], [3, 4, 3])
    assert found["2"][1] is None and type(found["pair"]) is tuple
    np.testing.assert_array_equal(found["pair"][1], y)


def test_inputs_nest_by_name(tmp_path: Path):
    export(lambda batch: batch["a"] - batch["b"][0], {"a": gc.ones(2), "b": [gc.ones(2)]}, path=tmp_path / "f.gcm")
    loaded = gc.load(tmp_path / "f.gcm")
    assert [s.name for s in loaded.inputs] == ["batch.a", "batch.b.0"]
    np.testing.assert_array_equal(loaded(**{"batch.b.0": array(2), "batch.a": array(2)}), [0, 0])


def test_keyword_examples_and_static_arguments(tmp_path: Path):
    export(lambda x, scale, add=None: x * scale + add, gc.ones(2), 3, add=gc.ones(2), path=tmp_path / "f.gcm")
    np.testing.assert_array_equal(gc.load(tmp_path / "f.gcm")(array(2) * 0 + 2, add=np.ones(2, np.float32)), [7, 7])


def test_a_shared_weight_is_stored_once(tmp_path: Path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4, bias=False)
            self.b = nn.Linear(4, 4, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    net, x = Tied(), array(2, 4)
    manifest = export(net, x, path=tmp_path / "t.gcm")
    assert [t.name for t in manifest.tensors] == ["a.weight"]
    np.testing.assert_allclose(gc.load(tmp_path / "t.gcm")(x), net(gc.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["float64", "int64", "int32", "int8", "uint8", "bool"])
def test_element_types(tmp_path: Path, name: str):
    x = np.array([0, 1, 1, 0]).astype(name)
    export(lambda x: (x == x, x), x, path=tmp_path / "f.gcm")
    equal, same = gc.load(tmp_path / "f.gcm")(x)
    assert equal.all() and same.dtype == x.dtype
    np.testing.assert_array_equal(same, x)


@pytest.mark.parametrize("precision", MOST)
def test_narrow_weights(tmp_path: Path, precision: str):
    """The file is smaller, reads back to the same model, and its native code computes the same."""
    gc.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(512, 200)).eval()
    x = array(2, 16, 6, 6)
    expected = model(gc.from_numpy(x)).detach().numpy()
    paths = tmp_path / "f32.gcm", tmp_path / "narrow.gcm"
    export(model, x, path=paths[0])
    manifest = export(model, x, path=paths[1], precision=precision, native=True)
    narrow = NARROW.get(precision, precision)
    assert sum(t.dtype in (narrow, "i8") for t in manifest.tensors) == 2
    results = [load(paths[1])(x), load(paths[1], trust=True)(x)]
    for result in results:
        error = np.abs(result - expected).max() / np.abs(expected).max()
        assert 0 < error < MOST[precision]
        np.testing.assert_allclose(result, results[0], rtol=1e-6)
    export(model, x, path=paths[1], precision=precision)
    assert paths[1].stat().st_size < (0.35 if "int8" in precision else 0.6) * paths[0].stat().st_size


def test_narrow_weights_of_a_model_that_writes_states(tmp_path: Path):
    model = nn.Sequential(nn.Linear(64, 80), nn.BatchNorm1d(80))
    export(model, array(4, 64), path=tmp_path / "m.gcm", precision="bf16")
    run = load(tmp_path / "m.gcm")
    run(array(4, 64))
    model(gc.from_numpy(array(4, 64)))
    assert set(run.states) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    np.testing.assert_allclose(run.states["1.running_mean"], model[1].running_mean.numpy(), atol=2e-3)


def test_unknown_precision_writes_nothing(tmp_path: Path):
    with pytest.raises(ArgumentError, match="no precision 'half'"):
        export(Net(), array(4, 6), path=tmp_path / "m.gcm", precision="half")
    assert not list(tmp_path.iterdir())


def test_the_file_is_no_pickle(tmp_path: Path):
    export(Net().eval(), array(5, 6), path=tmp_path / "net.gcm")
    with pytest.raises(Exception):  # noqa: B017 (whatever pickle says of what is none)
        pickle.loads((tmp_path / "net.gcm").read_bytes())


def test_what_cannot_be_exported_leaves_no_file(tmp_path: Path):
    with pytest.raises(ArgumentError, match="the model returns 3, which is not a tensor"):
        export(lambda x: (x, 3), gc.ones(2), path=tmp_path / "f.gcm")
    with pytest.raises(TraceError):
        export(lambda x: x if x.sum() > 0 else -x, gc.ones(2), path=tmp_path / "f.gcm")
    with pytest.raises(FileNotFoundError):
        export(Net().eval(), array(5, 6), path=tmp_path / "no" / "f.gcm")
    assert not list(tmp_path.iterdir())


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_hostile_text_with_right_digests_is_an_error_or_a_model(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
):
    """Text that somebody edited, with digests made anew: never anything but a typed error."""
    path = tmp_path_factory.getbasetemp() / "hostile.gcm"
    export(Net().eval(), np.zeros((2, 6), np.float32), path=path)
    sections = {name: s.tobytes() for name, s in container.read_sections(path).items()}
    text = bytearray(sections["graph.0"])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.sampled_from([b"", b"9", b"%", b"[", b"}", b",", b"-1", b"add"])
        )
    container.write_sections(path, {k: [v] for k, v in {**sections, "graph.0": bytes(text)}.items()})
    try:
        loaded = load(path)
    except (ArtifactError, CompileError, PassError):
        return
    assert loaded(np.zeros((2, 6), np.float32)).shape == (2, 3)


def test_native_code_for_another_machine(tmp_path: Path):
    model, x = nn.Linear(32, 16).eval(), gc.rand(4, 32)
    for name, cpu in (("avx2", "x86-64-v3"), ("neon", "neoverse-n1")):
        manifest = gc.export(model, x, path=tmp_path / "m.gcm", native=True, target=name)
        assert [c.program.target.cpu for c in manifest.first.natives] == [cpu]
        found = gc.load(tmp_path / "m.gcm", trust=True)(x.numpy())  # compiled where the code does not run
        np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_file_is_compiled_for_a_machine_with_fewer_instructions(tmp_path: Path):
    target_or_skip("sse2")
    model, x = nn.Linear(32, 16).eval(), gc.rand(4, 32)
    gc.export(model, x, path=tmp_path / "m.gcm")
    found = gc.load(tmp_path / "m.gcm", target="sse2")(x.numpy())
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_target_without_native_code(tmp_path: Path):
    with pytest.raises(ArgumentError, match="takes no target"):
        gc.export(nn.Linear(2, 2), gc.rand(1, 2), path=tmp_path / "m.gcm", target="avx2")
    with pytest.raises(CompileError, match="unknown target"):
        gc.export(nn.Linear(2, 2), gc.rand(1, 2), path=tmp_path / "m.gcm", native=True, target="pdp11")


def test_what_export_returns_is_shown_on_one_line(tmp_path: Path):
    manifest = gc.export(gc.nn.Linear(2, 3), gc.ones(1, 2), path=tmp_path / "m.gcm")
    shown = "Linear(input: f32[1,2]) -> (output: f32[1,3])"
    assert repr(manifest) == f"<ModelManifest forward: {shown}; 2 tensors of 36 bytes>"
