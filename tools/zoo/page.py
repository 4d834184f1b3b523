"""The results of the zoo as a table, and the page docs/zoo.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.results import format_table

Row = Mapping[str, Any]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "zoo.md"
LARGEST = {"float16": 1e-2, "int8": 2e-2}
"""Allowed difference as a fraction of the largest expected number, by kind: a rounding that falls otherwise moves a
quantised number by a step."""
OTHERWISE = 5e-4
"""Allowed difference of other kinds."""
WAYS = ("compile", "export", "eager")
BEGIN, END = "<!-- zoo:begin -->", "<!-- zoo:end -->"


def is_fault(row: Row) -> bool:
    """Return whether a file is refused in any way, differs, or decides otherwise."""
    return any(word not in ("takes", "rounds otherwise", "one a size") for word in outcome(row))


def outcome(row: Row) -> list[str]:
    """Return a word for each way: takes, rounds otherwise, one a size, refused, differs or decides otherwise."""
    if "failed" in row or "read" in row:
        return ["refused"]
    return [_of_way(row.get(way, {}), row) for way in WAYS]


def _of_way(found: Row, row: Row) -> str:
    if "error" in found:
        return "refused"
    difference, is_same = found.get("difference", 0.0), found.get("same", True)
    if row.get("codes", (0, 0))[1]:
        return "differs"
    if is_same and difference <= LARGEST.get(row.get("kind", ""), OTHERWISE):
        return "one a size" if found.get("programs", 0) > 2 else "takes"
    own = row.get("own", {"difference": 0.0, "same": True})
    if difference <= own["difference"] and (is_same or not own["same"]):
        return "rounds otherwise"
    return "differs" if is_same else "decides otherwise"


def reason(row: Row) -> str:
    """Return the first error of a row, or its largest difference where that is too large."""
    errors = [row.get(key, "") for key in ("failed", "read")] + [row.get(way, {}).get("error", "") for way in WAYS]
    return next((error for error in errors if error), "")


def line(name: str, row: Row) -> str:
    """Return one line about a file."""
    words = " ".join(f"{w}" for w in outcome(row))
    return f"{name}: {words} {_ratio(row)} {_first(row)} {reason(row)}"


def table(rows: Mapping[str, Row]) -> str:
    """Return a summary and the table, in Markdown."""
    head = ["file", *WAYS, "difference", "own", "ratios", "first, s (ONNX Runtime)"]
    cells = []
    for name, row in rows.items():
        words = outcome(row)
        words += [words[0]] * (len(WAYS) - len(words))
        largest = max([row.get(way, {}).get("difference", 0.0) for way in WAYS])
        own = f"{row['own']['difference']:.0e}" if "own" in row else "-"
        cells.append([f"`{name}`", *words, f"{largest:.0e}", own, _ratio(row), _first(row)])
    return f"{summary(rows)}.\n\n{format_table(head, cells)}"


def summary(rows: Mapping[str, Row]) -> str:
    """Return the counts of outcomes and the geometric mean of the ratios."""
    refused = sum("refused" in outcome(row) for row in rows.values())
    sized = sum("one a size" in outcome(row) for row in rows.values())
    wrong = sum(bool({"differs", "decides otherwise"} & set(outcome(row))) for row in rows.values())
    rounded = sum("rounds otherwise" in outcome(row) for row in rows.values())
    ratios = [_mean(row["ratios"]) for row in rows.values() if row.get("ratios")]
    below = sum(ratio < 1 for ratio in ratios)
    return (
        f"{len(rows)} files: {refused} refused, {sized} with a program for each size, {wrong} with other results, "
        f"{rounded} that round otherwise; "
        f"{_mean(ratios):.2f} times ONNX Runtime (geometric mean of {len(ratios)}), {below} below 1"
    )


def write(rows: Mapping[str, Row]) -> None:
    """Replace the table in docs/zoo.md."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}", encoding="utf-8")


def _mean(numbers: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def _ratio(row: Row) -> str:
    return " ".join(f"{ratio:.2f}" for ratio in row.get("ratios", ())) or "-"


def _first(row: Row) -> str:
    return f"{row['first_s']:.2f} ({row['onnxruntime_first_s']:.2f})" if "first_s" in row else "-"
