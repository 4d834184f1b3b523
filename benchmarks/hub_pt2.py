"""Public models as ``.pt2`` files, read and run without PyTorch: ``python -m benchmarks.hub_pt2``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from benchmarks import hub
from benchmarks.harness.sweep import OWN, Result, find_library, restart_on_one_thread
from graphc.base.installation import group_command

TOLERANCE = 1e-5
"""Largest difference of a result, relative to its largest magnitude."""
EXPORT = "torch.export"
"""The name of the problem of a model that PyTorch itself does not write to a file."""
COLUMNS = ("model", "MB", "eager error", "compiled error", "read s", "compile s")


def agrees(result: Result) -> bool:
    """Return whether the file's results agree with PyTorch's eager mode, eagerly and compiled."""
    return not result.problems and max(result.errors.values()) <= TOLERANCE


def is_exportable(result: Result) -> bool:
    """Return whether PyTorch writes the model to a file."""
    return EXPORT not in result.problems


def format_row(result: Result) -> list[str]:
    """Return the cells of a model."""
    return [
        result.name,
        hub.cell(result.facts.get("mb"), ".0f"),
        *(hub.cell(result.errors.get(mode), ".1e") for mode in ("eager", "compiled")),
        *(hub.cell(result.facts.get(what), ".2f") for what in ("read_s", "compile_s")),
    ]


def format_rows(results: Sequence[Result]) -> str:
    """Return the table, a summary, and the failures."""
    exportable = [result for result in results if is_exportable(result)]
    said = f"{len(exportable)} of {len(results)} can be exported, {sum(map(agrees, exportable))} of them agree"
    return "\n".join([*hub.table(COLUMNS, map(format_row, results)), "", said, *hub.problems(results)])


def main(argv: Sequence[str] | None = None) -> int:
    """Export, read and run the models; return 1 where a model that can be exported does not agree."""
    restart_on_one_thread("benchmarks.hub_pt2")
    models = find_library("benchmarks.models.hub")
    if models is None:
        print(f"torch is not installed: {group_command('hub')}", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print all measurements as JSON")
    hub.add_selection(parser)
    parser.set_defaults(row="benchmarks.workers.hub_pt2_row", peers=[OWN], rounds=0, seconds=0.0, weights="live")
    options = parser.parse_args(argv)
    results = hub.run_all(hub.selected(parser, options, models.MODELS), options)
    if options.json:
        json.dump([{**vars(r), "agrees": agrees(r)} for r in results], sys.stdout, indent=1)
        print()
    else:
        print(format_rows(results))
    return 0 if all(map(agrees, filter(is_exportable, results))) else 1


if __name__ == "__main__":
    sys.exit(main())
