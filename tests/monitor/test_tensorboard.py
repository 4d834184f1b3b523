"""Event files: records with right checksums that hold what was written."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from graphc.errors import ArgumentError
from graphc.monitor import TensorBoardWriter
from graphc.monitor.writer import make_histogram, png

pytest.importorskip("tensorboardX")


def records(path: Path):
    """The events of a file; fails where a length or checksum is wrong."""
    crc32c = pytest.importorskip("tensorboardX.crc32c").crc32c
    event = pytest.importorskip("tensorboardX.proto.event_pb2").Event

    def masked(data: bytes) -> int:
        crc = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    data, at = path.read_bytes(), 0
    while at < len(data):
        length, check = struct.unpack("<QI", data[at : at + 12])
        assert check == masked(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert struct.unpack("<I", data[at + 12 + length : at + 16 + length])[0] == masked(body)
        yield event.FromString(body)
        at += 16 + length


def test_what_was_written_comes_back(tmp_path: Path):
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    table = make_histogram(np.array([0.0, 1.0, 1.0]), bins=2)
    writer = TensorBoardWriter(tmp_path)
    writer.scalar("loss", 0.25, 7)
    writer.histogram("weights", table, 8)
    writer.image("digit", image, 9)
    writer.flush()
    writer.close()
    (file,) = tmp_path.glob("events.out.tfevents.*")
    found = {v.tag: (event.step, v) for event in records(file) for v in event.summary.value}
    assert found["loss"][0] == 7
    assert found["loss"][1].simple_value == 0.25
    assert found["digit"][0] == 9
    assert found["digit"][1].image.encoded_image_string == png(image)
    step, value = found["weights"]
    assert step == 8
    assert (value.histo.num, value.histo.sum, value.histo.min, value.histo.max) == (3, 2, 0, 1)
    assert sum(value.histo.bucket) == 3


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ArgumentError, match=r"\[monitor\]"):
        TensorBoardWriter(tmp_path)
