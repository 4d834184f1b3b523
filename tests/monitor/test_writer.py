"""Histograms and images: values counted exactly, pictures scaled, PNG files that others can read."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ShapeError
from graphc.monitor.writer import Writer, make_histogram, make_image, png, values_of


def test_histograms():
    found = make_histogram(gc.tensor([0.0, 1.0, 1.0, 2.0, float("nan"), float("inf")]), bins=2)
    assert found.counts.tolist() == [1, 3]
    assert found.edges.tolist() == [0, 1, 2]
    assert (found.count, found.total, found.squares, found.dropped) == (4, 4.0, 6.0, 2)
    empty = make_histogram(np.zeros(0))
    assert (empty.count, empty.dropped) == (0, 0)
    assert make_histogram(np.array([True, False, True])).count == 3
    same = make_histogram(np.full(5, 7.0))
    assert same.count == 5


def test_images_are_scaled():
    image = make_image(np.array([[-1.0, 0.0], [1.0, np.nan]]))
    assert image.shape == (2, 2, 3)
    assert image[..., 0].tolist() == [[0, 128], [255, 0]]
    assert make_image(np.array([[0.0, 0.5]]))[..., 1].tolist() == [[0, 128]]
    colours = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    np.testing.assert_array_equal(make_image(colours), colours.transpose(1, 2, 0))
    assert make_image(gc.zeros(1, 4, 5)).shape == (4, 5, 3)
    assert make_image(np.full((2, 2), np.inf)).min() == 255


@pytest.mark.parametrize("shape", [(), (3,), (2, 4, 4), (1, 1, 4, 4), (0, 4)])
def test_what_is_no_image(shape):
    with pytest.raises(ShapeError, match="an image has shape"):
        make_image(np.zeros(shape))


def test_png_files():
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    data = png(image)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (7, 5, 8, 2, 0, 0, 0)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(5, 22)
    assert not rows[:, 0].any()
    np.testing.assert_array_equal(rows[:, 1:].reshape(5, 7, 3), image)


def test_a_writer_may_leave_anything_out():
    writer = Writer()
    assert writer.scalar("a", 1.0, 0) is writer.flush() is writer.close() is None
    assert values_of(gc.tensor([1.0], requires_grad=True) * 2).tolist() == [2.0]
