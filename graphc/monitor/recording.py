"""Recordings of a step: all that a call depends on, what it gave and left behind, as one file."""

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
from graphc.monitor.call_log import OP, Event
from graphc.monitor.contents import contents_of
from graphc.monitor.holders import TENSOR, Holder, holders_of
from graphc.monitor.packing import Packer, Unpacker, arrays_in
from graphc.tape.grad_mode import no_grad
from graphc.tensors.generator import default_generator
from graphc.tensors.placement import on_host

FORMAT = 1
_TREE = "graphc.recording"
_FIELDS = ("name", "args", "kwargs", "holders", "random", "versions", "result", "after", "error", "ops", "stop")


class Recording(NamedTuple):
    """What a file holds; values are packed trees."""

    name: str
    """Of what was called."""
    args: Any
    kwargs: Any
    holders: list[Any]
    """Kind, name and contents before the call."""
    random: Any
    versions: dict[str, str]
    result: Any
    after: list[Any]
    """Contents of the holders after the call."""
    error: str
    """The error that ended the call; empty where none did."""
    ops: list[Any]
    """Of each op that was seen: kind, name, module, line, digest and text of the results."""
    stop: list[str]


class Recorder:
    """Records one call."""

    def __init__(self, stop: Sequence[str]):
        self._stop = list(stop)
        self.ops: list[Any] = []
        """Of each op that was seen: see ``Recording``."""
        self._holders: list[Holder] = []
        self._begun: dict[str, Any] = {}
        self._after: dict[str, Any] = {}
        self.is_running = False
        """Whether the call has begun and not ended."""

    def begin(self, name: str, args: Any, kwargs: Mapping[str, Any], refers: Iterable[tuple[str, Any]]) -> bool:
        """Takes down all that a call depends on; False for one that is no step: it has neither tensors among its
        arguments nor anything that could learn. Raises ArgumentError for what cannot be recorded."""
        arguments = [("argument", a) for a in (*args, *kwargs.values())]
        holders = holders_of([*refers, *arguments])
        given = {id(h.value) for h in holders_of(arguments) if h.kind == TENSOR}
        holders = [h for h in holders if not (h.kind == TENSOR and id(h.value) in given)]
        if not given and all(h.kind in (TENSOR, "generator") for h in holders):
            return False
        self._holders = holders
        packer = Packer([h.value for h in holders])
        with no_grad():
            self._begun = {
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

    def add(self, event: Event, results: Sequence[Any]) -> None:
        """Takes an op of the call down."""
        if self.is_running:
            self.ops.append(described(event, results))

    def end(self, result: Any) -> None:
        """Takes down what the call has given and left behind."""
        if not self.is_running:
            return
        self.is_running = False
        self._after = after_call(self._holders, result)

    def fail(self, error: BaseException) -> None:
        """Takes down the error that has ended the call."""
        self.end(None)
        if self._begun:
            self._after["error"] = f"{type(error).__name__}: {error}"

    def bad(self) -> str:
        """The first number of the result, and of what was left behind, that is not finite, where nothing was so
        before."""
        if not self._after:
            return ""
        before = {n for n, a in _named(self._begun["holders"]) if not _is_finite(a)}
        found = [("the result", a) for a in _arrays(self._after["result"])]
        found += [(n, a) for n, a in _named(self._after["holders"]) if n not in before]
        return next((name for name, array in found if not _is_finite(array)), "")

    def write(self, path: str | os.PathLike[str]) -> int:
        """Writes the file, atomically; returns its size in bytes. Raises ArgumentError where no step was called."""
        if not self._begun:
            raise ArgumentError(
                "debug: no step was called in the block, so there is nothing to record",
                remedy="call a function of tensors or modules in the block, or gc.debug(record=...)(function)(x)",
            )
        after = self._after or {"result": {"plain": None}, "holders": []}
        found = {**self._begun, "result": after["result"], "after": after["holders"], "ops": self.ops}
        tensors, tree = split({"format": FORMAT, **found, "error": after.get("error", "")})
        write_npz(path, {**tensors, _TREE: np.frombuffer(tree.encode(), np.uint8)})
        return os.path.getsize(path)

    @property
    def has_begun(self) -> bool:
        """Whether a step was called."""
        return bool(self._begun)

    @property
    def name(self) -> str:
        """What was called."""
        return str(self._begun.get("name", ""))


def described(event: Event, results: Sequence[Any]) -> list[str]:
    """What a recording keeps of an op."""
    digest = hashlib.sha256()
    for result in results:
        digest.update(np.ascontiguousarray(on_host(result._data)).tobytes())
    shown = ", ".join(map(str, event.outputs))
    kind = "" if event.kind == OP else event.kind
    return [kind, event.op, event.place, event.line, digest.hexdigest()[:16], shown]


def after_call(holders: Sequence[Holder], result: Any) -> dict[str, Any]:
    """Result and contents of the holders after a call, as packed trees."""
    with no_grad():
        return {
            "result": Packer([h.value for h in holders], lenient=True).pack(result, "the result"),
            "holders": [list(found) for found in contents_of(holders)],
        }


def _arrays(tree: Any) -> list[np.ndarray]:
    return [np.asarray(a) for a in arrays_in(tree).values()]


def _named(holders: Sequence[Any]) -> list[tuple[str, np.ndarray]]:
    return [(name + place, np.asarray(a)) for _, name, tree in holders for place, a in arrays_in(tree).items()]


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def versions() -> dict[str, str]:
    """What bits may depend on."""
    return {
        "graphc": VERSION,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def random_state() -> dict[str, Any]:
    """The state of the generators of the process: graphc's, Python's and NumPy's."""
    kind, words, position, has_gauss, gauss = np.random.get_state()
    version, numbers, pending = random.getstate()
    return {
        "graphc": default_generator.get_state().numpy().copy(),
        "numpy": [str(kind), np.asarray(words).copy(), int(position), int(has_gauss), float(gauss)],
        "python": [version, np.array(numbers, np.uint64), pending],
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Sets the generators of the process; raises ArtifactError for what is no state of them."""
    with fits("states of random generators"):
        kind, words, position, has_gauss, gauss = state["numpy"]
        version, numbers, pending = state["python"]
        default_generator.set_state(state["graphc"])
        np.random.set_state((kind, words, position, has_gauss, gauss))
        random.setstate((version, tuple(int(n) for n in numbers), pending))


def read(path: str | os.PathLike[str]) -> Recording:
    """What is in a file. Nothing of it is executed; raises ArtifactError where it is damaged or no recording."""
    arrays = read_npz(path)
    place = os.fspath(path)
    if _TREE not in arrays:
        raise ArtifactError(f"{place} is no recording of a step", remedy="a file written by gc.debug(record=...)")
    tree = join(arrays, arrays.pop(_TREE).tobytes().decode("utf-8", "replace"))
    if not isinstance(tree, dict) or tree.get("format") != FORMAT or any(field not in tree for field in _FIELDS):
        shown = tree.get("format") if isinstance(tree, dict) else None
        raise ArtifactError(f"{place} is a recording of format {shown}; this graphc reads format {FORMAT}")
    recording = Recording(*(tree[field] for field in Recording._fields))
    wrong = next((name for name, is_right in _checks(recording) if not is_right), None)
    if wrong is not None:
        raise ArtifactError(f"{place} is damaged: {wrong} of the recording cannot be read")
    return recording


def _checks(recording: Recording) -> Iterator[tuple[str, bool]]:
    """Names of the parts of a recording, and whether they are built as ``Recorder`` builds them."""
    yield "the name", isinstance(recording.name, str)
    yield "the error", isinstance(recording.error, str)
    for part, found in (("contents before", recording.holders), ("contents after", recording.after)):
        yield part, isinstance(found, list) and all(_is_row(row, str, str, dict) for row in found)
    yield "ops", isinstance(recording.ops, list) and all(_is_row(row, *[str] * 6) for row in recording.ops)
    yield "stops", isinstance(recording.stop, list) and _is_row(recording.stop, *[str] * len(recording.stop))
    found = recording.versions
    yield "versions", isinstance(found, dict) and _is_row(list(found.values()), *[str] * len(found))


def _is_row(row: Any, *kinds: type) -> bool:
    return isinstance(row, list) and len(row) == len(kinds) and all(map(isinstance, row, kinds))


@contextmanager
def fits(what: str) -> Iterator[None]:
    """Makes ArtifactError of what a part of a file raises that is built in another way than it was written."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        if isinstance(error, GraphcError):
            raise
        raise ArtifactError(f"the recording is damaged: {what}: {type(error).__name__}: {error}") from None


def unpacked(recording: Recording, values: Sequence[Any]) -> tuple[Any, dict[str, Any], list[Any]]:
    """Arguments, keyword arguments and contents of the holders; ``values`` are what the holders are now."""
    unpacker = Unpacker(values)
    args, kwargs = unpacker.unpack(recording.args), unpacker.unpack(recording.kwargs)
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise ArtifactError("the recording is damaged: its arguments are no tuple and dictionary")
    contents = [unpacker.unpack(tree) for _, _, tree in recording.holders]
    return args, kwargs, contents
