"""Calls from native code back into Python: which functions a running program may call, and what they get."""

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
"""Key of a run's state under which functions that memory was lent to leave what has begun with it: objects whose
``settle()`` returns when they touch that memory no more."""
SYMBOL = "graphc_host"
"""Symbol by which programs know the function that host calls go to; see codegen.llvm.emit."""


class HostRun:
    """One run of a program with host calls."""

    def __init__(
        self, functions: Sequence[HostFunction], state: dict[Any, Any], owner: object = None, lasting: bool = False
    ):
        """``lasting``: what functions return is kept as it was then, for when the program begins once more, which calls
        them again otherwise."""
        self.functions = functions
        self.state = state
        self.owner = owner
        """The program that runs."""
        self.error: BaseException | None = None
        """What a function has raised; no other one is called then."""
        self.is_calling = False
        """Whether one of the functions is being called."""
        self.lasting = lasting
        """Whether what functions return is kept."""
        self._has_lent = False
        """Whether memory was lent."""
        self._is_again = False
        """Whether the program runs once more behind that, and nothing is lent: it was stopped, and will be again."""
        self._made: list[tuple[int, Sequence[np.ndarray]]] = []
        self._again: dict[int, deque[Sequence[np.ndarray]]] = {}

    def rewind(self) -> Callable[[int, Sequence[np.ndarray]], Sequence[np.ndarray]]:
        """The program begins once more: what has been kept is returned again, without a call. Gives ``call``, for who
        runs it."""
        self.settle()
        self._is_again = self._has_lent
        self._again = {}
        for number, found in self._made:
            self._again.setdefault(number, deque()).append(found)
        return self.call

    def settle(self) -> None:
        """Returns when nobody touches lent memory any more."""
        for begun in self.state.pop(OPEN, ()):
            begun.settle()

    @property
    def lends(self) -> bool:
        """Whether memory is lent, and the program therefore must not run twice."""
        return any(function.lends for function in self.functions)

    def call(self, number: int, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """What function ``number`` returns for read-only arrays; raises what it raises."""
        if self._again.get(number):
            return self._again[number].popleft()
        function = self.functions[number]
        arrays = [_like(a, s) for a, s in zip(arrays, function.operands, strict=True)]
        for array in arrays:
            array.flags.writeable = False
        self.is_calling = True
        try:
            found = function.function(self.state, *arrays)
        finally:
            self.is_calling = False
        if self.lasting:
            found = [np.array(array) for array in found]
            self._made.append((number, found))
        return found

    def serve(self, number: int, addresses: int) -> None:
        """Calls function ``number`` on the buffers at these addresses: new token, token, operands, results."""
        if self.error is not None:
            return
        # NOTE: whatever it raises, Ctrl-C too: native code cannot pass it on, so the caller of the program does.
        try:
            found = self.functions[number]
            count = len(found.operands)
            places = (ctypes.c_void_p * (2 + count + len(found.results))).from_address(addresses)[:]
            if found.lends:
                self._lend(found, addresses, places[2:])
                return
            # Copies: what a function keeps must not change when the memory is used for something else.
            memory = [_bytes(p, s) for p, s in zip(places[2:], found.operands, strict=False)]
            given = [np.ndarray(*s, m) for m, s in zip(memory, found.operands, strict=True)]
            results = self.call(number, given)
            known = dict(zip(map(id, given), memory, strict=True))
            for place, spec, array in zip(places[2 + count :], found.results, results, strict=True):
                same = known.get(id(array))
                if same and (array.shape, array.dtype) == spec:
                    ctypes.memmove(place, same, len(same))
                else:
                    np.copyto(_array(place, spec), array)
            _token(addresses).value = 0.0
        # NOTE: also Ctrl-C: no exception passes through native code; ``serving`` raises it behind the call.
        except BaseException as error:
            self.error = error

    def _lend(self, function: HostFunction, addresses: int, places: Sequence[int | None]) -> None:
        if self._is_again:
            return
        self._has_lent = True
        specs = (*function.operands, *function.results)
        function.function(self.state, *map(_array, places, specs))
        _token(addresses).value = 0.0


def _like(array: np.ndarray, spec: Spec) -> np.ndarray:
    """The array itself; complex numbers, where an interpreted program has pairs of real ones."""
    return array if array.dtype == spec[1] else np.ascontiguousarray(array).view(spec[1]).reshape(spec[0])


def _token(addresses: int) -> ctypes.c_float:
    return ctypes.c_float.from_address(ctypes.c_void_p.from_address(addresses).value or 0)


def _bytes(address: int | None, spec: Spec) -> bytes:
    """What lies at an address now; arrays of it are read-only for good."""
    nbytes = prod(spec[0]) * spec[1].itemsize
    return ctypes.string_at(address, nbytes) if nbytes and address else b""


def _array(address: int | None, spec: Spec) -> np.ndarray:
    """The array at an address; empty ones may have none."""
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
    """While the block runs, programs that this thread calls may call these functions. What a function raises is raised
    at the end of the block, in the place of what the program says of it. Raises ArgumentError where ``owner``, which
    writes to states, is running already: it would wait for itself."""
    if owner is not None and any(run.owner is owner for run in _present.runs):
        raise ArgumentError(
            "a hook or an opaque function calls the compiled code that calls it, which writes to parameters or buffers",
            remedy="call the module that is not compiled, or another compiled function",
        )
    run = HostRun(functions, state, owner, lasting)
    _present.runs.append(run)
    try:
        yield run
    # NOTE: what a call raises whose Python function has failed comes of that, which is raised below.
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
    """``run`` as a function that calls these functions, see ``running``."""

    def call(*args: Any) -> Any:
        with running(functions, state, owner, lasting):
            return run(*args)

    return call


def current() -> HostRun | None:
    """The innermost run of this thread, unless it is calling a function: what runs there is another program."""
    run = _present.runs[-1] if _present.runs else None
    return None if run is None or run.is_calling else run


def is_lending() -> bool:
    """Whether a run of this thread lends memory."""
    return any(run.lends for run in _present.runs)


def rewind() -> None:
    """To be called before a program that has been stopped runs once more: see ``HostRun.rewind``."""
    run = current()
    if run is not None:
        run.rewind()


def _serve(number: int, addresses: int) -> None:
    # NOTE: an exception that comes before ``serve`` catches it is lost to ctypes; the token says then that it failed.
    if _present.runs:
        _present.runs[-1].serve(number, addresses)


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
_callback = _Callback(_serve)
_pointer = ctypes.c_void_p(ctypes.cast(_callback, ctypes.c_void_p).value)
ADDRESS = ctypes.addressof(_pointer)
"""Address of the pointer to what serves host calls. It takes the interpreter lock itself."""
