"""Packed sequences through recurrent layers, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, ShapeError
from graphc.nn.packed_sequence import PackedSequence, lengths_of, packed_data, padded_data, running, sizes_of
from graphc.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from tests.nn.compare import floats, load, pull, same, tensor

SIZES = np.array([3, 2, 2, 1])


def test_layout():
    assert running(SIZES).sum(0).tolist() == [4, 3, 1]
    data = tensor(floats(8, 2))
    padded = padded_data(data, SIZES, 7.0)
    assert padded.shape == (4, 3, 2) and padded[3, 1].tolist() == [7, 7]
    assert padded[1, 1].tolist() == data[4].tolist()
    assert graphc.equal(packed_data(padded, SIZES), data)


def test_what_is_no_packed_sequence():
    for sizes in ([], [1, 2], [3, 3], [3, 0]):
        with pytest.raises(ShapeError, match="do not fit packed data"):
            sizes_of(PackedSequence(graphc.ones(3, 2), graphc.tensor(sizes, dtype=graphc.int64)))
    with pytest.raises(ShapeError, match=r"one length for each of 3 sequences, got shape \[2\]"):
        lengths_of([1, 2], 3)
    with pytest.raises(AttributeValueError, match="every sequence needs at least one element"):
        lengths_of([1, 0], 2)


def test_conversions():
    packed = PackedSequence(graphc.ones(2, 1), graphc.tensor([1, 1]))
    assert packed.double().data.dtype is graphc.float64
    assert packed.double().float().data.dtype is packed.to(graphc.float32).data.dtype is graphc.float32


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}])
@pytest.mark.parametrize("given", [False, True])
def test_recurrent_layers_as_torch(torch, kind: str, options: dict[str, Any], given: bool):
    theirs = getattr(torch.nn, kind)(3, 4, **options).double()
    ours = getattr(nn, kind)(3, 4, **options).double()
    load(ours, theirs)
    lengths = [2, 5, 3]
    x, states = floats(5, 3, 3), floats(2, len(theirs.all_weights), 3, 4, seed=1)
    mine, other = tensor(x, True), torch.tensor(x, requires_grad=True)
    first = tuple(tensor(s) for s in states) if kind == "LSTM" else tensor(states[0])
    other_first = tuple(map(torch.tensor, states)) if kind == "LSTM" else torch.tensor(states[0])
    packed, last = ours(pack_padded_sequence(mine, lengths, enforce_sorted=False), *([first] if given else []))
    pack = torch.nn.utils.rnn.pack_padded_sequence(other, lengths, enforce_sorted=False)
    other_packed, other_last = theirs(pack, *([other_first] if given else []))
    results, expected = [packed.data], [other_packed.data]
    results += last if kind == "LSTM" else [last]
    expected += other_last if kind == "LSTM" else [other_last]
    for a, b in zip(results, expected, strict=True):
        same(a, b)
    same(pad_packed_sequence(packed)[0], torch.nn.utils.rnn.pad_packed_sequence(other_packed)[0])
    pull(torch, results, expected)
    same(mine.grad, other.grad)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(p.grad, q.grad)


def test_wrong_inputs():
    packed = pack_padded_sequence(graphc.ones(3, 2, 5), [3, 2])
    with pytest.raises(ShapeError, match=r"packed \[5, 5\] is not \[\*, 4\]"):
        nn.LSTM(4, 2)(packed)
