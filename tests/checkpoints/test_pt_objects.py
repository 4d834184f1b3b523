"""Objects that pickles of tensors may refer to: storages by checked names, and functions that build containers only."""

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
from graphc.checkpoints import foreign_types as types
from graphc.checkpoints.pickle_machine import Known, Machine
from graphc.checkpoints.pt_objects import (
    Storage,
    check_bytes,
    element_type,
    is_count,
    known_names,
    may_repeat,
    plain_names,
    storage_name,
)
from graphc.errors import ArtifactError
from graphc.files.archive import FREE_BYTES
from tests.checkpoints.test_pt_file import Trap

FLOATS = Known("torch.FloatStorage")


def call(name: str, *arguments: Any) -> Any:
    known = known_names()[name]
    assert isinstance(known, Known) and known.call is not None
    return known.call(*arguments)


def test_names_of_storages():
    name = storage_name(("storage", FLOATS, "12", "cuda:0", 3, None))
    assert (name.kind, name.key, name.count, name.rest) == ("torch.FloatStorage", "12", 3, (None,))
    assert element_type(name, "12") is types.F32
    check_bytes(name, "12", 12)
    with pytest.raises(ArtifactError, match="13 bytes, but 3 elements of 4 bytes"):
        check_bytes(name, "12", 13)
    with pytest.raises(ArtifactError, match=r"no storage '1' of torch\.load"):
        element_type(storage_name(("storage", Known("torch.load"), "1", "cpu", 3)), "1")


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        ("storage", "is not a storage"),
        (("storage", FLOATS, "1", "cpu"), "is not a storage"),
        (("module", FLOATS, "1", "cpu", 3), "is not a storage"),
        (("storage", "torch.FloatStorage", "1", "cpu", 3), "a storage has the name '1'"),
        (("storage", FLOATS, 1, "cpu", 3), "has the name 1"),
        (("storage", FLOATS, "../1", "cpu", 3), r"has the name '\.\./1'"),
    ],
)
def test_what_names_no_storage(identity: Any, message: str):
    with pytest.raises(ArtifactError, match=message):
        storage_name(identity)


def test_functions_build_containers():
    assert call("collections.OrderedDict") == {} and call("torch.Size", (2, 3)) == (2, 3)
    for name, arguments in (
        ("torch.Size", ((-1,),)),
        ("torch._utils._rebuild_tensor_v2", (np.zeros(3), 0, (3,), (1,))),
    ):
        with pytest.raises(ArtifactError):
            call(name, *arguments)


def test_tensors_and_parameters():
    storage = Storage(np.arange(4, dtype=np.float32))
    tensor = call("torch._utils._rebuild_tensor_v2", storage, 1, (3,), (1,), True, {})
    assert tensor.tolist() == [1, 2, 3] and tensor.requires_grad
    assert not call("torch._utils._rebuild_tensor", Storage(np.arange(4)), 0, (2, 2), (2, 1), True).requires_grad
    parameter = call("torch._utils._rebuild_parameter", tensor, False, {})
    assert isinstance(parameter, gc.nn.Parameter) and not parameter.requires_grad


def test_repeated_elements_have_limits():
    assert may_repeat(6, 4, (2, 3)) and may_repeat(1, 4, (FREE_BYTES // 4,))
    assert not may_repeat(1, 4, (FREE_BYTES // 4 + 1,)) and may_repeat(1 << 40, 4, (1 << 40,))


def test_counts():
    assert is_count(0) and is_count(1 << 70)
    assert not any(map(is_count, (-1, True, 1.0, "1", None)))


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
