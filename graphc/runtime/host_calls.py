"""Calls from native code into Python functions: which functions a running program may call, and on which arrays."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.host_function import HostFunction, Spec

OPEN = "open"
"""Key of a run's state under which functions keep the unfinished work on lent memory: objects whose ``settle()``
returns once they no longer touch that memory."""
SYMBOL = "graphc_host"
"""Symbol in programs of the function that serves host calls; see codegen.llvm.emit."""


class HostRun:
    """One run of a program with host calls."""

    def __init__(
        self, functions: Sequence[HostFunction], state: dict[Any, Any], owner: object = None, lasting: bool = False
    ):
        """With ``lasting``, keep the results of functions, and return them again when the program restarts. Otherwise a
        restart calls the functions again."""
        self.functions = functions
        self.state = state
        self.owner = owner
        """The running program."""
        self.error: BaseException | None = None
        """Exception that a function has raised; no other function is called after it."""
        self.is_calling = False
        """Whether a function is running."""
        self.lasting = lasting
        """Whether results of functions are kept."""
        self._has_lent = False
        """Whether the run has lent memory."""
        self._is_replaying = False
        """Whether a stopped program that has lent memory runs again to where it stopped. It then lends nothing."""
        self._results: list[tuple[int, Sequence[np.ndarray]]] = []
        self._replayed: dict[int, deque[Sequence[np.ndarray]]] = {}

    def rewind(self) -> Callable[[int, Sequence[np.ndarray]], Sequence[np.ndarray]]:
        """Restart the program: kept results are returned again without a call. Return ``call`` for the code
        that runs the program."""
        self.settle()
        self._is_replaying = self._has_lent
        self._replayed = {}
        for number, results in self._results:
            self._replayed.setdefault(number, deque()).append(results)
        return self.call

    def settle(self) -> None:
        """Wait until nothing touches lent memory any more."""
        for task in self.state.pop(OPEN, ()):
            task.settle()

    @property
    def lends(self) -> bool:
        """Whether some function gets memory lent, in which case the program must not run twice."""
        return any(function.lends for function in self.functions)

    def call(self, number: int, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the results of function ``number`` for read-only arrays; passes on its exceptions."""
        if self._replayed.get(number):
            return self._replayed[number].popleft()
        function = self.functions[number]
        arrays = [_like(a, s) for a, s in zip(arrays, function.operands, strict=True)]
        for array in arrays:
            array.flags.writeable = False
        self.is_calling = True
        try:
            results = function.function(self.state, *arrays)
        finally:
            self.is_calling = False
        if self.lasting:
            results = [np.array(array) for array in results]
            self._results.append((number, results))
        return results

    def serve(self, number: int, addresses: int) -> None:
        """Call function ``number`` on the buffers at these addresses: new token, token, operands, results."""
        if self.error is not None:
            return
        # NOTE: native code cannot pass on exceptions, Ctrl-C included, so the caller of the program raises them.
        try:
            host_function = self.functions[number]
            count = len(host_function.operands)
            pointers = (ctypes.c_void_p * (2 + count + len(host_function.results))).from_address(addresses)[:]
            if host_function.lends:
                self._lend(host_function, addresses, pointers[2:])
                return
            # Copies: arrays that a function keeps must not change when the program reuses its memory.
            memory = [_bytes(p, s) for p, s in zip(pointers[2:], host_function.operands, strict=False)]
            arrays = [np.ndarray(*s, m) for m, s in zip(memory, host_function.operands, strict=True)]
            results = self.call(number, arrays)
            memory_of = dict(zip(map(id, arrays), memory, strict=True))
            for pointer, spec, array in zip(pointers[2 + count :], host_function.results, results, strict=True):
                same = memory_of.get(id(array))
                if same and (array.shape, array.dtype) == spec:
                    ctypes.memmove(pointer, same, len(same))
                else:
                    np.copyto(_array(pointer, spec), array)
            _token(addresses).value = 0.0
        # NOTE: also Ctrl-C: no exception passes through native code; ``serving`` raises it after the call.
        except BaseException as error:
            self.error = error

    def _lend(self, function: HostFunction, addresses: int, pointers: Sequence[int | None]) -> None:
        if self._is_replaying:
            return
        self._has_lent = True
        specs = (*function.operands, *function.results)
        function.function(self.state, *map(_array, pointers, specs))
        _token(addresses).value = 0.0


