"""PyTorch's files: state dictionaries are read exactly, and damaged or dangerous ones are refused."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc.checkpoints import load_pt
from graphc.errors import ArtifactError


class FloatStorage:
    """Stands for torch.FloatStorage in pickles made here."""


def pickled(shape=(2, 3), strides=(3, 1), offset=0, count=6, key="0", kind="FloatStorage", call="_rebuild_tensor_v2"):
    """The pickle of ``{"w": tensor}`` as torch.save writes it, with any of its numbers changed."""

    def text(value: str) -> bytes:
        return b"X" + len(value).to_bytes(4, "little") + value.encode()

    def number(value) -> bytes:
        return pickle.dumps(value, 2)[2:-1]

    storage = b"(" + text("storage") + f"ctorch\n{kind}\n".encode() + text(key) + text("cpu") + number(count) + b"tQ"
    tail = b"\x89ccollections\nOrderedDict\n)R"
    arguments = storage + number(offset) + number(shape) + number(strides) + tail
    tensor = f"ctorch._utils\n{call}\n".encode() + b"(" + arguments + b"tR"
    return b"\x80\x02}" + text("w") + tensor + b"s."


def archive(path: Path, data: bytes, storages: dict[str, bytes] | None = None, prefix: str = "net/") -> Path:
    storages = {"0": np.arange(6, dtype="<f4").tobytes()} if storages is None else storages
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{prefix}data.pkl", data)
        for key, content in storages.items():
            file.writestr(f"{prefix}data/{key}", content)
        file.writestr(f"{prefix}version", "3\n")
    return path


def test_a_file_made_by_hand(tmp_path: Path):
    result = load_pt(archive(tmp_path / "a.pt", pickled()))
    assert result["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    part = load_pt(archive(tmp_path / "a.pt", pickled(shape=(2, 2), strides=(1, 3), offset=1)))
    assert part["w"].tolist() == [[1, 4], [2, 5]]
    empty = load_pt(archive(tmp_path / "a.pt", pickled(shape=(0, 3), strides=(3, 1), count=0), {"0": b""}))
    assert empty["w"].shape == (0, 3)
    scalar = load_pt(archive(tmp_path / "a.pt", pickled(shape=(), strides=(), offset=5)))
    assert scalar["w"].item() == 5


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"shape": (2, 4)}, "does not fit its storage of 6 elements"),
        ({"offset": 1}, "does not fit"),
        ({"offset": 1 << 62}, "does not fit"),
        ({"offset": -1}, "nonnegative integers"),
        ({"strides": (1 << 62, 1)}, "does not fit"),
        ({"strides": (-3, 1)}, "nonnegative integers"),
        ({"strides": (0, 0), "shape": (1 << 31, 1 << 31)}, "does not fit"),
        ({"shape": (0, 1 << 40), "offset": 7}, "does not fit"),
        ({"shape": (2,)}, "nonnegative integers"),
        ({"shape": (True, 3)}, "nonnegative integers"),
        ({"shape": (2.0, 3)}, "nonnegative integers"),
        ({"shape": [2, 3]}, "nonnegative integers"),
        ({"shape": (1,) * 65, "strides": (1,) * 65}, "nonnegative integers"),
        ({"count": 7}, "24 bytes, but 7 elements of 4 bytes"),
        ({"count": 1 << 61}, "2305843009213693952 elements of 4 bytes"),
        ({"count": "6"}, "6 elements of 4 bytes"),
        ({"kind": "DoubleStorage"}, "6 elements of 8 bytes"),
        ({"kind": "QInt8Storage"}, r"torch\.QInt8Storage"),
        ({"kind": "load"}, r"torch\.load"),
        ({"key": "1"}, "no storage 'net/data/1'"),
        ({"key": "../data.pkl"}, r"name '\.\./data\.pkl'"),
        ({"key": "../../../etc/passwd"}, "a storage has the name"),
        ({"key": "/etc/passwd"}, "a storage has the name"),
        ({"key": ""}, "a storage has the name"),
        ({"call": "_rebuild_sparse_tensor"}, r"torch\._utils\._rebuild_sparse_tensor"),
        ({"call": "_rebuild_parameter"}, "a parameter holds no tensor"),
    ],
)
def test_wrong_tensors_are_refused(tmp_path: Path, changes, text):
    with pytest.raises(ArtifactError, match=text) as caught:
        load_pt(archive(tmp_path / "a.pt", pickled(**changes)))
    assert str(caught.value).startswith(str(tmp_path / "a.pt"))


class Trap:
    def __init__(self, function, *arguments):
        self.parts = function, arguments

    def __reduce__(self):
        return self.parts


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("trap", [Trap(os.system, "touch trapped"), Trap(eval, "open('trapped', 'w')"), os.system])
def test_nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap, protocol):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match="refused"):
        load_pt(archive(tmp_path / "a.pt", pickle.dumps({"w": trap}, protocol)))
    assert os.listdir(tmp_path) == ["a.pt"]


def test_names_of_functions_are_named(tmp_path: Path):
    for data, name in ((b"cbuiltins\neval\n.", "builtins.eval"), (b"cos\nsystem\n(S'x'\ntR.", "os.system")):
        with pytest.raises(ArtifactError, match=f"it refers to {name}, which is refused"):
            load_pt(archive(tmp_path / "a.pt", data))


@pytest.mark.parametrize("name", ["../evil", "/evil", "net/../../evil", "net\\..\\evil"])
def test_members_that_point_outside_are_refused(tmp_path: Path, name: str):
    path = archive(tmp_path / "a.pt", pickled())
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(name, b"x")
    with pytest.raises(ArtifactError, match="points outside"):
        load_pt(path)
    assert os.listdir(tmp_path) == ["a.pt"]


def test_formats_that_are_not_read_say_so(tmp_path: Path):
    path = tmp_path / "a.pt"
    path.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    with pytest.raises(ArtifactError, match="damaged"):
        load_pt(path)
    path.write_bytes(pickle.dumps({}, 4))
    with pytest.raises(ArtifactError, match="a bare pickle"):
        load_pt(path)
    path.write_bytes(b"\x89HDF\r\n")
    with pytest.raises(ArtifactError, match="not a readable zip archive"):
        load_pt(path)
    archive(path, pickled())
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("net/constants.pkl", b"x")
    with pytest.raises(ArtifactError, match="TorchScript"):
        load_pt(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("something", b"x")
    with pytest.raises(ArtifactError, match=r"0 data\.pkl"):
        load_pt(path)


def test_damage_is_refused_or_harmless(tmp_path: Path):
    path = archive(tmp_path / "a.pt", pickled())
    good = path.read_bytes()
    for length in range(0, len(good), 11):
        path.write_bytes(good[:length])
        with pytest.raises(ArtifactError):
            load_pt(path)
    for position in range(len(good)):
        path.write_bytes(good[:position] + bytes([good[position] ^ 0x10]) + good[position + 1 :])
        try:
            result = load_pt(path)
        except ArtifactError:
            continue
        assert result["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_big_endian_files(tmp_path: Path):
    path = archive(tmp_path / "a.pt", pickled(), {"0": np.arange(6, dtype=">f4").tobytes()})
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("net/byteorder", b"big")
    assert load_pt(path)["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning):
        file.writestr("net/byteorder", b"odd")
    with pytest.raises(ArtifactError, match="same name"):
        load_pt(path)


def test_a_file_without_a_state_dictionary(tmp_path: Path):
    archive(tmp_path / "a.pt", pickle.dumps({"epoch": 3, "lr": 0.1}, 2))
    with pytest.raises(ArtifactError, match="'epoch', 'lr'"):
        gc.load_state(tmp_path / "a.pt")


def test_files_of_pytorch(torch, tmp_path: Path):
    base = torch.arange(24.0).reshape(4, 6)
    tensors = {
        "base": base,
        "part": base[1:3, ::2],
        "t": base.t(),
        "parameter": torch.nn.Parameter(torch.randn(3)),
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        **{
            str(d): torch.tensor([0, 1, 3]).to(d)
            for d in (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int16, torch.int8, torch.uint8)
        },
        "bool": torch.tensor([True, False]),
    }
    tree = {"model": tensors, "list": [1, 2.5, None, True, "x"], "tuple": (torch.Size([2, 3]),), 3: {}}
    torch.save(tree, tmp_path / "a.pt")
    result = load_pt(tmp_path / "a.pt")
    assert result["list"] == tree["list"]
    assert result["tuple"] == ((2, 3),)
    for name, tensor in tensors.items():
        assert str(tensor.dtype) == f"torch.{result['model'][name].dtype.long_name}"
        assert result["model"][name].tolist() == tensor.tolist()
    assert result["model"]["t"].shape == (6, 4)
    result["model"]["base"][1, 0] = -1.0
    assert result["model"]["part"][0, 0].item() == -1


def test_state_dictionaries_of_pytorch(torch, tmp_path: Path):
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    theirs(torch.randn(8, 3))
    ours = gc.nn.Sequential(gc.nn.Linear(3, 4), gc.nn.BatchNorm1d(4))
    torch.save(theirs.state_dict(), tmp_path / "a.pth")
    assert load_pt(tmp_path / "a.pth")._metadata["1"] == {"version": 2}
    ours.load_state_dict(gc.load_state(tmp_path / "a.pth"))
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    mine = ours.eval()(gc.tensor(x)).detach().numpy()
    np.testing.assert_allclose(mine, theirs.eval()(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_what_pytorch_would_unpickle_is_refused(torch, tmp_path: Path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "a.pt")
    with pytest.raises(ArtifactError, match=r"torch\.nn\.modules\.linear\.Linear, which is refused"):
        load_pt(tmp_path / "a.pt")
    torch.save({"a": torch.zeros(2, dtype=torch.complex32)}, tmp_path / "a.pt")
    with pytest.raises(ArtifactError, match=r"_rebuild_tensor_v3|complex32"):
        load_pt(tmp_path / "a.pt")


def test_parameters_gradients_and_expanded_tensors_come_back(torch, tmp_path: Path):
    row = torch.arange(3.0)
    saved = {"p": torch.nn.Parameter(row.clone()), "g": row.clone().requires_grad_(), "rows": row.expand(1000, 3)}
    torch.save({**saved, "frozen": torch.nn.Parameter(row.clone(), requires_grad=False)}, tmp_path / "a.pt")
    result = load_pt(tmp_path / "a.pt")
    assert isinstance(result["p"], gc.nn.Parameter) and result["p"].requires_grad
    assert isinstance(result["frozen"], gc.nn.Parameter) and not result["frozen"].requires_grad
    assert result["g"].requires_grad and not isinstance(result["g"], gc.nn.Parameter)
    assert result["rows"].shape == (1000, 3) and result["rows"][999].tolist() == [0, 1, 2]


def test_counters_and_devices_of_checkpoints_are_read(torch, tmp_path: Path):
    saved = {"milestones": Counter([3, 3, 5]), "device": torch.device("cuda", 1), "size": torch.Size([2])}
    torch.save(saved, tmp_path / "a.pt")
    assert load_pt(tmp_path / "a.pt") == {"milestones": Counter([3, 3, 5]), "device": "cuda:1", "size": (2,)}
