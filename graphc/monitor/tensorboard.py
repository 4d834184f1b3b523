"""Event files for TensorBoard, through the ``tensorboardX`` package (extra ``monitor``)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command
from graphc.monitor.writer import Histogram, Writer, png


class TensorBoardWriter(Writer):
    """Writer of an event file in ``folder``, shown by ``tensorboard --logdir folder``.

    Raises ArgumentError without the package.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self._package = _package()
        self._writer = self._package.SummaryWriter(os.fspath(folder))

    def scalar(self, name: str, value: float, step: int) -> None:
        self._writer.add_scalar(name, value, step)

    def histogram(self, name: str, value: Histogram, step: int) -> None:
        self._writer.add_histogram_raw(
            name,
            min=float(value.edges[0]),
            max=float(value.edges[-1]),
            num=value.count,
            sum=value.total,
            sum_squares=value.squares,
            bucket_limits=value.edges[1:].tolist(),
            bucket_counts=value.counts.tolist(),
            global_step=step,
        )

    def image(self, name: str, value: np.ndarray, step: int) -> None:
        summary = self._package.proto.summary_pb2.Summary
        height, width, _ = value.shape
        image = summary.Image(height=height, width=width, colorspace=3, encoded_image_string=png(value))
        entry = summary(value=[summary.Value(tag=name, image=image)])
        self._writer.file_writer.add_summary(entry, step)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def _package() -> Any:
    try:
        import tensorboardX
        import tensorboardX.proto.summary_pb2
    except ImportError:
        remedy = f"install tensorboardX: {install_command('monitor')}"
        raise ArgumentError("event files need the package tensorboardX", remedy=remedy) from None
    return tensorboardX
