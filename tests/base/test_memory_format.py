"""Hints on how tensors lie in memory are checked, and change nothing."""

from __future__ import annotations

import pickle

import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError


def test_formats_are_taken_and_tensors_stay_row_major():
    x = graphc.ones(1, 2, 3, 4)
    for made in (
        x.to(memory_format=graphc.channels_last),
        x.contiguous(memory_format=graphc.channels_last),
        x.clone(memory_format=graphc.preserve_format),
        graphc.zeros_like(x, memory_format=graphc.channels_last, layout=graphc.strided, pin_memory=True),
        nn.Conv2d(2, 3, 1).to(memory_format=graphc.channels_last)(x),
    ):
        assert made.is_contiguous() and made.layout is graphc.strided


def test_whether_channels_are_last_is_told_from_memory():
    x = graphc.ones(1, 2, 3, 4)
    turned = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert turned.is_contiguous(memory_format=graphc.channels_last)
    assert not x.is_contiguous(memory_format=graphc.channels_last)
    assert not turned.is_contiguous(memory_format=graphc.channels_last_3d)


def test_pinned_memory_is_any_memory():
    x = graphc.ones(2)
    assert x.pin_memory() is x and not x.is_pinned()
    assert x.to("cpu", non_blocking=True) is x


@pytest.mark.parametrize(
    "call",
    [
        lambda: graphc.zeros(2, layout="sparse"),
        lambda: graphc.ones(2).contiguous(memory_format="channels_last"),
        lambda: graphc.empty(2, memory_format=3),
    ],
)
def test_what_is_no_hint_is_refused(call):
    with pytest.raises(ArgumentError):
        call()


def test_a_name_is_one_object():
    assert pickle.loads(pickle.dumps(graphc.channels_last)) is graphc.channels_last
    assert repr(graphc.strided) == "graphc.strided"
