"""Recordings of a step: the inputs and state of a call, its results and its side effects, in one file."""

from __future__ import annotations

import hashlib
import os
import platform
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, GraphcError
from graphc.base.version import VERSION
from graphc.checkpoints.tree import join, split
from graphc.files.numpy_file import read_npz, write_npz
from graphc.monitor.call_log import OP, LogEntry
from graphc.monitor.contents import contents_of
from graphc.monitor.holders import TENSOR, Holder, holders_of
from graphc.monitor.packing import Packer, Unpacker, arrays_in
from graphc.tape.grad_mode import no_grad
from graphc.tensors.placement import on_host
from graphc.tensors.random.generator import default_generator

FORMAT = 1
_TREE = "graphc.recording"
_FIELDS = ("name", "args", "kwargs", "holders", "random", "versions", "result", "after", "error", "ops", "stop")


class Recording(NamedTuple):
    """Contents of a file; values are packed trees."""

    name: str
    """Name of the function that was called."""
    args: Any
    kwargs: Any
    holders: list[Any]
    """Kind, name and contents before the call, of each holder."""
    random: Any
    versions: dict[str, str]
    result: Any
    after: list[Any]
    """Kind, name and contents after the call, of each holder."""
    error: str
    """Error that ended the call; empty if it succeeded."""
    ops: list[Any]
    """Kind, name, module, line, digest of the results and text of the results, for each op."""
    stop: list[str]


class Recorder:
    """Recorder of one call."""

    def __init__(self, stop: Sequence[str]):
        self._stop = list(stop)
        self.ops: list[Any] = []
        """Ops as in ``Recording``."""
        self._holders: list[Holder] = []
        self._before: dict[str, Any] = {}
        self._after: dict[str, Any] = {}
        self.is_running = False
        """Whether the call is in progress."""

    def begin(self, name: str, args: Any, kwargs: Mapping[str, Any], refers: Iterable[tuple[str, Any]]) -> bool:
        """Record arguments, state, random generators and versions before a call.

        Return False if the call is not a step: no argument is a tensor, and it refers to no module, optimizer or other
        state. Raises ArgumentError for values that cannot be recorded.
        """
        arguments = [("argument", a) for a in (*args, *kwargs.values())]
        holders = holders_of([*refers, *arguments])
        argument_ids = {id(h.value) for h in holders_of(arguments) if h.kind == TENSOR}
        holders = [h for h in holders if not (h.kind == TENSOR and id(h.value) in argument_ids)]
        if not argument_ids and all(h.kind in (TENSOR, "generator") for h in holders):
            return False
        self._holders = holders
        packer = Packer([h.value for h in holders])
        with no_grad():
            self._before = {
                "name": name,
                "args": packer.pack(tuple(args), "argument "),
                "kwargs": packer.pack(dict(kwargs), "argument "),
                "holders": [[h.kind, h.name, packer.pack(h.contents(), h.name)] for h in holders],
                "random": random_state(),
                "versions": versions(),
                "stop": self._stop,
            }
        self.ops, self._after, self.is_running = [], {}, True
        return True

    def add(self, event: LogEntry, results: Sequence[Any]) -> None:
        """Record an op of the call."""
        if self.is_running:
            self.ops.append(describe_op(event, results))

    def end(self, result: Any) -> None:
        """Record the result of the call and the contents of the holders after it."""
        if not self.is_running:
            return
        self.is_running = False
        self._after = after_call(self._holders, result)

    def fail(self, error: BaseException) -> None:
        """Record the error that ended the call."""
        self.end(None)
        if self._before:
            self._after["error"] = f"{type(error).__name__}: {error}"

    def first_nonfinite(self) -> str:
        """Return the name of the first value made NaN or infinite by the call, or an empty string.

        Values are the result, and those tensors after the call which were finite before it.
        """
        if not self._after:
            return ""
        before = {n for n, a in _named(self._before["holders"]) if not _is_finite(a)}
        candidates = [("the result", a) for a in _arrays(self._after["result"])]
        candidates += [(n, a) for n, a in _named(self._after["holders"]) if n not in before]
        return next((name for name, array in candidates if not _is_finite(array)), "")

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the file atomically and return its size in bytes. Raises ArgumentError if no step was called."""
        if not self._before:
            raise ArgumentError(
                "debug: no step was called in the block, so there is nothing to record",
                remedy="call a function of tensors or modules in the block, or gc.debug(record=...)(function)(x)",
            )
        after = self._after or {"result": {"plain": None}, "holders": []}
        fields = {**self._before, "result": after["result"], "after": after["holders"], "ops": self.ops}
        tensors, tree = split({"format": FORMAT, **fields, "error": after.get("error", "")})
        write_npz(path, {**tensors, _TREE: np.frombuffer(tree.encode(), np.uint8)})
        return os.path.getsize(path)

    @property
    def has_begun(self) -> bool:
        """Check whether a step was called."""
        return bool(self._before)

    @property
    def name(self) -> str:
        """Name of the recorded step."""
        return str(self._before.get("name", ""))


def describe_op(event: LogEntry, results: Sequence[Any]) -> list[str]:
    """Return the row of an op in a recording."""
    digest = hashlib.sha256()
    for result in results:
        digest.update(np.ascontiguousarray(on_host(result._data)).tobytes())
    results_text = ", ".join(map(str, event.outputs))
    kind = "" if event.kind == OP else event.kind
    return [kind, event.op, event.place, event.line, digest.hexdigest()[:16], results_text]


def after_call(holders: Sequence[Holder], result: Any) -> dict[str, Any]:
    """Pack the result and the contents of the holders after a call."""
    with no_grad():
        return {
            "result": Packer([h.value for h in holders], lenient=True).pack(result, "the result"),
            "holders": [list(contents) for contents in contents_of(holders)],
        }


def _arrays(tree: Any) -> list[np.ndarray]:
    return [np.asarray(a) for a in arrays_in(tree).values()]


def _named(holders: Sequence[Any]) -> list[tuple[str, np.ndarray]]:
    return [(name + path, np.asarray(a)) for _, name, tree in holders for path, a in arrays_in(tree).items()]


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def versions() -> dict[str, str]:
    """Return the versions on which the bits of results can depend."""
    return {
        "graphc": VERSION,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def random_state() -> dict[str, Any]:
    """Return the states of the global random generators of graphc, Python and NumPy."""
    kind, words, position, has_gauss, gauss = np.random.get_state()
    version, numbers, pending = random.getstate()
    return {
        "graphc": default_generator.get_state().numpy().copy(),
        "numpy": [str(kind), np.asarray(words).copy(), int(position), int(has_gauss), float(gauss)],
        "python": [version, np.array(numbers, np.uint64), pending],
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Set the states of the global random generators. Raises ArtifactError for an invalid state."""
    with fits("states of random generators"):
        kind, words, position, has_gauss, gauss = state["numpy"]
        version, numbers, pending = state["python"]
        default_generator.set_state(state["graphc"])
        np.random.set_state((kind, words, position, has_gauss, gauss))
        random.setstate((version, tuple(int(n) for n in numbers), pending))