def _like(array: np.ndarray, spec: Spec) -> np.ndarray:
    """Return the array itself. Where an interpreted program has pairs of real numbers, view them as complex ones."""
    return array if array.dtype == spec[1] else np.ascontiguousarray(array).view(spec[1]).reshape(spec[0])


def _token(addresses: int) -> ctypes.c_float:
    return ctypes.c_float.from_address(ctypes.c_void_p.from_address(addresses).value or 0)


def _bytes(address: int | None, spec: Spec) -> bytes:
    """Return a copy of the bytes at an address; arrays over it are read-only forever."""
    nbytes = prod(spec[0]) * spec[1].itemsize
    return ctypes.string_at(address, nbytes) if nbytes and address else b""


def _array(address: int | None, spec: Spec) -> np.ndarray:
    """Return the array at an address; an empty array may have none."""
    shape, dtype = spec
    nbytes = prod(shape) * dtype.itemsize
    if not nbytes:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * nbytes).from_address(address or 0)
    return np.ndarray(shape, dtype, memory)


class _Present(threading.local):
    """The runs of this thread, the innermost last."""

    def __init__(self) -> None:
        self.runs: list[HostRun] = []


_present = _Present()


@contextmanager
def running(
    functions: Sequence[HostFunction], state: dict[Any, Any], owner: object = None, lasting: bool = False
) -> Iterator[HostRun]:
    """Let programs that this thread calls during the block call these functions. The block raises the exception of a
    function at its end, in place of the program's own error. Raises ArgumentError if ``owner``, which writes to states,
    is running already: it would wait for itself."""
    if owner is not None and any(run.owner is owner for run in _present.runs):
        raise ArgumentError(
            "a hook or an opaque function calls the compiled code that calls it, which writes to parameters or buffers",
            remedy="call the module that is not compiled, or another compiled function",
        )
    run = HostRun(functions, state, owner, lasting)
    _present.runs.append(run)
    try:
        yield run
    # NOTE: if a Python function has failed, the program's error follows from that error, which is raised below.
    except Exception:
        if run.error is None:
            raise
    finally:
        _present.runs.pop()
        run.settle()
    if run.error is not None:
        raise run.error


def serving(
    run: Callable[..., Any],
    functions: Sequence[HostFunction],
    state: dict[Any, Any],
    owner: object = None,
    lasting: bool = False,
) -> Callable[..., Any]:
    """Return ``run`` as a function whose calls may call these functions; see ``running``."""

    def call(*args: Any) -> Any:
        with running(functions, state, owner, lasting):
            return run(*args)

    return call


def current() -> HostRun | None:
    """Return the innermost run of this thread. Return None while it calls a function, because programs that run inside
    are separate."""
    run = _present.runs[-1] if _present.runs else None
    return None if run is None or run.is_calling else run


def is_lending() -> bool:
    """Return whether a run of this thread lends memory."""
    return any(run.lends for run in _present.runs)


def rewind() -> None:
    """Prepare for the restart of a stopped program; see ``HostRun.rewind``."""
    run = current()
    if run is not None:
        run.rewind()


def _serve(number: int, addresses: int) -> None:
    # NOTE: ctypes drops an exception that comes before ``serve`` can catch it; the token then reports the failure.
    if _present.runs:
        _present.runs[-1].serve(number, addresses)


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
_callback = _Callback(_serve)
_pointer = ctypes.c_void_p(ctypes.cast(_callback, ctypes.c_void_p).value)
ADDRESS = ctypes.addressof(_pointer)
"""Address of the pointer to the function that serves host calls. The function takes the interpreter lock itself."""
