"""``replay``: run a recorded step again, and report where its results differ from the recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc.base.difference import Difference
from graphc.base.errors import ArgumentError
from graphc.monitor.contents import check_tolerance, compared, fields
from graphc.monitor.debug import debug
from graphc.monitor.holders import Holder, holders_of, matched
from graphc.monitor.recording import Recording, after_call, fits, read, set_random_state, unpacked, versions
from graphc.monitor.stops import Stop
from graphc.nn.module import Module
from graphc.optim.optimizer import Optimizer


class OpDifference(NamedTuple):
    """First op whose results differ."""

    number: int
    """Number of equal ops before it."""
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return (
            f"the first op that differs, after {self.number} equal ones: recorded {self.recorded}; now {self.replayed}"
        )


class Replay:
    """Result of a replay, compared with the recording."""

    def __init__(
        self, recording: Recording, values: list[Difference], op: OpDifference | None, error: BaseException | None
    ):
        self.name = recording.name
        self.values = values
        """Largest difference of each result, and of each tensor and gradient after the call."""
        self.op = op
        """First op that differs; None if all are equal, or if one of the two runs did not record its ops."""
        self.recorded_error = recording.error
        self.error = error
        """Error that the call raised; ``error.stop`` has the tensors of a stop."""
        self.result: Any = None
        """Result of the call."""
        self.log: debug | None = None
        """Log of the ops."""
        now = versions()
        self.notes = [f"{k}: recorded with {v}, now {now[k]}" for k, v in recording.versions.items() if now.get(k) != v]
        """Versions that differ from the recording's."""

    @property
    def is_equal(self) -> bool:
        """Check whether all values, and all ops recorded in both runs, have the same bits."""
        return self.op is None and self._same_error() and all(v.is_equal for v in self.values)

    @property
    def first(self) -> Difference | None:
        """First value outside the tolerance, or None."""
        return next((v for v in self.values if not v.is_within), None)

    def __bool__(self) -> bool:
        return self.first is None and self._same_error()

    def _same_error(self) -> bool:
        return _first_line(self.recorded_error) == _first_line(_text(self.error))

    def __str__(self) -> str:
        verdict = "the same bits as recorded" if self.is_equal else "different from the recording"
        if self.error is not None and not self._same_error():
            again = self.recorded_error.partition(":")[0] == type(self.error).__name__
            verdict = f"raised {type(self.error).__name__}{' again, but elsewhere' * again}"
        lines = [f"{self.name}: {verdict}"]
        lines += [f"  {note}" for note in self.notes]
        if self.recorded_error or self.error is not None:
            lines.append(f"  recorded error: {self.recorded_error or 'none'}")
            lines.append(f"  error now: {_text(self.error) or 'none'}")
        if self.op is not None:
            lines.append(f"  {self.op}")
        different = [v for v in self.values if not v.is_equal]
        lines += [f"  {v}" for v in different[:20]]
        lines += [f"  ... {len(different) - 20} more"] if len(different) > 20 else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as numbers and strings, for JSON."""
        return {
            "name": self.name,
            "equal": self.is_equal,
            "values": [fields(v) for v in self.values],
            "op": None if self.op is None else self.op._asdict(),
            "recorded_error": self.recorded_error,
            "error": _text(self.error),
            "notes": self.notes,
        }


def replay(
    path: str | os.PathLike[str],
    function: Callable[..., Any],
    *,
    model: Any = None,
    optimizer: Any = None,
    eager: bool = False,
    stop: str | Sequence[str] | None = None,
    on_stop: Callable[[Stop], Any] | None = None,
    tolerance: float | None = None,
) -> Replay:
    """Run a step recorded by ``graphc.debug(record=path)`` again, and compare it with the recording.

    The modules, optimizers, generators and tensors that ``function`` refers to get their recorded contents, and keep
    the contents after the call. They are matched by name, or else in order. Nothing in the file is executed.

    Args:
        path: the recording.
        function: the recorded function, eager or compiled; it may live in another process.
        model, optimizer: the objects to use, or lists of them, if they cannot be found from ``function``.
        eager: run the Python code of compiled functions, so that their ops are compared.
        stop, on_stop: as in ``debug`` (default: as in the recording).
        tolerance: as in ``compare``.

    Raises:
        ArtifactError: the file is damaged.
        ArgumentError: the recording does not fit the function, model or optimizer.
        Exception: any error of ``function``, unless the recording has one; then it is ``error`` of the result.

    Example:
        >>> import graphc as gc
        >>> layer = gc.nn.Linear(3, 2)
        >>> with gc.debug(record="step.gcr"):
        ...     y = layer(gc.ones(1, 3))
        >>> print(gc.replay("step.gcr", layer))
        layer: the same bits as recorded
    """
    if not callable(function):
        raise ArgumentError(
            f"replay: function must be the function that was recorded, got {type(function).__name__}",
            remedy="call replay(path, train_step)",
        )
    check_tolerance(tolerance)
    recording = read(path)
    named = [*_named("model", model), *_named("optimizer", optimizer)]
    present = _reachable(function, named)
    kinds = [(kind, name) for kind, name, _ in recording.holders]
    holders = matched(kinds, present)
    args, kwargs, contents = unpacked(recording, [None if h is None else h.value for h in holders])
    _restore(holders, contents)
    set_random_state(recording.random)
    session = debug(stop=recording.stop if stop is None else stop, on_stop=on_stop, eager=eager, stream=False)
    result, error = _call(session.following(function, recording.name), args, kwargs, bool(recording.error))
    return _report(recording, holders, session, result, error, tolerance)


def _report(
    recording: Recording,
    holders: Sequence[Holder | None],
    session: debug,
    result: Any,
    error: BaseException | None,
    tolerance: float | None,
) -> Replay:
    """Compare the results and the contents after a call with the recording."""
    values: list[Difference] = []
    missing: list[str] = []
    is_elsewhere = error is not None and _first_line(recording.error) != _first_line(_text(error))
    if not is_elsewhere:  # after an error at another line the contents cannot be compared
        with fits("values after the call"):
            values, missing = _compare_after(recording, holders, result, tolerance)
    report = Replay(recording, values, _first_op(recording.ops, session.ops_seen), error)
    report.result, report.log = result, session
    if missing:
        report.notes.append(f"in one of the recording and the replay only: {', '.join(missing)}")
    return report


def _restore(holders: Sequence[Holder | None], contents: Sequence[Any]) -> None:
    """Restore the recorded contents of the matched holders, those of kind ``state`` first."""
    for holder, content in sorted(
        zip(holders, contents, strict=True), key=lambda p: p[0] is None or p[0].kind != "state"
    ):
        if holder is not None:
            with fits(f"contents of {holder.name}"):
                holder.restore(content)


def _named(name: str, value: Any) -> list[tuple[str, Any]]:
    if value is None:
        return []
    objects = value if isinstance(value, (list, tuple)) else [value]
    for item in objects:
        if not isinstance(getattr(item, "_target", item), Module if name == "model" else Optimizer):
            raise ArgumentError(
                f"replay: {name} must be {'a Module' if name == 'model' else 'an Optimizer'}, or a list of them, got "
                f"{type(item).__name__}"
            )
    return [(name if len(objects) == 1 else f"{name}[{i}]", v) for i, v in enumerate(objects)]


def _reachable(function: Any, named: Sequence[tuple[str, Any]]) -> list[Holder]:
    """Return the named holders, and the holders of other kinds to which the function refers."""
    chosen = holders_of(named)
    kinds = {h.kind for h in chosen}
    return [*chosen, *(h for h in holders_of([("function", function)]) if h.kind not in kinds)]


def _call(function: Any, args: Any, kwargs: Any, may_fail: bool) -> tuple[Any, BaseException | None]:
    try:
        return function(*args, **kwargs), None
    # NOTE: a recorded step may raise any error.
    except Exception as error:
        if not may_fail:
            raise
        return None, error


def _compare_after(
    recording: Recording, holders: Sequence[Holder | None], result: Any, tolerance: float | None
) -> tuple[list[Difference], list[str]]:
    """Compare the values after both calls, and list the names of values in one of them only."""
    now = after_call([h for h in holders if h is not None], result)
    after = {(kind, name): tree for kind, name, tree in recording.after}
    pairs = [] if recording.error else [(("", "result", recording.result), ("", "result", now["result"]))]
    contents = iter(now["holders"])
    for (kind, name, _), holder in zip(recording.holders, holders, strict=True):
        if holder is not None:
            present = next(contents)
            if (kind, name) in after:
                pairs.append(((kind, name, after[kind, name]), present))
    return compared(pairs, tolerance)


def _first_op(recorded: Sequence[Any], now: Sequence[Any]) -> OpDifference | None:
    if not recorded or not now:
        return None
    for number, (a, b) in enumerate(zip(recorded, now, strict=False)):
        if [*a[:3], a[4]] != [*b[:3], b[4]]:
            return OpDifference(number, _op(a), _op(b))
    if len(recorded) != len(now):
        longer = recorded if len(recorded) > len(now) else now
        number = min(len(recorded), len(now))
        texts = [_op(longer[number]) if ops is longer else "nothing" for ops in (recorded, now)]
        return OpDifference(number, *texts)
    return None


def _op(described: Sequence[str]) -> str:
    kind, op, module, line, _, results = described
    name = f"gradient of {op}" if kind else op
    return f"{name}{f' in {module}' if module else ''} {line} -> {results}"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _text(error: BaseException | None) -> str:
    return "" if error is None else f"{type(error).__name__}: {error}"
