"""Objects beside tensors: data come back as numbers and texts, and nothing but data is built."""

from __future__ import annotations

import argparse
import os
import pickle
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.checkpoints.pickle_machine import Machine
from graphc.checkpoints.plain_objects import plain_names
from graphc.errors import ArtifactError
from tests.checkpoints.test_pt_file import Trap


def load(data: bytes) -> Any:
    return Machine(plain_names(), lambda identity: None).load(data)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.1), 0.1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.int64(-7), -7),
        (np.bool_(True), True),
        (argparse.Namespace(lr=0.1, steps=[1, 2]), argparse.Namespace(lr=0.1, steps=[1, 2])),
        ({1, "a", None}, {1, "a", None}),
        (frozenset([2.5]), frozenset([2.5])),
        (Counter("aab"), Counter("aab")),
        (defaultdict(list, {"a": [1]}), {"a": [1]}),
        (OrderedDict(a=1), {"a": 1}),
        (Path("/a/b.pt"), "/a/b.pt"),
        (Path("a"), "a"),
        (b"a\xff", b"a\xff"),
    ],
)
def test_data_come_back(value: Any, expected: Any):
    found = load(pickle.dumps({"x": [value], "y": value}, 2))
    assert found["x"] == [expected] and found["y"] == expected


@pytest.mark.parametrize(
    "value",
    [
        argparse.Namespace(run=Trap(os.system, "touch trapped")),
        {"a": Trap(defaultdict, eval)},
        Trap(set, [(1, 2)]),
        Trap(set, "ab"),
        Trap(np.dtype, "O"),
        Trap(np.dtype, "V8"),
        np.dtype("f4"),
        np.zeros(2),
        list,
        PurePosixPath("a"),
        np.array("x")[()],
    ],
)
def test_other_objects_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError):
        load(pickle.dumps({"x": value}, 2))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"cargparse\nNamespace\n)\x81}X\x09\x00\x00\x00__class__Nsb.", "attributes without names"),
        (b"cargparse\nNamespace\n)\x81K\x01b.", "attributes without names"),
        (b"cargparse\nNamespace\nK\x01\x85R.", "damaged: TypeError"),
        (b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00hex\x86R.", "other than Latin-1"),
        (b"c_codecs\nencode\nX\x02\x00\x00\x00\xc4\x80X\x06\x00\x00\x00latin1\x86R.", "damaged: UnicodeEncodeError"),
        (b"cnumpy._core.multiarray\nscalar\nK\x01K\x02\x86R.", "bytes of its type"),
        (b"cnumpy\ndtype\nX\x02\x00\x00\x00f8\x85RK\x01b.", "no byte order"),
        (b"cnumpy\ndtype\nX\x04\x00\x00\x00f8,O\x85R.", "not numeric"),
        (b"ctorch\ndevice\nK\x01\x85R.", "has no name"),
        (b"cpathlib\nPosixPath\nK\x01\x85R.", "other than strings"),
        (b"ccollections\nCounter\nK\x01\x85R.", "not made from a dictionary"),
        (b"ccollections\nOrderedDict\n]K\x01a\x85R.", "constructed with entries"),
    ],
)
def test_wrong_calls(data: bytes, message: str):
    with pytest.raises(ArtifactError, match=message):
        load(b"\x80\x02" + data)


@pytest.mark.parametrize("new", [True, False], ids=["archive", "legacy"])
def test_a_checkpoint_of_a_training_script(torch, tmp_path: Path, new: bool):
    model = torch.nn.Linear(2, 3)
    saved = {
        "model": model.state_dict(),
        "args": argparse.Namespace(lr=0.1, device=torch.device("cuda", 0), dtype=torch.bfloat16, out=Path("runs/1")),
        "best": np.float64(0.5),
        "metrics": defaultdict(list, {"loss": [1.0]}),
    }
    torch.save(saved, tmp_path / "a.pth", _use_new_zipfile_serialization=new)
    found = gc.load(tmp_path / "a.pth")
    assert vars(found["args"]) == {"lr": 0.1, "device": "cuda:0", "dtype": "torch.bfloat16", "out": "runs/1"}
    assert found["best"] == 0.5 and found["metrics"] == {"loss": [1.0]}
    ours = gc.nn.Linear(2, 3)
    with pytest.warns(UserWarning, match="its entry 'model'"):
        gc.load_weights(ours, tmp_path / "a.pth")
    assert ours.weight.tolist() == model.weight.tolist()
