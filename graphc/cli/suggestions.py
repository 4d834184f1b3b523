"""Suggestions for misspelled commands and options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.base.lazy import deferred

close_matches = deferred("difflib:get_close_matches")
LIKENESS = 0.7
"""Least similarity (difflib's ratio) at which an existing option is suggested."""
NEVER = ("--trust",)
"""Options that are never suggested: ``--trust`` runs code from a file, so users must know it before they ask for it."""
ELSEWHERE = {
    "--batch": "--shape",
    "--benchmark_min_time": "--duration",
    "--benchmark_repetitions": "--rounds",
    "--data_shape": "--shape",
    "--exportOutput": "--output",
    "--exportTimes": "--json",
    "--fill-mode": "--fill",
    "--function": "--entry",
    "--infStreams": "--streams",
    "--iterations": "--rounds",
    "--loadInputs": "--input",
    "--niter": "--rounds",
    "--nireq": "--streams",
    "--nstreams": "--streams",
    "--nthreads": "--threads",
    "--number": "--rounds",
    "--print-time": "--json",
    "--repeat": "--rounds",
    "--shapes": "--shape",
    "--warmUp": "--warmup",
}
"""Options of other model runners, and the option here that does the same (docs/runners.md)."""


def option_meant(argument: str, options: Sequence[str]) -> str | None:
    """Return the option most similar to an unknown argument, or None if no option resembles it."""
    name = argument.partition("=")[0]
    if not name.startswith("-"):
        return None
    name = f"--{name.lstrip('-')}"
    usable = [option for option in options if option not in NEVER]
    if ELSEWHERE.get(name) in usable:
        return ELSEWHERE[name]
    starts = [option for option in usable if len(name) > 3 and option.startswith(name)]
    dashed = name.replace("_", "-").lower()
    matches = [option for option in usable if option == dashed] or starts or close_matches(name, usable, 1, LIKENESS)
    return matches[0] if matches else None


def no_command(name: str, commands: Iterable[str]) -> str:
    """Return the error message for an unknown command, with the closest existing one."""
    matches = close_matches(name, list(commands), 1, 0.6)
    suggestion = f"did you mean {matches[0]}?" if matches else f"choose one of {', '.join(commands)}"
    return f"unknown command {name!r}; {suggestion}"
