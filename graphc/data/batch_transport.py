"""How a batch goes from one process to another: through a pipe, its large arrays through memory that both have."""

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
"""Bytes of arrays from which they go through shared memory. Measured in ms for a batch of one worker, by the pipe and
by memory: 96 KiB 1.6 and 2.9, 384 KiB 6.3 and 4.1, 1.5 MiB 22 and 11, 6 MiB 108 and 32 (two cores, beside other work).
"""
_ALIGNMENT = 64
"""Bytes: that of the arrays in a batch, as of all memory of tensors."""


def send(connection: Connection, head: Any, value: Any) -> None:
    """Sends a small head and a value. Arrays in it are not copied into the text of the pickle; raises what pickling the
    value raises, before anything is sent."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, 5, buffer_callback=buffers.append)
    raw = [b.raw() for b in buffers]
    ends, places = 0, []
    for view in raw:
        places.append((ends, view.nbytes))
        ends += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
    if ends < LARGE:
        connection.send((head, text, [bytes(view) for view in raw], None))
        return
    handle = os.memfd_create("graphc-batch")
    try:
        os.ftruncate(handle, ends)
        with mmap.mmap(handle, ends) as memory:
            for (start, size), view in zip(places, raw, strict=True):
                memory[start : start + size] = view
        connection.send((head, text, places, ends))
        send_handle(connection, handle, 0)
    finally:
        os.close(handle)


def receive(connection: Connection) -> tuple[Any, Any]:
    """The head and the value. Large arrays lie in the memory that the sender wrote, which is free with the last of
    them. Raises EOFError or OSError where the sender is no more."""
    head, text, parts, size = connection.recv()
    if size is None:
        return head, pickle.loads(text, buffers=[bytearray(part) for part in parts])
    handle = recv_handle(connection)
    try:
        memory = memoryview(mmap.mmap(handle, size))
    finally:
        os.close(handle)
    return head, pickle.loads(text, buffers=[memory[start : start + length] for start, length in parts])


def portable(error: BaseException) -> tuple[BaseException, str]:
    """An exception that another process can build, the same one where that is possible, and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        again = pickle.loads(pickle.dumps(error))
    # NOTE: an exception's class says how it is pickled and built, and may fail in any way.
    except Exception:
        again = None
    if type(again) is type(error):
        return error, text
    return WorkerError(f"{type(error).__name__}: {error}"), text
