"""PyTorch's format from before version 1.6: read as the new one, and damaged or dangerous files are refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.checkpoints import load_pt
from graphc.errors import ArtifactError
from tests.checkpoints.test_pt_file import Trap

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
TENSOR = (
    b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06NtQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)RtRs."
)
"""The pickle of ``{"w": tensor}`` as torch.save writes it: f32, 2 x 3, in storage "0" of 6 elements."""


def content(obj: bytes = TENSOR, keys: Any = ("0",), count: int = 6, data: bytes | None = None, **facts: Any) -> bytes:
    elements = np.arange(6, dtype=">f4" if facts.get("little_endian") is False else "<f4").tobytes()
    head = [pickle.dumps(value, 2) for value in (facts.pop("magic", MAGIC), facts.pop("protocol", PROTOCOL), facts)]
    storages = count.to_bytes(8, "little", signed=True) + (elements if data is None else data)
    return b"".join(head) + obj + pickle.dumps(list(keys), 2) + storages


def test_a_file_made_by_hand(tmp_path: Path):
    for facts in ({"little_endian": True}, {"little_endian": False}, {}):
        (tmp_path / "a.pt").write_bytes(content(**facts))
        assert load_pt(tmp_path / "a.pt")["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"count": 7}, "ends inside of storage '0' of 7 elements"),
        ({"count": 1 << 60}, "ends inside of storage"),
        ({"count": -1}, "ends inside of storage"),
        ({"count": 5}, "storage '0' has 20 bytes, but 6 elements of 4 bytes"),
        ({"data": b""}, "ends inside of storage"),
        ({"keys": ()}, "not those of its tensors"),
        ({"keys": ("0", "1")}, "not those of its tensors"),
        ({"keys": ("1",)}, "not those of its tensors"),
        ({"keys": (0,)}, "not those of its tensors"),
        ({"obj": TENSOR.replace(b"K\x02K\x03\x86", b"K\x02K\x04\x86")}, "does not fit its storage of 6 elements"),
        ({"obj": TENSOR.replace(b"Float", b"Other")}, r"torch\.OtherStorage, which is refused"),
        ({"obj": TENSOR.replace(b"K\x06NtQ", b"K\x06K\x00tQ")}, "is a view of another one"),
        (
            {"obj": TENSOR.replace(b"ctorch._utils\n_rebuild_tensor_v2", b"cos\nsystem")},
            r"os\.system, which is refused",
        ),
        ({"protocol": 1002}, "is in version 1002"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, changes: dict[str, Any], text: str):
    (tmp_path / "a.pt").write_bytes(content(**changes))
    with pytest.raises(ArtifactError, match=text) as caught:
        load_pt(tmp_path / "a.pt")
    assert str(caught.value).startswith(str(tmp_path / "a.pt"))


@pytest.mark.parametrize("where", ["obj", "keys", "machine"])
def test_nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str):
    monkeypatch.chdir(tmp_path)
    trap = Trap(os.system, "touch trapped")
    data = {"obj": content(pickle.dumps({"w": trap}, 2)), "keys": content(keys=[trap]), "machine": content(x=trap)}
    (tmp_path / "a.pt").write_bytes(data[where])
    with pytest.raises(ArtifactError, match="refused"):
        load_pt(tmp_path / "a.pt")
    assert os.listdir(tmp_path) == ["a.pt"]


def test_every_truncation_is_refused(tmp_path: Path):
    data = content()
    for length in range(len(data)):
        (tmp_path / "a.pt").write_bytes(data[:length])
        with pytest.raises(ArtifactError):
            load_pt(tmp_path / "a.pt")


def test_files_of_pytorch(torch, tmp_path: Path):
    base = torch.arange(24.0).reshape(4, 6)
    tensors = {"base": base, "part": base[1:3, ::2], "half": base.half(), "brain": base.bfloat16(), "bool": base > 3}
    tree = {"model": tensors, "list": [1, 2.5, None, True, "x"], "p": torch.nn.Parameter(base.t().clone()), 3: ()}
    for protocol in (2, 4):
        torch.save(tree, tmp_path / "a.pth.tar", _use_new_zipfile_serialization=False, pickle_protocol=protocol)
        found = gc.load(tmp_path / "a.pth.tar")
        assert found["list"] == tree["list"] and found[3] == () and isinstance(found["p"], gc.nn.Parameter)
        for name, tensor in tensors.items():
            assert found["model"][name].tolist() == tensor.tolist()
        found["model"]["base"][1, 0] = -1.0
        assert found["model"]["part"][0, 0].item() == -1
