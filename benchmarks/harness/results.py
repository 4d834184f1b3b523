"""Results of measurements: one case with its contenders, differences of their numbers, tables in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

OWN = "graphc"
TOLERANCE = 1e-3
"""A contender whose numbers differ by more from the reference is marked with ``!``."""


@dataclass
class Result:
    """One case, measured."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    """Description of the case: shapes, bytes, operations, and derived figures."""
    rounds_ms: dict[str, list[float]] = field(default_factory=dict)
    """Milliseconds per call of each contender, one per round."""
    problems: dict[str, str] = field(default_factory=dict)
    """Reasons for missing times, by contender."""
    errors: dict[str, float] = field(default_factory=dict)
    """Largest relative difference from the reference."""

    def ms(self, name: str) -> float | None:
        """Return the median of a contender over the rounds."""
        rounds = self.rounds_ms.get(name)
        return statistics.median(rounds) if rounds else None

    @property
    def best_peer(self) -> str | None:
        """Return the fastest contender other than graphc's."""
        times = {name: statistics.median(r) for name, r in self.rounds_ms.items() if r and not name.startswith(OWN)}
        return min(times, key=times.__getitem__) if times else None

    def over(self, other: str | None, name: str = OWN) -> float | None:
        """Return the median over the rounds of another contender's time over one's: above 1, ``name`` is faster."""
        theirs, own = self.rounds_ms.get(other or ""), self.rounds_ms.get(name)
        return statistics.median(t / o for t, o in zip(theirs, own, strict=True)) if theirs and own else None

    @property
    def ratio(self) -> float | None:
        """Return the best peer's time over that of graphc's first contender: above 1 graphc is faster."""
        own = next((name for name in self.rounds_ms if name.startswith(OWN) and self.rounds_ms[name]), OWN)
        return self.over(self.best_peer, own)

    def as_json(self) -> dict[str, Any]:
        ms = {name: self.ms(name) for name in self.rounds_ms}
        return {**vars(self), "ms": ms, "best_peer": self.best_peer, "ratio": self.ratio}


def first_line(error: BaseException) -> str:
    """Return ``Type: first line of the message``, for a wrapped error of a torch.compile backend that of its cause."""
    error = getattr(error, "inner_exception", error)
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def arrays_of(value: Any) -> list[np.ndarray]:
    """Copy the arrays and tensors in a result, in order, including those in fields of named records."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [array for item in value for array in arrays_of(item)]
    if value is None:
        return []
    array = value.detach().numpy() if hasattr(value, "detach") else value
    return [np.array(array, np.float64)]


def difference(results: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> float:
    """Return the largest absolute difference over the largest finite magnitude; infinite for different shapes, and
    where one side has a non-finite value that the other does not equal."""
    if [a.shape for a in results] != [a.shape for a in reference]:
        return float("inf")
    worst = 0.0
    for a, b in zip(results, reference, strict=True):
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return float("inf")
        scale = float(np.abs(b[finite]).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.abs(a[finite].astype(np.float64) - b[finite]).max(initial=0.0)) / scale)
    return worst


# ---- tables


def format_ms(ms: float) -> str:
    """Return three significant digits without an exponent."""
    digits = 0 if ms >= 100 else 1 if ms >= 10 else 2 if ms >= 1 else 3 if ms >= 0.1 else 4
    return f"{ms:.{digits}f}"


def cell(value: Any, form: str = "") -> str:
    """Return a value in this form, or a dash for none."""
    return "-" if value is None else value if isinstance(value, str) else format(value, form or _form(value))


def _form(value: Any) -> str:
    return ".2f" if isinstance(value, float) else ""


def format_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head, *lines = (f"| {' | '.join(cells)} |" for cells in (columns, *rows))
    return "\n".join([head, f"|{'---|' * len(columns)}", *lines])


def time_cell(result: Result, name: str, unit_ms: float = 1.0) -> str:
    """Return a contender's time: bold where it is the best peer's, ``!`` where its numbers are off, a dash for none."""
    ms = result.ms(name)
    if ms is None:
        return "-"
    text = format_ms(ms / unit_ms) + ("" if result.errors.get(name, 0.0) <= TOLERANCE else "!")
    facts = result.facts.get(name)
    text += "^" * bool(isinstance(facts, dict) and facts.get("unlimited"))
    among = any(n.startswith(OWN) for n in (*result.rounds_ms, *result.problems))
    return f"**{text}**" if name == result.best_peer and among else text


def format_results(
    results: Sequence[Result], names: Sequence[str], columns: Sequence[str] = (), unit_ms: float = 1.0
) -> str:
    """Return a row for each case: the facts of ``columns``, the times of the contenders ``names``, and the ratio of the
    best peer's to graphc's; then a summary of the ratios, and the reasons for missing times."""
    columns = [column for column in columns if any(column in r.facts for r in results)]
    names = [name for name in names if any(name in (*r.rounds_ms, *r.problems) for r in results)]
    ratios = [r.ratio for r in results if r.ratio is not None]
    rows = []
    for r in results:
        facts, times = (cell(r.facts.get(c)) for c in columns), (time_cell(r, n, unit_ms) for n in names)
        rows.append([r.name, *facts, *times, *([cell(r.ratio, ".2f")] if ratios else [])])
    lines = [format_table(["case", *columns, *names, *(["best peer / graphc"] if ratios else [])], rows), ""]
    if ratios:
        behind, median = sum(x < 1 for x in ratios), statistics.median(ratios)
        lines.append(f"{len(ratios)} compared, {behind} behind the best peer, median ratio {median:.2f}")
    return "\n".join([*lines, *format_problems(results)]).rstrip("\n")


def format_problems(results: Sequence[Result]) -> list[str]:
    """Return the kinds of failures, each with its cases."""
    cases: dict[tuple[str, str], list[str]] = {}
    for r in results:
        for name, problem in r.problems.items():
            cases.setdefault((name, problem), []).append(r.name)
    return [f"{name}: {problem}: {', '.join(where)}" for (name, problem), where in sorted(cases.items())]
