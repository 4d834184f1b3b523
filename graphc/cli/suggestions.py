"""What was meant by a command or an argument that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.base.lazy import deferred

close_matches = deferred("difflib:get_close_matches")
LIKENESS = 0.7
"""From which on a name that exists is taken for what was meant by one that does not (difflib's ratio)."""
NEVER = ("--trust",)
"""What must be asked for by who knows what it does: it runs code from a file."""
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
"""What runners of models elsewhere call an option that commands of this one have (docs/runners.md)."""


def option_meant(given: str, options: Sequence[str]) -> str | None:
    """The option that was meant by an argument; None where none is like it."""
    name = given.partition("=")[0]
    if not name.startswith("-"):
        return None
    name = f"--{name.lstrip('-')}"
    usable = [option for option in options if option not in NEVER]
    if ELSEWHERE.get(name) in usable:
        return ELSEWHERE[name]
    starts = [option for option in usable if len(name) > 3 and option.startswith(name)]
    dashed = name.replace("_", "-").lower()
    found = [option for option in usable if option == dashed] or starts or close_matches(name, usable, 1, LIKENESS)
    return found[0] if found else None


def no_command(given: str, commands: Iterable[str]) -> str:
    """The message about a command that does not exist."""
    found = close_matches(given, list(commands), 1, 0.6)
    return f"there is no command {given!r}; " + (f"{found[0]} exists" if found else f"one of {', '.join(commands)}")