def read(path: str | os.PathLike[str]) -> Recording:
    """Read a recording, without executing anything in it. Raises ArtifactError for a damaged or other file."""
    arrays = read_npz(path, narrow=True)
    file = os.fspath(path)
    if _TREE not in arrays:
        raise ArtifactError(
            f"{file} is not a recording of a step", remedy="pass a file written by gc.debug(record=...)"
        )
    tree = join(arrays, arrays.pop(_TREE).tobytes().decode("utf-8", "replace"))
    if not isinstance(tree, dict) or tree.get("format") != FORMAT or any(field not in tree for field in _FIELDS):
        version = tree.get("format") if isinstance(tree, dict) else None
        raise ArtifactError(f"{file} is a recording of format {version}; this graphc reads format {FORMAT}")
    recording = Recording(*(tree[field] for field in Recording._fields))
    wrong = next((name for name, is_right in _checks(recording) if not is_right), None)
    if wrong is not None:
        raise ArtifactError(f"{file} is damaged: {wrong} of the recording cannot be read")
    return recording


def _checks(recording: Recording) -> Iterator[tuple[str, bool]]:
    """Yield the name of each field of a recording, and whether it has the structure that ``Recorder`` writes."""
    yield "the name", isinstance(recording.name, str)
    yield "the error", isinstance(recording.error, str)
    for name, holders in (("contents before", recording.holders), ("contents after", recording.after)):
        yield name, isinstance(holders, list) and all(_is_row(row, str, str, dict) for row in holders)
    yield "ops", isinstance(recording.ops, list) and all(_is_row(row, *[str] * 6) for row in recording.ops)
    yield "stops", isinstance(recording.stop, list) and _is_row(recording.stop, *[str] * len(recording.stop))
    table = recording.versions
    yield "versions", isinstance(table, dict) and _is_row(list(table.values()), *[str] * len(table))


def _is_row(row: Any, *kinds: type) -> bool:
    return isinstance(row, list) and len(row) == len(kinds) and all(map(isinstance, row, kinds))


@contextmanager
def fits(field: str) -> Iterator[None]:
    """Turn errors of the block, raised by a malformed field of a recording, into ArtifactError."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        if isinstance(error, GraphcError):
            raise
        raise ArtifactError(f"the recording is damaged: {field}: {type(error).__name__}: {error}") from None


def unpacked(recording: Recording, values: Sequence[Any]) -> tuple[Any, dict[str, Any], list[Any]]:
    """Unpack arguments, keyword arguments and contents of the holders; ``values`` are the present holders' objects."""
    unpacker = Unpacker(values)
    args, kwargs = unpacker.unpack(recording.args), unpacker.unpack(recording.kwargs)
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise ArtifactError("the recording is damaged: its arguments are not a tuple and a dictionary")
    contents = [unpacker.unpack(tree) for _, _, tree in recording.holders]
    return args, kwargs, contents
