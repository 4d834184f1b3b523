"""Print rows of figures as a Markdown table, with the missing entries below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.harness.measure import Figures, Row
from benchmarks.peers import OWN

TOLERANCE = 1e-3
"""A peer whose numbers differ by more from the reference is marked with ``!``."""


def format_ms(ms: float) -> str:
    """Return three significant digits without an exponent."""
    digits = 0 if ms >= 100 else 1 if ms >= 10 else 2 if ms >= 1 else 3 if ms >= 0.1 else 4
    return f"{ms:.{digits}f}"


def format_cell(figures: Figures | None, best: bool) -> str:
    """Return a peer's time, bold for the best one, or a dash."""
    if figures is None or figures.ms is None:
        return "-"
    text = format_ms(figures.ms)
    if figures.error is not None and not figures.error <= TOLERANCE:
        text += "!"
    if figures.unlimited:
        text += "^"
    return f"**{text}**" if best else text


def format_table(rows: Sequence[Row], names: Sequence[str], absent: Mapping[str, str]) -> str:
    """Return the table (milliseconds per call; ratio above 1: graphc is faster) and the notes."""
    own = [name for name in OWN if name in names]
    peers = [name for name in names if name not in OWN]
    header = ["workload", *own, *peers, "best peer / graphc", "graphc error", "graphc first call s"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows:
        best = row.best_peer
        cells = [row.workload]
        cells += [format_cell(row.peers.get(name), name == best) for name in [*own, *peers]]
        mine = row.peers.get("graphc", Figures())
        cells.append(f"{row.ratio:.2f}" if row.ratio is not None else "-")
        cells.append(f"{mine.error:.1e}" if mine.error is not None else "-")
        cells.append(f"{mine.first_call_s:.2f}" if mine.first_call_s is not None else "-")
        lines.append("| " + " | ".join(cells) + " |")
    notes = [f"absent: {name} ({reason})" for name, reason in absent.items()]
    problems: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for name, figures in row.peers.items():
            if figures.unlimited:
                notes.append(f"^ {row.workload}, {name}: more instructions than the target's in {figures.unlimited}")
            if figures.problem:
                problems.setdefault((name, figures.problem), []).append(row.workload)
    notes += [f"{name}: {problem}: {', '.join(where)}" for (name, problem), where in sorted(problems.items())]
    return "\n".join([*lines, "", *notes]).rstrip("\n") + "\n"
