"""Objects that pickles of tensors may refer to: storages by checked names, and functions that build containers only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.checkpoints import foreign_types as types
from graphc.checkpoints.pickle_machine import Known
from graphc.checkpoints.pt_objects import (
    Storage,
    check_bytes,
    element_type,
    is_count,
    known_names,
    may_repeat,
    storage_name,
)
from graphc.errors import ArtifactError
from graphc.files.archive import FREE_BYTES

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
