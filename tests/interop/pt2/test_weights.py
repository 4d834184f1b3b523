"""TensorEntry tensors: views of their storages, inside of these, and in memory of their scale."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from graphc.errors import ArtifactError, GraphcError, UnsupportedError
from graphc.interop.pt2 import weights as module
from graphc.interop.pt2.weights import Storages, TensorEntry
from tests.interop.pt2.kept import field

HUGE = 1 << 40


def number(value: int) -> dict[str, int]:
    return {"as_int": value}


def entry(sizes: Any, strides: Any, offset: int = 0, dtype: int = 7, **changes: Any) -> dict[str, Any]:
    meta = {
        "dtype": dtype,
        "sizes": [number(s) for s in sizes],
        "requires_grad": True,
        "device": {"type": "cuda", "index": 3},
        "strides": [number(s) for s in strides],
        "storage_offset": number(offset),
        "layout": 7,
    }
    return {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": meta} | changes


def read(*entries: dict[str, Any], stored: np.ndarray | None = None) -> list[TensorEntry]:
    data = np.arange(12, dtype=np.float32) if stored is None else stored
    storages = Storages({"weight_0": data.view(np.uint8)}.get)
    return list(storages.tensors(field({"config": {str(i): e for i, e in enumerate(entries)}})).values())


def test_tensors_are_views_of_one_storage():
    whole, part, turned = read(entry((3, 4), (4, 1)), entry((2, 2), (4, 2), 5), entry((4, 3), (1, 4)))
    assert whole.array.tolist() == np.arange(12.0).reshape(3, 4).tolist()
    assert part.array.tolist() == [[5, 7], [9, 11]]
    assert turned.array.tolist() == whole.array.T.tolist()
    whole.array[1, 1] = -1
    assert part.array[0, 0] == -1 and turned.array[1, 1] == -1
    assert (whole.is_parameter, whole.requires_grad) == (True, True)


def test_what_lies_at_one_place_is_known_as_one_tensor():
    first, again, other = read(entry((3, 4), (4, 1)), entry((3, 4), (4, 1)), entry((4, 3), (3, 1)))
    assert first.key == again.key != other.key and first.array is again.array


def test_empty_tensors_and_scalars():
    empty, scalar = read(entry((0, 5), (5, 1), 12), entry((), (), 11))
    assert empty.array.shape == (0, 5) and scalar.array.shape == () and scalar.array == 11


def test_bytes_that_are_no_booleans_are_true():
    (result,) = read(entry((4,), (1,), dtype=12), stored=np.array([0, 1, 2, 255], np.uint8))
    assert result.array.tolist() == [False, True, True, True] and result.array.view(np.uint8).max() == 1


@pytest.mark.parametrize(
    ("sizes", "strides", "offset"),
    [
        *(((13,), (1,), 0), ((12,), (1,), 1), ((2,), (12,), 0), ((2, 2), (11, 1), 0), ((3, 4), (4,), 0)),
        *(((HUGE,), (1,), 0), ((HUGE, 0), (1, 1), 0), ((1,), (1,), HUGE), ((HUGE, HUGE), (0, 0), 0)),
        *(((-1,), (1,), 0), ((3,), (-1,), 5), ((3,), (1,), -1), ((1,) * 65, (1,) * 65, 0), ((), (), 12)),
    ],
)
def test_tensors_outside_of_their_storage_are_refused(sizes: Any, strides: Any, offset: int):
    with pytest.raises(ArtifactError):
        read(entry(sizes, strides, offset))


def test_repeated_elements_are_copied_as_long_as_they_are_few(monkeypatch: pytest.MonkeyPatch):
    result = read(entry((4, 12), (0, 1)))[0].array
    assert result.tolist() == [list(range(12))] * 4 and result.flags.owndata and result.flags.writeable
    monkeypatch.setattr(module, "MOST_REPEATED", 1000)
    many = [entry((4, 12), (0, 1), is_param=False) for _ in range(2)]
    assert len(read(*many)) == 2, "one tensor that is there twice is one copy"
    with pytest.raises(ArtifactError, match="repeat"):
        read(*[entry((n, 12), (0, 1)) for n in range(4, 12)])


def test_refusing_a_large_tensor_takes_no_memory():
    tracemalloc.start()
    with pytest.raises(ArtifactError):
        read(entry((1 << 30, 12), (0, 1)))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"use_pickle": True}, UnsupportedError),
        ({"path_name": "../weight_0"}, ArtifactError),
        ({"path_name": "weight_1"}, ArtifactError),
        ({"path_name": 3}, ArtifactError),
        ({"tensor_meta": None}, ArtifactError),
        ({"is_param": 1}, ArtifactError),
    ],
)
def test_wrong_entries_are_refused(change: dict[str, Any], kind: type[GraphcError]):
    with pytest.raises(kind):
        read(entry((3, 4), (4, 1), **change))


def test_sizes_that_are_symbols_and_odd_storages_are_refused():
    wrong = entry((3, 4), (4, 1))
    wrong["tensor_meta"]["sizes"][0] = {"as_expr": {"expr_str": "s0", "hint": None}}
    with pytest.raises(ArtifactError, match="is not a number"):
        read(wrong)
    with pytest.raises(ArtifactError, match="not a whole number of elements"):
        read(entry((1,), (1,)), stored=np.zeros(7, np.uint8))
