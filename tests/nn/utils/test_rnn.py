"""Padding and packing, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import graphc
from graphc.errors import AttributeValueError, ShapeError
from graphc.nn.utils import rnn
from tests.nn.compare import agree, floats, pull, same, tensor


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_pad_sequence_as_torch(torch, batch_first: bool, side: str):
    agree(
        lambda *s: rnn.pad_sequence(s, batch_first, -1.5, side),
        lambda *s: torch.nn.utils.rnn.pad_sequence(s, batch_first, -1.5, side),
        *(floats(n, 2, seed=n) for n in (3, 1, 4)),
    )
    whole = rnn.pad_sequence([graphc.tensor([1, 2]), graphc.tensor([3])], padding_value=9)
    assert whole.tolist() == [[1, 3], [2, 9]] and whole.dtype is graphc.int64


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [[4, 3, 1], [1, 4, 4]])
@pytest.mark.parametrize("total", [None, 6])
def test_packing_as_torch(torch, batch_first: bool, lengths: list[int], total: int | None):
    array = floats(3, 4, 2) if batch_first else floats(4, 3, 2)
    mine, other = tensor(array, True), torch.tensor(array, requires_grad=True)
    ordered = sorted(lengths, reverse=True) == lengths
    packed = rnn.pack_padded_sequence(mine, graphc.tensor(lengths), batch_first, ordered)
    expected = torch.nn.utils.rnn.pack_padded_sequence(other, torch.tensor(lengths), batch_first, ordered)
    for a, b in zip(packed, expected, strict=True):
        if b is None:
            assert a is None
        else:
            same(a, b)
    result: Any = rnn.pad_packed_sequence(packed, batch_first, 2.5, total)
    reference = torch.nn.utils.rnn.pad_packed_sequence(expected, batch_first, 2.5, total)
    for a, b in zip(result, reference, strict=True):
        same(a, b)
    pull(torch, [result[0]], [reference[0]])
    same(mine.grad, other.grad)


def test_sequences_come_back():
    parts = [tensor(floats(n, 2, seed=n)) for n in (2, 5, 3)]
    for found in (
        rnn.unpack_sequence(rnn.pack_sequence(parts, enforce_sorted=False)),
        rnn.unpad_sequence(rnn.pad_sequence(parts), [2, 5, 3]),
    ):
        assert all(graphc.equal(a, b) for a, b in zip(found, parts, strict=True))


def test_wrong_uses():
    x = graphc.ones(3, 2, 1)
    with pytest.raises(
        AttributeValueError, match=r"\[1, 3\] are not sorted, longest first\n  try    pass enforce_sorted"
    ):
        rnn.pack_padded_sequence(x, [1, 3])
    with pytest.raises(ShapeError, match="length 4 exceeds the 3 steps of the input"):
        rnn.pack_padded_sequence(x, [4, 1])
    with pytest.raises(ShapeError, match="list of sequences is empty"):
        rnn.pad_sequence([])
    with pytest.raises(AttributeValueError, match="neither 'left' nor 'right'"):
        rnn.pad_sequence([x], padding_side="top")
    with pytest.raises(AttributeValueError, match="total_length 2 is below the longest length 3"):
        rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1]), total_length=2)
