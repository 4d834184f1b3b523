"""Packed sequences through recurrent layers, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, ConditionError, IndexRangeError, ShapeError, ValueNeededError
from graphc.nn.packed_sequence import (
    MaskedSequence,
    PackedSequence,
    lengths_of,
    packed_data,
    padded_data,
    running,
    sizes_of,
)
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
    with pytest.raises(ShapeError, match=r"packed elements \[5\] are not \[4\]"):
        nn.LSTM(4, 2)(packed)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_lengths_as_data_as_torch(torch, kind: str):
    theirs = getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=True).double()
    ours = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True).double()
    load(ours, theirs)
    x, states = floats(5, 3, 3), floats(2, 4, 3, 4, seed=1)
    x[4, 0], x[3:, 2] = np.nan, np.inf  # padding takes no part

    def run(layer: Any, rnn: Any, x: Any, lengths: Any, first: Any) -> tuple[Any, ...]:
        packed, last = layer(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False), first)
        assert isinstance(packed, rnn.PackedSequence)
        padded, back = rnn.pad_packed_sequence(packed, padding_value=-1.5, total_length=6)
        return (padded, *(last if kind == "LSTM" else [last]), back)

    compiled = graphc.compile(lambda x, n, first: run(ours, nn.utils.rnn, x, n, first))
    for lengths in ([4, 5, 3], [1, 2, 1], [3, 3, 3]):
        mine, other = tensor(x, True), torch.tensor(x, requires_grad=True)
        first = tuple(tensor(s) for s in states) if kind == "LSTM" else tensor(states[0])
        other_first = tuple(map(torch.tensor, states)) if kind == "LSTM" else torch.tensor(states[0])
        *results, back = compiled(mine, graphc.tensor(lengths), first)
        *expected, _ = run(theirs, torch.nn.utils.rnn, other, torch.tensor(lengths), other_first)
        assert back.tolist() == lengths
        for a, b in zip(results, expected, strict=True):
            same(a, b)
        for layer in (ours, theirs):
            layer.zero_grad()
        pull(torch, results, expected)
        same(mine.grad, other.grad)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            same(p.grad, q.grad)
    assert len(compiled.programs) == 1


LISTS = [[4, 1, 2], [1, 2, 3], [2, 4, 1], [3, 3, 4]]
"""Lists of lengths, no two of which agree in all positions."""


def test_a_list_of_lengths_becomes_data():
    layer = nn.GRU(2, 3)

    def padded(x: Any, lengths: Any) -> Any:
        packed, last = layer(pack_padded_sequence(x, lengths, enforce_sorted=False))
        return pad_packed_sequence(packed, total_length=4)[0], last

    x, compiled = graphc.randn(4, 3, 2), graphc.compile(padded)
    for lengths in LISTS:
        for a, b in zip(compiled(x, lengths), padded(x, lengths), strict=True):
            assert graphc.allclose(a, b, atol=1e-6)
    assert len(compiled.programs) == 2  # the first list is part of its program
    with pytest.raises(IndexRangeError, match="pack_padded_sequence: length 5"):
        compiled(x, [5, 1, 3])
    for lengths in ((1, 2, 3), (2, 3, 1), (3, 1, 2)):
        assert graphc.allclose(compiled(x, lengths)[0], padded(x, lengths)[0], atol=1e-6)
    assert len(compiled.programs) == 4  # two for tuples
    for lengths in map(np.array, LISTS):
        compiled(x, lengths)
    assert len(compiled.programs) == 5  # arrays are tensors


@pytest.mark.parametrize("needs", ["data", "steps"])
def test_a_list_of_lengths_whose_values_are_needed(needs: str):
    layer = nn.GRU(2, 3)

    def result(x: Any, lengths: Any) -> Any:
        packed, _ = layer(pack_padded_sequence(x, lengths, enforce_sorted=False))
        return packed.data if needs == "data" else pad_packed_sequence(packed)[0]

    x, compiled = graphc.randn(4, 3, 2), graphc.compile(result)
    for lengths in LISTS:
        expected = result(x, lengths)
        assert compiled(x, lengths).shape == expected.shape
        assert graphc.allclose(compiled(x, lengths), expected, atol=1e-6)
    assert len(compiled.programs) == len(LISTS)


def test_a_training_step_with_a_list_of_lengths():
    def losses(compiles: bool) -> list[float]:
        graphc.manual_seed(0)
        layer, x = nn.GRU(2, 3), graphc.randn(4, 3, 2)
        sgd = graphc.optim.SGD(layer.parameters(), lr=0.1)

        def loss(x: Any, lengths: Any) -> Any:
            return layer(pack_padded_sequence(x, lengths, enforce_sorted=False))[1].square().mean()

        if compiles:
            step = graphc.compile_step(loss, optimizer=sgd)
            return [float(step(x, lengths)) for lengths in LISTS]
        numbers = []
        for lengths in LISTS:
            sgd.zero_grad()
            value = loss(x, lengths)
            value.backward()
            sgd.step()
            numbers.append(float(value))
        return numbers

    assert losses(True) == pytest.approx(losses(False), abs=1e-6)


def test_lengths_of_calls_are_checked():
    def through(x: Any, lengths: Any, ordered: bool, total: int | None = None) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=ordered)
        return pad_packed_sequence(packed, batch_first=True, total_length=total)[0]

    x, compiled = graphc.ones(2, 4, 1), graphc.compile(through)
    for lengths in ([4, 2], [4, 4]):
        n = graphc.tensor(lengths)
        assert graphc.equal(compiled(x, n, True), through(x, n, True))
    short = graphc.tensor([2, 1])
    assert graphc.equal(compiled(x, short, True, 3), through(x, short, True, 3))
    for lengths, options, error, message in [
        ([4, 5], (False,), IndexRangeError, "pack_padded_sequence: length 5"),
        ([4, 0], (False,), IndexRangeError, "pack_padded_sequence: length 0"),
        ([2, 4], (True,), ConditionError, "not sorted, longest first: pass enforce_sorted=False"),
        ([2, 1], (True,), ConditionError, "pass total_length= the number of steps"),
        ([4, 1], (True, 3), IndexRangeError, "total_length is below a length: 4"),
    ]:
        with pytest.raises(error, match=message):
            compiled(x, graphc.tensor(lengths), *options)
    with pytest.raises(ShapeError, match=r"one length for each of 2 sequences, got shape \[3\]"):
        compiled(x, graphc.tensor([1, 1, 1]), False)


def test_parts_of_masked_sequences():
    def parts(x: Any, lengths: Any) -> Any:
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False).double()
        assert isinstance(packed, MaskedSequence) and packed.sorted_indices is None
        return packed, packed.batch_sizes

    packed, sizes = graphc.compile(parts)(graphc.ones(3, 2), graphc.tensor([1, 2]))
    assert sizes.tolist() == [2, 1, 0] and packed.padded.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert packed.padded.dtype is graphc.float64 and packed.lengths.tolist() == [1, 2]
    assert pad_packed_sequence(packed, total_length=2)[0].tolist() == [[1, 1], [0, 1]]
    with pytest.raises(ValueNeededError, match=r"only calls know\n.*pass the lengths as a list"):
        _ = packed.data


def test_lengths_as_data_with_named_sizes():
    layer = nn.GRU(3, 4, batch_first=True)

    def last(x: Any, lengths: Any) -> Any:
        packed, last = layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        return pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])[0], last

    batch, steps = graphc.Dim("batch"), graphc.Dim("steps")
    compiled = graphc.compile(last, dims={"x": (batch, steps, None), "lengths": (batch,)})
    for rows, longest in ((2, 4), (5, 3), (3, 7)):
        x, lengths = graphc.randn(rows, longest, 3), graphc.tensor([1 + i % longest for i in range(rows)])
        for a, b in zip(compiled(x, lengths), last(x, lengths), strict=True):
            assert graphc.allclose(a, b, atol=1e-6)
    assert len(compiled.programs) == 1
