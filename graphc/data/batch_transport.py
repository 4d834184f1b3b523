"""Transport of batches between processes: a pipe, and shared memory for large arrays."""

from __future__ import annotations

import mmap
import os
import pickle
import traceback
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

from graphc.base.errors import WorkerError

LARGE = 1 << 18
"""Bytes of arrays from which they go through shared memory.

Measured in ms for a batch of one worker, by pipe and by shared memory: 96 KiB 1.6 and 2.9, 384 KiB 6.3 and 4.1, 1.5 MiB
22 and 11, 6 MiB 108 and 32 (two cores under other load).
"""
_ALIGNMENT = 64
"""Alignment in bytes of the arrays in a batch, the same as of all tensors."""


def send(connection: Connection, head: Any, value: Any) -> None:
    """Send a small head and a value, whose arrays are not copied into the pickle.

    Pickling errors are raised before anything is sent.
    """
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, 5, buffer_callback=buffers.append)
    raw = [b.raw() for b in buffers]
    ends, spans = 0, []
    for view in raw:
        spans.append((ends, view.nbytes))
        ends += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
    if ends < LARGE:
        connection.send((head, text, [bytes(view) for view in raw], None))
        return
    handle = os.memfd_create("graphc-batch")
    try:
        os.ftruncate(handle, ends)
        with mmap.mmap(handle, ends) as memory:
            for (start, size), view in zip(spans, raw, strict=True):
                memory[start : start + size] = view
        connection.send((head, text, spans, ends))
        send_handle(connection, handle, 0)
    finally:
        os.close(handle)


def receive(connection: Connection) -> tuple[Any, Any]:
    """Return the head and the value. Large arrays share the sender's memory, which is freed with the last of them.

    Raises EOFError or OSError if the sender has died.
    """
    head, text, spans, size = connection.recv()
    if size is None:
        return head, pickle.loads(text, buffers=[bytearray(data) for data in spans])
    handle = recv_handle(connection)
    try:
        memory = memoryview(mmap.mmap(handle, size))
    finally:
        os.close(handle)
    return head, pickle.loads(text, buffers=[memory[start : start + length] for start, length in spans])


def portable(error: BaseException) -> tuple[BaseException, str]:
    """Return an exception that another process can build, the same one if possible, and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        again = pickle.loads(pickle.dumps(error))
    # NOTE: classes of exceptions may define how they are pickled and built, and fail in any way.
    except Exception:
        again = None
    if type(again) is type(error):
        return error, text
    return WorkerError(f"{type(error).__name__}: {error}"), text
