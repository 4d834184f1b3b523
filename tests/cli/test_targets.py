"""TARGET arguments: every form resolves, every failure says what is wrong and where."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from graphc.checkpoints import save, save_state
from graphc.cli import targets
from graphc.cli.console import CompileFailure, UsageError, UserCodeError
from graphc.errors import ArtifactError, ShapeError, StateDictError, TargetError
from graphc.models.model_export import export
from graphc.nn.module import Module


@pytest.mark.parametrize("name", ["Net", "net", "make", "Nested.Net"])
def test_classes_instances_and_factories(models: Path, name: str):
    model = targets.resolve(f"{models}:{name}")
    assert isinstance(model, Module) and type(model).__name__ == "Net"


def test_functions(models: Path):
    assert targets.resolve(f"{models}:double").__name__ == "double"


def test_modules(models: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(models.parent)
    (models.parent / "a_package_of_models").mkdir()
    (models.parent / "a_package_of_models" / "inner.py").write_text(models.read_text())
    assert isinstance(targets.resolve("a_package_of_models.inner:Net"), Module)


def test_files_find_their_neighbours(models: Path):
    (models.parent / "a_neighbour_of_models.py").write_text("SIZE = 6\n")
    path = models.parent / "uses.py"
    path.write_text(
        "import a_neighbour_of_models\nfrom graphc import nn\nm = nn.Linear(a_neighbour_of_models.SIZE, 1)\n"
    )
    assert isinstance(targets.resolve(f"{path}:m"), Module)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("models.py", "names no model"),
        ("models.py:", "names no model"),
        (":Net", "names no model"),
        ("missing.py:Net", "there is no file"),
        ("models.py:Missing", r"has no 'Missing'\n  try    choose one of Net, Sized, Two"),
        ("models.py:Nested.Missing", "has no 'Nested.Missing'"),
        ("models.py:Sized", r"needs arguments \(size\)\n  try    name a function without arguments"),
        ("models.py:value", "is a int, which cannot be traced"),
        ("models.py:number", "returned a int"),
        ("models.py:Nested", "is not a Module class"),
        ("no_such_package_at_all:Net", "there is no module 'no_such_package_at_all'"),
        ("not a name!:Net", "not a module name"),
        ("..:Net", "not a module name"),
    ],
)
def test_what_is_no_target(models: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str):
    monkeypatch.chdir(models.parent)
    with pytest.raises(TargetError, match=message):
        targets.resolve(name)


def test_a_wrong_name_in_user_code_gets_the_right_one(models: Path):
    broken = models.with_name("misspelt.py")
    broken.write_text("from graphc import nn\nnet = nn.Liner(2, 2)\n")
    with pytest.raises(UserCodeError, match=r"no attribute 'Liner'(.|\n)*\n  try    write Linear"):
        targets.resolve(f"{broken}:net")


def test_errors_of_user_code_name_its_line(models: Path):
    lines = models.read_text().splitlines()
    with pytest.raises(UserCodeError, match="ZeroDivisionError: division by zero") as caught:
        targets.resolve(f"{models}:fails")
    assert f"from   {models}:{lines.index('    return 1 / 0') + 1}" in str(caught.value)
    for text, message in (("x = (", "SyntaxError"), ("import not_installed_at_all", "ModuleNotFoundError")):
        broken = models.with_name("broken.py")
        broken.write_text(f"\n{text}\n")
        with pytest.raises(UserCodeError, match=message) as caught:
            targets.resolve(f"{broken}:Net")
        assert f"{broken}:2" in str(caught.value)


def test_what_user_code_prints_is_talk(models: Path, capsys: pytest.CaptureFixture[str]):
    path = models.with_name("talking.py")
    path.write_text("from graphc import nn\nprint('hello')\nm = nn.ReLU()\n")
    targets.resolve(f"{path}:m")
    assert capsys.readouterr() == ("", "hello\n")


def test_errors_of_compiling_are_told_from_others():
    with pytest.raises(CompileFailure, match="wrong\n  where  here\n  try    that") as caught, targets.compiling():
        raise ShapeError("wrong", where="here", remedy="that")
    assert isinstance(caught.value.__cause__, ShapeError)
    with pytest.raises(ArtifactError), targets.compiling():
        raise ArtifactError("damaged")


def test_examples_come_in_the_order_of_forward(models: Path):
    two = targets.resolve(f"{models}:Two")
    (a, b), dims = targets.examples(two, ["b:i64[4]", "a:f32[2,3]"])
    assert dims is None
    (a, b), dims = targets.examples(two, ["a:f32[batch=1..9,3]", "b:i64[4]"])
    assert (a.shape, b.shape) == ((9, 3), (4,)) and [str(d) for d in dims] == ["(batch, 3)", "(4,)"]
    (a, b), _ = targets.examples(two, ["b:i64[4]", "a:f32[2,3]"])
    assert (a.shape, b.shape, b.dtype.name) == ((2, 3), (4,), "i64")
    assert not a.numpy().any()
    assert len(targets.examples(two, ["b:i64[4]", "a:f32[2]", "scale:f32[]"])[0]) == 3


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a:f32[2]"], "no type for input 'b'\n  try    pass --input b:f32"),
        ([], "no type for input 'a'"),
        (["a:f32[2]", "c:f32[2]"], "no input 'c'\n  try    choose one of a, b, scale"),
        (["a:f32[2]", "a:f32[2]", "b:f32[2]"], "given twice"),
        (["a"], "is not an input type"),
    ],
)
def test_wrong_examples(models: Path, texts: list[str], message: str):
    with pytest.raises(UsageError, match=message):
        targets.examples(targets.resolve(f"{models}:Two"), texts)


def load_weights(model, path, strict: bool = True, entry: str | None = None) -> None:
    options = argparse.Namespace(weights=str(path), no_strict=not strict, weights_entry=entry)
    targets.load_weights(model, options)


def test_weights(models: Path, tmp_path: Path):
    net = targets.resolve(f"{models}:Net")
    weight, bias = np.ones((4, 6), np.float32), np.arange(4, dtype=np.float32)
    np.savez(tmp_path / "w.npz", **{"fc.weight": weight, "fc.bias": bias})
    load_weights(net, tmp_path / "w.npz")
    np.testing.assert_array_equal(net.fc.bias.detach().numpy(), bias)
    export(net.eval(), np.zeros((1, 6), np.float32), path=tmp_path / "net.gcm")
    other = targets.resolve(f"{models}:Net")
    load_weights(other, tmp_path / "net.gcm")
    np.testing.assert_array_equal(other.fc.weight.detach().numpy(), weight)


def test_weights_of_a_checkpoint(models: Path, tmp_path: Path):
    net, other = targets.resolve(f"{models}:Net"), targets.resolve(f"{models}:make")
    save_state({"model": net.state_dict(), "epoch": 3}, tmp_path / "w.npz")
    load_weights(other, tmp_path / "w.npz")
    np.testing.assert_array_equal(other.fc.weight.detach().numpy(), net.fc.weight.detach().numpy())


def test_weights_of_other_libraries(models: Path, tmp_path: Path):
    pytest.importorskip("safetensors")
    net = targets.resolve(f"{models}:Net")
    save_state({"model": net.state_dict(), "epoch": 3}, tmp_path / "w.safetensors")
    other = targets.resolve(f"{models}:make")
    load_weights(other, tmp_path / "w.safetensors")
    np.testing.assert_array_equal(other.fc.weight.detach().numpy(), net.fc.weight.detach().numpy())


def test_weights_of_pytorch(torch, models: Path, tmp_path: Path):
    theirs = torch.nn.ModuleDict({"fc": torch.nn.Linear(6, 4)})
    torch.save({"model": theirs.state_dict(), "epoch": 3}, tmp_path / "w.pt")
    net = targets.resolve(f"{models}:Net")
    load_weights(net, tmp_path / "w.pt")
    np.testing.assert_array_equal(net.fc.weight.detach().numpy(), theirs["fc"].weight.detach().numpy())


@pytest.mark.parametrize("name", ["w.ckpt", "w.pth.tar", "w.bin", "w"])
def test_weights_of_a_checkpoint_with_prefixes_say_what_was_found(
    models: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
):
    net, other = targets.resolve(f"{models}:Net"), targets.resolve(f"{models}:make")
    state = {f"module.{key}": tensor.numpy().astype(np.float16) for key, tensor in net.state_dict().items()}
    save({"state_dict": state, "ema": {"decay": np.ones(1)}, "epoch": 3}, tmp_path / name)
    load_weights(other, tmp_path / name)
    np.testing.assert_array_equal(other.fc.weight.numpy(force=True), state["module.fc.weight"])
    assert capsys.readouterr().err.splitlines() == [
        f"note: {tmp_path / name}: {text}"
        for text in (
            "the weights are its entry 'state_dict'; also there: 'ema'",
            "'module.' is removed from the names",
        )
    ]


def test_weights_of_which_several_fit(models: Path, tmp_path: Path):
    net, other = targets.resolve(f"{models}:Net"), targets.resolve(f"{models}:make")
    save({"model": other.state_dict(), "ema": net.state_dict()}, tmp_path / "w.pt")
    with pytest.raises(ArtifactError, match=r"fit the model equally well: 'model', 'ema'(.|\n)*--weights-entry"):
        load_weights(other, tmp_path / "w.pt")
    load_weights(other, tmp_path / "w.pt", entry="ema")
    np.testing.assert_array_equal(other.fc.weight.numpy(force=True), net.fc.weight.numpy(force=True))


def test_weights_in_shards_and_folders(models: Path, tmp_path: Path):
    net, other = targets.resolve(f"{models}:Net"), targets.resolve(f"{models}:make")
    folder = tmp_path / "model"
    folder.mkdir()
    names = {"fc.weight": "1.bin", "fc.bias": "2.bin"}
    for name, file in names.items():
        save({name: net.state_dict()[name]}, folder / file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": names}))
    load_weights(other, folder)
    np.testing.assert_array_equal(other.fc.weight.numpy(force=True), net.fc.weight.numpy(force=True))
    (folder / "2.bin").unlink()
    with pytest.raises(ArtifactError, match=r"1 of the 2 files that it names are missing: 2\.bin"):
        load_weights(other, folder / "pytorch_model.bin.index.json")


def test_names_that_only_one_has_are_told_where_they_are_left_out(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    net, path = targets.resolve(f"{models}:Net"), tmp_path / "w"
    save({"fc.bias": np.ones(4, np.float32), "x": np.ones(1), "y": np.ones(1)}, path)
    load_weights(net, path, strict=False)
    assert net.fc.bias.tolist() == [1, 1, 1, 1]
    assert capsys.readouterr().err.splitlines() == [
        f"note: {path}: names missing from the file keep their initial values: 'fc.weight'",
        f"note: {path}: names unknown to the model are ignored: 'x', 'y'",
    ]


@pytest.mark.parametrize(
    ("name", "random"), [("Net", True), ("make", True), ("Nested.Net", True), ("net", False), ("Two", False)]
)
def test_weights_are_random_where_the_command_made_the_model(models: Path, name: str, random: bool):
    target = f"{models}:{name}"
    assert targets.is_random(target, targets.resolve(target)) == random
    assert not targets.is_random("net.pt2", targets.resolve(target))


def test_wrong_weights(models: Path, tmp_path: Path):
    net = targets.resolve(f"{models}:Net")
    np.savez(tmp_path / "w.npz", **{"fc.weight": np.ones((4, 7), np.float32)})
    with pytest.raises(StateDictError, match=r"fc\.bias"):
        load_weights(net, tmp_path / "w.npz")
    with pytest.raises(FileNotFoundError):
        load_weights(net, tmp_path / "missing.npz")
    (tmp_path / "w.h5").write_bytes(b"")
    with pytest.raises(ArtifactError, match="not a file of weights, but empty"):
        load_weights(net, tmp_path / "w.h5")
    for name in ("bad.npz", "bad.gcm", "bad.pt"):
        (tmp_path / name).write_bytes(b"bad")
        with pytest.raises(ArtifactError):
            load_weights(net, tmp_path / name)
    with pytest.raises(UsageError, match="the target is a function"):
        load_weights(targets.resolve(f"{models}:double"), tmp_path / "w.npz")
