"""``replay``: a recorded step once more, and where it gives something else than it gave then."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc.base.errors import ArgumentError
from graphc.monitor.contents import compared
from graphc.monitor.debug import debug
from graphc.monitor.difference import Difference, check_tolerance
from graphc.monitor.holders import Holder, holders_of, matched
from graphc.monitor.recording import Recording, after_call, fits, read, set_random_state, unpacked, versions
from graphc.monitor.stops import Stop
from graphc.nn.module import Module
from graphc.optim.optimizer import Optimizer


class OpDifference(NamedTuple):
    """The first op whose results differ."""

    number: int
    """How many ops were the same before it."""
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return (
            f"the first op that differs, after {self.number} equal ones: recorded {self.recorded}; now {self.replayed}"
        )


class Replay:
    """What a replay gave, beside what was recorded."""

    def __init__(
        self, recording: Recording, values: list[Difference], op: OpDifference | None, error: BaseException | None
    ):
        self.name = recording.name
        self.values = values
        """Results, tensors and gradients after the call, each with the largest difference."""
        self.op = op
        """The first op that differs; None where none does, or ops were not seen in both."""
        self.recorded_error = recording.error
        self.error = error
        """What the call has raised; of a stop ``error.stop`` has the tensors."""
        self.result: Any = None
        """What the call returned."""
        self.log: debug | None = None
        """The ops that were seen."""
        now = versions()
        self.notes = [f"{k}: recorded with {v}, now {now[k]}" for k, v in recording.versions.items() if now.get(k) != v]
        """Versions that are others now."""

    @property
    def is_equal(self) -> bool:
        """Whether all values, and all ops that were seen in both, have the same bits."""
        return self.op is None and self._same_error() and all(v.is_equal for v in self.values)

    @property
    def first(self) -> Difference | None:
        """The first value beyond the tolerance; None where there is none."""
        return next((v for v in self.values if not v.is_within), None)

    def __bool__(self) -> bool:
        return self.first is None and self._same_error()

    def _same_error(self) -> bool:
        return _first_line(self.recorded_error) == _first_line(_text(self.error))

    def __str__(self) -> str:
        verdict = "the same bits as recorded" if self.is_equal else "not the same as recorded"
        if self.error is not None and not self._same_error():
            again = self.recorded_error.partition(":")[0] == type(self.error).__name__
            verdict = f"raised {type(self.error).__name__}{' again, in another place' * again}"
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
        """As numbers and texts, for JSON."""
        return {
            "name": self.name,
            "equal": self.is_equal,
            "values": [v._asdict() for v in self.values],
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
    """Runs a step that ``graphc.debug(record=path)`` has recorded once more, and compares.

    ``function`` is what was called then, eager or compiled; it may live in another process. The modules, optimizers,
    generators and tensors that it refers to get the contents that were recorded, and keep what the call leaves; they
    are found by their names, or in order. ``model`` and ``optimizer`` say which ones (one or a list), where they are
    not found in the function. Compared are the results, the tensors, gradients and states afterwards, and where both
    calls showed their ops, each of these.

    ``eager=True`` runs the Python code of compiled functions, so that ops are seen. ``stop`` and ``on_stop`` are as
    those of ``debug``; as a default it stops as the recording did. What the call raises is ``error`` of the result
    where an error was recorded too. ``tolerance``: as in ``graphc.compare``.

    Nothing of the file is executed. Raises ArtifactError where it is damaged, ArgumentError where it does not fit.
    """
    if not callable(function):
        raise ArgumentError(
            f"replay: function must be what was called when the step was recorded, got {type(function).__name__}",
            remedy="replay(path, train_step)",
        )
    check_tolerance(tolerance)
    recording = read(path)
    given = [*_named("model", model), *_named("optimizer", optimizer)]
    present = _reached(function, given)
    kinds = [(kind, name) for kind, name, _ in recording.holders]
    found = matched(kinds, present)
    args, kwargs, contents = unpacked(recording, [None if h is None else h.value for h in found])
    for holder, content in sorted(
        zip(found, contents, strict=True), key=lambda p: p[0] is None or p[0].kind != "state"
    ):
        if holder is not None:
            with fits(f"contents of {holder.name}"):
                holder.restore(content)
    set_random_state(recording.random)
    session = debug(stop=recording.stop if stop is None else stop, on_stop=on_stop, eager=eager, stream=False)
    result, error = _call(session.following(function, recording.name), args, kwargs, bool(recording.error))
    values: list[Difference] = []
    missing: list[str] = []
    is_elsewhere = error is not None and _first_line(recording.error) != _first_line(_text(error))
    if not is_elsewhere:  # what a call leaves that has ended in another place says nothing
        with fits("values after the call"):
            values, missing = _compared(recording, found, result, tolerance)
    done = Replay(recording, values, _first_op(recording.ops, session.ops_seen), error)
    done.result, done.log = result, session
    if missing:
        done.notes.append(f"in one of the recording and the replay only: {', '.join(missing)}")
    return done


def _named(name: str, value: Any) -> list[tuple[str, Any]]:
    if value is None:
        return []
    several = value if isinstance(value, (list, tuple)) else [value]
    for one in several:
        if not isinstance(getattr(one, "_target", one), Module if name == "model" else Optimizer):
            raise ArgumentError(
                f"replay: {name} must be {'a Module' if name == 'model' else 'an Optimizer'}, or a list of some, got "
                f"{type(one).__name__}"
            )
    return [(name if len(several) == 1 else f"{name}[{i}]", v) for i, v in enumerate(several)]


def _reached(function: Any, given: Sequence[tuple[str, Any]]) -> list[Holder]:
    """What the function refers to; of the kinds that are given, those instead."""
    chosen = holders_of(given)
    kinds = {h.kind for h in chosen}
    return [*chosen, *(h for h in holders_of([("function", function)]) if h.kind not in kinds)]


def _call(function: Any, args: Any, kwargs: Any, may_fail: bool) -> tuple[Any, BaseException | None]:
    try:
        return function(*args, **kwargs), None
    # NOTE: whatever the step raises: it was recorded because it did.
    except Exception as error:
        if not may_fail:
            raise
        return None, error


def _compared(
    recording: Recording, found: Sequence[Holder | None], result: Any, tolerance: float | None
) -> tuple[list[Difference], list[str]]:
    """All values that there are in both, and the names of those that are not."""
    now = after_call([h for h in found if h is not None], result)
    after = {(kind, name): tree for kind, name, tree in recording.after}
    pairs = [] if recording.error else [(("", "result", recording.result), ("", "result", now["result"]))]
    contents = iter(now["holders"])
    for (kind, name, _), holder in zip(recording.holders, found, strict=True):
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
    kind, op, place, line, _, shown = described
    name = f"gradient of {op}" if kind else op
    return f"{name}{f' in {place}' if place else ''} {line} -> {shown}"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _text(error: BaseException | None) -> str:
    return "" if error is None else f"{type(error).__name__}: {error}"
